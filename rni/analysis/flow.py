r"""The flow $F(\kappa) - \kappa$ without inputs, in the one or two latent coordinates that the states use most."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rni.analysis.latents import Latent

SIDE = 41  # positions along each side of a plane
ALONG = 201  # positions on a line
MARGIN = 1.3  # the shown range, relative to that of the states
THINNEST = 0.5  # least ratio of the sides of a plane
HELD = 2**21  # numbers in a batch of states


@dataclass(frozen=True)
class Flow:
    r"""A line or plane through a centre c, in the coordinates $z = A^\dagger\kappa$, with the speed along it per step.

    Attributes
    ----------
    share : float
        The part of the states' variance about c that the line or plane contains.
    ticks : array (d, side)
        The positions on the axes.
    speed : array (side, d) or (side, side, d)
        The speed; in a plane that for z at [second, first].
    points, states : array (points, d), (states, d)
        Fixed points and visited states, projected.

    Examples
    --------
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
    """Compute the flow through a centre, along the leading directions of the states and around the points.

    The other coordinates are those of the centre, so that the result is a slice of the flow. It is the whole flow if
    there are one or two latent coordinates.

    Parameters
    ----------
    reduced : Latent
        The network in latent coordinates.
    points : Tensor (points, K)
        Fixed points.
    states : Tensor (times, states, K)
        Visited states, at the first of the times still with inputs.
    centre : Tensor (K,)
        The centre.
    """
    # The leading directions about the centre, with a sign that does not depend on rounding.
    away = states.flatten(0, 1) - centre
    _, sizes, directions = torch.linalg.svd(torch.cat([away, points - centre]), full_matrices=False)
    count = min(2, reduced.dimension)
    axes = directions[:count].T
    if axes.shape[1] < count or not bool(sizes.any()):
        axes = torch.eye(reduced.dimension, dtype=torch.float64)[:, :count]
    axes = axes * torch.where(axes.sum(0) < 0, -1.0, 1.0)

    # The range is that of the states without inputs, or that of the driven states if the former hardly differ.
    driven, settled, marked = states[0] @ axes, states[1:].flatten(0, 1) @ axes, points @ axes
    around = torch.cat([settled, marked, (centre @ axes)[None]])
    low, high = around.amin(0), around.amax(0)
    if len(driven):
        least, most = driven.amin(0), driven.amax(0)
        if float((high - low).max()) <= 0.05 * float((most - least).max()):
            low, high = least, most
    middle, reach = (low + high) / 2, MARGIN * (high - low) / 2
    reach = reach.clamp(min=THINNEST * float(reach.max()) or 1.0)

    # The speed on a grid.
    side = SIDE if count == 2 else ALONG
    ticks = middle + reach * torch.linspace(-1, 1, side, dtype=torch.float64)[:, None]
    grid = torch.cartesian_prod(*ticks.T).view(-1, count) - centre @ axes
    batches = (centre + grid @ axes.T).split(max(1, HELD // len(reduced.bias)))
    speed = torch.cat([(reduced.leak * reduced.pull(kappa)) @ axes for kappa in batches])
    if count == 2:
        speed = speed.view(side, side, 2).transpose(0, 1)
    total = float(away.square().sum())
    share = float((away @ axes).square().sum()) / total if total else 1.0
    return Flow(share, ticks.T.numpy(), speed.numpy(), marked.numpy(), driven.numpy())
