r"""Fixed points and slow points of a network without inputs.

Fixed points are minima of $q = |R^\dagger f(L\kappa + b) - \kappa|^2$ at which q is 0. The search starts from many
states at once. It uses the method of Levenberg and Marquardt, with matrices if there are few coordinates, and
otherwise with conjugate gradients, which need only products with W. Newton's method finishes the search.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy
import torch
from torch import Generator, Tensor

from rni.activations import Activation
from rni.analysis.latents import LASTING, STARTS, Latent, latent, marks, settle, spread, visited
from rni.core.arrays import as_real_tensor, require_finite, require_shape
from rni.core.errors import InputError
from rni.core.text_result import TextResult
from rni.files.foreign import interpret
from rni.networks.vanilla import VanillaRNN

Stability = Literal["attractor", "marginal point", "saddle", "repeller", "slow point"]

FIXED = 1e-9  # a point that moves less than this part of the visited range in a time of 1 / leak is fixed
MARGINAL = 1e-9  # a multiplier so close to 1 neither decays nor grows
MOST = 64  # largest number of points with eigenvalues
MODES = 4  # largest number of modes that are described for each point
DECOMPOSED = 5e9  # largest sum of K^3 over the points, for the time that eigenvectors take
HELD = 2**21  # numbers in a batch of states

FEW = 32  # up to so many coordinates, equations are solved with matrices
ITERATIONS = 50  # with matrices
ROUNDS, PRODUCTS = 15, 40  # with conjugate gradients
CLOSE = 1e-5  # part of the visited range at which Newton's method takes over
APART = 1e-4  # part of the visited range: closer points are the same


@dataclass(frozen=True)
class Mode:
    r"""An eigenvalue $\lambda$ of the network's step at a fixed point.

    Attributes
    ----------
    multiplier : float
        $|\lambda|$.
    time_constant, period : float
        $-1/\log|\lambda|$, which is negative if the mode grows, and $2\pi/|\arg\lambda|$, which is infinite if
        $\lambda$ is real and positive; in steps.
    inputs : tuple of float
        Cosines of the angles between each input and the left eigenvector. They say which inputs drive the mode.
    outputs : tuple of float
        Cosines of the angles between the weights of each output and the right eigenvector. They say which outputs show
        the mode.
    """

    multiplier: float
    time_constant: float
    period: float
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]

    def describe(self, dt: float | None = None) -> str:
        """Return the multiplier with its time constant and its period, also in units of time if dt is known."""
        turning = "" if math.isinf(self.period) else f", period {duration(self.period, dt)}"
        return f"{self.multiplier:.4g} ({duration(abs(self.time_constant), dt)}{turning})"


def duration(steps: float, dt: float | None) -> str:
    """Return a text for a number of steps, also in units of time if dt is known."""
    return f"{steps:.4g} steps" if dt is None else f"{steps:.4g} steps, {steps * dt:.4g} units of time"


@dataclass(frozen=True)
class Point:
    """A fixed point, or a slow point.

    Attributes
    ----------
    stability : str
        The kind of the point.
    speed : float
        How far the point moves in a step.
    reached : float
        The part of the visited states that settle closest to this point.
    modes : tuple of Mode
        Its slowest modes.
    """

    stability: Stability
    speed: float
    reached: float
    modes: tuple[Mode, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class FixedPoints(TextResult):
    """Fixed points and slow points of a network.

    Attributes
    ----------
    points : tuple of Point
        The points. Those that most visited states settle next to come first.
    found : int
        How many points were found, which may be more than are given here.
    starts : int
        From how many states the search started.
    unconverged : int
        How many of these searches ended at neither a fixed point nor a slow point.
    spread : float
        The root mean square distance of the visited states from their mean.
    dt : float or None
        The time of a step, if it is known.
    states : array (points, neurons)
        The states of the points: h in the rate form, v in the current form.
    latent : array (points, K)
        The points in latent coordinates.
    eigenvalues : array (points, K)
        Eigenvalues of the step, the largest first.

    Examples
    --------
    >>> points = rni.fixed_points(rni.design(rni.Integration(0.95), neurons=40).network)
    >>> len(points), points.states.shape, float(abs(points.eigenvalues[0, 0]).round(4))
    (1, (1, 40), 0.95)
    >>> points.starts, points.unconverged
    (96, 0)
    """

    points: tuple[Point, ...]
    found: int
    starts: int
    unconverged: int
    spread: float
    dt: float | None
    states: np.ndarray = field(repr=False, compare=False)
    latent: np.ndarray = field(repr=False, compare=False)
    eigenvalues: np.ndarray = field(repr=False, compare=False)

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
        searches = f"searched from {self.starts} states, of which {self.unconverged} did not converge"
        yield f"  {searches}: the list may be incomplete"


@torch.no_grad()
def fixed_points(
    thing: Any,
    *,
    constant: Tensor | np.ndarray | list[float] | None = None,
    inputs: Tensor | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
) -> FixedPoints:
    r"""Find the states at which $F(h) = h$, or nearly, from the states that a network visits.

    The points are exact in float64: Newton's method continues until rounding stops it.

    Parameters
    ----------
    thing
        A network in any form that `analyze` takes.
    constant : array (channels,), optional
        An input that stays on. By default there is none.
    inputs : Tensor (batch, time, channels), optional
        The inputs that lead to the visited states. By default they are N(0, 1) and bursts.
    activation : str or Activation, optional
        The activation, for state dicts and arrays that do not name it.
    seed : int
        The seed of the default inputs.

    Examples
    --------
    >>> print(rni.fixed_points(rni.design(rni.Integration(0.95), neurons=40).network))
    fixed points: 1 attractor
      attractor: multipliers 0.95 (19.5 steps)
      searched from 96 states, of which 0 did not converge: the list may be incomplete
    """
    net = interpret(thing, activation)
    if not isinstance(net, VanillaRNN):
        raise InputError("fixed_points", None, "a network, whose states can be chosen", problem="a recording")
    held = None
    if constant is not None:
        held = as_real_tensor("constant", constant)
        require_shape("constant", held, net.channels)
        require_finite("constant", held)
    reduced = latent(net, held)
    starts = visited(net, reduced, inputs, seed)
    return find(net, reduced, starts, settle(reduced, starts[:STARTS], marks(reduced))[-1])


def find(net: VanillaRNN, reduced: Latent, starts: Tensor, settled: Tensor, described: int = MOST) -> FixedPoints:
    """Search for fixed points and slow points from given states.

    Parameters
    ----------
    net : VanillaRNN
        The network.
    reduced : Latent
        The same network in latent coordinates.
    starts, settled : Tensor (states, K)
        The visited states, and the states at which they settle.
    described : int
        The number of points of which modes are computed. Eigenvectors take most of the time.
    """
    # Descend from where states settle and from visited states. Saddles are between the points that these lead to:
    # half-way between pairs of points and, if there are few coordinates, also at random around all of them.
    size = spread(starts) or 1.0
    most_rows = STARTS if reduced.dimension <= 10 * FEW else STARTS // 2
    rows = max(16, min(most_rows, int(HELD / (len(reduced.bias) * reduced.dimension**0.5))))
    begun = torch.cat([spaced(settled, rows // 2), spaced(starts, rows)])
    ends = descend(reduced, begun, CLOSE * size)
    found, _ = distinct(reduced, ends, 10 * APART * size)
    between = found[spaced(torch.combinations(torch.arange(len(found))), rows)].mean(1)
    if reduced.dimension <= FEW and len(found) > 1:
        around = torch.randn(rows, reduced.dimension, generator=Generator().manual_seed(0), dtype=torch.float64)
        range_found = float((found - found.mean(0)).square().mean().sqrt())
        between = torch.cat([between, found.mean(0) + 2 * range_found * around])
    ends = torch.cat([ends, descend(reduced, between, CLOSE * size)])

    # Newton's method, from one state for each minimum.
    minima, minimum_of = distinct(reduced, ends, 10 * APART * size)
    polished = torch.cat([polish(reduced, kappa, APART * size) for kappa in minima.split(1)])
    kept, again = distinct(reduced, polished, APART * size)
    led_to = again[minimum_of[: len(begun)]]  # the minimum that each start leads to

    # Fixed points and slow points among the minima, and the part of the states that settle closest to each.
    pulls = reduced.pull(kept)
    speed, gradient = pulls.norm(dim=1), reduced.against(reduced.slopes(kept), pulls).norm(dim=1)
    fixed = speed <= FIXED * size
    slow = ~fixed & (speed <= size / LASTING) & (gradient <= 0.01 * speed)
    of_points = torch.nonzero(fixed | slow)[:, 0]
    unconverged = int((~(fixed | slow))[again[minimum_of]].sum())
    nearest = torch.cdist(settled, kept[of_points]).argmin(1) if len(of_points) else led_to[:0]
    reached = torch.bincount(nearest, minlength=len(of_points)).double() / max(len(nearest), 1)
    order = torch.argsort(reached, descending=True, stable=True)
    order = order[: min(MOST, max(5, int(DECOMPOSED / reduced.dimension**3)))]
    shown = of_points[order]

    points, spectra = [], []
    leak = reduced.leak[:, None]
    for k, share in zip(shown.tolist(), reached[order].tolist(), strict=True):
        # The Jacobian of a step is 1 - alpha + alpha R' f' L.
        slopes = one_sided_slopes(reduced, kept[k], begun[led_to == k], size)
        jacobian = (torch.diag(1 - reduced.leak) + leak * reduced.matrices(slopes[None])[0]).numpy()
        if len(points) < described:
            spectrum: Any = scipy.linalg.eig(jacobian, left=True)
            values, lefts, rights = spectrum
            largest = np.argsort(-np.abs(values), kind="stable")
            values = values[largest]
            # one mode of each pair of complex conjugates
            chosen = np.flatnonzero(np.imag(values) >= 0)[:MODES]
            vectors = rights[:, largest][:, chosen], lefts[:, largest].conj()[:, chosen]
            modes = _modes(net, reduced, slopes, values[chosen], *vectors)
        else:
            values, modes = scipy.linalg.eigvals(jacobian), ()
            values = values[np.argsort(-np.abs(values), kind="stable")]
        growing, lasting = np.abs(values) > 1 + MARGINAL, np.abs(values) >= 1 - MARGINAL
        kind: Stability = "attractor"
        if bool(slow[k]):
            kind = "slow point"
        elif growing.any():
            kind = "repeller" if growing.all() else "saddle"
        elif lasting.any():
            kind = "marginal point"
        points.append(Point(kind, float((reduced.leak * pulls[k]).norm()), share, modes))
        spectra.append(values)

    currents = reduced.currents(kept[shown])
    return FixedPoints(
        points=tuple(points),
        found=len(of_points),
        starts=len(ends),
        unconverged=unconverged,
        spread=size,
        dt=net.dt,
        states=(reduced.f(currents) if net.form == "rate" else currents).numpy(),
        latent=kept[shown].numpy(),
        eigenvalues=np.array(spectra).reshape(len(points), reduced.dimension),
    )


def spaced(rows: Tensor, count: int) -> Tensor:
    """Return up to `count` rows, evenly spaced from the first to the last."""
    return rows[torch.linspace(0, len(rows) - 1, min(len(rows), count)).round().long()]


def descend(reduced: Latent, kappa: Tensor, tolerance: float) -> Tensor:
    r"""Move states to minima of $q = |r|^2$ by steps $\delta$ with $(J^\dagger J + \mu)\,\delta = -J^\dagger r$.

    The damping $\mu$ of a state decreases after a step that makes q smaller. Otherwise the step is not taken and the
    damping increases.

    Parameters
    ----------
    reduced : Latent
        The network, with r its pull and J the derivative of the pull.
    kappa : Tensor (batch, K)
        The states to start from.
    tolerance : float
        A state with |r| below this value is not moved further.
    """
    kappa = kappa.clone()
    damping = kappa.new_full((len(kappa),), 1e-2)
    active = torch.arange(len(kappa))
    few = reduced.dimension <= FEW
    for _ in range(ITERATIONS if few else ROUNDS):
        if not len(active):
            break
        here, mu = kappa[active], damping[active]
        slopes, r = reduced.slopes(here), reduced.pull(here)
        gradient, q = reduced.against(slopes, r), r.square().sum(1)
        solve = solve_by_matrices if few else solve_by_conjugate_gradients
        moved = here - solve(reduced, slopes, gradient, mu)
        better = reduced.pull(moved).square().sum(1) < q  # False if q is NaN
        kappa[active[better]] = moved[better]
        damping[active] = torch.where(better, mu / 10, mu * 10).clamp(min=1e-13)
        going = (q > tolerance**2) & (gradient.square().sum(1) > 1e-12 * q) & (damping[active] < 1e8)
        active = active[going]
    return kappa


def solve_by_matrices(reduced: Latent, slopes: Tensor, gradient: Tensor, mu: Tensor) -> Tensor:
    r"""Solve $(J^\dagger J + \mu)\,\delta = g$ for each row g (batch, K)."""
    one = torch.eye(reduced.dimension, dtype=torch.float64)
    j = reduced.matrices(slopes) - one
    return torch.linalg.solve(j.mT @ j + mu[:, None, None] * one, gradient)


def solve_by_conjugate_gradients(reduced: Latent, slopes: Tensor, gradient: Tensor, mu: Tensor) -> Tensor:
    r"""Solve $(J^\dagger J + \mu)\,\delta = g$ for all rows g (batch, K) at once. Solved rows do not change."""
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
    """Apply Newton's method to a state (1, K), as long as a step is shorter than `reach` and makes the pull smaller."""
    for _ in range(8):
        r = reduced.pull(kappa)
        j = reduced.matrices(reduced.slopes(kappa))[0] - torch.eye(reduced.dimension, dtype=torch.float64)
        move, _ = torch.linalg.solve_ex(j, r[0])
        if not (move.norm() <= reach and reduced.pull(kappa - move).norm() < r.norm()):
            break
        kappa = kappa - move
    return kappa


