r"""What becomes of a network's states when its inputs end: gone, kept, one of several, on a cycle, or never the same.

Times are compared with the own time $1/\alpha$ of the neurons, in which one of them on its own forgets.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Generator, Tensor

from rni.analysis.flow import Flow, flow
from rni.analysis.latents import Latent, latent
from rni.analysis.search import distinct
from rni.analysis.stationary import FixedPoints, find
from rni.analysis.visited import LASTING, LONGEST, SOON, bounded, settle, spread, visited
from rni.core.described import Described
from rni.networks.vanilla import VanillaRNN

DESCRIBED = 12  # fixed points, of those that were found
KEPT = 0.05  # of the spread of states that is left after 50 own times, if they are a memory
SAME = 1e-3  # of the range of states then: most have another as close, where they fall together
CLOSE = 0.02  # of that range: as close is one outcome; most of one have none of another twice as close
ARRIVED = 0.05  # of the way from an attractor to the next point: as close counts as there
WATCHED = 8  # states whose neighbours are followed too
CHAOS = 5.0  # powers of e by which neighbours part, if they do at all
SUSTAINED = 0.8  # of the first half's speed, which a movement has in its second half if it goes on
RETURN = 0.1  # of the variance: as close counts as the same state
LARGEST = 5000  # neurons whose connections are followed one by one


@dataclass(frozen=True, kw_only=True, repr=False)
class Dynamics(Described):
    r"""Fixed points of the network, and what becomes of the states that it visits without inputs.

    own_time: $1/\alpha$, in steps. coordinates: how many latent ones. attractors: where states end, the part of them
    for each; graded: most end alone, or without a gap to the next. retained: what is left of the spread of the states
    after 10 and after 50 own times. slow: multipliers with time constants above 10 own times at the first fixed point,
    which most states are next to. drift: the speed of the fastest state after 25 own times, in parts of their range a
    step: it bounds how fast a memory moves. leaves: the part of the states that leaves every bound; of the others,
    grows: get ever faster; moving: go on as fast; lyapunov: exponent of these, a step; period: in steps, if there is
    one. feedforward: W has no loop. random: W's singular values are those of independent random weights.

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

    def lines(self) -> Iterator[str]:
        yield from self.fixed_points.lines()
        left = " and ".join(f"{100 * part:.3g} %" for part in self.retained)
        yield f"left of its states' spread without inputs, after {SOON} and {LASTING} times 1 / leak: {left}"
        if self.lyapunov is not None:
            period = "" if self.period is None else f", period {self.period:.4g} steps"
            yield f"goes on moving: Lyapunov exponent {self.lyapunov:.3g} a step{period}"


class Watched(NamedTuple):
    """Of states that go on moving: exponent a step, powers of e that neighbours part by, period, speed at the end."""

    lyapunov: float
    parting: float
    period: float | None
    sustained: float


@torch.no_grad()
def dynamics(net: VanillaRNN, inputs: Tensor | None = None, *, values: Tensor | None = None, seed: int = 0) -> Dynamics:
    """Without inputs, from the states at which `inputs`, or white noise and bursts, leave the network.

    values: W's singular values, where they are known already.

    >>> net = rni.VanillaRNN.of(rni.design(rni.Integration(0.95), neurons=40).network)
    >>> print(str(rni.analysis.dynamics(net)).splitlines()[0])
    fixed points: 1 attractor
    """
    reduced = latent(net)
    starts = visited(net, reduced, inputs, seed)
    path = settle(reduced, starts)
    first, soon, later, last = stayed = bounded(path)
    points = find(net, reduced, starts, last, DESCRIBED)
    still = spread(first) or 1.0
    shown = points.first(DESCRIBED)
    centres = torch.from_numpy(shown.latent)
    return Dynamics(
        own_time=reduced.own_time,
        coordinates=reduced.dimension,
        fixed_points=shown,
        retained=(spread(soon) / still, spread(last) / still),
        drift=_fastest(reduced, later) / max(_range(later), 1e-300),
        leaves=1 - len(last) / path.shape[1],
        feedforward=feedforward(net),
        random=random(net, values),
        flow=flow(reduced, centres, stayed, centres[0] if len(centres) else starts.mean(0)),
        **_fate(reduced, points, first, later, last),
    )


