r"""Where states go without inputs, $F(\kappa) - \kappa$, in the one or two latent coordinates that they use most."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rni.analysis.latents import Latent

SIDE = 41  # of the grid of a plane
ALONG = 201  # positions on a line
MARGIN = 1.3  # times the states' range is shown
THINNEST = 0.5  # one side of a plane, of the other
HELD = 2**21  # numbers at once


@dataclass(frozen=True)
class Flow:
    r"""A line or plane through c, in the coordinates $z = A^\dagger\kappa$, with the speed along it, a step.

    Exact where K is 1 or 2. ticks (d, side); speed (side, d), or (side, side, d) for z at [second, first]; points
    (points, d), states (states, d): fixed points and visited states, projected; share: the part of the states' variance
    about c that it holds.

    >>> flow = rni.analyze(rni.design(rni.Integration([0.95, 0.9]), neurons=40).network).dynamics.flow
    >>> flow.ticks.shape[0], flow.speed.shape[2], round(flow.share, 3)
    (2, 2, 1.0)
    """

    share: float
    ticks: np.ndarray = field(repr=False, compare=False)
    speed: np.ndarray = field(repr=False, compare=False)
    points: np.ndarray = field(repr=False, compare=False)
    states: np.ndarray = field(repr=False, compare=False)


@torch.no_grad()
def flow(reduced: Latent, points: Tensor, states: Tensor, centre: Tensor) -> Flow:
    """Through the `centre` (K,), along the leading directions of the states (times, states, K), and around the points.

    Other coordinates are those of the centre, so that elsewhere it is a slice of the flow.
    """
    away = states.flatten(0, 1) - centre
    _, sizes, directions = torch.linalg.svd(torch.cat([away, points - centre]), full_matrices=False)
    count = min(2, reduced.dimension)
    axes = directions[:count].T
    if axes.shape[1] < count or not bool(sizes.any()):
        axes = torch.eye(reduced.dimension, dtype=torch.float64)[:, :count]
    axes = axes * torch.where(axes.sum(0) < 0, -1.0, 1.0)
    first, rest, marked = (each @ axes for each in (states[0], states[1:].flatten(0, 1), points))
    settled, driven = _ranges(torch.cat([rest, marked, (centre @ axes)[None]])), _ranges(first)
    low, high = settled if _extent(settled) > 0.05 * _extent(driven) else driven
    middle, reach = (low + high) / 2, MARGIN * (high - low) / 2
    reach = reach.clamp(min=THINNEST * float(reach.max()) or 1.0)
    side = SIDE if count == 2 else ALONG
    ticks = middle + reach * torch.linspace(-1, 1, side, dtype=torch.float64)[:, None]
    grid = torch.cartesian_prod(*ticks.T).view(-1, count) - centre @ axes
    rows = (centre + grid @ axes.T).split(max(1, HELD // len(reduced.bias)))
    speed = torch.cat([(reduced.leak * reduced.pull(each)) @ axes for each in rows])
    if count == 2:
        speed = speed.view(side, side, 2).transpose(0, 1)
    total = float(away.square().sum())
    share = float((away @ axes).square().sum()) / total if total else 1.0
    return Flow(share, ticks.T.numpy(), speed.numpy(), marked.numpy(), first.numpy())


def _ranges(values: Tensor) -> tuple[Tensor, Tensor]:
    return (values.amin(0), values.amax(0)) if len(values) else (values.sum(0), values.sum(0))


def _extent(ranges: tuple[Tensor, Tensor]) -> float:
    return float((ranges[1] - ranges[0]).max())
