r"""An upper bound on the error of a network with W of rank D, for sequences of any length.

With $W = L M^\dagger$ and $M^\dagger E = 1$, the D coordinates of the current $\nu_t = L a_t$ follow
$a_{t+1} = M^\dagger f(L a_t) + x_{t+1}$. They should follow $z_{t+1} = \Gamma z_t + x_{t+1}$. Suppose that
$|m_c \cdot f(La) - \gamma_c a_c| \le \epsilon_c$ and $|d_c \cdot f(La) - s_c\gamma_c a_c| \le q_c$ for all a that the
network can reach. Then $|a_c - z_c| \le \epsilon_c / (1 - \gamma_c)$ at all times, and
$|y_{c,t} - \bar y_{c,t}| \le q_c + |s_c|\,\gamma_c\,\epsilon_c / (1 - \gamma_c)$.

The network can reach a box, $|a_c| \le b_c$, if a cannot leave it. With the residuals of the box this holds for
$1 / (1 - \gamma_c) + \epsilon_c / (1 - \gamma_c) \le b_c$. Linear and ReLU networks are homogeneous, so that
$\epsilon_c$ and $q_c$ are proportional to $|a|$. The maxima of their residuals are in `rni.designs.extremes`.

If f(0) is not 0, the network rests at some a = q. The bound then holds for $a - q$ in place of a, with
$|a - q - z| = |q|$ at the start. q is the fixed point without input, and $\max(|q_c|, \epsilon_c / (1 - \gamma_c))$
replaces $\epsilon_c / (1 - \gamma_c)$.

A computer rounds. It computes with the factors of W, $W = AB^\dagger$. With $G = B^\dagger E$, $L = AG$,
$M = BG^{-\dagger}$ and $p = Ga$, a step is $s = h + Ex$, $p = B^\dagger s$, $\nu = Ap$, $h = f(\nu)$. The error of each
sum is at most its number of terms times the sum of their absolute values, times the unit of rounding: $|h| + |E||x|$
for $\delta s$, $|B|^\dagger|s|$ for $\delta p$ and $|A||p|$ for $\delta\nu$. This adds
$|M|^\dagger(|f'|\,\delta\nu + \delta s) + |G^{-1}|\,\delta p$ to $\epsilon$. Rounding in one channel may appear in
another channel, because G mixes them. Numbers that underflow are ignored.
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

RANK_TOLERANCE = 1e-9  # singular values below it, relative to the largest one, do not count for the rank
BLIND = 1e12  # condition number of B'E from which on W does not transmit all inputs
MARGIN = 1.05  # the box is larger than what the integrals reach, because errors push beyond it
BOXES = 8  # how often the box is enlarged
STEPS_TO_REST = 1000
UNIT = torch.finfo(torch.float64).eps / 2

Residuals = Callable[[Tensor], Tensor]
"""Maps a box (channels,) to its largest residuals (2 channels,), those of the currents first."""


@dataclass(frozen=True)
class Certificate:
    r"""Bounds on the errors of a network that hold for sequences of any length.

    $|y_{c,t} - \bar y_{c,t}| \le$ `bounds`[c] for every t and all inputs with $|x_{c,t}| \le 1$, from rest. For linear
    and ReLU networks inputs may have any size, and the bounds are proportional to it. Infinite bounds do not mean that
    the network fails.

    Attributes
    ----------
    rigorous : bool
        True if the bounds are proved, including the rounding of the simulation. Otherwise they are estimates from a
        maximum that was searched for.
    bounds : tuple of float
        The bounds, (channels,). They are infinite if nothing is known.
    relative : tuple of float
        The bounds relative to the largest integral, $|s_c|\gamma_c / (1-\gamma_c)$. They are infinite if it is 0.
    current_residuals, output_residuals : tuple of float
        $\epsilon_c$ and $q_c$ of the text of the module. If f is homogeneous, they are per unit of the largest $|a|$.
    obstacle : str or None
        The reason why there is no bound.

    Examples
    --------
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
        certainty = "certified" if self.rigorous else "estimated"
        if self.obstacle is not None:
            return f"no bound {certainty}: {self.obstacle}"
        bounds, relative = ("  ".join(f"{v:.2g}" for v in values) for values in (self.bounds, self.relative))
        if max(self.relative) < torch.inf:
            return f"error {certainty} below {relative} of the largest integral"
        return (
            f"no bound relative to the integrals, because one is 0 or nearly 0: "
            f"error {certainty} below {bounds} for inputs up to 1"
        )


