r"""Fixed points and slow points of a network without inputs: where $|F(h) - h|$ is 0, or least.

They are looked for in the latent coordinates, from all visited states at once, by Levenberg and Marquardt's method on
$q(\kappa) = |R^\dagger f(L\kappa + b) - \kappa|^2$: with the Jacobian where there are few coordinates, by conjugate gradients,
which need products with W alone, where there are many.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.linalg
import torch
from torch import Generator, Tensor

from rni.activation import Activation
from rni.analysis.latent import Latent, latent
from rni.described import Described
from rni.errors import InputError
from rni.exchange.foreign import interpret
from rni.exchange.vanilla import VanillaRNN
from rni.inputs import bursts, white_noise

Stability = Literal["attractor", "marginal point", "saddle", "repeller", "slow point"]

FEW = 32  # coordinates up to which equations are solved with matrices
PRODUCTS = 60  # of conjugate gradients, in an iteration at most
ITERATIONS = 50
MARGINAL = 1e-9  # a multiplier as close to 1 neither falls nor grows
CLOSE = 1e-5  # of the visited range: there Newton's method takes over
FIXED = 1e-9  # what moves less than this part of the visited range in a time 1 / leak is fixed
LASTING = 50  # times 1 / leak: what lasts longer is slow
APART = 1e-4  # of the visited range: closer points are the same
DECOMPOSED = 5e9  # K^3, for the eigenvectors of all points together
MODES = 4  # described for each point
STARTS, DURATION = 64, 100
HELD = 2**21  # numbers in a batch of states at most, if that are 16 states


@dataclass(frozen=True)
class Mode:
    r"""An eigenvalue $\lambda$ of the step: $|\lambda|$, its time constant $-1/\log|\lambda|$ and period, in steps.

    The time constant is negative where it grows, the period infinite where $\lambda$ is real and positive. inputs, outputs: cosines of the angles
    between each input and the left eigenvector, which says what drives the mode; between each output's weights and
    the right eigenvector, which says where it shows.
    """

    multiplier: float
    time_constant: float
    period: float
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]

    def describe(self, dt: float | None = None) -> str:
        """The multiplier and its time constant, in time too where a step has one."""
        turning = "" if math.isinf(self.period) else f", period {duration(self.period, dt)}"
        return f"{self.multiplier:.4g} ({duration(abs(self.time_constant), dt)}{turning})"


def duration(steps: float, dt: float | None) -> str:
    """In steps, and in time."""
    return f"{steps:.4g} steps" if dt is None else f"{steps:.4g} steps, {steps * dt:.4g} in time"


@dataclass(frozen=True)
class Point:
    """A fixed point, or a slow one, which moves by `speed` a step; `searches`: the part of them that ended there."""

    stability: Stability
    speed: float
    searches: float
    modes: tuple[Mode, ...]


@dataclass(frozen=True, kw_only=True)
class FixedPoints(Described):
    """points, those that most visited states are next to first; their states (points, neurons), h or v.

    latent (points, K): the same in the latent coordinates; eigenvalues (points, K), the largest first, of the step.
    found: how many were found, if more than are given here. spread: of the visited states about their mean. dt: the
    time of a step, where it is known.
    """

    points: tuple[Point, ...]
    found: int
    spread: float
    dt: float | None
    states: np.ndarray = field(repr=False, compare=False)
    latent: np.ndarray = field(repr=False, compare=False)
    eigenvalues: np.ndarray = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.points)

    def lines(self) -> Iterator[str]:
        kinds = [point.stability for point in self.points]
        counts = ", ".join(f"{kinds.count(kind)} {kind}{'s' * (kinds.count(kind) > 1)}" for kind in dict.fromkeys(kinds))
        shown = f", of {self.found} found" if self.found > len(self.points) else ""
        yield f"fixed points: {counts or 'none'}{shown}"
        for point in self.points[:5]:
            speed = "" if point.stability != "slow point" else f", speed {point.speed:.2g} a step"
            yield f"  {point.stability}{speed}: multipliers {'  '.join(mode.describe(self.dt) for mode in point.modes[:3])}"


@torch.no_grad()
def fixed_points(
    thing: Any,
    *,
    constant: Tensor | np.ndarray | list[float] | None = None,
    inputs: Tensor | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
) -> FixedPoints:
    r"""Where $F(h) = h$, or nearly: of anything that `analyze` takes, from the states that it visits.

    constant: an input (channels,) that stays on, none by default. inputs: (batch, time, channels), after which the
    visited states are taken; N(0, 1) and bursts by default. Exact in the sense of float64: Newton's method goes on
    until rounding stops it.
    """
    net = interpret(thing, activation)
    if not isinstance(net, VanillaRNN):
        raise InputError("fixed_points: a recording; allowed: a network, whose states can be chosen")
    if constant is not None:
        constant = torch.as_tensor(constant, dtype=torch.float64)
        if constant.shape != (net.channels,) or not bool(constant.isfinite().all()):
            raise InputError(f"constant: shape {tuple(constant.shape)}; allowed: ({net.channels},), finite")
    reduced = latent(net, constant)
    return find(net, reduced, visited(net, reduced, inputs, seed))


def visited(net: VanillaRNN, reduced: Latent, inputs: Tensor | None = None, seed: int = 0) -> Tensor:
    """Latent coordinates (starts, K) at which white noise, bursts, or `inputs` leave the network, finite ones only.

    First where it starts; then at the end of each sequence; then on the way.
    """
    if inputs is None:
        steps = min(max(DURATION, round(LASTING * reduced.own_time)), 10 * DURATION)
        batch, generator = max(8, min(STARTS, HELD // net.neurons) // 2), Generator().manual_seed(seed)
        inputs = torch.cat([make(batch, steps, net.channels, generator) for make in (white_noise, bursts)])
    taken = {round(part * (inputs.shape[1] - 1)) for part in (0.02, 0.1, 0.3)}
    walk = enumerate(reduced.of(h.double()) for _, h in net.steps(inputs[:STARTS]))
    kept, last = [], reduced.of(net.rate(net.start(1)).double())
    kept.append(last)
    for t, last in walk:
        if t in taken:
            kept.append(last)
    states = torch.cat([kept[0], last, *kept[1:]])
    finite = states[states.square().sum(1).isfinite()]
    return finite if len(finite) else torch.zeros(1, reduced.dimension, dtype=torch.float64)


def find(net: VanillaRNN, reduced: Latent, starts: Tensor, most: int = STARTS) -> FixedPoints:
    """The fixed and slow points that descent on q ends at, from rows of starts (starts, K), up to `most` of them."""
    spread = float((starts - starts.mean(0)).square().sum(1).mean().sqrt()) or 1.0
    most = int(min(most, max(5, DECOMPOSED / reduced.dimension**3)))
    begun = _spaced(starts, _rows(reduced))
    ends = descend(reduced, begun, CLOSE * spread)
    others = descend(reduced, _between(_distinct(reduced, ends, 10 * APART * spread)[0], _rows(reduced) // 2), CLOSE * spread)
    found, member = _distinct(reduced, torch.cat([ends, others]), 10 * APART * spread)
    polished = torch.cat([polish(reduced, kappa, APART * spread) for kappa in found.split(1)])
    kept, again = _distinct(reduced, polished, APART * spread)
    member = again[member[: len(begun)]]
    pulls = reduced.pull(kept)
    slopes = reduced.slopes(kept)
    size, gradient = pulls.norm(dim=1), reduced.against(slopes, pulls).norm(dim=1)
    still = size <= FIXED * spread
    slow = ~still & (size <= spread / LASTING) & (gradient <= 0.01 * size)
    share = torch.bincount(member, minlength=len(kept)).double() / len(begun)
    order = torch.argsort(share, descending=True, stable=True)
    order = order[(still | slow)[order]]
    shown = order[:most]
    sided = [_sided(reduced, kept[k], begun[member == k], spread) for k in shown.tolist()]
    spectra = [_spectrum(reduced, each) for each in sided]
    points = []
    for k, each, (values, rights, lefts) in zip(shown.tolist(), sided, spectra, strict=True):
        one = np.flatnonzero(values.imag >= 0)[:MODES]  # of each pair
        modes = _modes(net, reduced, each, values[one], rights[:, one], lefts[:, one])
        kind = "slow point" if bool(slow[k]) else _stability(values)
        points.append(Point(kind, float((reduced.leak * pulls[k]).norm()), float(share[k]), modes))
    currents = reduced.currents(kept[shown])
    return FixedPoints(
        points=tuple(points),
        found=len(order),
        spread=spread,
        dt=net.dt,
        states=(reduced.f(currents) if net.form == "rate" else currents).numpy(),
        latent=kept[shown].numpy(),
        eigenvalues=np.array([values for values, _, _ in spectra]).reshape(len(points), reduced.dimension),
    )


def _rows(reduced: Latent) -> int:
    """How many states are moved at once."""
    return max(16, min(STARTS, HELD // len(reduced.bias))) // (1 if reduced.dimension <= FEW else 2)


def _spaced(rows: Tensor, count: int) -> Tensor:
    return rows[torch.linspace(0, len(rows) - 1, min(len(rows), count)).round().long()]


def _between(points: Tensor, count: int) -> Tensor:
    """Where saddles are: half-way between points (points, K); and all about them, where there are a few coordinates."""
    pairs = torch.combinations(torch.arange(len(points)))
    midpoints = points[_spaced(pairs, count)].mean(1)
    if points.shape[1] > FEW or len(points) == 1:
        return midpoints
    cloud = torch.randn(count, points.shape[1], generator=Generator().manual_seed(0), dtype=torch.float64)
    return torch.cat([midpoints, points.mean(0) + 2 * float((points - points.mean(0)).square().mean().sqrt()) * cloud])


def descend(reduced: Latent, kappa: Tensor, tolerance: float) -> Tensor:
    r"""Rows of (batch, K) moved to where $q = |r|^2$ is least, $(J^\dagger J + \mu)\,\delta = -J^\dagger r$ a step.

    $\mu$ of each row falls where a step makes q smaller, else the step is not taken and it rises.
    """
    kappa = kappa.clone()
    damping = kappa.new_full((len(kappa),), 1e-2)
    active = torch.arange(len(kappa))
    for _ in range(ITERATIONS):
        if not len(active):
            break
        here, mu = kappa[active], damping[active]
        slopes, r = reduced.slopes(here), reduced.pull(here)
        gradient, q = reduced.against(slopes, r), r.square().sum(1)
        solve = _by_matrices if reduced.dimension <= FEW else _by_gradients
        moved = here - solve(reduced, slopes, gradient, mu)
        better = reduced.pull(moved).square().sum(1) < q  # False where it is not a number
        kappa[active[better]] = moved[better]
        damping[active] = torch.where(better, mu / 10, mu * 10).clamp(min=1e-13)
        going = (q > tolerance**2) & (gradient.square().sum(1) > 1e-12 * q) & (damping[active] < 1e8)
        active = active[going]
    return kappa


def _by_matrices(reduced: Latent, slopes: Tensor, gradient: Tensor, mu: Tensor) -> Tensor:
    one = torch.eye(reduced.dimension, dtype=torch.float64)
    j = reduced.matrices(slopes) - one
    return torch.linalg.solve(j.mT @ j + mu[:, None, None] * one, gradient)


def _by_gradients(reduced: Latent, slopes: Tensor, gradient: Tensor, mu: Tensor) -> Tensor:
    """Conjugate gradients, all rows side by side; those that are done stand still."""
    x, r = torch.zeros_like(gradient), gradient.clone()
    p, size = r, r.square().sum(1)
    enough = 1e-4 * size
    for _ in range(PRODUCTS):
        ap = reduced.against(slopes, reduced.along(slopes, p)) + mu[:, None] * p
        rate = torch.where(size > enough, size / (p * ap).sum(1), 0.0)[:, None]
        x, r = x + rate * p, r - rate * ap
        size, before = r.square().sum(1), size
        if bool((size <= enough).all()):
            break
        p = r + (size / before)[:, None] * p
    return x


def polish(reduced: Latent, kappa: Tensor, reach: float) -> Tensor:
    """Newton's method on one row (1, K), as long as it makes the pull smaller within reach."""
    for _ in range(8):
        r = reduced.pull(kappa)
        j = reduced.matrices(reduced.slopes(kappa))[0] - torch.eye(reduced.dimension, dtype=torch.float64)
        move, _ = torch.linalg.solve_ex(j, r[0])
        if not (move.norm() <= reach and reduced.pull(kappa - move).norm() < r.norm()):
            break
        kappa = kappa - move
    return kappa


