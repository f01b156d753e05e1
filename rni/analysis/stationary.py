"""Fixed points and slow points of a network without inputs: where, how stable, what drives and what sees them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from rni.activations import Activation
from rni.analysis.latents import Latent, latent
from rni.analysis.search import FEW, spaced, still_points
from rni.analysis.visited import LASTING, STARTS, bounded, settle, spread, visited
from rni.core.described import Described
from rni.core.errors import InputError
from rni.files.foreign import interpret
from rni.networks.vanilla import VanillaRNN

Stability = Literal["attractor", "marginal point", "saddle", "repeller", "slow point"]

FIXED = 1e-9  # what moves less than this part of the visited range in an own time is fixed
MARGINAL = 1e-9  # a multiplier as close to 1 neither falls nor grows
MOST = 64  # points that are described
DECOMPOSED = 5e9  # K^3, for the eigenvectors of all points together
MODES = 4  # described for each point
HELD = 2**21  # numbers in a batch of states


@dataclass(frozen=True)
class Mode:
    r"""An eigenvalue $\lambda$ of the step: $|\lambda|$, its time constant $-1/\log|\lambda|$ and period, in steps.

    The time constant is negative where it grows, the period infinite where $\lambda$ is real and positive. inputs,
    outputs: cosines of the angles between each input and the left eigenvector, which says what drives the mode;
    between each output's weights and the right eigenvector, which says where it shows.
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
    return f"{steps:.4g} steps" if dt is None else f"{steps:.4g} steps, {steps * dt:.4g} units of time"


