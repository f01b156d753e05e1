r"""Largest residuals $\max_a |w_k \cdot f(La) - (Ga)_k|$ for each column $w_k$ of a matrix of weights.

All functions use these arguments: `left` is L (neurons, channels), `weights` has the columns $w_k$ (neurons, k), and
`wanted` is G (k, channels). For linear and ReLU networks the maximum is over the directions, |a| = 1. Most functions
also return whether the maxima are proved.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rni.core.rng import points as quasi_random_points

NEIGHBOURS = 2e-6  # directions that are closer than this belong to one axis
POINTS = 4096  # quasi-random points of a search
ELEMENTS = 2**24  # numbers that are in memory at a time
CLIMBERS, CLIMB = 8, 200  # points from which a search climbs, and its steps


def linear_maxima(left: Tensor, weights: Tensor, wanted: Tensor) -> tuple[Tensor, bool]:
    r"""Compute the maxima of a linear network, $|L^\dagger w_k - G_k|$, which are proved."""
    return (weights.T @ left - wanted).norm(dim=1), True


def relu_maxima(left: Tensor, weights: Tensor, wanted: Tensor) -> tuple[Tensor, bool]:
    """Compute the maxima of a ReLU network.

    One channel has two directions. Two channels are solved cell by cell of the circle. For more channels, the bound by
    shared axes always holds, and it is sharp for designed networks. If it is more than ten times as large as the
    maximum that a search finds, the function returns the result of the search, which is not proved.
    """
    channels = left.shape[1]
    if channels == 1:
        both = weights.T @ torch.cat([left, -left], 1).clamp(min=0) - torch.cat([wanted, -wanted], 1)
        return both.abs().amax(1), True
    if channels == 2:
        return circle_maxima(left, weights, wanted), True
    bound = shared_axes_bound(left, weights, wanted)

    def residuals(a: Tensor) -> Tensor:
        a = a / a.norm(dim=1, keepdim=True)
        return (a @ left.T).clamp(min=0) @ weights - a @ wanted.T

    searched = searched_maxima(residuals, left.new_ones(channels), len(left))
    rounding = len(left) * torch.finfo(left.dtype).eps * (left.norm(dim=1) @ weights.abs())
    proved = bool((bound <= 10 * (searched + rounding)).all())
    return (bound if proved else searched), proved


def circle_maxima(left: Tensor, weights: Tensor, wanted: Tensor) -> Tensor:
    r"""Compute the maxima of a ReLU network with two channels, over the circle $(\cos\theta, \sin\theta)$.

    Between neighbouring angles at which a neuron switches, the residual is $r_k \cdot (\cos\theta, \sin\theta)$. Its
    maximum over such an arc is $|r_k|$ if the arc contains the direction of $\pm r_k$, and otherwise the value at one
    of its ends.
    """
    driven = left.norm(dim=1) > 0
    left, weights = left[driven], weights[driven]

    # The origin of the angles is in the middle of the widest cell, where no neuron is about to switch.
    angles = torch.atan2(left[:, 1], left[:, 0])
    switches = torch.cat([angles - torch.pi / 2, angles + torch.pi / 2]).remainder(2 * torch.pi).sort().values
    gaps = torch.cat([switches[1:], switches[:1] + 2 * torch.pi]) - switches
    origin = switches[gaps.argmax()] + gaps.max() / 2
    turned_on, turned_off = ((angles + turn - origin).remainder(2 * torch.pi) for turn in (-torch.pi / 2, torch.pi / 2))
    switches, order = torch.cat([turned_on, turned_off]).sort()

    # r in the first cell, and its changes at each switch
    products = weights[:, :, None] * left[:, None, :]
    first = products[turned_off < turned_on].sum(0) - wanted
    changes = torch.cat([products, -products])[order]
    r = torch.cat([first[None], first + changes.cumsum(0)])

    # maximum over each cell
    ends = torch.cat([switches.new_zeros(1), switches, switches.new_full((1,), 2 * torch.pi)])
    start, stop = ends[:-1, None], ends[1:, None]
    size, phase = r.norm(dim=2), torch.atan2(r[..., 1], r[..., 0]) - origin
    at_ends = size * (start - phase).cos().abs().maximum((stop - phase).cos().abs())
    beyond = (phase - start + 1e-9).remainder(torch.pi)
    return torch.where(beyond <= stop - start + 2e-9, size, at_ends).amax(0)


def shared_axes_bound(left: Tensor, weights: Tensor, wanted: Tensor) -> Tensor:
    r"""Compute the upper bound $|\frac12 L^\dagger w_k - G_k| + \frac12\sum_g |\sum_{j\in g} w_{jk}\rho_j| +
    \frac12\sum_j |w_{jk}||\delta_j|$ on the maxima of a ReLU network.

    The bound follows from $\lfloor\nu\rfloor_+ = (\nu + |\nu|)/2$, with rows $l_j = \pm(\rho_j u_g + \delta_j)$ in
    groups that share an axis.
    """
    odd = (weights.T @ left / 2 - wanted).norm(dim=1)
    driven = left.norm(dim=1) > 0
    left, weights = left[driven], weights[driven]
    rho = left.norm(dim=1)
    directions = left / rho[:, None]
    directions = directions * directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()

    # Neurons are in one group if the projections of their directions on two generic lines agree. Rounding, also that of
    # float32, must not divide a group, and chance must not unite two groups.
    lines = torch.stack([torch.linspace(*ends, directions.shape[1]).to(left).sqrt() for ends in ((1, 2), (3, 1))], 1)
    _, group = torch.unique(_neighbours(directions @ lines), dim=0, return_inverse=True)

    axes = torch.zeros_like(directions).index_copy_(0, group, directions)
    even = torch.zeros_like(weights).index_add_(0, group, weights * rho[:, None])
    off_axis = weights.abs() * (rho * (directions - axes[group]).norm(dim=1))[:, None]
    return odd + (even.abs() + off_axis).sum(0) / 2


def _neighbours(values: Tensor) -> Tensor:
    """Number the values of each column such that values without a gap between them have one number: (rows, columns)."""
    ordered, order = values.sort(dim=0)
    steps = (ordered.diff(dim=0) > NEIGHBOURS).cumsum(0)
    return torch.zeros_like(order).scatter_(0, order, torch.cat([torch.zeros_like(order[:1]), steps]))


def searched_maxima(residuals: Callable[[Tensor], Tensor], box: Tensor, neurons: int) -> Tensor:
    """Search for the maxima in a box, which is an estimate from below.

    The search evaluates the residuals at quasi-random points and corners, and then climbs from the best points by
    random steps that become smaller.
    """
    parts = box_points(len(box), neurons)
    points, values = torch.cat(parts), torch.cat([residuals(part * box).abs() for part in parts])
    generator = torch.Generator().manual_seed(0)
    maxima = []
    for column in range(values.shape[1]):
        top, index = values[:, column].topk(CLIMBERS)
        position = points[index]
        for step in range(CLIMB):
            noise = torch.randn(position.shape, generator=generator, dtype=position.dtype)
            trial = (position + 0.1 * 0.96**step * noise).clamp(-1, 1)
            value = residuals(trial * box)[:, column].abs()
            better = value > top
            top, position = torch.where(better, value, top), torch.where(better[:, None], trial, position)
        maxima.append(top.max())
    return torch.stack(maxima)


def box_points(channels: int, neurons: int) -> tuple[Tensor, ...]:
    """Return quasi-random points and corners of [-1, 1]^D, in parts (rows, channels) whose states fit into memory."""
    rows = max(64, ELEMENTS // neurons)
    points = 2 * quasi_random_points(min(POINTS, rows), channels).double() - 1
    return torch.cat([points, points[:64].sign()]).split(rows)