@torch.no_grad()
def certify(net: Network) -> Certificate:
    r"""Bound the error of a network whose W has rank D, for sequences of any length.

    The bound is $|y_{c,t} - \bar y_{c,t}| \le q_c + |s_c|\,\gamma_c\,\epsilon_c / (1 - \gamma_c)$, with the largest
    residuals $\epsilon$ of the currents and q of the outputs. It is rigorous for linear networks and for most ReLU
    networks, if W is given by its factors.

    The state of a leaky network is an average of earlier $f(\nu)$. A box that the coordinates of the network without
    leak cannot leave is also one that the coordinates with leak cannot leave, and the errors
    $(1-\alpha)\epsilon + \alpha(\gamma'\epsilon + r)$ have the same limit $r / (1-\gamma')$. The outputs are averages
    as well, so that the bound is that of the network without leak.

    Parameters
    ----------
    net : Network
        A network whose W has rank D.

    Raises
    ------
    InputError
        If W has a higher rank, because its currents then leave the D dimensions of the argument, or a lower rank.

    Examples
    --------
    >>> net = rni.design(rni.Integration([0.99, 0.9]), neurons=100).network
    >>> certificate = rni.certify(net)
    >>> certificate.rigorous, max(certificate.relative) < 1e-9
    (True, True)
    """
    basis, task = coordinates(net), net.task.without_leak(net.leak)
    decays = basis.left.new_tensor(task.decays)
    gains = decays * basis.left.new_tensor(task.scales)

    # residuals of both conditions, w'f(La) - Ga with w = [M, D]
    weights = torch.cat([basis.right, net.decoders.double()], 1)
    wanted = torch.cat([torch.diag(decays), torch.diag(gains)])
    homogeneous = net.f.name in HOMOGENEOUS
    rest, proved = torch.zeros_like(decays), False
    if homogeneous:
        residuals, proved = _homogeneous_residuals(net, basis, weights, wanted)
    else:
        for _ in range(STEPS_TO_REST):  # q, the fixed point without input
            rest = net.f((basis.left @ rest)[None].to(net.dtype)).double()[0] @ basis.right
        residuals = _searched_residuals(net, basis, weights, wanted, rest)
    rigorous = proved and basis.dropped is None

    # a box that the coordinates cannot leave
    enclosure = None
    if max(task.decays) == 1:
        obstacle = "at decay 1 the integrals have no largest value, and errors of the currents are never forgotten"
    else:
        enclosure = invariant_box(decays, rest, residuals)
        obstacle = "the residuals of the currents are too large for these decays, so that errors could grow"
    if enclosure is None:
        unknown = (torch.inf,) * net.channels
        return Certificate(rigorous, unknown, unknown, unknown, unknown, obstacle)

    box, error, maxima = enclosure
    bounds = maxima[net.channels :] + gains.abs() * error
    largest = bounds.new_tensor(net.task.largest_integral()).clamp(max=torch.finfo(bounds.dtype).max)
    shown = maxima / box.norm() if homogeneous else maxima
    fields = bounds, bounds / largest, *shown.chunk(2)
    finite = bool(bounds.isfinite().all())
    obstacle = None if finite else "the numbers of the network are so large that the bound overflows"
    return Certificate(rigorous, *(tuple(field.tolist()) for field in fields), obstacle=obstacle)


class Coordinates(NamedTuple):
    r"""The factors $L = AG$ and $M = BG^{-\dagger}$ of a network, with $W = AB^\dagger$ and $G = B^\dagger E$.

    Attributes
    ----------
    left, right, a, b : Tensor
        L, M, A and B, (neurons, channels).
    gauge : Tensor
        G, (channels, channels).
    dropped : float or None
        The spectral norm of the difference between W and $AB^\dagger$, or None if A and B are the factors of the
        network.
    """

    left: Tensor
    right: Tensor
    a: Tensor
    b: Tensor
    gauge: Tensor
    dropped: float | None


def coordinates(net: Network) -> Coordinates:
    """Compute the factors of a network whose W has rank D.

    Raises
    ------
    InputError
        If W has another rank, does not transmit all inputs, or contains values that are not finite.
    """
    require_network(net)
    for name, values in net.named_parameters():
        if not bool(torch.isfinite(values).all()):
            raise InputError("network", None, "finite parameters", problem=f"{name} has NaN or infinite values")

    # A and B
    channels, factors, dropped = net.channels, net.recurrent.factors(), None
    if factors is not None and factors[0].shape[1] == channels:
        a, b = (factor.detach().double() for factor in factors)
    else:
        a, values, b = svd(copy.deepcopy(net.recurrent).double())
        tolerance = max(RANK_TOLERANCE, net.neurons * torch.finfo(net.dtype).eps)
        rank = int((values > tolerance * values[:1]).sum())
        if rank != channels:
            allowed = f"W of rank {channels}, one for each channel, in a certificate"
            raise InputError("network", rank, allowed, problem=f"W of rank {rank}")
        dropped = float(values[channels : channels + 1].sum())
        a, b = a[:, :channels] * values[:channels], b[:, :channels]

    # G, whose condition number must not depend on the units of p and a
    e = net.encoders.detach().double()
    gauge = b.T @ e
    unit_gauge = (b / b.norm(dim=0)).nan_to_num().T @ (e / e.norm(dim=0)).nan_to_num()
    if not torch.linalg.cond(unit_gauge) < BLIND:
        allowed = "encoders that W transmits"
        raise InputError("network", None, allowed, problem="W does not transmit a combination of its inputs")
    return Coordinates(a @ gauge, torch.linalg.solve(gauge, b.T).T, a, b, gauge, dropped)


