r"""Largest residuals $\max_a |w_k \cdot f(La) - (Ga)_k|$ of the columns $w_k$ of `weights` (neurons, k), by column.

`left` is L (neurons, D), `wanted` is G (k, D). Linear and ReLU networks: over directions, |a| = 1. Each function also
says whether its maxima are proven.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rni.core import rng as streams

Maxima = Tensor
NEIGHBOURS = 2e-6
POINTS, ELEMENTS, CLIMBERS, CLIMB = 4096, 2**24, 8, 200


def linear_maxima(left: Tensor, weights: Tensor, wanted: Tensor) -> tuple[Maxima, bool]:
    r"""$|L^\dagger w_k - G_k|$."""
    return (weights.T @ left - wanted).norm(dim=1), True


def relu_maxima(left: Tensor, weights: Tensor, wanted: Tensor) -> tuple[Maxima, bool]:
    """D = 1: two directions. D = 2: cell by cell of the circle. More: by shared axes, or else searched for.

    The bound by shared axes always holds; it is sharp for designed networks. Where it is more than ten times the
    maximum that a search finds, that one is returned, and is not proven.
    """
    channels = left.shape[1]
    if channels == 1:
        ends = weights.T @ torch.cat([left, -left], 1).clamp(min=0) - torch.cat([wanted, -wanted], 1)
        return ends.abs().amax(1), True
    if channels == 2:
        return circle_maxima(left, weights, wanted), True
    bound = shared_axes_bound(left, weights, wanted)

    def residuals(a: Tensor) -> Tensor:
        a = a / a.norm(dim=1, keepdim=True)
        return (a @ left.T).clamp(min=0) @ weights - a @ wanted.T

    found, _ = searched_maxima(residuals, left.new_ones(channels), len(left))
    rounding = len(left) * torch.finfo(left.dtype).eps * (left.norm(dim=1) @ weights.abs())
    proven = bool((bound <= 10 * (found + rounding)).all())
    return (bound if proven else found), proven


def circle_maxima(left: Tensor, weights: Tensor, wanted: Tensor) -> Maxima:
    r"""Between neighbouring angles at which a neuron switches, the residual is $r_k \cdot (\cos\theta, \sin\theta)$.

    Its maximum over an arc is $|r_k|$ if the arc has the direction of $\pm r_k$, else the value at one of the ends.
    """
    alive = left.norm(dim=1) > 0
    left, weights = left[alive], weights[alive]
    angles = torch.atan2(left[:, 1], left[:, 0])
    switches = torch.cat([angles - torch.pi / 2, angles + torch.pi / 2]).remainder(2 * torch.pi).sort().values
    gaps = torch.cat([switches[1:], switches[:1] + 2 * torch.pi]) - switches
    origin = switches[gaps.argmax()] + gaps.max() / 2  # amid the widest cell, where no neuron is about to switch
    turned_on, turned_off = ((angles + turn - origin).remainder(2 * torch.pi) for turn in (-torch.pi / 2, torch.pi / 2))
    switches, order = torch.cat([turned_on, turned_off]).sort()
    products = weights[:, :, None] * left[:, None, :]
    first = products[turned_off < turned_on].sum(0) - wanted
    changes = torch.cat([products, -products])[order]
    r = torch.cat([first[None], first + changes.cumsum(0)])
    ends = torch.cat([switches.new_zeros(1), switches, switches.new_full((1,), 2 * torch.pi)])
    start, stop = ends[:-1, None], ends[1:, None]
    size, phase = r.norm(dim=2), torch.atan2(r[..., 1], r[..., 0]) - origin
    at_ends = size * (start - phase).cos().abs().maximum((stop - phase).cos().abs())
    beyond = (phase - start + 1e-9).remainder(torch.pi)
    return torch.where(beyond <= stop - start + 2e-9, size, at_ends).amax(0)


def shared_axes_bound(left: Tensor, weights: Tensor, wanted: Tensor) -> Maxima:
    r"""$|\frac12 L^\dagger w_k - G_k| + \frac12\sum_g |\sum_{j\in g} w_{jk}\rho_j| + \frac12\sum_j |w_{jk}||\delta_j|$.

    From $\lfloor\nu\rfloor_+ = (\nu + |\nu|)/2$, with rows $l_j = \pm(\rho_j u_g + \delta_j)$ in groups of one axis.
    """
    odd = (weights.T @ left / 2 - wanted).norm(dim=1)
    alive = left.norm(dim=1) > 0
    left, weights = left[alive], weights[alive]
    rho = left.norm(dim=1)
    directions = left / rho[:, None]
    directions = directions * directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    # two lines that no axis is special to: rounding, of float32 too, must not part a group, nor chance unite two
    lines = torch.stack([torch.linspace(*ends, directions.shape[1]).to(left).sqrt() for ends in ((1, 2), (3, 1))], 1)
    _, group = torch.unique(_neighbours(directions @ lines), dim=0, return_inverse=True)
    axes = torch.zeros_like(directions).index_copy_(0, group, directions)
    even = torch.zeros_like(weights).index_add_(0, group, weights * rho[:, None])
    off_axis = weights.abs() * (rho * (directions - axes[group]).norm(dim=1))[:, None]
    return odd + (even.abs() + off_axis).sum(0) / 2


def _neighbours(values: Tensor) -> Tensor:
    """In each column the same number for values without a gap between them: (rows, columns)."""
    ordered, order = values.sort(dim=0)
    steps = (ordered.diff(dim=0) > NEIGHBOURS).cumsum(0)
    return torch.zeros_like(order).scatter_(0, order, torch.cat([torch.zeros_like(order[:1]), steps]))


def searched_maxima(residuals: Callable[[Tensor], Tensor], box: Tensor, neurons: int) -> tuple[Maxima, bool]:
    """The largest found in the box: at quasi-random points and corners, then uphill from the best by random steps."""
    parts = box_points(len(box), neurons)
    points, values = torch.cat(parts), torch.cat([residuals(part * box).abs() for part in parts])
    generator = torch.Generator().manual_seed(0)
    best = []
    for column in range(values.shape[1]):
        top, index = values[:, column].topk(CLIMBERS)
        at = points[index]
        for step in range(CLIMB):
            noise = torch.randn(at.shape, generator=generator, dtype=at.dtype)
            tried = (at + 0.1 * 0.96**step * noise).clamp(-1, 1)
            value = residuals(tried * box)[:, column].abs()
            better = value > top
            top, at = torch.where(better, value, top), torch.where(better[:, None], tried, at)
        best.append(top.max())
    return torch.stack(best), False


def box_points(channels: int, neurons: int) -> tuple[Tensor, ...]:
    """Quasi-random points and corners of [-1, 1]^D, in parts (rows, channels) whose states fit into memory."""
    rows = max(64, ELEMENTS // neurons)
    points = 2 * streams.points(min(POINTS, rows), channels).double() - 1
    return torch.cat([points, points[:64].sign()]).split(rows)
