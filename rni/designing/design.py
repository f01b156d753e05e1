"""From a task to a network in well under a second, and what it is worth."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rni import vectors
from rni.activation import Activation, make
from rni.analysis.accuracy import relative_error
from rni.analysis.spectrum import svd
from rni.designing.currents import least_norm, preferred_currents
from rni.designing.relu import relu_factors
from rni.designing.smooth import smooth_factors
from rni.errors import InputError
from rni.losses.proxy import largest_coordinates
from rni.network import Network
from rni.runs.specification import Specification
from rni.task import Integration, bursts, white_noise
from rni.weights import LowRank

MARGIN = 1.05  # the box of integrals is a little larger than what inputs up to 1 reach: errors push beyond it
HOMOGENEOUS = ("linear", "relu")
ELEMENTS = 2**22  # states computed at a time
WORST = 0.25  # relative residual from which on it is no integrator


@dataclass(frozen=True)
class Design:
    r"""A network with W of rank D, and how well it meets its conditions on points that its design did not use.

    output_residuals: root mean square of $d_c \cdot f(L(z + q)) - s_c\gamma_c z_c$ relative to that of
    $s_c\gamma_c z_c$; current_residuals: of $m_c \cdot f(L(z + q)) - \gamma_c z_c - q_c$ relative to that of
    $\gamma_c z_c$. The second adds up over $1/(1-\gamma)$ steps. offset: q, 0 where f(0) is 0, see `smooth.py`.
    norm: Frobenius norm of W. seconds: what the design took.
    """

    network: Network
    offset: tuple[float, ...]
    output_residuals: tuple[float, ...]
    current_residuals: tuple[float, ...]
    singular_values: tuple[float, ...]
    norm: float
    seconds: float

    def error(self, duration: int = 2000, seed: int = 0) -> tuple[float, ...]:
        """Relative error by channel over a simulation: on white noise, or on bursts if the integrals are bounded."""
        net, generator = self.network, torch.Generator().manual_seed(seed)
        trajectories = max(1, min(16, 16_000 // net.neurons))
        inputs = white_noise if net.f.name in HOMOGENEOUS else bursts
        return tuple(relative_error(net, inputs(trajectories, duration, net.channels, generator)).tolist())


def design(
    task: Integration,
    neurons: int = 1000,
    activation: str | Activation = "relu",
    *,
    encoders: Tensor | None = None,
    decoders: Tensor | None = None,
    bounds: tuple[float, ...] | None = None,
    seed: int = 0,
) -> Design:
    r"""A network that integrates, with W = $L M^\dagger$ of rank D and no training; the same seed gives the same bits.

    Linear and ReLU networks integrate exactly, up to rounding, for any number of channels. Other activations do so
    approximately, while $|z_c| \le$ `bounds`, by default what inputs up to 1 can reach. Encoders and decoders are
    (neurons, channels); unless given, those of a training with the same seed. float64.
    """
    begun = time.perf_counter()
    f = make(activation).double()
    if any(decay == 0 for decay in task.decays) or any(scale == 0 for scale in task.scales):
        raise InputError(f"task: decays {task.decays}, scales {task.scales}; allowed in a design: none of them 0")
    if bounds is not None and f.name in HOMOGENEOUS:
        raise InputError(f"bounds: {bounds}; allowed: none for {f.name!r}, exact for integrals of any size")
    described = {"decays": task.decays, "scales": task.scales}
    specification = Specification.parse({"seed": seed, "task": described, "network": {"neurons": neurons}})
    drawn = vectors.independent(neurons, task.channels, specification.stream("vectors"))
    generator = specification.stream("design")
    e = _vectors("encoders", encoders, drawn.encoders)
    d = _vectors("decoders", decoders, drawn.decoders)
    offset = _row([0.0] * task.channels)
    if f.name == "linear":
        left = preferred_currents(task, e, d, 1.0, generator)
        left = left + least_norm(d, torch.diag(_row(task.scales) * _row(task.decays)) - d.T @ left)
        eye = torch.eye(task.channels, dtype=torch.float64)
        right = least_norm(torch.cat([left, e], 1), torch.cat([torch.diag(_row(task.decays)), eye]))
    elif f.name == "relu":
        left, right = relu_factors(task, e, d, generator)
    else:
        box = MARGIN * _row(largest_coordinates(task) if bounds is None else bounds)
        if box.shape != (task.channels,) or not bool((box > 0).all()):
            raise InputError(f"bounds: {bounds}; allowed: {task.channels} positive numbers, one for each channel")
        left, right, offset = smooth_factors(task, e, d, f, box)
    net = Network(task, e, d, LowRank(left, right), f)
    seconds = time.perf_counter() - begun
    output, current = residuals(net, _fresh_points(net, bounds, seed), offset)
    if not max(*output, *current) < WORST:
        raise InputError(
            f"activation: {f!r} with {neurons} neurons misses its conditions by {max(*output, *current):.0%}; allowed: "
            "more neurons, or an activation whose sums can be linear in the integrals"
        )
    spectrum = tuple(svd(net.recurrent).values.tolist())
    norm = sum(value**2 for value in spectrum) ** 0.5
    return Design(net, tuple(offset.tolist()), output, current, spectrum, norm, seconds)


@torch.no_grad()
def residuals(net: Network, z: Tensor, offset: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    r"""Of $D^\dagger f(L(z + q)) = S\Gamma z$ and of $M^\dagger f(L(z + q)) = \Gamma z + q$, by channel."""
    factors = net.recurrent.factors()
    assert factors is not None
    left, right = factors
    rows = max(1, ELEMENTS // net.neurons)
    activities = (net.f(part @ left.T) for part in (z + offset).split(rows))
    pairs = [(h @ net.decoders, h @ right) for h in activities]
    output, coordinates = (torch.cat(part) for part in zip(*pairs, strict=True))
    decayed = _row(net.task.decays) * z
    wanted = _row(net.task.scales) * decayed
    return _relative(output - wanted, wanted), _relative(coordinates - decayed - offset, decayed)


def _relative(error: Tensor, signal: Tensor) -> tuple[float, ...]:
    return tuple((error.norm(dim=0) / signal.norm(dim=0)).tolist())


def _fresh_points(net: Network, bounds: tuple[float, ...] | None, seed: int) -> Tensor:
    """Where the conditions are checked: anywhere in the box; for homogeneous f the size does not matter."""
    generator = torch.Generator().manual_seed(seed + 1)
    number = max(16, min(256, ELEMENTS // net.neurons))
    points = 2 * torch.rand(number, net.channels, generator=generator, dtype=torch.float64) - 1
    if net.f.name in HOMOGENEOUS:
        return points
    return points * _row(largest_coordinates(net.task) if bounds is None else bounds)


def _vectors(name: str, given: Tensor | None, drawn: Tensor) -> Tensor:
    if given is None:
        return drawn
    if given.shape != drawn.shape or not bool(torch.isfinite(given).all()) or bool((given.norm(dim=0) == 0).any()):
        allowed = f"{tuple(drawn.shape)}, (neurons, channels), finite, no column 0"
        raise InputError(f"{name}: shape {tuple(given.shape)}; allowed: {allowed}")
    return given.detach().double()


def _row(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
