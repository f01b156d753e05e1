r"""ReLU networks that integrate exactly, for any number of channels.

$f(\nu) = (\nu + |\nu|)/2$, so both conditions split in an odd and an even part:
$D^\dagger L = 2 S\Gamma$, $D^\dagger |Lz| = 0$, and $M^\dagger L = 2\Gamma$, $M^\dagger |Lz| = 0$ for every z.
The even parts are infinitely many conditions, unless neurons share axes: in a population with
$l_j = \pm\rho_j u$, $\rho_j \ge 0$, all $|l_j \cdot z|$ are multiples of $|u \cdot z|$, and what remains is
$\sum_j \rho_j d_j = 0$ and $\sum_j \rho_j m_j = 0$, D conditions each. Solutions exist as soon as the decoders' rows
of a population point to all sides.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Generator, Tensor

from rni.designs.currents import TOLERANCE, least_norm, preferred_currents
from rni.errors import InputError

DRAWS = 16


def relu_factors(encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    r"""L and M with $D^\dagger f(Lz) = z$, $M^\dagger f(Lz) = P^{-1}z$, $M^\dagger E = 1$; time and memory as n.

    One channel has a solution if and only if its decoder has both signs and n > 2, or n = 2 and $d \cdot e = s$.
    Several have one if n is well above 2D^2 and the decoders' rows point to all sides, without which there is none.
    """
    n, channels = decoders.shape
    for axes, own, aim in _attempts(encoders, decoders, strengths, generator):
        left = _left(decoders, aim, axes, own)
        right = None if left is None else _right(encoders, strengths, left, axes, own)
        if left is not None and right is not None:
            return left, right
    also = ", or scales equal to d.e" if channels == 1 else ""
    raise InputError(f"neurons: no exact solution found for {n} of them; allowed: more neurons{also}")


def _attempts(
    encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Axes, the index of each neuron's own, and currents: the preferred ones, then drawn ones that decoders allow."""
    n, channels = decoders.shape
    aim = preferred_currents(encoders, decoders, strengths, generator)
    number = 1 if channels == 1 else min(4 * channels, max(channels, n // (8 * (channels + 1))))
    while number > channels:
        yield *populations(aim, number, generator), aim
        number = max(channels, number // 2)
    yield *populations(aim, channels, generator), aim
    if not _all_sides(decoders):
        raise InputError(
            "decoders: activities, never negative, can not give outputs of all signs; allowed: decoders whose rows "
            "point to all sides (both signs for one channel)"
        )
    for _ in range(DRAWS):
        aim = _along_axes(decoders, generator)
        yield *populations(aim, channels, generator), aim


def _all_sides(decoders: Tensor) -> bool:
    r"""Whether there is $\rho > 0$ with $\sum_j \rho_j d_j = 0$: then the independent decoders reach all outputs."""
    n, channels = decoders.shape
    return (
        n > channels and linprog(np.ones(n), A_eq=decoders.T.numpy(), b_eq=np.zeros(channels), bounds=(1, None)).success
    )


def _along_axes(decoders: Tensor, generator: Generator) -> Tensor:
    r"""Drawn currents, with a few neurons for each channel and sign such that $\sum_j \rho_j d_j = \pm\hat c$.

    Vertices of linear programs of random costs: at most D neurons each. The rest are free to have any sign.
    """
    n, channels = decoders.shape
    costs = torch.rand(n, channels, generator=generator, dtype=decoders.dtype)
    aim = torch.randn(n, channels, generator=generator, dtype=decoders.dtype) / n**0.5
    most = np.full(n, np.inf)
    for c, sign in product(range(channels), (1.0, -1.0)):
        goal = sign * torch.eye(channels, dtype=decoders.dtype)[c]
        limits = np.stack([np.zeros(n), most], axis=1)
        found = linprog(costs[:, c].numpy(), A_eq=decoders.T.numpy(), b_eq=goal.numpy(), bounds=limits)
        if not found.success:
            break
        rho = decoders.new_tensor(found.x)
        aim[rho > 0] = rho[rho > 0, None] * goal
        most[found.x > 0] = 0
    return aim


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


def _left(decoders: Tensor, aim: Tensor, axes: Tensor, own: Tensor) -> Tensor | None:
    r"""L with $\sum_{j \in g} \rho_j d_j = 0$ and $D^\dagger L = 2$, as near to the aim as its axes allow."""
    n, channels = decoders.shape
    along = (aim * axes[own]).sum(1)
    signed = axes[own] * along.sign()[:, None]
    even = decoders.new_zeros(n, len(axes), channels)
    even[torch.arange(n), own] = decoders
    odd = decoders[:, :, None] * signed[:, None, :]
    goal = 2 * torch.eye(channels, dtype=decoders.dtype)
    reached = (decoders.T @ (along.abs()[:, None] * signed)).diagonal()
    start = along.abs() * (goal.diagonal() @ reached / (reached @ reached))
    constraints = torch.cat([even.flatten(1), odd.flatten(1)], dim=1)
    values = torch.cat([goal.new_zeros(len(axes) * channels), goal.flatten()])
    rho = nearest_nonnegative(start, constraints, values)
    return None if rho is None else rho[:, None] * signed


def _right(encoders: Tensor, strengths: Tensor, left: Tensor, axes: Tensor, own: Tensor) -> Tensor | None:
    r"""M of least norm with $\sum_{j \in g} \rho_j m_j = 0$, $M^\dagger L = 2P^{-1}$ and $M^\dagger E = 1$."""
    n, channels = left.shape
    even = left.new_zeros(n, len(axes))
    even[torch.arange(n), own] = left.norm(dim=1)
    eye = torch.eye(channels, dtype=left.dtype)
    values = torch.cat([2 * torch.diag(1 / strengths), eye, left.new_zeros(len(axes), channels)])
    return least_norm(torch.cat([left, encoders, even], dim=1), values)


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
        step = torch.linalg.solve_ex(hessian, residual).result
        size, base = 1.0, dual(multipliers)
        while bool(dual(multipliers + size * step) < base) and size > 1e-6:
            size /= 2
        multipliers = multipliers + size * step
    return primal(multipliers) if met else None