class _Fate(TypedDict):
    attractors: tuple[float, ...]
    graded: bool
    slow: int
    grows: float
    moving: float
    chaotic: bool
    lyapunov: float | None
    period: float | None


def _fate(reduced: Latent, points: FixedPoints, first: Tensor, later: Tensor, last: Tensor) -> _Fate:
    """Of states (states, K) after 0, 25 and 50 own times."""
    fate = _Fate(attractors=(), graded=False, slow=0, grows=0.0, moving=0.0, chaotic=False, lyapunov=None, period=None)
    if not len(last):
        return fate
    centres = torch.from_numpy(points.latent)
    distance, nearest = _nearest(last, centres, points.spread)
    speeds, before = (reduced.pull(states).norm(dim=1) for states in (last, later))
    moving = (speeds > 2 / LASTING * distance) & (distance > 1e-3 * points.spread)
    if moving.double().mean() >= 0.5 and speeds.square().mean() > 0.25 * before.square().mean():
        watched = watch(reduced, last[moving][:WATCHED])
        if watched.sustained > 1 / SUSTAINED:
            fate["grows"] = float(moving.double().mean())
        elif watched.sustained >= SUSTAINED:
            fate["moving"], fate["lyapunov"] = float(moving.double().mean()), watched.lyapunov
            fate["chaotic"], fate["period"] = watched.parting > CHAOS, watched.period
    if len(points):
        lasts = np.abs(np.log(np.abs(points.eigenvalues[0]) + 1e-300)) * SOON * reduced.own_time <= 1
        fate["slow"] = int(lasts.sum())
        arrived = distance <= ARRIVED * _nearest(centres, centres, points.spread, itself=False)[0][nearest]
        stable = [k for k, point in enumerate(points.points) if point.stability == "attractor"]
        fate["attractors"] = _parts(arrived & (nearest == k) for k in stable)
    if spread(last) >= KEPT * spread(first):
        alone = _nearest(last, last, math.inf, itself=False)[0] > SAME * _range(last)
        outcome = distinct(reduced, last, CLOSE * _range(last))[1]
        others = torch.cdist(last, last).masked_fill(outcome[:, None] == outcome, math.inf)
        between = others.amin(1) <= 2 * CLOSE * _range(last)
        fate["graded"] = bool(alone.double().mean() > 0.5 or between.double().mean() > 0.5)
        if not fate["graded"]:
            fate["attractors"] = _parts(outcome == k for k in outcome.unique().tolist())
    return fate


def _parts(members: Iterable[Tensor]) -> tuple[float, ...]:
    """What each has of the states, of those that have more than one."""
    return tuple(float(each.double().mean()) for each in members if int(each.sum()) > 1)


