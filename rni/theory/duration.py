r"""The length of training sequences from which on a minimum of the loss is a generalizing integrator (section 3)."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.arrays import as_matrix
from rni.core.errors import InputError, require_whole
from rni.theory.conditions import coarsest_eps


class LinearNetwork(NamedTuple):
    """A linear network: W (neurons, neurons), encoders and decoders (neurons, channels).

    Examples
    --------
    >>> net = rni.theory.short_sighted_network(duration=2, decay=0.9, scale=1.0)
    >>> net.recurrent.shape, net.encoders.shape
    (torch.Size([2, 2]), torch.Size([2, 1]))
    """

    recurrent: Tensor
    encoders: Tensor
    decoders: Tensor


def shortest_guaranteed_duration(recurrent: Any) -> int:
    r"""Compute $T = r + 1$, from which on a minimum of rank r is a generalizing integrator, for any vectors and
    channels.

    Each entry of $\mu_q - S\Gamma^q$ is a sum of at most r + 1 exponentials in q. If it is 0 for r + 1 values of q, it
    is 0 for all q. Singular values below the rounding of the given numbers do not count for the rank.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).

    Examples
    --------
    >>> rni.theory.shortest_guaranteed_duration(torch.ones(5, 5))  # rank 1
    2
    """
    w = as_matrix("recurrent", recurrent).detach()
    return int(torch.linalg.matrix_rank(w, rtol=len(w) * coarsest_eps(recurrent))) + 1


def short_sighted_network(duration: int, decay: float, scale: float) -> LinearNetwork:
    r"""Construct a network whose loss is 0 with sequences of T steps, but which is not an integrator.

    The network is $W = \mathrm{diag}(\lambda)$, $e = 1$ and
    $d_i = s\, \frac{\gamma}{\lambda_i} \prod_{j \ne i} \frac{\gamma - \lambda_j}{\lambda_i - \lambda_j}$, with T
    neurons and one channel. Its rank is r = T. It has $\mu_q = s\gamma^q$ for q = 1, ..., T and not for q = T + 1.

    Parameters
    ----------
    duration : int
        T.
    decay : float
        $\gamma$, not 0.
    scale : float
        s.

    Examples
    --------
    >>> w, e, d = rni.theory.short_sighted_network(duration=3, decay=0.9, scale=1.0)
    >>> problem = rni.theory.linear_problem(e, d, decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.averaged_loss(w, problem).item() < 1e-20
    True
    >>> bool(rni.theory.is_generalizing_integrator(w, e, d, 0.9, 1.0))
    False
    """
    require_whole("duration", duration, 1)
    if decay == 0:
        raise InputError("decay", decay, "a number other than 0, because the integral would always be 0")
    eigenvalues = decay * torch.cos(torch.pi * (torch.arange(duration, dtype=torch.float64) + 0.5) / (2 * duration))
    gaps = eigenvalues[:, None] - eigenvalues[None, :] + torch.eye(duration, dtype=torch.float64)
    ratios = (decay - eigenvalues[None, :]) / gaps
    lagrange = ratios.masked_fill(torch.eye(duration, dtype=torch.bool), 1.0).prod(1)
    decoder = scale * decay / eigenvalues * lagrange
    return LinearNetwork(torch.diag(eigenvalues), torch.ones(duration, 1, dtype=torch.float64), decoder[:, None])
