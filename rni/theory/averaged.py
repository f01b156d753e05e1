r"""The loss of a linear network averaged over its inputs, with its first two derivatives at any W.

Section 3 and the appendices "Fully averaged loss" and "Gradient and Hessian", for any number of channels and any input
correlation.

With $E_k = W^k E$ and $D_m = (W^\dagger)^m D$ every derivative of a moment is a sum over $m + k = p - 1$ of
$D_m (\cdot) E_k^\dagger$, so the gradient is one product of a block-Hankel matrix with the two Krylov families.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import matrix, per_channel, square, vector_pair
from rni.theory.moments import input_correlation, krylov, target_moments


@dataclass(frozen=True)
class LinearProblem:
    r"""$(E, D, \gamma, s, \chi)$: vectors (neurons, channels), decays and scales (channels,), $\chi$ (T, channels, T,
    channels), symmetric. Build it with `linear_problem`.

    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> problem.neurons, problem.duration
    (2, 3)
    """

    encoders: Tensor
    decoders: Tensor
    decays: Tensor
    scales: Tensor
    chi: Tensor

    @property
    def neurons(self) -> int:
        return len(self.encoders)

    @property
    def duration(self) -> int:
        return self.chi.shape[0]


def linear_problem(
    encoders: Any, decoders: Any, decays: Any, scales: Any, duration: int, covariance: Any = None
) -> LinearProblem:
    r"""$\chi_{qp} = \sum_t \langle x_{t-q} x_{t-p} \rangle$ from the covariance of the inputs (None: white noise).

    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> problem.chi[:, 0, :, 0].tolist()  # white noise
    [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    """
    encoders, decoders = vector_pair(encoders, decoders)
    channels = encoders.shape[1]
    chi = input_correlation(duration, channels, covariance)
    decays, scales = per_channel(decays, channels, "decays"), per_channel(scales, channels, "scales")
    return LinearProblem(encoders, decoders, decays, scales, chi)


def averaged_loss(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""$\mathcal{L}(W) = \sum_{qp} \chi_{qp}\, (\mu_q - s\gamma^q)(\mu_p - s\gamma^p)$, summed over outputs.

    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> round(rni.theory.averaged_loss(torch.zeros(2, 2), problem).item(), 6)  # 3 x 0.9^2 + 2 x 0.9^4 + 0.9^6
    4.273641
    """
    residual = _moment_residual(
        krylov(square(recurrent, neurons=problem.neurons), problem.encoders, problem.duration), problem
    )
    return torch.einsum("qapb,qca,pcb->", problem.chi, residual, residual)


def averaged_gradient(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""$\nabla\mathcal{L} = 2 \sum_{qp} \chi_{qp} (\mu_q - s\gamma^q)
    \sum_{m=0}^{p-1} (W^{\dagger m} d)(W^{p-1-m} e)^\dagger$.

    (neurons, neurons), entry (i, j) for $W_{ij}$.

    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.averaged_gradient(torch.zeros(2, 2), problem).round(decimals=9).tolist()
    [[0.0, 0.0], [-5.4, 0.0]]
    """
    recurrent = square(recurrent, neurons=problem.neurons)
    encoded = krylov(recurrent, problem.encoders, problem.duration)
    decoded = krylov(recurrent.T, problem.decoders, problem.duration - 1)
    hankel = _hankel(_moment_residual(encoded, problem), problem)
    return _side_by_side(decoded) @ hankel @ _side_by_side(encoded[:-1]).T


def averaged_hessian_product(recurrent: Any, direction: Any, problem: LinearProblem) -> Tensor:
    r"""$(\mathcal{H} V)_{ij} = \sum_{kl} \mathcal{H}_{ij,kl} V_{kl}$ at any W: (neurons, neurons), for any n.

    The gradient is $\hat D\, H\, \hat E^\dagger$; each factor moves by the product rule,
    $\delta E_{k+1} = W \delta E_k + V E_k$ and likewise for D.

    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> v = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    >>> rni.theory.averaged_hessian_product(torch.zeros(2, 2), v, problem).round(decimals=9).tolist()
    [[-3.24, 0.0], [6.0, -3.24]]
    """
    recurrent = square(recurrent, neurons=problem.neurons)
    direction = square(direction, "direction", problem.neurons)
    encoded = krylov(recurrent, problem.encoders, problem.duration)
    decoded = krylov(recurrent.T, problem.decoders, problem.duration - 1)
    encoded_shift = _krylov_shift(recurrent, direction, encoded)
    decoded_shift = _krylov_shift(recurrent.T, direction.T, decoded)
    hankel = _hankel(_moment_residual(encoded, problem), problem)
    hankel_shift = _hankel(problem.decoders.T @ encoded_shift[1:], problem)

    left, right = _side_by_side(decoded), _side_by_side(encoded[:-1])
    left_shift, right_shift = _side_by_side(decoded_shift), _side_by_side(encoded_shift[:-1])
    return left_shift @ hankel @ right.T + left @ hankel_shift @ right.T + left @ hankel @ right_shift.T


def averaged_hessian(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""$\mathcal{H}_{ij,kl} = 2 \sum_{qp} \chi_{qp} \left[
    \frac{\partial\mu_q}{\partial W_{ij}} \frac{\partial\mu_p}{\partial W_{kl}}
    + (\mu_q - s\gamma^q) \frac{\partial^2\mu_p}{\partial W_{ij} \partial W_{kl}}\right]$.

    (neurons, neurons, neurons, neurons) at any W; the second term vanishes at a minimum, which is the paper's formula.

    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> h = rni.theory.averaged_hessian(torch.zeros(2, 2), problem)
    >>> h.shape, h[1, 0, 1, 0].item()
    (torch.Size([2, 2, 2, 2]), 6.0)
    """
    recurrent = square(recurrent, neurons=problem.neurons)
    duration = problem.duration
    encoded = krylov(recurrent, problem.encoders, duration)
    decoded = krylov(recurrent.T, problem.decoders, duration - 1)
    powers = krylov(recurrent, torch.eye(len(recurrent), dtype=torch.float64), duration)
    jacobian = moment_jacobian(recurrent, problem)
    weights = _loss_slope(_moment_residual(encoded, problem), problem)

    hessian = 2 * torch.einsum("qapb,qcaij,pcbkl->ijkl", problem.chi, jacobian, jacobian)
    for p in range(2, duration + 1):
        for first in range(p - 1):
            for last in range(p - 1 - first):
                middle = p - 2 - first - last
                term = torch.einsum("ic,cb,lb,jk->ijkl", decoded[first], weights[p - 1], encoded[last], powers[middle])
                hessian += term + term.permute(2, 3, 0, 1)
    return hessian


def moment_jacobian(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""$\partial\mu_q / \partial W_{ij} = \sum_{m=0}^{q-1} (W^{\dagger m} d)_i\, (W^{q-1-m} e)_j$.

    (T, channels, channels, neurons, neurons); W may carry leading batch dimensions, which come first.

    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.moment_jacobian(torch.zeros(2, 2), problem)[0, 0, 0].tolist()  # d e' for q = 1
    [[0.0, 0.0], [1.0, 0.0]]
    """
    recurrent = matrix(recurrent, "recurrent")
    if recurrent.shape[-2:] != (problem.neurons,) * 2:
        size = problem.neurons
        raise InputError(f"recurrent: shape {tuple(recurrent.shape)}; allowed: (..., {size}, {size})")
    encoded, decoded = [problem.encoders], [problem.decoders]
    for _ in range(problem.duration - 1):
        encoded.append(recurrent @ encoded[-1])
        decoded.append(recurrent.mT @ decoded[-1])
    slopes = []
    for q in range(problem.duration):
        terms = [torch.einsum("...ic,...ja->...caij", decoded[m], encoded[q - m]) for m in range(q + 1)]
        slopes.append(torch.stack(torch.broadcast_tensors(*terms)).sum(0))
    return torch.stack(torch.broadcast_tensors(*slopes), dim=-5)


def _moment_residual(encoded: Tensor, problem: LinearProblem) -> Tensor:
    """Moments minus targets, (T, channels, channels), from the encoders' Krylov family."""
    return problem.decoders.T @ encoded[1:] - target_moments(problem.decays, problem.scales, problem.duration)


def _loss_slope(residual: Tensor, problem: LinearProblem) -> Tensor:
    r"""$\partial\mathcal{L} / \partial\mu_p$, linear in the residual: (T, channels, channels)."""
    return 2 * torch.einsum("qapb,qca->pcb", problem.chi, residual)


def _hankel(residual: Tensor, problem: LinearProblem) -> Tensor:
    r"""Block (m, k) is $\partial\mathcal{L} / \partial\mu_{m+k+1}$, 0 beyond T: (T channels, T channels)."""
    slope = _loss_slope(residual, problem)
    duration, channels = slope.shape[:2]
    padded = torch.cat([slope, torch.zeros_like(slope)])
    index = torch.arange(duration)
    blocks = padded[index[:, None] + index[None, :]]
    return blocks.permute(0, 2, 1, 3).reshape(duration * channels, duration * channels)


def _side_by_side(blocks: Tensor) -> Tensor:
    """(T, neurons, channels) to (neurons, T channels)."""
    return blocks.permute(1, 0, 2).flatten(1)


def _krylov_shift(recurrent: Tensor, direction: Tensor, blocks: Tensor) -> Tensor:
    """Change of the Krylov family of W when W moves along `direction`: the shape of `blocks`."""
    shifts = [torch.zeros_like(blocks[0])]
    for block in blocks[:-1]:
        shifts.append(recurrent @ shifts[-1] + direction @ block)
    return torch.stack(shifts)