def _distinct(reduced: Latent, kappa: Tensor, apart: float) -> tuple[Tensor, Tensor]:
    """One row for all that are closer than `apart`, the stillest; and which of them each row of (batch, K) is."""
    order = torch.argsort(reduced.pull(kappa).norm(dim=1))
    chosen: list[int] = []
    for k in order.tolist():
        if not chosen or float((kappa[chosen] - kappa[k]).norm(dim=1).min()) > apart:
            chosen.append(k)
    return kappa[chosen], torch.cdist(kappa, kappa[chosen]).argmin(1)


def _sided(reduced: Latent, kappa: Tensor, starts: Tensor, spread: float) -> Tensor:
    """Slopes (1, neurons) at a point; where a neuron is at a kink of f, those on the side of the first start."""
    nu, step = reduced.currents(kappa), 1e-7 * spread
    kinks = (reduced.f.derivative(nu + step) - reduced.f.derivative(nu - step)).abs() > 1e-3
    if not bool(kinks.any()) or not len(starts):
        return reduced.f.derivative(nu)[None]
    towards = starts[(starts - kappa).norm(dim=1).argmax()] - kappa
    return reduced.slopes(kappa + 1e-5 * towards)[None]


def _spectrum(reduced: Latent, slopes: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues of the step, the largest first, right and left eigenvectors (K, K) in columns."""
    values, lefts, rights = scipy.linalg.eig(reduced.jacobian(slopes)[0].numpy(), left=True)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], rights[:, order], lefts[:, order].conj()


def _stability(values: np.ndarray) -> Stability:
    size = np.abs(values)
    if (size > 1 + MARGINAL).any():
        return "repeller" if (size > 1 + MARGINAL).all() else "saddle"
    return "marginal point" if (size >= 1 - MARGINAL).any() else "attractor"


def _modes(
    net: VanillaRNN, reduced: Latent, slopes: Tensor, values: np.ndarray, rights: np.ndarray, lefts: np.ndarray
) -> tuple[Mode, ...]:
    r"""Eigenvectors of the network's own step $1 - \alpha + \alpha f' W$ or $1 - \alpha + \alpha W f'$, from latent ones.

    $\kappa = R^\dagger h$ lifts left eigenvectors u to $R u$ in the rate form, $v = L\kappa + b$ right ones w to $L w$ in the
    current form; the others follow from $(\lambda - 1 + \alpha)\,h = \alpha f' L w$ and $(\lambda - 1 + \alpha)\,y = f' R \alpha u$.
    """
    net = net.double()
    leak = torch.as_tensor(net.leak, dtype=torch.float64).expand(net.neurons)[:, None]
    gain, u = slopes[0][:, None], torch.from_numpy(lefts)
    turning = torch.from_numpy(values) - 1 + leak
    turning[turning.abs() < 1e-12] = 1e-12
    w = torch.from_numpy(rights)
    lifted = w if reduced.left is None else reduced.left.to(w.dtype) @ w
    if net.form == "rate":
        left = u if reduced.right is None else reduced.right.to(u.dtype) @ u
        state = rates = leak * gain * lifted / turning
        fed = gain * net.input_weights
    else:
        u = reduced.leak.expand(reduced.dimension)[:, None] * u
        left = gain * (u if reduced.right is None else reduced.right.to(u.dtype) @ u) / turning
        state, rates = lifted, gain * lifted
        fed = net.input_weights
    inputs = _cosines(left, fed)
    shown = rates if net.reads == "rates" else state
    outputs = _cosines(shown, net.decoders) if net.decoders is not None else inputs[:, :0]
    return tuple(
        Mode(abs(value), *times(value), tuple(driven), tuple(read))
        for value, driven, read in zip(values.tolist(), inputs.tolist(), outputs.tolist(), strict=True)
    )


def times(multiplier: complex) -> tuple[float, float]:
    r"""$-1/\log|\lambda|$ and $2\pi/|\arg\lambda|$, in steps."""
    size, angle = abs(multiplier), abs(math.atan2(multiplier.imag, multiplier.real))
    constant = 0.0 if size < 1e-300 else math.inf if abs(size - 1) < MARGINAL else -1 / math.log(size)
    return constant, 2 * math.pi / angle if angle > 1e-9 and size > 1e-12 else math.inf


def _cosines(modes: Tensor, vectors: Tensor) -> Tensor:
    """(modes, vectors), of columns, without sign or phase."""
    norms = modes.abs().square().sum(0).sqrt()[:, None] * vectors.norm(dim=0)
    return torch.where(norms > 0, (modes.T @ vectors.to(modes.dtype)).abs() / norms, 0.0)
