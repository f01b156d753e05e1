r"""A bound on the error of a network with W of rank D, for sequences of any length.

With $W = L M^\dagger$ and $M^\dagger E = 1$, the D coordinates of the current $\nu_t = L a_t$ follow
$a_{t+1} = M^\dagger f(L a_t) + x_{t+1}$ and should be $z_{t+1} = \Gamma z_t + x_{t+1}$. Where
$|m_c \cdot f(La) - \gamma_c a_c| \le \epsilon_c$ and $|d_c \cdot f(La) - s_c\gamma_c a_c| \le q_c$ for all a in reach,
$|a_c - z_c| \le \epsilon_c / (1 - \gamma_c)$ at all times, and
$|y_{c,t} - \bar y_{c,t}| \le q_c + |s_c|\,\gamma_c\,\epsilon_c / (1 - \gamma_c)$.

Where f(0) is not 0 the network rests at some a = q instead, and all of this holds for $a - q$ in place of a, from
$|a - q - z| = |q|$ at the start on: q is the fixed point that it comes to without input, and
$\max(|q_c|, \epsilon_c / (1 - \gamma_c))$ takes the place of $\epsilon_c / (1 - \gamma_c)$.

Linear and ReLU networks are homogeneous, $\epsilon_c$ and $q_c$ in proportion to $|a|$, and $|a| \le |z| + |a - z|$
closes the argument if $\kappa = |(\epsilon_c / (1 - \gamma_c))_c| < 1$: then $|a| \le |z|_{max} / (1 - \kappa)$. The
maxima of their residuals are in `rni.analysis.extremes`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from rni.analysis.extremes import Maxima, linear_maxima, relu_maxima, searched_maxima
from rni.analysis.spectrum import svd
from rni.errors import InputError
from rni.losses.proxy import largest_coordinates
from rni.network import Network

RANK_TOLERANCE = 1e-9
MARGIN, BOXES = 1.05, 4  # errors push beyond the box that the integrals reach: how much larger, how often enlarged
STEPS_TO_REST = 1000


@dataclass(frozen=True)
class Certificate:
    r"""$|y_{c,t} - \bar y_{c,t}| \le$ `bounds`[c] for every t and all inputs with $|x_{c,t}| \le 1$, from rest.

    `relative` is that over the largest integral, $|s_c|\gamma_c / (1-\gamma_c)$. For linear and ReLU networks inputs
    may have any size, the bounds in proportion. `rigorous`: proven, the rounding of the simulation included; otherwise
    an estimate, from a maximum that was searched for. `current_residuals` are the $\epsilon_c$ and `output_residuals`
    the $q_c$ of the module's text, by unit of $|a|$ where f is homogeneous. An infinite bound says that errors could
    feed on themselves: nothing is known then, which does not mean that the network fails.
    """

    rigorous: bool
    bounds: tuple[float, ...]
    relative: tuple[float, ...]
    current_residuals: tuple[float, ...]
    output_residuals: tuple[float, ...]

    def __str__(self) -> str:
        kind = "certified" if self.rigorous else "estimated"
        if max(self.bounds) == float("inf"):
            return f"no bound {kind}: the residuals of the currents are too large for these decays"
        return f"error {kind} below {'  '.join(f'{value:.2g}' for value in self.relative)} of the largest integral"


@torch.no_grad()
def certify(net: Network) -> Certificate:
    """The certificate of a network whose W has rank D; rigorous for linear and most ReLU ones in factored form.

    Refuses a W of higher rank, whose currents leave the D dimensions that the argument is about.
    """
    left, right, condition = coordinates(net)
    weights = torch.cat([right, net.decoders.double()], 1)
    decays = left.new_tensor(net.task.decays)
    outputs = decays * left.new_tensor(net.task.scales)
    wanted = torch.cat([torch.diag(decays), torch.diag(outputs)])
    if net.f.name in ("linear", "relu"):
        maxima, proven = (linear_maxima if net.f.name == "linear" else relu_maxima)(left, weights, wanted)
        maxima = maxima + (condition or 1) * _rounding(net, left, weights)
        kappa = (maxima[: net.channels] / (1 - decays)).norm()
        reach = (1 / (1 - decays)).norm() / (1 - kappa) if kappa < 1 else torch.inf
        off = maxima[: net.channels] / (1 - decays)
    else:
        maxima, off, reach = _box_maxima(net, left, weights, wanted)
        proven = False
    current, output = maxima.chunk(2)
    bounds = reach * (output + outputs.abs() * off)
    relative = bounds / bounds.new_tensor(net.task.largest_integral()).clamp(max=torch.finfo(bounds.dtype).max)
    rigorous = proven and condition is not None
    return Certificate(rigorous, *(tuple(part.tolist()) for part in (bounds, relative, current, output)))


class Coordinates(NamedTuple):
    r"""L and M (neurons, channels) with $W = LM^\dagger$ and $M^\dagger E = 1$.

    condition: of the change of basis from W's own factors; None where W has other factors, or none, of its own.
    """

    left: Tensor
    right: Tensor
    condition: float | None


def coordinates(net: Network) -> Coordinates:
    """The factors of a W of rank D; a larger rank is refused."""
    if net.active is not None:
        raise InputError("network: has silenced neurons; allowed: a whole network")
    channels, factors = net.channels, net.recurrent.factors()
    if factors is not None and factors[0].shape[1] == channels:
        left, right = (factor.detach().double() for factor in factors)
    else:
        factors = None
        left, values, right = (part.detach().double() for part in svd(net.recurrent))
        rank = int((values > RANK_TOLERANCE * values[0]).sum())
        if rank > channels:
            raise InputError(f"network: W of rank {rank}; allowed: {channels}, one for each channel, in a certificate")
        left, right = left[:, :channels] * values[:channels], right[:, :channels]
    gauge = right.T @ net.encoders.detach().double()
    condition = float(torch.linalg.cond(gauge))
    if not condition < 1e12:
        raise InputError("network: W is blind to a combination of its inputs; allowed: encoders that W transmits")
    return Coordinates(left @ gauge, torch.linalg.solve(gauge, right.T).T, condition if factors else None)


def _box_maxima(net: Network, left: Tensor, weights: Tensor, wanted: Tensor) -> tuple[Maxima, Tensor, float]:
    """Residuals over a box that a can't leave with residuals of that size, how far a - q is from z, and 1.

    Or infinity in place of 1, if no such box was found.
    """
    decays, right = left.new_tensor(net.task.decays), weights[:, : net.channels]
    rest = torch.zeros_like(decays)
    for _ in range(STEPS_TO_REST):
        rest = net.f((left @ rest)[None].to(net.dtype)).double()[0] @ right
    level = torch.cat([rest, torch.zeros_like(rest)])

    def residuals(a: Tensor) -> Tensor:
        return net.f(((a + rest) @ left.T).to(net.dtype)).double() @ weights - a @ wanted.T - level

    reached = left.new_tensor(largest_coordinates(net.task))
    maxima = off = level
    for _ in range(BOXES):
        box = MARGIN * reached
        maxima, _ = searched_maxima(residuals, box, net.neurons)
        off = rest.abs().maximum(maxima[: net.channels] / (1 - decays))
        reached = 1 / (1 - decays) + off
        if bool((reached <= box).all()):
            return maxima, off, 1.0
    return maxima, off, torch.inf


def _rounding(net: Network, left: Tensor, weights: Tensor) -> Maxima:
    r"""The most that one step's rounding can do, by unit of |a|: $4(n + 10D)\,u \sum_j |w_{jk}|\,(|l_j| + |e_j|)$."""
    sizes = left.norm(dim=1) + net.encoders.double().norm(dim=1)
    unit = torch.finfo(net.dtype).eps
    return 4 * (net.neurons + 10 * net.channels) * unit * (weights.abs() * sizes[:, None]).sum(0)