def distinct(reduced: Latent, kappa: Tensor, apart: float) -> tuple[Tensor, Tensor]:
    """Merge states that are closer than `apart`.

    Returns
    -------
    tuple of Tensor (distinct, K), (batch,)
        The state with the smallest pull of each group, and the group of each row of kappa (batch, K).
    """
    order = torch.argsort(reduced.pull(kappa).norm(dim=1))
    chosen: list[int] = []
    for k in order.tolist():
        if not chosen or float((kappa[chosen] - kappa[k]).norm(dim=1).min()) > apart:
            chosen.append(k)
    return kappa[chosen], torch.cdist(kappa, kappa[chosen]).argmin(1)


def one_sided_slopes(reduced: Latent, kappa: Tensor, starts: Tensor, size: float) -> Tensor:
    """Return f' (neurons,) at a point (K,).

    If a neuron is at a kink of f, the slopes are those on the side of the most distant start (starts, K).
    """
    nu, step = reduced.currents(kappa), 1e-7 * size
    kinks = (reduced.f.derivative(nu + step) - reduced.f.derivative(nu - step)).abs() > 1e-3
    if not bool(kinks.any()) or not len(starts):
        return reduced.f.derivative(nu)
    towards = starts[(starts - kappa).norm(dim=1).argmax()] - kappa
    return reduced.slopes(kappa + 1e-5 * towards)


