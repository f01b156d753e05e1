r"""What happens to the states of a network when its inputs end.

States may decay, stay, fall into one of several attractors, follow a cycle, or never repeat. Times are compared with
$1/\alpha$, the time in which a neuron on its own forgets.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Generator, Tensor

from rni.analysis.flow import Flow, flow
from rni.analysis.latents import LASTING, LONGEST, SOON, STARTS, Latent, latent, marks, settle, spread, visited
from rni.analysis.stationary import FixedPoints, distinct, find
from rni.core.text_result import TextResult
from rni.networks.vanilla import VanillaRNN

DESCRIBED = 12  # fixed points that are described, of those that were found
KEPT = 0.05  # part of the spread of states that is left after 50 times 1 / leak, if they have not fallen together
REMEMBERED = 0.15  # the same if they are a memory: a linear mode then has a time constant of 26 times 1 / leak or more
LONGER = 3.0  # memories and integrals with fitted decays last so many times as long as the slowest neuron alone
START_CORRELATION = 0.9  # least correlation of remembered states with where they were when inputs ended
ALONG = 0.95  # part of the last states' variance that the directions hold along which states may have stayed
SAME = 1e-3  # part of the range of states: most states have another one so close, if they fall together
CLOSE = 0.02  # part of that range: states so close have one outcome, and most outcomes have no other twice as close
ARRIVED = 0.05  # part of the way from an attractor to the next point: states so close have arrived at it
WATCHED = 8  # moving states of which the neighbours are followed too
CHAOS = 5.0  # neighbours part by more than this power of e, if the movement is chaotic
SUSTAINED = 0.8  # part of the first half's speed that a sustained movement has in its second half
RETURN = 0.1  # part of the variance: states so close are the same
LARGEST = 5000  # largest number of neurons of which the connections are followed one by one


@dataclass(frozen=True, kw_only=True, repr=False)
class Dynamics(TextResult):
    r"""Fixed points of a network, and what happens to the states that it visits when its inputs end.

    Attributes
    ----------
    own_time : float
        $1/\alpha$ of the slowest neuron, in steps.
    coordinates : int
        The number of latent coordinates.
    fixed_points : FixedPoints
        Fixed points and slow points.
    attractors : tuple of float
        For each attractor, the part of the states that end at it.
    graded : bool
        Whether most states end alone, or without a gap to the next, and enough of their spread is left for a memory.
    retained : tuple of float
        The part of the spread of the states that is left after 10 and after 50 times 1 / leak.
    start_correlation : float
        The least correlation of states with where they were when inputs ended, at any time up to 50 times 1 / leak,
        along the directions in which they differ at the end.
    slow : int
        The number of multipliers with time constants above 10 times 1 / leak, at the first fixed point, which most
        states are next to.
    drift : float
        The speed of the fastest state after 25 times 1 / leak, in parts of the states' range per step. It bounds how
        fast a memory moves.
    leaves : float
        The part of the states that runs away.
    grows, moving : float
        Of the others, the part that moves faster and faster, and the part that goes on moving as fast.
    chaotic : bool
        Whether neighbours of moving states part.
    lyapunov : float or None
        The largest Lyapunov exponent of moving states, per step.
    period : float or None
        The period of moving states in steps, if there is one.
    feedforward : bool
        Whether W has no loops.
    random : bool
        Whether the singular values of W are those of independent random weights.
    flow : Flow
        The flow in the coordinates that the states use most.

    Examples
    --------
    >>> found = rni.analyze(rni.design(rni.Integration(0.95), neurons=40).network).dynamics
    >>> found.coordinates, len(found.fixed_points), round(found.retained[0], 1), found.feedforward
    (1, 1, 0.6, False)
    """

    own_time: float
    coordinates: int
    fixed_points: FixedPoints
    attractors: tuple[float, ...]
    graded: bool
    retained: tuple[float, float]
    start_correlation: float
    slow: int
    drift: float
    leaves: float
    grows: float
    moving: float
    chaotic: bool
    lyapunov: float | None
    period: float | None
    feedforward: bool
    random: bool
    flow: Flow = field(repr=False, compare=False)

    @property
    def runs_away(self) -> bool:
        """Whether half of the states or more get ever farther or ever faster."""
        return self.leaves + self.grows >= 0.5

    def lines(self) -> Iterator[str]:
        yield from self.fixed_points.lines()
        left = " and ".join(f"{100 * part:.3g} %" for part in self.retained)
        yield f"spread of the states that is left without inputs after {SOON} and {LASTING} times 1 / leak: {left}"
        if self.lyapunov is not None:
            period = "" if self.period is None else f", period {self.period:.4g} steps"
            yield f"states go on moving: Lyapunov exponent {self.lyapunov:.3g} a step{period}"


@torch.no_grad()
def dynamics(net: VanillaRNN, inputs: Tensor | None = None, *, values: Tensor | None = None, seed: int = 0) -> Dynamics:
    """Examine a network without inputs, from the states at which inputs leave it.

    Parameters
    ----------
    net : VanillaRNN
        The network.
    inputs : Tensor (batch, time, channels), optional
        The inputs that come before. By default they are white noise and bursts.
    values : Tensor (neurons,), optional
        The singular values of W, if they are known already.
    seed : int
        The seed of the default inputs.

    Examples
    --------
    >>> net = rni.VanillaRNN.of(rni.design(rni.Integration(0.95), neurons=40).network)
    >>> print(str(rni.analysis.dynamics(net)).splitlines()[0])
    fixed points: 1 attractor
    """
    reduced = latent(net)
    starts = visited(net, reduced, inputs, seed)
    stops = sorted({*marks(reduced), *fibonacci(marks(reduced)[-1])})
    path = settle(reduced, starts[:STARTS], stops)
    states = path[[stops.index(mark) for mark in marks(reduced)]]
    first, soon, later, last = states
    points = find(net, reduced, starts, last, DESCRIBED)
    arrays = {name: getattr(points, name)[:DESCRIBED] for name in ("states", "latent", "eigenvalues")}
    described = replace(points, points=points.points[:DESCRIBED], **arrays)
    centres = torch.from_numpy(described.latent)

    range_later = float(torch.cdist(later, later).max()) if len(later) else 0.0
    fastest = float((reduced.leak * reduced.pull(later)).norm(dim=1).max()) if len(later) else 0.0
    at_first = spread(first) or 1.0
    return Dynamics(
        own_time=reduced.own_time,
        coordinates=reduced.dimension,
        fixed_points=described,
        retained=(spread(soon) / at_first, spread(last) / at_first),
        start_correlation=start_correlation(path),
        drift=fastest / max(range_later, 1e-300),
        leaves=1 - len(last) / min(len(starts), STARTS),
        feedforward=feedforward(net),
        random=looks_random(net, values),
        flow=flow(reduced, centres, states, centres[0] if len(centres) else starts.mean(0)),
        **outcomes(reduced, points, first, later, last),
    )


def outcomes(reduced: Latent, points: FixedPoints, first: Tensor, later: Tensor, last: Tensor) -> dict[str, Any]:
    """Find out whether states end at attractors, at graded positions, or go on moving.

    Parameters
    ----------
    reduced : Latent
        The network in latent coordinates.
    points : FixedPoints
        Its fixed points.
    first, later, last : Tensor (states, K)
        The states after 0, 25 and 50 times 1 / leak without inputs.

    Returns
    -------
    dict
        The fields attractors, graded, slow, grows, moving, chaotic, lyapunov and period of `Dynamics`.
    """
    found: dict[str, Any] = {"attractors": (), "graded": False, "slow": 0, "grows": 0.0, "moving": 0.0}
    found |= {"chaotic": False, "lyapunov": None, "period": None}
    if not len(last):
        return found

    # States move if they are still fast at a distance from all fixed points.
    centres = torch.from_numpy(points.latent)
    distance, nearest = nearest_of(last, centres, points.spread)
    speeds, before = reduced.pull(last).norm(dim=1), reduced.pull(later).norm(dim=1)
    moving = (speeds > 2 / LASTING * distance) & (distance > 1e-3 * points.spread)
    part_moving = float(moving.double().mean())
    if part_moving >= 0.5 and speeds.square().mean() > 0.25 * before.square().mean():
        lyapunov, parting, period_of_states, sustained = follow(reduced, last[moving][:WATCHED])
        if sustained > 1 / SUSTAINED:
            found["grows"] = part_moving
        elif sustained >= SUSTAINED:
            found |= {"moving": part_moving, "lyapunov": lyapunov, "period": period_of_states}
            found["chaotic"] = parting > CHAOS

    # States that have arrived at a stable fixed point.
    if len(points.points):
        lasts = np.abs(np.log(np.abs(points.eigenvalues[0]) + 1e-300)) * SOON * reduced.own_time <= 1
        found["slow"] = int(lasts.sum())
        gap, _ = nearest_of(centres, centres, points.spread, itself=False)
        arrived = distance <= ARRIVED * gap[nearest]
        stable = [k for k, point in enumerate(points.points) if point.stability == "attractor"]
        ends = [arrived & (nearest == k) for k in stable]
        found["attractors"] = tuple(float(end.double().mean()) for end in ends if int(end.sum()) > 1)

    # If states keep their spread, they are graded, or else each group of close states is an outcome.
    if spread(last) >= KEPT * spread(first):
        size = float(torch.cdist(last, last).max())
        alone = nearest_of(last, last, math.inf, itself=False)[0] > SAME * size
        outcome = distinct(reduced, last, CLOSE * size)[1]
        to_others = torch.cdist(last, last).masked_fill(outcome[:, None] == outcome, math.inf)
        without_gap = to_others.amin(1) <= 2 * CLOSE * size
        if alone.double().mean() > 0.5 or without_gap.double().mean() > 0.5:
            # Very slow neurons hold their states by their leak alone for as long as they are followed here.
            by_leak = (1 - 1 / reduced.own_time) ** marks(reduced)[-1]
            found["graded"] = spread(last) >= max(REMEMBERED, by_leak ** (1 / LONGER)) * spread(first)
        else:
            ends = [outcome == k for k in outcome.unique().tolist()]
            found["attractors"] = tuple(float(end.double().mean()) for end in ends if int(end.sum()) > 1)
    return found


def fibonacci(last: int) -> list[int]:
    """Return 1, 2, 3, 5, 8, ... up to `last`. Whatever the period of a rotation, one is far from its multiples."""
    steps, following = [], 1
    while following <= last:
        steps.append(following)
        following += steps[-2] if len(steps) > 1 else 1
    return steps


def start_correlation(path: Tensor) -> float:
    r"""Return $\min_t \mathrm{corr}(P\kappa_0, P\kappa_t)$, the least correlation of states with the first ones.

    P projects on the directions that are left at the end: the first principal components of the last states, as many as
    hold 95 % of their variance. All times count, because a rotation may have come full circle at the last one.

    Parameters
    ----------
    path : Tensor (times, states, K)
        The states.
    """
    away = path - path.mean(1, keepdim=True)
    if not spread(path[-1]):
        return 0.0
    _, sizes, directions = torch.linalg.svd(away[-1], full_matrices=False)
    held = sizes.square().cumsum(0) / sizes.square().sum()
    projected = away @ directions[: 1 + int((held < ALONG).sum())].T
    products = (projected * projected[0]).sum((1, 2))
    return float((products / (projected.norm(dim=(1, 2)) * projected[0].norm())).min())


def nearest_of(states: Tensor, centres: Tensor, far: float, *, itself: bool = True) -> tuple[Tensor, Tensor]:
    """Find the centre (centres, K) nearest to each state (states, K).

    Parameters
    ----------
    far : float
        The distance if there is no centre.
    itself : bool
        Whether state k may be nearest to centre k.

    Returns
    -------
    tuple of Tensor (states,), (states,)
        The distances and the indices of the centres.
    """
    apart = torch.cat([torch.cdist(states, centres), states.new_full((len(states), 1), math.inf)], 1)
    if not itself:
        apart.fill_diagonal_(math.inf)
    distance, nearest = apart.min(1)
    return torch.where(distance.isinf(), far, distance), nearest


def follow(reduced: Latent, kappa: Tensor) -> tuple[float, float, float | None, float]:
    r"""Follow states (states, K), and two neighbours of each, for 200 times 1 / leak.

    Neighbours follow $\delta \leftarrow F'(\kappa)\,\delta$ and are made orthonormal at each step. The first quarter is
    left out of the exponents.

    Returns
    -------
    lyapunov : float
        The largest Lyapunov exponent per step.
    parting : float
        The power of e by which neighbours part.
    period : float or None
        The period in steps.
    sustained : float
        The speed in the second half relative to that in the first half.
    """
    steps = max(8, min(round(4 * LASTING * reduced.own_time), LONGEST))
    generator = Generator().manual_seed(0)
    size = len(kappa), reduced.dimension, min(2, reduced.dimension)
    neighbours = torch.linalg.qr(torch.randn(*size, generator=generator, dtype=torch.float64)).Q
    # up to six random projections of the path are enough to recognise its period
    shown = torch.randn(reduced.dimension, min(6, reduced.dimension), generator=generator, dtype=torch.float64)
    growth, speeds, path = [], [], []
    for _ in range(steps):
        pull, moved = reduced.pull(kappa), reduced.along(reduced.slopes(kappa)[:, None], neighbours.mT)
        neighbours, triangle = torch.linalg.qr((neighbours.mT + reduced.leak * moved).mT)
        growth.append(triangle[:, 0, 0].abs().clamp(min=1e-300).log())
        kappa = kappa + reduced.leak * pull
        speeds.append(pull.square().sum(1).mean())
        path.append(kappa @ shown)
    counted, (before, later) = torch.stack(growth[steps // 4 :]), torch.stack(speeds).tensor_split(2)
    exponent = float(counted.mean())
    sustained = float((later.mean() / before.mean()).sqrt())
    return exponent, exponent * len(counted), period(torch.stack(path, 1)), sustained


def period(paths: Tensor) -> float | None:
    r"""Return the median period of paths (paths, time, k) in steps, or None if most do not return.

    A path returns if it comes back to a tenth of its variance. Its period is the first lag p at which
    $\langle|x_{t+p} - x_t|^2\rangle$ has a minimum. Multiples of p make it more precise.
    """
    found = []
    for path in paths:
        lags = len(path) // 2
        away = torch.stack([(path[p:] - path[: len(path) - p]).square().sum(1).mean() for p in range(lags + 1)])
        minimum = (away[1:-1] <= away[:-2]) & (away[1:-1] <= away[2:])
        minimum &= away[1:-1] < 2 * RETURN * (path - path.mean(0)).square().sum(1).mean()
        if not bool(minimum.any()):
            continue
        best, turns = float(minimum.nonzero()[0, 0] + 1), 1
        while round((turns + 1) * best) < lags - 1:
            turns += 1
            around = round(turns * best) + torch.arange(-1, 2)
            middle = int(around[away[around].argmin()])
            # the minimum of a parabola through three lags
            a, b, c = away[middle - 1 : middle + 2].tolist() if 0 < middle < lags else (1.0, 0.0, 1.0)
            bend = a - 2 * b + c
            best = (middle + (0.5 * (a - c) / bend if bend > 0 else 0.0)) / turns
        found.append(best)
    return float(np.median(found)) if 2 * len(found) > len(paths) else None


def feedforward(net: VanillaRNN) -> bool:
    """Return whether W has no loops: no neuron acts on itself, not even through others."""
    factors = net.recurrent.factors()
    if net.neurons > LARGEST or (factors and bool((factors[0] * factors[1]).sum(1).any())):  # the diagonal of W
        return False
    linked = net.recurrent.matrix().detach() != 0
    if bool(linked.all()) or bool(linked.diagonal().any()):
        return False
    return connected_components(linked.numpy(), connection="strong", return_labels=False) == net.neurons


def looks_random(net: VanillaRNN, values: Tensor | None = None) -> bool:
    r"""Return whether the singular values of W are those of independent weights of one variance $\sigma^2$.

    They follow the quarter-circle law $F(s) = (x\sqrt{4-x^2}/2 + 2\arcsin(x/2))/\pi$ with $x = s/(\sigma\sqrt n)$, to
    within 0.05 or 2 / n, and none is above it.

    Parameters
    ----------
    net : VanillaRNN
        The network.
    values : Tensor (neurons,), optional
        The singular values, if they are known already.
    """
    if not 20 <= net.neurons <= LARGEST or net.recurrent.factors() is not None:
        return False
    values = torch.linalg.svdvals(net.recurrent.matrix().detach()) if values is None else values
    values = values.double().sort().values
    x = values / values.square().mean().sqrt().clamp(min=1e-300)
    law = (x * (4 - x.square()).clamp(min=0).sqrt() / 2 + 2 * (x / 2).clamp(max=1).arcsin()) / math.pi
    uniform = (torch.arange(net.neurons) + 0.5) / net.neurons
    return bool((law - uniform).abs().max() < max(0.05, 2 / net.neurons)) and float(x[-1]) < 2.3