def invariant_box(decays: Tensor, rest: Tensor, residuals: Residuals) -> tuple[Tensor, Tensor, Tensor] | None:
    """Find a box that the coordinates a cannot leave.

    Returns
    -------
    tuple or None
        The box (channels,), the largest |a - q - z| in it (channels,), and its residuals (2 channels,). None if no box
        was found.
    """
    forgetting = 1 - decays
    error = torch.zeros_like(rest)
    for _ in range(BOXES):
        box = MARGIN * (1 / forgetting + error)
        maxima = residuals(box)
        error = rest.abs().maximum(maxima[: len(rest)] / forgetting)
        if bool((1 / forgetting + error <= box).all()):
            return box, error, maxima
    return None


def _homogeneous_residuals(net: Network, basis: Coordinates, weights: Tensor, wanted: Tensor) -> tuple[Residuals, bool]:
    """Return the residuals of a linear or ReLU network, and whether they are proved."""
    left, slope = basis.left, torch.ones_like(basis.left[:, 0])
    unit, proved = (linear_maxima if net.f.name == "linear" else relu_maxima)(left, weights, wanted)
    # the computation of these maxima is rounded as well
    unit = unit + 4 * (net.neurons + 10 * net.channels) * UNIT * (left.norm(dim=1) @ weights.abs())
    return lambda box: unit * box.norm() + _rounding(net, basis, box, left.abs() @ box, slope), proved


def _searched_residuals(net: Network, basis: Coordinates, weights: Tensor, wanted: Tensor, rest: Tensor) -> Residuals:
    """Return estimates of the residuals, from a search in the box around q = `rest`."""
    level = torch.cat([rest, torch.zeros_like(rest)])

    def currents(a: Tensor) -> Tensor:
        return ((a + rest) @ basis.left.T).to(net.dtype)

    def residuals_at(a: Tensor) -> Tensor:
        return net.f(currents(a)).double() @ weights - a @ wanted.T - level

    def residuals(box: Tensor) -> Tensor:
        maxima = searched_maxima(residuals_at, box, net.neurons)
        parts = [currents(part * box) for part in box_points(len(box), net.neurons)]
        activity, slope = (
            torch.stack([function(nu).double().abs().amax(0) for nu in parts]).amax(0)
            for function in (net.f, net.f.derivative)
        )
        return maxima + _rounding(net, basis, box + rest.abs(), activity, slope)

    return residuals


def _rounding(net: Network, basis: Coordinates, box: Tensor, activity: Tensor, slope: Tensor) -> Tensor:
    r"""Bound the effect of rounding in one step on the residuals: (2 channels,).

    It holds while $|a| \le$ `box`, $|x| \le 1$, $|h| \le$ `activity` and $|f'| \le$ `slope`. The error of a sum of k
    products is at most $\frac{ku}{1 - ku}$ times the sum of their absolute values, in any order. The first step goes
    through $W E$ instead, which the sums below include. L, M and G are rounded as well, in float64. With a leak, the
    average rounds the state itself. All other contributions of a step are multiplied by the leak, so that this one is
    divided by it.
    """
    n, channels = basis.left.shape
    u = torch.finfo(net.dtype).eps / 2 + UNIT

    def g(k: int) -> float:
        return k * u / (1 - k * u) if k * u < 1 else torch.inf

    a, b, gauge, m = (part.abs() for part in (basis.a, basis.b, basis.gauge, basis.right))
    inverse = torch.linalg.inv(basis.gauge).abs()
    d, ex = net.decoders.double().abs(), net.encoders.double().abs().sum(1)

    # currents
    nu = g(2 * channels + 4) * (a @ (gauge @ box + g(n) * (b.T @ ex)))
    if basis.dropped is not None:
        factors = net.recurrent.factors()
        s = activity + ex
        if factors is None:
            sizes = net.recurrent.matrix().double().abs() @ s
        else:
            first, second = (factor.double().abs() for factor in factors)
            sizes = first @ (second.T @ s)
        nu = nu + g(n + 64) * sizes + basis.dropped * s.norm()

    # states, and the sums that read them
    h = slope * nu + (0 if net.leak == 1 else g(8) / net.leak) * activity
    s = activity + h + ex
    ds = g(channels + 4) * s
    dp = g(n) * (b.T @ (s + ds))
    own = 10 * channels * UNIT * (inverse @ (gauge @ (m.T @ s)))
    return torch.cat([m.T @ (h + ds) + inverse @ dp + own, d.T @ (h + g(n + 4) * (activity + h))])
