r"""A bound on the error of a network with W of rank D, for sequences of any length.

With $W = L M^\dagger$ and $M^\dagger E = 1$, the D coordinates of the current $\nu_t = L a_t$ follow
$a_{t+1} = M^\dagger f(L a_t) + x_{t+1}$ and should be $z_{t+1} = \Gamma z_t + x_{t+1}$. Where
$|m_c \cdot f(La) - \gamma_c a_c| \le \epsilon_c$ and $|d_c \cdot f(La) - s_c\gamma_c a_c| \le q_c$ for all a in reach,
$|a_c - z_c| \le \epsilon_c / (1 - \gamma_c)$ at all times, and
$|y_{c,t} - \bar y_{c,t}| \le q_c + |s_c|\,\gamma_c\,\epsilon_c / (1 - \gamma_c)$.

In reach is a box, $|a_c| \le b_c$: with the residuals of the box a can't leave it if
$1 / (1 - \gamma_c) + \epsilon_c / (1 - \gamma_c) \le b_c$. Linear and ReLU networks are homogeneous, $\epsilon_c$ and
$q_c$ in proportion to $|a|$; the maxima of their residuals are in `rni.designs.extremes`.

Where f(0) is not 0 the network rests at some a = q instead, and all of this holds for $a - q$ in place of a, from
$|a - q - z| = |q|$ at the start on: q is the fixed point that it comes to without input, and
$\max(|q_c|, \epsilon_c / (1 - \gamma_c))$ takes the place of $\epsilon_c / (1 - \gamma_c)$.

A computer rounds. It works in W's own factors, $W = AB^\dagger$: with $G = B^\dagger E$, $L = AG$, $M = BG^{-\dagger}$
and $p = Ga$, a step is $s = h + Ex$, $p = B^\dagger s$, $\nu = Ap$, $h = f(\nu)$. Each is off by its number of
summands times their sizes, times the unit of rounding: $\delta s$ by $|h| + |E||x|$, $\delta p$ by $|B|^\dagger|s|$,
$\delta\nu$ by $|A||p|$. This adds $|M|^\dagger(|f'|\,\delta\nu + \delta s) + |G^{-1}|\,\delta p$ to $\epsilon$: what
is lost in one channel's numbers may come out in another's, where G mixes them. Numbers so small that they underflow
are left out.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from rni.activations import HOMOGENEOUS
from rni.core.errors import InputError
from rni.designs.extremes import box_points, linear_maxima, relu_maxima, searched_maxima
from rni.networks.network import Network, require_network
from rni.weights import svd

RANK_TOLERANCE = 1e-9
BLIND = 1e12  # condition of the encoders as W reads them
MARGIN, BOXES = 1.05, 8  # errors push beyond the box that the integrals reach: how much larger, how often enlarged
STEPS_TO_REST = 1000
UNIT = torch.finfo(torch.float64).eps / 2


@dataclass(frozen=True)
class Certificate:
    r"""$|y_{c,t} - \bar y_{c,t}| \le$ `bounds`[c] for every t and all inputs with $|x_{c,t}| \le 1$, from rest.

    `relative` is that over the largest integral, $|s_c|\gamma_c / (1-\gamma_c)$; infinite where that is 0. For linear
    and ReLU networks inputs may have any size, the bounds in proportion. `rigorous`: proven, the rounding of the
    simulation included; otherwise an estimate, from a maximum that was searched for. `current_residuals` are the
    $\epsilon_c$ and `output_residuals` the $q_c$ of the module's text, by unit of the largest $|a|$ where f is
    homogeneous. Bounds are infinite where nothing is known, for the reason that `obstacle` gives, which does not mean
    that the network fails.

    >>> sigmoid = rni.activations.make("sigmoid", slope=50, threshold=0.1)
    >>> net = rni.design(rni.Integration(0.8), neurons=300, activation=sigmoid).network
    >>> certificate = rni.certify(net)
    >>> certificate.rigorous, certificate.bounds[0] < 0.5  # estimated, for inputs up to 1
    (False, True)
    """

    rigorous: bool
    bounds: tuple[float, ...]
    relative: tuple[float, ...]
    current_residuals: tuple[float, ...]
    output_residuals: tuple[float, ...]
    obstacle: str | None = None

    def __str__(self) -> str:
        kind = "certified" if self.rigorous else "estimated"
        if self.obstacle is not None:
            return f"no bound {kind}: {self.obstacle}"
        if max(self.relative) < torch.inf:
            return f"error {kind} below {_listed(self.relative)} of the largest integral"
        limits = f"error {kind} below {_listed(self.bounds)} for inputs up to 1"
        return f"no bound relative to the integrals, one of which is 0 or next to it: {limits}"


@torch.no_grad()
def certify(net: Network) -> Certificate:
    r"""The certificate of a network whose W has rank D; rigorous for linear and most ReLU ones in factored form.

    Refuses a W of higher rank, whose currents leave the D dimensions that the argument is about, and of lower rank.
    The state of a leaky network is an average of what $f(\nu)$ has been: a box that the coordinates without leak can't
    leave is one that its own can't leave, errors $(1-\alpha)\epsilon + \alpha(\gamma'\epsilon + r)$ have the same limit
    $r / (1-\gamma')$, and its outputs are averages too, so that the bound is that of the network without leak.

    >>> net = rni.design(rni.Integration([0.99, 0.9]), neurons=100).network
    >>> certificate = rni.certify(net)
    >>> certificate.rigorous, max(certificate.relative) < 1e-9
    (True, True)
    """
    basis, task = coordinates(net), net.task.without_leak(net.leak)
    decays = basis.left.new_tensor(task.decays)
    outputs = decays * basis.left.new_tensor(task.scales)
    weights = torch.cat([basis.right, net.decoders.double()], 1)
    wanted = torch.cat([torch.diag(decays), torch.diag(outputs)])
    homogeneous = net.f.name in HOMOGENEOUS
    if homogeneous:
        rest = torch.zeros_like(decays)
        residuals, proven = _homogeneous_residuals(net, basis, weights, wanted)
    else:
        rest, proven = _rest(net, basis), False
        residuals = _searched_residuals(net, basis, weights, wanted, rest)
    rigorous = proven and basis.dropped is None
    box, off, maxima, obstacle = _enclosure(task.decays, rest, residuals)
    bounds = maxima[net.channels :] + outputs.abs() * off
    relative = bounds / bounds.new_tensor(net.task.largest_integral()).clamp(max=torch.finfo(bounds.dtype).max)
    if obstacle is None and not bool(bounds.isfinite().all()):
        obstacle = "numbers of the network are so large that the bound overflows"
    shown = maxima / box.norm() if homogeneous else maxima
    return Certificate(
        rigorous, *(tuple(part.tolist()) for part in (bounds, relative, *shown.chunk(2))), obstacle=obstacle
    )


class Coordinates(NamedTuple):
    r"""$L = AG$ and $M = BG^{-\dagger}$ (neurons, channels), with $W = AB^\dagger$ and $G = B^\dagger E$.

    dropped: what W has beyond $AB^\dagger$, in the spectral norm; None where the factors are W's own.
    """

    left: Tensor
    right: Tensor
    a: Tensor
    b: Tensor
    gauge: Tensor
    dropped: float | None


def coordinates(net: Network) -> Coordinates:
    """The factors of a W of rank D; another rank is refused."""
    require_network(net)
    for name, values in net.named_parameters():
        if not bool(torch.isfinite(values).all()):
            raise InputError(f"network: {name} has NaN or infinite values; allowed: finite numbers")
    channels, factors, dropped = net.channels, net.recurrent.factors(), None
    if factors is not None and factors[0].shape[1] == channels:
        a, b = (factor.detach().double() for factor in factors)
    else:
        a, values, b = svd(copy.deepcopy(net.recurrent).double())
        tolerance = max(RANK_TOLERANCE, net.neurons * torch.finfo(net.dtype).eps)
        rank = int((values > tolerance * values[:1]).sum())
        if rank != channels:
            raise InputError(f"network: W of rank {rank}; allowed: {channels}, one for each channel, in a certificate")
        a, b, dropped = (
            a[:, :channels] * values[:channels],
            b[:, :channels],
            float(values[channels : channels + 1].sum()),
        )
    e = net.encoders.detach().double()
    gauge = b.T @ e
    # the units of p and a don't matter to what W sees
    if not torch.linalg.cond((b / b.norm(dim=0)).nan_to_num().T @ (e / e.norm(dim=0)).nan_to_num()) < BLIND:
        raise InputError("network: W is blind to a combination of its inputs; allowed: encoders that W transmits")
    return Coordinates(a @ gauge, torch.linalg.solve(gauge, b.T).T, a, b, gauge, dropped)


Residuals = Callable[[Tensor], Tensor]  # of a box (channels,): currents', then outputs', (2 channels,)


class Enclosure(NamedTuple):
    """A box that a can't leave, how far a - q is from z in it, and its residuals; infinite if none was found."""

    box: Tensor
    off: Tensor
    maxima: Tensor
    obstacle: str | None


def _enclosure(decays: tuple[float, ...], rest: Tensor, residuals: Residuals) -> Enclosure:
    left = 1 - rest.new_tensor(decays)
    off, infinite = torch.zeros_like(rest), torch.full_like(rest, torch.inf)
    if max(decays) == 1:
        why = "at decay 1 integrals have no largest value, and errors of the currents are never forgotten"
        return Enclosure(torch.ones_like(rest), infinite, infinite.repeat(2), why)
    for _ in range(BOXES):
        box = MARGIN * (1 / left + off)
        maxima = residuals(box)
        off = rest.abs().maximum(maxima[: len(rest)] / left)
        if bool((1 / left + off <= box).all()):
            return Enclosure(box, off, maxima, None)
    why = "the residuals of the currents are too large for these decays, so that errors could feed on themselves"
    return Enclosure(torch.ones_like(rest), infinite, infinite.repeat(2), why)


def _homogeneous_residuals(net: Network, basis: Coordinates, weights: Tensor, wanted: Tensor) -> tuple[Residuals, bool]:
    left, one = basis.left, torch.ones_like(basis.left[:, 0])
    unit, proven = (linear_maxima if net.f.name == "linear" else relu_maxima)(left, weights, wanted)
    # these sums were rounded as well
    unit = unit + 4 * (net.neurons + 10 * net.channels) * UNIT * (left.norm(dim=1) @ weights.abs())
    return lambda box: unit * box.norm() + _rounding(net, basis, box, left.abs() @ box, one), proven


def _searched_residuals(net: Network, basis: Coordinates, weights: Tensor, wanted: Tensor, rest: Tensor) -> Residuals:
    level = torch.cat([rest, torch.zeros_like(rest)])

    def currents(a: Tensor) -> Tensor:
        return ((a + rest) @ basis.left.T).to(net.dtype)

    def at(a: Tensor) -> Tensor:
        return net.f(currents(a)).double() @ weights - a @ wanted.T - level

    def residuals(box: Tensor) -> Tensor:
        maxima, _ = searched_maxima(at, box, net.neurons)
        parts = [currents(part * box) for part in box_points(len(box), net.neurons)]
        activity, slope = (
            torch.stack([of(nu).double().abs().amax(0) for nu in parts]).amax(0) for of in (net.f, net.f.derivative)
        )
        return maxima + _rounding(net, basis, box + rest.abs(), activity, slope)

    return residuals


def _rest(net: Network, basis: Coordinates) -> Tensor:
    """q, where the network comes to without input."""
    rest = basis.left.new_zeros(net.channels)
    for _ in range(STEPS_TO_REST):
        rest = net.f((basis.left @ rest)[None].to(net.dtype)).double()[0] @ basis.right
    return rest


def _rounding(net: Network, basis: Coordinates, box: Tensor, activity: Tensor, slope: Tensor) -> Tensor:
    r"""What one step's rounding adds to the residuals while $|a| \le$ box, |x| <= 1, |h| <= activity, |f'| <= slope.

    A sum of k products is off by $\frac{ku}{1 - ku}$ times the sum of their sizes, in any order. The first step goes
    through $W E$ instead, which the sums below include. L, M and G are themselves rounded, in double precision.
    Averaging by a leak rounds the state itself; all else of a step counts only by the leak, by which that is divided.
    """
    n, channels = basis.left.shape
    u = torch.finfo(net.dtype).eps / 2 + UNIT

    def g(k: int) -> float:
        return k * u / (1 - k * u) if k * u < 1 else torch.inf

    a, b, gauge, m = (part.abs() for part in (basis.a, basis.b, basis.gauge, basis.right))
    inverse = torch.linalg.inv(basis.gauge).abs()
    d, ex = net.decoders.double().abs(), net.encoders.double().abs().sum(1)
    nu = g(2 * channels + 4) * (a @ (gauge @ box + g(n) * (b.T @ ex)))
    if basis.dropped is not None:
        factors = net.recurrent.factors()
        s = activity + ex
        sizes = net.recurrent.matrix().double().abs() @ s if factors is None else _through(factors, s)
        nu = nu + g(n + 64) * sizes + basis.dropped * s.norm()
    h = slope * nu + (0 if net.leak == 1 else g(8) / net.leak) * activity
    s = activity + h + ex
    ds = g(channels + 4) * s
    dp = g(n) * (b.T @ (s + ds))
    own = 10 * channels * UNIT * (inverse @ (gauge @ (m.T @ s)))
    return torch.cat([m.T @ (h + ds) + inverse @ dp + own, d.T @ (h + g(n + 4) * (activity + h))])


def _through(factors: tuple[Tensor, Tensor], s: Tensor) -> Tensor:
    a, b = (factor.double().abs() for factor in factors)
    return a @ (b.T @ s)


def _listed(values: tuple[float, ...]) -> str:
    return "  ".join(f"{value:.2g}" for value in values)
