r"""The loss of a linear network averaged over its inputs, and its first two derivatives at any W.

The formulas are those of section 3 and of the appendices "Fully averaged loss" and "Gradient and Hessian", for any
number of channels and any correlation of the inputs.

With $E_k = W^k E$ and $D_m = (W^\dagger)^m D$, every derivative of a moment is a sum over $m + k = p - 1$ of
$D_m (\cdot) E_k^\dagger$. The gradient is therefore a product of the two Krylov families with a block-Hankel matrix.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rni.core.arrays import as_matrix, as_real_tensor, as_row, as_vector_pair, require_shape
from rni.theory.moments import input_correlation, krylov, target_moments


@dataclass(frozen=True)
class LinearProblem:
    r"""The task, the vectors and the inputs of a linear network. Build it with `linear_problem`.

    Attributes
    ----------
    encoders, decoders : Tensor
        E and D, (neurons, channels).
    decays, scales : Tensor
        $\gamma$ and s, (channels,).
    chi : Tensor
        $\chi$, (duration, channels, duration, channels), symmetric.

    Examples
    --------
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
    r"""Describe a problem by its vectors, its task, and $\chi_{qp} = \sum_t \langle x_{t-q} x_{t-p} \rangle$.

    Parameters
    ----------
    encoders, decoders : array
        (neurons, channels), or (neurons,) for one channel.
    decays, scales : array or float
        (channels,), or one number for all channels.
    duration : int
        T, the number of time steps of the inputs.
    covariance : array, optional
        Covariance of the inputs, as in `rni.theory.moments.input_correlation`. The default is white noise.

    Examples
    --------
    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> problem.chi[:, 0, :, 0].tolist()  # white noise
    [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    """
    encoders, decoders = as_vector_pair(encoders, decoders)
    channels = encoders.shape[1]
    chi = input_correlation(duration, channels, covariance)
    return LinearProblem(
        encoders, decoders, as_row("decays", decays, channels), as_row("scales", scales, channels), chi
    )


