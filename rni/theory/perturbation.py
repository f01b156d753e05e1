"""What a small full-rank start adds to the moments: section 3, "Initialization with full rank connection matrices"."""

from typing import Any

import torch
from torch import Tensor

from rni.theory._arrays import square, vector_pair, whole
from rni.theory.moments import krylov, moments


def random_bulk(neurons: int, radius: float, generator: torch.Generator) -> Tensor:
    r"""$\epsilon_{ij} \sim \mathcal{N}(0, \rho^2 / n)$: (neurons, neurons), eigenvalues in a disc of radius $\rho$.

    >>> bulk = rni.theory.random_bulk(200, radius=0.5, generator=torch.Generator().manual_seed(0))
    >>> round(torch.linalg.eigvals(bulk).abs().max().item(), 1)
    0.5
    """
    neurons = whole(neurons, "neurons")
    draw = torch.randn(neurons, neurons, dtype=torch.float64, generator=generator)
    return radius * draw / neurons**0.5


def moment_perturbation(recurrent: Any, bulk: Any, encoders: Any, decoders: Any, duration: int) -> Tensor:
    r"""$\delta\mu_q = d^\dagger (W + \epsilon)^q e - d^\dagger W^q e$ for q = 1, ..., T: (T, channels, channels).

    >>> w, e, d = torch.eye(3).double(), torch.ones(3).double(), torch.ones(3).double()
    >>> rni.theory.moment_perturbation(w, 0.1 * w, e, d, duration=2).round(decimals=6).flatten().tolist()
    [0.3, 0.63]
    """
    recurrent, duration = square(recurrent), whole(duration, "duration")
    encoders, decoders = vector_pair(encoders, decoders, len(recurrent))
    moved = moments(recurrent + square(bulk, "bulk", len(recurrent)), encoders, decoders, duration)
    return moved - moments(recurrent, encoders, decoders, duration)


def expected_perturbation(recurrent: Any, encoders: Any, decoders: Any, radius: float, duration: int) -> Tensor:
    r"""$\langle \delta\mu_q^2 \rangle = \frac1n \sum_{p=1}^{q} \rho^{2(q-p+1)}
    \left\|\sum_{m=0}^{p-1} (W^{\dagger m} d)(W^{p-1-m} e)^\dagger\right\|^2$.

    Its square root, (T, channels, channels), for `random_bulk` and W of low rank. Leading order in 1/n, all orders in
    the radius: a run of k factors $\epsilon$ acts as one Gaussian matrix of variance $\rho^{2k}/n$, and two separate
    runs bring another $n^{-1/2}$.

    >>> e, d = rni.vectors.independent(300, 1, torch.Generator().manual_seed(0))
    >>> w = 0.9 * d @ e.T
    >>> rni.theory.expected_perturbation(w, e, d, radius=0.5, duration=3).shape
    torch.Size([3, 1, 1])
    """
    recurrent, duration = square(recurrent), whole(duration, "duration")
    encoders, decoders = vector_pair(encoders, decoders, len(recurrent))
    encoded = krylov(recurrent, encoders, duration - 1)
    decoded = krylov(recurrent.T, decoders, duration - 1)
    encoder_gram = torch.einsum("jna,kna->jka", encoded, encoded)
    decoder_gram = torch.einsum("jnc,knc->jkc", decoded, decoded)
    variances: list[Tensor] = []
    for p in range(1, duration + 1):
        sensitivity = torch.einsum("jkc,jka->ca", decoder_gram[:p, :p], encoder_gram[:p, :p].flip(0, 1))
        earlier = variances[-1] if variances else torch.zeros_like(sensitivity)
        variances.append(radius**2 * (sensitivity + earlier))
    return (torch.stack(variances) / len(recurrent)).sqrt()
