r"""ReLU networks that integrate exactly, for any number of channels.

With $f(\nu) = (\nu + |\nu|)/2$ both conditions split into an odd and an even part: $D^\dagger L = 2 S\Gamma$ and
$D^\dagger |Lz| = 0$, and $M^\dagger L = 2\Gamma$ and $M^\dagger |Lz| = 0$, for every z.

The even parts are infinitely many conditions, unless neurons share axes. In a population with $l_j = \pm\rho_j u$ and
$\rho_j \ge 0$ all $|l_j \cdot z|$ are multiples of $|u \cdot z|$. The conditions are then $\sum_j \rho_j d_j = 0$ and
$\sum_j \rho_j m_j = 0$, which are D conditions each. They have solutions as soon as the decoder rows of the population
surround 0.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Generator, Tensor

from rni.core.errors import InputError
from rni.designs.axes import balanced, better_signs, split, turned_axes
from rni.designs.currents import TOLERANCE, least_norm, preferred_currents
from rni.theory.capacity import least_neurons

DRAWS = 16  # the best signs may make the conditions on M depend on each other, which random signs do not
FEW = 300  # neurons in a population, up to which an active-set method is fast


def relu_factors(encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    r"""Compute L with $D^\dagger f(Lz) = z$, and M with $M^\dagger f(Lz) = P^{-1}z$ and $M^\dagger E = 1$.

    One channel has a solution if and only if its decoder has both signs, and either n > 2, or n = 2 and
    $d \cdot e = s$. With decoders in general position several channels have none for n < D (D + 1). The function finds
    a solution if n is a little larger. Time and memory grow as n.

    Parameters
    ----------
    encoders, decoders : Tensor
        (neurons, channels), with independent columns of length 1.
    strengths : Tensor
        $p = s / (|d||e|)$, (channels,).
    generator : torch.Generator
        Draws the order of tries.

    Returns
    -------
    left, right : Tensor
        L and M, (neurons, channels).

    Raises
    ------
    InputError
        If no exact solution was found.
    """
    n, channels = decoders.shape
    aim = preferred_currents(encoders, decoders, strengths, generator)
    axes = 1 if channels == 1 else min(4 * channels, max(channels, n // (4 * (channels + 1))))
    few_neurons = currents_of_few_neurons(decoders, generator)
    for left, own in chain(currents_on_axes(decoders, aim, axes, generator), few_neurons):
        right = least_norm(*right_conditions(encoders, strengths, left, own))
        if right is not None:
            return left, right
    allowed = f"at least {least_neurons(channels)} for {channels} channels with decoders in general position"
    if channels == 1:
        allowed += ", or scales equal to d.e"
    raise InputError("neurons", n, f"more neurons, {allowed}", problem=f"no exact solution found for {n} of them")


def currents_on_axes(
    decoders: Tensor, aim: Tensor, number: int, generator: Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    r"""Yield L with $D^\dagger f(Lz) = z$ close to `aim`, on `number` axes, half as many, and so on down to D axes.

    Each L, (neurons, channels), comes with the axis of each neuron, (neurons,).
    """
    channels = decoders.shape[1]
    while number:
        axes, own = populations(aim, number, generator)
        signed = signed_strengths(decoders, (aim * axes[own]).sum(1), own, number)
        turned = None if signed is None else turned_axes(decoders, signed, axes, own)
        if signed is not None and turned is not None:
            yield signed[:, None] * turned[own], own
        number = 0 if number == channels else max(channels, number // 2)


def currents_of_few_neurons(decoders: Tensor, generator: Generator) -> Iterator[tuple[Tensor, Tensor]]:
    r"""Yield L with $D^\dagger f(Lz) = z$ on D axes whose neurons are chosen by `split`, as `currents_on_axes` does.

    Raises
    ------
    InputError
        If the outputs cannot have all signs.
    """
    n, channels = decoders.shape
    if n >= least_neurons(channels) and not _all_sides(decoders):
        allowed = "decoders whose rows surround 0 (both signs for one channel), so that outputs can have all signs"
        raise InputError("decoders", None, allowed, problem="rows on one side of a plane")
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


def _all_sides(decoders: Tensor) -> bool:
    r"""Return whether $\sum_j \rho_j d_j = 0$ has a solution $\rho > 0$, so that independent decoders reach all
    outputs.
    """
    n, channels = decoders.shape
    if n <= channels:
        return False
    return linprog(np.ones(n), A_eq=decoders.T.numpy(), b_eq=np.zeros(channels), bounds=(1, None)).success


def populations(currents: Tensor, number: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Group neurons by the directions of their currents up to sign, with the k-means method.

    Returns
    -------
    axes : Tensor
        (number, channels).
    own : Tensor
        The index of each neuron's axis, (neurons,).
    """
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
    r"""Compute $\pm\rho_j$ with $\sum_{j \in g} \rho_j d_j = 0$, close to the currents along the axes.

    Parameters
    ----------
    decoders : Tensor
        (neurons, channels).
    along : Tensor
        The current of each neuron along its axis, (neurons,).
    own : Tensor
        The group of each neuron, (neurons,).
    number : int
        The number of groups.

    Returns
    -------
    Tensor or None
        (neurons,), or None if a group has no such $\rho$.
    """
    signed = torch.where(along < 0, -1.0, 1.0).to(along)
    for g in range(number):
        members = (own == g).nonzero()[:, 0]
        start, rows = along[members].abs(), decoders[members]
        if len(members) <= FEW:
            rho = balanced(start, rows)
        else:  # the same problem up to a factor, in time and memory that grow as the number of neurons
            constraints = torch.cat([rows, start[:, None]], dim=1) / start.norm()
            values = torch.cat([start.new_zeros(rows.shape[1]), start.norm()[None]])
            rho = nearest_nonnegative(start, constraints, values)
        if rho is None:
            return None
        signed[members] *= rho
    return signed