def averaged_loss(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""Compute $\mathcal{L}(W) = \sum_{qp} \chi_{qp}\, (\mu_q - s\gamma^q)(\mu_p - s\gamma^p)$, summed over outputs.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    problem : LinearProblem
        The problem.

    Examples
    --------
    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> round(rni.theory.averaged_loss(torch.zeros(2, 2), problem).item(), 6)  # 3 x 0.9^2 + 2 x 0.9^4 + 0.9^6
    4.273641
    """
    recurrent = as_matrix("recurrent", recurrent, problem.neurons)
    residual = _moment_residual(krylov(recurrent, problem.encoders, problem.duration), problem)
    return torch.einsum("qapb,qca,pcb->", problem.chi, residual, residual)


def averaged_gradient(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""Compute $\nabla\mathcal{L} = 2 \sum_{qp} \chi_{qp} (\mu_q - s\gamma^q)
    \sum_{m=0}^{p-1} (W^{\dagger m} d)(W^{p-1-m} e)^\dagger$.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    problem : LinearProblem
        The problem.

    Returns
    -------
    Tensor
        (neurons, neurons), with the derivative with respect to $W_{ij}$ in entry (i, j).

    Examples
    --------
    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.averaged_gradient(torch.zeros(2, 2), problem).round(decimals=9).tolist()
    [[0.0, 0.0], [-5.4, 0.0]]
    """
    recurrent = as_matrix("recurrent", recurrent, problem.neurons)
    encoded = krylov(recurrent, problem.encoders, problem.duration)
    decoded = krylov(recurrent.T, problem.decoders, problem.duration - 1)
    hankel = _hankel(_moment_residual(encoded, problem), problem)
    return _side_by_side(decoded) @ hankel @ _side_by_side(encoded[:-1]).T


def averaged_hessian_product(recurrent: Any, direction: Any, problem: LinearProblem) -> Tensor:
    r"""Compute the Hessian-vector product $(\mathcal{H} V)_{ij} = \sum_{kl} \mathcal{H}_{ij,kl} V_{kl}$ at any W.

    The gradient is $\hat D\, H\, \hat E^\dagger$. The product rule gives the change of each factor along V, for example
    $\delta E_{k+1} = W \delta E_k + V E_k$. The cost grows as that of the gradient.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    direction : array
        V, (neurons, neurons).
    problem : LinearProblem
        The problem.

    Returns
    -------
    Tensor
        (neurons, neurons).

    Examples
    --------
    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> v = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    >>> rni.theory.averaged_hessian_product(torch.zeros(2, 2), v, problem).round(decimals=9).tolist()
    [[-3.24, 0.0], [6.0, -3.24]]
    """
    recurrent = as_matrix("recurrent", recurrent, problem.neurons)
    direction = as_matrix("direction", direction, problem.neurons)
    encoded = krylov(recurrent, problem.encoders, problem.duration)
    decoded = krylov(recurrent.T, problem.decoders, problem.duration - 1)
    encoded_change = _krylov_change(recurrent, direction, encoded)
    decoded_change = _krylov_change(recurrent.T, direction.T, decoded)
    hankel = _hankel(_moment_residual(encoded, problem), problem)
    hankel_change = _hankel(problem.decoders.T @ encoded_change[1:], problem)

    left, right = _side_by_side(decoded), _side_by_side(encoded[:-1])
    left_change, right_change = _side_by_side(decoded_change), _side_by_side(encoded_change[:-1])
    return left_change @ hankel @ right.T + left @ hankel_change @ right.T + left @ hankel @ right_change.T


def averaged_hessian(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""Compute the Hessian $\mathcal{H}_{ij,kl} = 2 \sum_{qp} \chi_{qp} \left[
    \frac{\partial\mu_q}{\partial W_{ij}} \frac{\partial\mu_p}{\partial W_{kl}}
    + (\mu_q - s\gamma^q) \frac{\partial^2\mu_p}{\partial W_{ij} \partial W_{kl}}\right]$ at any W.

    The second term vanishes at a minimum. What remains is the formula of the paper.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    problem : LinearProblem
        The problem.

    Returns
    -------
    Tensor
        (neurons, neurons, neurons, neurons).

    Examples
    --------
    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> h = rni.theory.averaged_hessian(torch.zeros(2, 2), problem)
    >>> h.shape, h[1, 0, 1, 0].item()
    (torch.Size([2, 2, 2, 2]), 6.0)
    """
    recurrent = as_matrix("recurrent", recurrent, problem.neurons)
    duration = problem.duration
    encoded = krylov(recurrent, problem.encoders, duration)
    decoded = krylov(recurrent.T, problem.decoders, duration - 1)
    powers = krylov(recurrent, torch.eye(len(recurrent), dtype=torch.float64), duration)
    jacobian = moment_jacobian(recurrent, problem)
    slope = _loss_slope(_moment_residual(encoded, problem), problem)

    # first term: products of two first derivatives
    hessian = 2 * torch.einsum("qapb,qcaij,pcbkl->ijkl", problem.chi, jacobian, jacobian)
    # second term: each pair of factors W among the p factors of a moment, with `middle` factors between them
    for p in range(2, duration + 1):
        for first in range(p - 1):
            for last in range(p - 1 - first):
                middle = p - 2 - first - last
                term = torch.einsum("ic,cb,lb,jk->ijkl", decoded[first], slope[p - 1], encoded[last], powers[middle])
                hessian += term + term.permute(2, 3, 0, 1)
    return hessian


def moment_jacobian(recurrent: Any, problem: LinearProblem) -> Tensor:
    r"""Compute $\partial\mu_q / \partial W_{ij} = \sum_{m=0}^{q-1} (W^{\dagger m} d)_i\, (W^{q-1-m} e)_j$.

    Parameters
    ----------
    recurrent : array
        W, (..., neurons, neurons).
    problem : LinearProblem
        The problem.

    Returns
    -------
    Tensor
        (..., duration, channels, channels, neurons, neurons).

    Examples
    --------
    >>> problem = rni.theory.linear_problem([1.0, 0.0], [0.0, 1.0], decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.moment_jacobian(torch.zeros(2, 2), problem)[0, 0, 0].tolist()  # d e' for q = 1
    [[0.0, 0.0], [1.0, 0.0]]
    """
    recurrent = as_real_tensor("recurrent", recurrent).double()
    require_shape("recurrent", recurrent, "...", problem.neurons, problem.neurons)
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
    """Compute moments minus target moments, (duration, channels, channels), from the Krylov family of the encoders."""
    return problem.decoders.T @ encoded[1:] - target_moments(problem.decays, problem.scales, problem.duration)


def _loss_slope(residual: Tensor, problem: LinearProblem) -> Tensor:
    r"""Compute $\partial\mathcal{L} / \partial\mu_p$, (duration, channels, channels)."""
    return 2 * torch.einsum("qapb,qca->pcb", problem.chi, residual)


def _hankel(residual: Tensor, problem: LinearProblem) -> Tensor:
    r"""Build the matrix of the blocks $\partial\mathcal{L} / \partial\mu_{m+k+1}$ at (m, k), which are 0 beyond T.

    (duration * channels, duration * channels).
    """
    slope = _loss_slope(residual, problem)
    duration, channels = slope.shape[:2]
    padded = torch.cat([slope, torch.zeros_like(slope)])
    index = torch.arange(duration)
    blocks = padded[index[:, None] + index[None, :]]
    return blocks.permute(0, 2, 1, 3).reshape(duration * channels, duration * channels)


def _side_by_side(blocks: Tensor) -> Tensor:
    """Concatenate the columns of all blocks: (duration, neurons, channels) to (neurons, duration * channels)."""
    return blocks.permute(1, 0, 2).flatten(1)


def _krylov_change(recurrent: Tensor, direction: Tensor, blocks: Tensor) -> Tensor:
    """Compute the derivative of the Krylov family `blocks` of W along `direction`, in the shape of `blocks`."""
    changes = [torch.zeros_like(blocks[0])]
    for block in blocks[:-1]:
        changes.append(recurrent @ changes[-1] + direction @ block)
    return torch.stack(changes)