@dataclass(frozen=True)
class Point:
    """A fixed point, or one that moves by `speed` a step; `reached`: what part of visited states settles next to it."""

    stability: Stability
    speed: float
    reached: float
    modes: tuple[Mode, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class FixedPoints(Described):
    """points, those that most visited states settle next to first; their states (points, neurons), h or v.

    latent (points, K): the same in the latent coordinates; eigenvalues (points, K), the largest first, of the step.
    found: how many were found, if more than are given here. spread: of the visited states about their mean. dt: the
    time of a step, where it is known.

    >>> points = rni.fixed_points(rni.design(rni.Integration(0.95), neurons=40).network)
    >>> len(points), points.states.shape, float(abs(points.eigenvalues[0, 0]).round(4))
    (1, (1, 40), 0.95)
    """

    points: tuple[Point, ...]
    found: int
    spread: float
    dt: float | None
    states: np.ndarray = field(repr=False, compare=False)
    latent: np.ndarray = field(repr=False, compare=False)
    eigenvalues: np.ndarray = field(repr=False, compare=False)

    def first(self, count: int) -> "FixedPoints":
        """The first of them."""
        arrays = {name: getattr(self, name)[:count] for name in ("states", "latent", "eigenvalues")}
        return replace(self, points=self.points[:count], **arrays)

    def __len__(self) -> int:
        return len(self.points)

    def lines(self) -> Iterator[str]:
        kinds = [point.stability for point in self.points]
        counts = ", ".join(
            f"{kinds.count(kind)} {kind}{'s' * (kinds.count(kind) > 1)}" for kind in dict.fromkeys(kinds)
        )
        shown = f", of {self.found} found" if self.found > len(self.points) else ""
        yield f"fixed points: {counts or 'none'}{shown}"
        for point in self.points[:5]:
            speed = "" if point.stability != "slow point" else f", speed {point.speed:.2g} a step"
            modes = "  ".join(mode.describe(self.dt) for mode in point.modes[:3])
            yield f"  {point.stability}{speed}: multipliers {modes}"
        if len(self.points) > 5:
            yield f"  and {len(self.points) - 5} more"


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

    >>> print(rni.fixed_points(rni.design(rni.Integration(0.95), neurons=40).network))
    fixed points: 1 attractor
      attractor: multipliers 0.95 (19.5 steps)
    """
    net = interpret(thing, activation)
    if not isinstance(net, VanillaRNN):
        raise InputError("fixed_points: a recording; allowed: a network, whose states can be chosen")
    if constant is not None:
        constant = torch.as_tensor(constant, dtype=torch.float64)
        if constant.shape != (net.channels,) or not bool(constant.isfinite().all()):
            raise InputError(f"constant: shape {tuple(constant.shape)}; allowed: ({net.channels},), finite")
    reduced = latent(net, constant)
    starts = visited(net, reduced, inputs, seed)
    return find(net, reduced, starts, bounded(settle(reduced, starts))[-1])


def find(net: VanillaRNN, reduced: Latent, starts: Tensor, settled: Tensor, described: int = MOST) -> FixedPoints:
    """Searches from rows of starts (starts, K) and from where they settled; with the modes of those to be described."""
    size = spread(starts) or 1.0
    most_rows = STARTS if reduced.dimension <= 10 * FEW else STARTS // 2
    rows = max(16, min(most_rows, int(HELD / (len(reduced.bias) * reduced.dimension**0.5))))
    begun = torch.cat([spaced(settled, rows // 2), spaced(starts, rows)])
    kept, member = still_points(reduced, begun, rows, size)
    pulls = reduced.pull(kept)
    speed, gradient = pulls.norm(dim=1), reduced.against(reduced.slopes(kept), pulls).norm(dim=1)
    fixed = speed <= FIXED * size
    slow = ~fixed & (speed <= size / LASTING) & (gradient <= 0.01 * speed)
    of_points = torch.nonzero(fixed | slow)[:, 0]
    nearest = torch.cdist(settled, kept[of_points]).argmin(1) if len(of_points) else member[:0]
    reached = torch.bincount(nearest, minlength=len(of_points)).double() / max(len(nearest), 1)
    order = torch.argsort(reached, descending=True, stable=True)
    order = order[: min(MOST, max(5, int(DECOMPOSED / reduced.dimension**3)))]
    shown = of_points[order]
    points, spectra = [], []
    for k, share in zip(shown.tolist(), reached[order].tolist(), strict=True):
        slopes = _sided(reduced, kept[k], begun[member == k], size)
        if len(points) < described:
            values, rights, lefts = _spectrum(reduced, slopes)
            one = np.flatnonzero(np.imag(values) >= 0)[:MODES]  # of each pair
            modes = _modes(net, reduced, slopes, values[one], rights[:, one], lefts[:, one])
        else:  # eigenvectors take most of the time
            values, modes = _eigenvalues(reduced, slopes), ()
        kind = "slow point" if bool(slow[k]) else _stability(values)
        points.append(Point(kind, float((reduced.leak * pulls[k]).norm()), share, modes))
        spectra.append(values)
    currents = reduced.currents(kept[shown])
    return FixedPoints(
        points=tuple(points),
        found=len(of_points),
        spread=size,
        dt=net.dt,
        states=(reduced.f(currents) if net.form == "rate" else currents).numpy(),
        latent=kept[shown].numpy(),
        eigenvalues=np.array(spectra).reshape(len(points), reduced.dimension),
    )


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
    found: Any = scipy.linalg.eig(reduced.jacobian(slopes)[0].numpy(), left=True)
    values, lefts, rights = found
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], rights[:, order], lefts[:, order].conj()


def _eigenvalues(reduced: Latent, slopes: Tensor) -> np.ndarray:
    """Those of the step alone, the largest first."""
    values = scipy.linalg.eigvals(reduced.jacobian(slopes)[0].numpy())
    return values[np.argsort(-np.abs(values), kind="stable")]


def _stability(values: np.ndarray) -> Stability:
    size = np.abs(values)
    if (size > 1 + MARGINAL).any():
        return "repeller" if (size > 1 + MARGINAL).all() else "saddle"
    return "marginal point" if (size >= 1 - MARGINAL).any() else "attractor"


def _modes(
    net: VanillaRNN, reduced: Latent, slopes: Tensor, values: np.ndarray, rights: np.ndarray, lefts: np.ndarray
) -> tuple[Mode, ...]:
    r"""Eigenvectors of the network's step, $1 - \alpha + \alpha f' W$ or $1 - \alpha + \alpha W f'$, from latent ones.

    $\kappa = R^\dagger h$ lifts left eigenvectors u to $R u$ in the rate form, $v = L\kappa + b$ right ones w to $L w$
    in the current form. The others are $h$ and $y$ with $(\lambda - 1 + \alpha)\,h = \alpha f' L w$ and
    $(\lambda - 1 + \alpha)\,y = f' R\,\alpha u$.
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
        fed = leak * gain * net.input_weights
    else:
        u = reduced.leak.expand(reduced.dimension)[:, None] * u
        left = gain * (u if reduced.right is None else reduced.right.to(u.dtype) @ u) / turning
        state, rates = lifted, gain * lifted
        fed = leak * net.input_weights
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