def watch(reduced: Latent, kappa: Tensor) -> Watched:
    r"""Follow states (states, K), and two neighbours of each, $\delta \leftarrow F'(\kappa)\,\delta$ made orthonormal.

    Over 200 own times, of which the first quarter is left out of the exponents.
    """
    steps = max(8, min(round(4 * LASTING * reduced.own_time), LONGEST))
    generator = Generator().manual_seed(0)
    size = len(kappa), reduced.dimension, min(2, reduced.dimension)
    near = torch.linalg.qr(torch.randn(*size, generator=generator, dtype=torch.float64)).Q
    shown = torch.randn(reduced.dimension, min(6, reduced.dimension), generator=generator, dtype=torch.float64)
    grown, speeds, path = [], [], []
    for _ in range(steps):
        pull, moved = reduced.pull(kappa), reduced.along(reduced.slopes(kappa)[:, None], near.mT)
        near, triangle = torch.linalg.qr((near.mT + reduced.leak * moved).mT)
        grown.append(triangle[:, 0, 0].abs().clamp(min=1e-300).log())
        kappa = kappa + reduced.leak * pull
        speeds.append(pull.square().sum(1).mean())
        path.append(kappa @ shown)
    counted, (before, later) = torch.stack(grown[steps // 4 :]), torch.stack(speeds).tensor_split(2)
    exponent = float(counted.mean())
    sustained = float((later.mean() / before.mean()).sqrt())
    return Watched(exponent, exponent * len(counted), period(torch.stack(path, 1)), sustained)


def period(paths: Tensor) -> float | None:
    r"""Steps until paths (paths, time, k) return, the median; None where most do not, to a tenth of their variance.

    The first p at which $\langle|x_{t+p} - x_t|^2\rangle$ is least, made more precise by its multiples.
    """
    found = [each for each in map(_period, paths) if each is not None]
    return float(np.median(found)) if 2 * len(found) > len(paths) else None


def _period(path: Tensor) -> float | None:
    lags = len(path) // 2
    away = torch.stack([(path[p:] - path[: len(path) - p]).square().sum(1).mean() for p in range(lags + 1)])
    least = (away[1:-1] <= away[:-2]) & (away[1:-1] <= away[2:])
    least &= away[1:-1] < 2 * RETURN * (path - path.mean(0)).square().sum(1).mean()
    if not bool(least.any()):
        return None
    best, turns = float(least.nonzero()[0, 0] + 1), 1
    while round((turns + 1) * best) < lags - 1:
        turns += 1
        around = round(turns * best) + torch.arange(-1, 2)
        middle = int(around[away[around].argmin()])
        a, b, c = away[middle - 1 : middle + 2].tolist() if 0 < middle < lags else (1.0, 0.0, 1.0)
        bend = a - 2 * b + c
        best = (middle + (0.5 * (a - c) / bend if bend > 0 else 0.0)) / turns
    return best


def _range(states: Tensor) -> float:
    return float(torch.cdist(states, states).max()) if len(states) else 0.0


def _fastest(reduced: Latent, states: Tensor) -> float:
    return float((reduced.leak * reduced.pull(states)).norm(dim=1).max()) if len(states) else 0.0


def _nearest(states: Tensor, centres: Tensor, far: float, *, itself: bool = True) -> tuple[Tensor, Tensor]:
    """Distance (states,) to the nearest of the centres (centres, K), and which; `far` where there is no other."""
    apart = torch.cat([torch.cdist(states, centres), states.new_full((len(states), 1), math.inf)], 1)
    if not itself:
        apart.fill_diagonal_(math.inf)
    distance, nearest = apart.min(1)
    return torch.where(distance.isinf(), far, distance), nearest


def feedforward(net: VanillaRNN) -> bool:
    """Whether no neuron acts on itself, not even through others."""
    factors = net.recurrent.factors()
    if net.neurons > LARGEST or (factors and bool((factors[0] * factors[1]).sum(1).any())):  # W's diagonal
        return False
    linked = net.recurrent.matrix().detach() != 0
    if bool(linked.all()) or bool(linked.diagonal().any()):
        return False
    return connected_components(linked.numpy(), connection="strong", return_labels=False) == net.neurons


def random(net: VanillaRNN, values: Tensor | None = None) -> bool:
    r"""Whether W's singular values follow the quarter-circle law of independent weights of one variance $\sigma^2$.

    $F(s) = (x\sqrt{4-x^2}/2 + 2\arcsin(x/2))/\pi$ with $x = s/(\sigma\sqrt n)$, to within 0.05 or 2 / n, and
    none above it.
    """
    if not 20 <= net.neurons <= LARGEST or net.recurrent.factors() is not None:
        return False
    values = torch.linalg.svdvals(net.recurrent.matrix().detach()) if values is None else values
    values = values.double().sort().values
    x = values / values.square().mean().sqrt().clamp(min=1e-300)
    law = (x * (4 - x.square()).clamp(min=0).sqrt() / 2 + 2 * (x / 2).clamp(max=1).arcsin()) / math.pi
    even = (torch.arange(net.neurons) + 0.5) / net.neurons
    return bool((law - even).abs().max() < max(0.05, 2 / net.neurons)) and float(x[-1]) < 2.3
