r"""ReLU networks that integrate exactly, for any number of channels.

$f(\nu) = (\nu + |\nu|)/2$, so both conditions split in an odd and an even part:
$D^\dagger L = 2 S\Gamma$, $D^\dagger |Lz| = 0$, and $M^\dagger L = 2\Gamma$, $M^\dagger |Lz| = 0$ for every z.
The even parts are infinitely many conditions, unless neurons share axes: in a population with
$l_j = \pm\rho_j u$, $\rho_j \ge 0$, all $|l_j \cdot z|$ are multiples of $|u \cdot z|$, and what remains is
$\sum_j \rho_j d_j = 0$ and $\sum_j \rho_j m_j = 0$, D conditions each. Solutions exist as soon as the decoders' rows
of a population point to all sides.
"""

import torch
from torch import Generator, Tensor

from rni.designing.currents import least_norm, preferred_currents
from rni.errors import InputError
from rni.task import Integration

TOLERANCE = 1e-10


def relu_factors(task: Integration, encoders: Tensor, decoders: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """L and M, both (neurons, channels), that meet all conditions exactly; time and memory in proportion to n."""
    n, channels = decoders.shape
    aim = preferred_currents(task, encoders, decoders, 0.5, generator)
    number = 1 if channels == 1 else min(4 * channels, max(channels, n // (8 * (channels + 1))))
    while True:
        axes, own = populations(aim, number, generator)
        left = _left(task, decoders, aim, axes, own)
        if left is not None:
            right = _right(task, encoders, left, axes, own)
            if right is not None:
                return left, right
        if number == channels:
            raise InputError(
                f"neurons, decoders: no exact solution found for {n} neurons; allowed: decoders whose rows point to "
                "all sides (both signs for one channel), encoders linearly independent, or more neurons"
            )
        number = max(channels, number // 2)


def populations(currents: Tensor, number: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Axes (number, channels) and the index of each neuron's own: k-means on directions up to sign."""
    weights = currents / currents.norm(dim=0)
    n, channels = weights.shape
    if number == channels:
        return torch.eye(channels, dtype=weights.dtype), weights.abs().argmax(dim=1)
    directions = weights / weights.norm(dim=1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    axes = directions[torch.randperm(n, generator=generator)[:number]].clone()
    for _ in range(10):
        own = (directions @ axes.T).abs().argmax(dim=1)
        scatter = torch.stack([weights[own == g].T @ weights[own == g] for g in range(number)])
        axes = torch.linalg.eigh(scatter).eigenvectors[:, :, -1]
    return axes, (directions @ axes.T).abs().argmax(dim=1)


def _left(task: Integration, decoders: Tensor, aim: Tensor, axes: Tensor, own: Tensor) -> Tensor | None:
    r"""L with $\sum_{j \in g} \rho_j d_j = 0$ and $D^\dagger L = 2S\Gamma$, as near to the aim as its axes allow."""
    n, channels = decoders.shape
    along = (aim * axes[own]).sum(1)
    signed = axes[own] * along.sign()[:, None]
    even = decoders.new_zeros(n, len(axes), channels)
    even[torch.arange(n), own] = decoders
    odd = decoders[:, :, None] * signed[:, None, :]
    goal = torch.diag(2 * decoders.new_tensor(task.scales) * decoders.new_tensor(task.decays))
    reached = (decoders.T @ (along.abs()[:, None] * signed)).diagonal()
    start = along.abs() * (goal.diagonal() @ reached / (reached @ reached))
    constraints = torch.cat([even.flatten(1), odd.flatten(1)], dim=1)
    values = torch.cat([goal.new_zeros(len(axes) * channels), goal.flatten()])
    rho = nearest_nonnegative(start, constraints, values)
    return None if rho is None else rho[:, None] * signed


def _right(task: Integration, encoders: Tensor, left: Tensor, axes: Tensor, own: Tensor) -> Tensor | None:
    r"""M of least norm with $\sum_{j \in g} \rho_j m_j = 0$, $M^\dagger L = 2\Gamma$ and $M^\dagger E = 1$."""
    n, channels = left.shape
    even = left.new_zeros(n, len(axes))
    even[torch.arange(n), own] = left.norm(dim=1)
    constraints = torch.cat([left, encoders, even], dim=1)
    eye = torch.eye(channels, dtype=left.dtype)
    values = torch.cat([2 * torch.diag(left.new_tensor(task.decays)), eye, left.new_zeros(len(axes), channels)])
    right = least_norm(constraints, values)
    return right if bool((constraints.T @ right - values).abs().max() <= TOLERANCE) else None


def nearest_nonnegative(start: Tensor, constraints: Tensor, values: Tensor, steps: int = 100) -> Tensor | None:
    r"""$\min_{\rho \ge 0} |\rho - \rho_0|^2$ with $A^\dagger\rho = b$: (neurons,), or None if there is no such $\rho$.

    Newton's method on the concave dual, $\rho = \max(0, \rho_0 + A\lambda)$: exact once the set of active neurons
    is the right one. Constraints A are (neurons, k) with few columns.
    """

    def primal(multipliers: Tensor) -> Tensor:
        return (start + constraints @ multipliers).clamp(min=0)

    def dual(multipliers: Tensor) -> Tensor:
        return values @ multipliers - primal(multipliers).square().sum() / 2

    damping = 1e-13 * constraints.square().sum() / len(values)
    multipliers, met = torch.zeros_like(values), False
    for _ in range(steps):
        rho = primal(multipliers)
        residual = values - constraints.T @ rho
        if met:  # the step after the constraints are met takes the residual to rounding
            break
        met = bool(residual.abs().max() <= TOLERANCE * values.abs().max())
        active = constraints * (rho > 0)[:, None]
        hessian = active.T @ active
        hessian.diagonal().add_(damping)
        step = torch.linalg.solve(hessian, residual)
        size, base = 1.0, dual(multipliers)
        while bool(dual(multipliers + size * step) < base) and size > 1e-6:
            size /= 2
        multipliers = multipliers + size * step
    return primal(multipliers) if met else None