def _modes(
    net: VanillaRNN, reduced: Latent, slopes: Tensor, values: np.ndarray, rights: np.ndarray, lefts: np.ndarray
) -> tuple[Mode, ...]:
    r"""Compute eigenvectors of the network's step from latent ones.

    The derivative of the step is $1 - \alpha + \alpha f' W$ in the rate form, and $1 - \alpha + \alpha W f'$ in the
    current form.
    $\kappa = R^\dagger h$ lifts left eigenvectors u to $R u$ in the rate form. $v = L\kappa + b$ lifts right
    eigenvectors w to $L w$ in the current form. The others are $h$ and $y$ with $(\lambda - 1 + \alpha)\,h = \alpha
    f' L w$ and $(\lambda - 1 + \alpha)\,y = f' R\,\alpha u$.

    Parameters
    ----------
    slopes : Tensor (neurons,)
        f' at the point.
    values, rights, lefts : array (modes,), (K, modes), (K, modes)
        Latent eigenvalues and eigenvectors.
    """
    leak = torch.as_tensor(net.leak, dtype=torch.float64).expand(net.neurons)[:, None]
    input_weights = net.input_weights.double()
    gain, u, w = slopes[:, None], torch.from_numpy(lefts), torch.from_numpy(rights)
    turning = torch.from_numpy(values) - 1 + leak
    turning[turning.abs() < 1e-12] = 1e-12
    lifted = w if reduced.left is None else reduced.left.to(w.dtype) @ w
    if net.form == "rate":
        left = u if reduced.right is None else reduced.right.to(u.dtype) @ u
        state = rates = leak * gain * lifted / turning
        fed = leak * gain * input_weights
    else:
        u = reduced.leak[:, None] * u
        left = gain * (u if reduced.right is None else reduced.right.to(u.dtype) @ u) / turning
        state, rates = lifted, gain * lifted
        fed = leak * input_weights

    # Cosines of the angles between modes and vectors, without sign or phase.
    read = rates if net.reads == "rates" else state
    decoders = input_weights[:, :0] if net.decoders is None else net.decoders.double()
    cosines = []
    for modes, vectors in ((left, fed), (read, decoders)):
        norms = modes.abs().square().sum(0).sqrt()[:, None] * vectors.norm(dim=0)
        cosines.append(torch.where(norms > 0, (modes.T @ vectors.to(modes.dtype)).abs() / norms, 0.0).tolist())

    found = []
    for value, inputs, outputs in zip(values.tolist(), *cosines, strict=True):
        found.append(Mode(abs(value), *time_scales(value), tuple(inputs), tuple(outputs)))
    return tuple(found)


def time_scales(multiplier: complex) -> tuple[float, float]:
    r"""Return the time constant $-1/\log|\lambda|$ and the period $2\pi/|\arg\lambda|$, in steps."""
    size, angle = abs(multiplier), abs(math.atan2(multiplier.imag, multiplier.real))
    time_constant = 0.0 if size < 1e-300 else math.inf if abs(size - 1) < MARGINAL else -1 / math.log(size)
    period = 2 * math.pi / angle if angle > 1e-9 and size > 1e-12 else math.inf  # rounding has no period
    return time_constant, period
