"""The effect of a small full-rank start on the moments (section 3, "Initialization with full rank connection
matrices").
"""

from typing import Any

import torch
from torch import Tensor

from rni.core.arrays import as_matrix, as_vector_pair
from rni.core.errors import require_whole
from rni.theory.moments import krylov, moments


def random_bulk(neurons: int, radius: float, generator: torch.Generator) -> Tensor:
    r"""Draw $\epsilon_{ij} \sim \mathcal{N}(0, \rho^2 / n)$, whose eigenvalues fill a disc of radius $\rho$.

    Parameters
    ----------
    neurons : int
        n.
    radius : float
        $\rho$.
    generator : torch.Generator
        The random generator.

    Returns
    -------
    Tensor
        (neurons, neurons).

    Examples
    --------
    >>> bulk = rni.theory.random_bulk(200, radius=0.5, generator=torch.Generator().manual_seed(0))
    >>> round(torch.linalg.eigvals(bulk).abs().max().item(), 1)
    0.5
    """
    require_whole("neurons", neurons, 1)
    draw = torch.randn(neurons, neurons, dtype=torch.float64, generator=generator)
    return radius * draw / neurons**0.5


def moment_perturbation(recurrent: Any, bulk: Any, encoders: Any, decoders: Any, duration: int) -> Tensor:
    r"""Compute $\delta\mu_q = D^\dagger (W + \epsilon)^q E - D^\dagger W^q E$ for q = 1, ..., T.

    Parameters
    ----------
    recurrent, bulk : array
        W and $\epsilon$, (neurons, neurons).
    encoders, decoders : array
        (neurons, channels).
    duration : int
        T.

    Returns
    -------
    Tensor
        (duration, channels, channels).

    Examples
    --------
    >>> w, e, d = torch.eye(3).double(), torch.ones(3).double(), torch.ones(3).double()
    >>> rni.theory.moment_perturbation(w, 0.1 * w, e, d, duration=2).round(decimals=6).flatten().tolist()
    [0.3, 0.63]
    """
    recurrent = as_matrix("recurrent", recurrent)
    bulk = as_matrix("bulk", bulk, len(recurrent))
    encoders, decoders = as_vector_pair(encoders, decoders, len(recurrent))
    require_whole("duration", duration, 1)
    perturbed = moments(recurrent + bulk, encoders, decoders, duration)
    return perturbed - moments(recurrent, encoders, decoders, duration)


def expected_perturbation(recurrent: Any, encoders: Any, decoders: Any, radius: float, duration: int) -> Tensor:
    r"""Compute the square root of $\langle \delta\mu_q^2 \rangle = \frac1n \sum_{p=1}^{q} \rho^{2(q-p+1)}
    \left\|\sum_{m=0}^{p-1} (W^{\dagger m} d)(W^{p-1-m} e)^\dagger\right\|^2$.

    The formula holds for `random_bulk` and W of low rank, in leading order in 1/n and all orders in the radius: k
    adjacent factors $\epsilon$ act as one Gaussian matrix of variance $\rho^{2k}/n$, and each further group of factors
    $\epsilon$ contributes another $n^{-1/2}$.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    encoders, decoders : array
        (neurons, channels).
    radius : float
        $\rho$.
    duration : int
        T.

    Returns
    -------
    Tensor
        (duration, channels, channels).

    Examples
    --------
    >>> e, d = rni.vectors.independent(300, 1, torch.Generator().manual_seed(0))
    >>> w = 0.9 * d @ e.T
    >>> rni.theory.expected_perturbation(w, e, d, radius=0.5, duration=3).shape
    torch.Size([3, 1, 1])
    """
    recurrent = as_matrix("recurrent", recurrent)
    encoders, decoders = as_vector_pair(encoders, decoders, len(recurrent))
    require_whole("duration", duration, 1)
    encoded = krylov(recurrent, encoders, duration - 1)
    decoded = krylov(recurrent.T, decoders, duration - 1)
    encoder_gram = torch.einsum("jna,kna->jka", encoded, encoded)
    decoder_gram = torch.einsum("jnc,knc->jkc", decoded, decoded)

    # n <delta mu_q^2> = rho^2 (norm of the term p = q, plus n <delta mu_{q-1}^2>)
    variances: list[Tensor] = []
    for p in range(1, duration + 1):
        sensitivity = torch.einsum("jkc,jka->ca", decoder_gram[:p, :p], encoder_gram[:p, :p].flip(0, 1))
        earlier = variances[-1] if variances else torch.zeros_like(sensitivity)
        variances.append(radius**2 * (sensitivity + earlier))
    return (torch.stack(variances) / len(recurrent)).sqrt()
