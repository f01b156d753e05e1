r"""ReLU networks that integrate exactly, for any number of channels.

$f(\nu) = (\nu + |\nu|)/2$, so both conditions split in an odd and an even part:
$D^\dagger L = 2 S\Gamma$, $D^\dagger |Lz| = 0$, and $M^\dagger L = 2\Gamma$, $M^\dagger |Lz| = 0$ for every z.
The even parts are infinitely many conditions, unless neurons share axes: in a population with
$l_j = \pm\rho_j u$, $\rho_j \ge 0$, all $|l_j \cdot z|$ are multiples of $|u \cdot z|$, and what remains is
$\sum_j \rho_j d_j = 0$ and $\sum_j \rho_j m_j = 0$, D conditions each. Solutions exist as soon as the decoders' rows
of a population point to all sides.
"""

from collections.abc import Iterator

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Generator, Tensor

from rni.core.errors import InputError
from rni.designs.axes import balanced, better_signs, split, turned_axes
from rni.designs.currents import TOLERANCE, least_norm, preferred_currents
from rni.theory.capacity import least_neurons

DRAWS = 16  # where the best signs make the conditions on M depend on each other, any others do
FEW = 300  # neurons in a population, up to which an active-set method is quick


def relu_factors(encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    r"""L and M with $D^\dagger f(Lz) = z$, $M^\dagger f(Lz) = P^{-1}z$, $M^\dagger E = 1$; time and memory as n.

    One channel has a solution if and only if its decoder has both signs and n > 2, or n = 2 and $d \cdot e = s$.
    Several have none below D (D + 1) neurons with decoders in general position, and one is found soon above.
    """
    n, channels = decoders.shape
    for left, own in _attempts(encoders, decoders, strengths, generator):
        right = least_norm(*right_conditions(encoders, strengths, left, own))
        if right is not None:
            return left, right
    also = ", or scales equal to d.e" if channels == 1 else ""
    raise InputError(
        f"neurons: no exact solution found for {n} of them; allowed: more neurons, at least {least_neurons(channels)} "
        f"for {channels} channels with decoders in general position{also}"
    )


def _attempts(
    encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """L, and the index of each neuron's axis: on many axes to D of them, then on D for which neurons are sought."""
    n, channels = decoders.shape
    aim = preferred_currents(encoders, decoders, strengths, generator)
    number = 1 if channels == 1 else min(4 * channels, max(channels, n // (4 * (channels + 1))))
    yield from currents_on_axes(decoders, aim, number, generator)
    if n >= least_neurons(channels) and not _all_sides(decoders):
        raise InputError(
            "decoders: activities, never negative, can not give outputs of all signs; allowed: decoders whose rows "
            "point to all sides (both signs for one channel)"
        )
    axes = torch.eye(channels, dtype=decoders.dtype)
    for draw in range(DRAWS):
        own = split(decoders, decoders.abs(), generator)
        if own is None:
            return
        along = decoders.gather(1, own[:, None])[:, 0]
        drawn = torch.randn(n, generator=generator, dtype=along.dtype)
        along = torch.where(along == 0, drawn / n**0.5, along * drawn if draw else along)
        signed = signed_strengths(decoders, along, own, channels)
        if signed is not None:
            signed = signed if draw else better_signs(decoders, signed, own)
            turned = turned_axes(decoders, signed, axes, own)
            if turned is not None:
                yield signed[:, None] * turned[own], own


def currents_on_axes(
    decoders: Tensor, aim: Tensor, number: int, generator: Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    r"""L with $D^\dagger f(Lz) = z$ near to the aim, and each neuron's axis: on `number` axes, half as many, ... D."""
    channels = decoders.shape[1]
    while number:
        axes, own = populations(aim, number, generator)
        signed = signed_strengths(decoders, (aim * axes[own]).sum(1), own, number)
        turned = None if signed is None else turned_axes(decoders, signed, axes, own)
        if signed is not None and turned is not None:
            yield signed[:, None] * turned[own], own
        number = 0 if number == channels else max(channels, number // 2)


def _all_sides(decoders: Tensor) -> bool:
    r"""Whether there is $\rho > 0$ with $\sum_j \rho_j d_j = 0$: then the independent decoders reach all outputs."""
    n, channels = decoders.shape
    return (
        n > channels and linprog(np.ones(n), A_eq=decoders.T.numpy(), b_eq=np.zeros(channels), bounds=(1, None)).success
    )


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


def signed_strengths(decoders: Tensor, along: Tensor, own: Tensor, number: int) -> Tensor | None:
    r"""$\pm\rho_j$ with $\sum_{j \in g} \rho_j d_j = 0$, near to currents along the axes; None if there are none."""
    signed = torch.where(along < 0, -1.0, 1.0).to(along)
    for g in range(number):
        members = (own == g).nonzero()[:, 0]
        start, rows = along[members].abs(), decoders[members]
        rho = balanced(start, rows) if len(members) <= FEW else _balanced_many(start, rows)
        if rho is None:
            return None
        signed[members] *= rho
    return signed


def _balanced_many(start: Tensor, decoders: Tensor) -> Tensor | None:
    r"""The same as `balanced`, up to a factor, in time and memory as the number of neurons."""
    constraints = torch.cat([decoders, start[:, None]], dim=1) / start.norm()
    return nearest_nonnegative(start, constraints, torch.cat([start.new_zeros(decoders.shape[1]), start.norm()[None]]))


def right_conditions(encoders: Tensor, strengths: Tensor, left: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    r"""C and V of $C^\dagger M = V$: $M^\dagger L = 2P^{-1}$, $M^\dagger E = 1$ and $\sum_{j \in g} \rho_j m_j = 0$."""
    n, channels = left.shape
    even = left.new_zeros(n, int(own.max()) + 1)
    even[torch.arange(n), own] = left.norm(dim=1)
    eye = torch.eye(channels, dtype=left.dtype)
    values = torch.cat([2 * torch.diag(1 / strengths), eye, even.new_zeros(even.shape[1], channels)])
    return torch.cat([left, encoders, even], dim=1), values


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