def right_conditions(encoders: Tensor, strengths: Tensor, left: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    r"""Build C and V of $C^\dagger M = V$: $M^\dagger L = 2P^{-1}$, $M^\dagger E = 1$ and
    $\sum_{j \in g} \rho_j m_j = 0$.
    """
    n, channels = left.shape
    even = left.new_zeros(n, int(own.max()) + 1)
    even[torch.arange(n), own] = left.norm(dim=1)
    eye = torch.eye(channels, dtype=left.dtype)
    values = torch.cat([2 * torch.diag(1 / strengths), eye, even.new_zeros(even.shape[1], channels)])
    return torch.cat([left, encoders, even], dim=1), values


def nearest_nonnegative(start: Tensor, constraints: Tensor, values: Tensor, steps: int = 100) -> Tensor | None:
    r"""Solve $\min_{\rho \ge 0} |\rho - \rho_0|^2$ with $A^\dagger\rho = b$, for few constraints.

    The method is Newton's method on the concave dual problem, $\rho = \max(0, \rho_0 + A\lambda)$. It is exact once the
    set of positive $\rho_j$ is the right one.

    Parameters
    ----------
    start : Tensor
        $\rho_0$, (neurons,).
    constraints : Tensor
        A, (neurons, constraints).
    values : Tensor
        b, (constraints,).
    steps : int, optional
        The largest number of Newton steps.

    Returns
    -------
    Tensor or None
        $\rho$, (neurons,), or None if no $\rho$ satisfies the constraints.
    """

    def primal(multipliers: Tensor) -> Tensor:
        return (start + constraints @ multipliers).clamp(min=0)

    def dual(multipliers: Tensor) -> Tensor:
        return values @ multipliers - primal(multipliers).square().sum() / 2

    damping = 1e-13 * constraints.square().sum() / len(values)
    multipliers, satisfied = torch.zeros_like(values), False
    for _ in range(steps):
        rho = primal(multipliers)
        residual = values - constraints.T @ rho
        if satisfied:  # one more step after the constraints hold reduces the residual to rounding
            break
        satisfied = bool(residual.abs().max() <= TOLERANCE * values.abs().max())
        active = constraints * (rho > 0)[:, None]
        hessian = active.T @ active
        hessian.diagonal().add_(damping)
        step = torch.linalg.solve_ex(hessian, residual).result
        size, base = 1.0, dual(multipliers)
        while bool(dual(multipliers + size * step) < base) and size > 1e-6:
            size /= 2
        multipliers = multipliers + size * step
    return primal(multipliers) if satisfied else None
