r"""How long must training sequences be for a minimum of the loss to be a generalizing integrator (section 3)?"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import precision, square, whole


class LinearNetwork(NamedTuple):
    """W (neurons, neurons), encoders and decoders (neurons, channels).

    >>> net = rni.theory.short_sighted_network(duration=2, decay=0.9, scale=1.0)
    >>> net.recurrent.shape, net.encoders.shape
    (torch.Size([2, 2]), torch.Size([2, 1]))
    """

    recurrent: Tensor
    encoders: Tensor
    decoders: Tensor


def shortest_guaranteed_duration(recurrent: Any) -> int:
    r"""$T \ge r + 1$: the shortest duration at which a minimum of this rank is a GI, whatever its vectors and channels.

    Each entry of $\mu_q - S\Gamma^q$ is a sum of r + 1 exponentials at most, so it is 0 for good after r + 1 zeros.
    Singular values within the precision of the numbers given don't count.

    >>> rni.theory.shortest_guaranteed_duration(torch.ones(5, 5))  # rank 1
    2
    """
    w = square(recurrent).detach()
    return int(torch.linalg.matrix_rank(w, rtol=len(w) * precision(recurrent))) + 1


def short_sighted_network(duration: int, decay: float, scale: float) -> LinearNetwork:
    r"""$W = \mathrm{diag}(\lambda)$, $e = 1$,
    $d_i = s\, \frac{\gamma}{\lambda_i} \prod_{j \ne i} \frac{\gamma - \lambda_j}{\lambda_i - \lambda_j}$.

    A network of rank r = T that has $\mu_q = s\gamma^q$ for q = 1, ..., T and not for q = T + 1 (`decay` not 0): its
    loss is exactly 0 with sequences of T steps, and it is not a GI. `duration` neurons, one channel.

    >>> w, e, d = rni.theory.short_sighted_network(duration=3, decay=0.9, scale=1.0)
    >>> problem = rni.theory.linear_problem(e, d, decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.averaged_loss(w, problem).item() < 1e-20
    True
    >>> bool(rni.theory.is_generalizing_integrator(w, e, d, 0.9, 1.0))
    False
    """
    rank = whole(duration, "duration")
    if decay == 0:
        raise InputError("decay: 0; allowed: any other value, its integral is 0 whatever the duration")
    eigenvalues = decay * torch.cos(torch.pi * (torch.arange(rank, dtype=torch.float64) + 0.5) / (2 * rank))
    gaps = eigenvalues[:, None] - eigenvalues[None, :] + torch.eye(rank, dtype=torch.float64)
    ratios = (decay - eigenvalues[None, :]) / gaps
    lagrange = ratios.masked_fill(torch.eye(rank, dtype=torch.bool), 1.0).prod(1)
    decoder = scale * decay / eigenvalues * lagrange
    return LinearNetwork(torch.diag(eigenvalues), torch.ones(rank, 1, dtype=torch.float64), decoder[:, None])
