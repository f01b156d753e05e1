r"""Proxy losses (sections 4.2, 4.3 and 5): conditions on W that make any activation integrate, without any input.

If the currents are to stay linear in the integrals, $\nu = W E z$ with $z_c = \bar y_c / (s_c \gamma_c)$, the outputs
must follow, $D^\dagger f(W E z) = S\Gamma z$, and the next currents too, $W f(W E z) = W E\,\Gamma z$, for every z.
"""

import warnings
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
import torch
from pydantic import Field
from torch import Generator, Tensor

from rni.core import memory
from rni.core.errors import InputError, require_one_of, require_whole
from rni.core.parts import Numbers, require
from rni.core.rng import folded_points, points, shifted_points
from rni.losses.base import LOSSES, Loss, LossPart, Sampling, largest_scale
from rni.losses.gradient import Gradient, Trained, own_inputs, require_task, trained_parts
from rni.losses.mirrored import is_mirrored, mirrored_gradient
from rni.networks.network import Network
from rni.tasks.integration import Integration, require_integration

POINTS = 64
PointSampling = Sampling | Literal["folded"]
SAMPLINGS = (*get_args(Sampling), "folded")


class RangeWarning(UserWarning):
    """Inputs lead out of the range of integrals that a network was trained for.

    >>> import warnings
    >>> loss = rni.ProxyLoss(rni.Integration(0.5), bounds=(1.0,))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     loss.check_range(torch.ones(1, 10, 1))
    >>> caught[0].category.__name__
    'RangeWarning'
    """


@dataclass(frozen=True)
class ProxyLoss(Loss):
    r"""$L = \big\langle |D^\dagger f(WEz) - S\Gamma z|^2 + a\,|W f(WEz) - WE\,\Gamma z|^2 \big\rangle_{z \in Z}$.

    The paper's integral over the box $Z_1 \times \dots \times Z_D$, divided by its volume; the weight a of the current
    term is 1 there. Z_c = [-z_max, z_max] with the given `bounds`, by default those that inputs bounded by 1 can reach.
    `points` are quasi-random, which leaves less noise than as many independent ones: each step shifts them all by one
    random vector, around the box, unless they are `fixed`. With the sampling "independent" they are drawn each for
    itself, as Monte Carlo does; "folded", they come in pairs of opposite ones, which take half of the products where
    f is symmetric (ReLU, sigmoids of threshold 0), and many of them leave still less noise.

    >>> task = rni.Integration([0.9, 0.8])
    >>> loss = rni.ProxyLoss(task, points=32)
    >>> loss.draw().shape, [round(bound, 3) for bound in loss.bounds]
    (torch.Size([32, 2]), [10.0, 5.0])
    >>> loss(rni.design(task, neurons=40).network).item() < 1e-12
    True
    """

    task: Integration
    points: int = POINTS
    bounds: tuple[float, ...] | None = None
    current_weight: float = 1.0
    fixed: bool = False
    sampling: PointSampling = "even"

    def __post_init__(self):
        require_integration(self.task)
        require_one_of("sampling", self.sampling, SAMPLINGS)
        if self.fixed and self.sampling != "even":
            raise InputError(f"sampling: {self.sampling!r}; allowed: 'even' for fixed points")
        bounds = largest_coordinates(self.task) if self.bounds is None else self.bounds
        try:
            bounds = tuple(bounds)
            valid = len(bounds) == self.task.channels and all(0 < bound < float("inf") for bound in bounds)
        except TypeError:  # not a list, or not of numbers
            valid = False
        if not valid:
            raise InputError(f"bounds: {bounds}; allowed: {self.task.channels} positive numbers, one for each channel")
        require_whole("points", self.points, 1)
        if self.sampling == "folded" and self.points % 2:
            raise InputError(f"points: {self.points}; allowed: an even number where they are folded, in pairs")
        if not 0 <= self.current_weight < float("inf"):
            raise InputError(f"current_weight: {self.current_weight}; allowed: 0 or more")
        object.__setattr__(self, "bounds", bounds)

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
        """Points of the box, (points, channels)."""
        bounds, size = torch.tensor(self.bounds, dtype=dtype), (self.points, self.task.channels)
        if self.sampling == "folded":
            return folded_points(self.points // 2, self.task.channels, generator).to(dtype) * bounds
        if self.sampling == "independent":
            unit = torch.rand(*size, generator=generator, dtype=torch.float64)
        else:
            unit = points(*size) if self.fixed else shifted_points(*size, generator)
        return (2 * unit - 1).to(dtype) * bounds

    def silent(self) -> float:
        r"""The loss of a network without weights and with f(0) = 0: $\sum_c s_c^2\gamma_c^2 z_{max,c}^2 / 3$."""
        assert self.bounds is not None
        terms = zip(self.task.scales, self.task.decays, self.bounds, strict=True)
        return sum((s * g * bound) ** 2 / 3 for s, g, bound in terms)

    def value(self, net: Network, inputs: Tensor | np.ndarray) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        require_task(net, self.task)
        return proxy_value(net, inputs, self.current_weight) / len(inputs)

    def gradient(
        self, net: Network, inputs: Tensor | np.ndarray, train: Trained = "recurrent"
    ) -> tuple[float, Gradient]:
        """The loss and its gradient."""
        require_task(net, self.task)
        z = own_inputs(inputs, net, "point")
        options = self.current_weight, 1 / len(z), train
        if self.sampling == "folded" and (mirror := net.f.mirror()) and is_mirrored(z):
            return mirrored_gradient(net, z[: len(z) // 2], mirror, *options)
        return proxy_gradient(net, z, *options)

    def rate(self) -> float:
        """That of the exact ReLU proxy, in proportion to the mean of z^2."""
        assert self.bounds is not None
        return _unit_rate(self.task) * 6 / max(self.bounds) ** 2

    def check_range(self, inputs: Tensor) -> None:
        r"""Warn where signals (batch, time, channels) lead to $|z_c| = |\bar y_c| / (s_c\gamma_c)$ out of the box."""
        assert self.bounds is not None
        unit = Integration(self.task.decays)  # scale 1: y / gamma is z
        decays = inputs.new_tensor(self.task.decays).clamp(min=1e-30)
        reached = (unit.targets(inputs) / decays).abs().amax((0, 1)).tolist()
        for c, (z, bound) in enumerate(zip(reached, self.bounds, strict=True)):
            if z > bound * (1 + 1e-6):
                message = f"inputs: channel {c + 1} reaches |z| = {z:.3g}; trained for at most {bound:.3g}"
                warnings.warn(f"{message}: outputs beyond are not to be trusted", RangeWarning, stacklevel=2)


@dataclass(frozen=True)
class ReLUProxyLoss(Loss):
    r"""$L = \sum_{z=\pm1} (d^\dagger\lfloor zWe\rfloor_+ - zs\gamma)^2 + |W\lfloor zWe\rfloor_+ - z\gamma We|^2$.

    Exact for ReLU and one channel: both terms are homogeneous in z, so that two points stand for all.

    >>> task = rni.Integration(0.9)
    >>> loss = rni.ReLUProxyLoss(task)
    >>> loss.draw().tolist(), loss(rni.design(task, neurons=40).network).item() < 1e-12
    ([[1.0], [-1.0]], True)
    """

    task: Integration
    noisy = False

    def __post_init__(self):
        require_integration(self.task)
        if self.task.channels != 1:
            raise InputError(f"task: {self.task.channels} channels; allowed: 1 for the exact ReLU proxy, or ProxyLoss")

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
        """z = 1 and z = -1, (2, 1)."""
        return torch.tensor([[1.0], [-1.0]], dtype=dtype)

    def silent(self) -> float:
        r"""The loss at W = 0: $2 s^2\gamma^2$."""
        return 2 * (self.task.scales[0] * self.task.decays[0]) ** 2

    def value(self, net: Network, inputs: Tensor | np.ndarray) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        require_task(_relu(net), self.task)
        return proxy_value(net, inputs)

    def gradient(
        self, net: Network, inputs: Tensor | np.ndarray, train: Trained = "recurrent"
    ) -> tuple[float, Gradient]:
        """The loss and its gradient, from products with two vectors."""
        require_task(_relu(net), self.task)
        return proxy_gradient(net, inputs, train=train)

    def rate(self) -> float:
        """The authors'."""
        return _unit_rate(self.task)


def _unit_rate(task: Integration) -> float:
    return 0.05 / max(1.0, largest_scale(task) ** 2)


@LOSSES.add("proxy")
class Proxy(LossPart):
    """The exact two points for ReLU and one channel, unless bounds or the weight of a term are given."""

    points: Annotated[int, Field(ge=1, le=1_000_000)] = POINTS
    bounds: Numbers = ()
    current_weight: Annotated[float, Field(ge=0)] = 1.0
    fixed: bool = False
    sampling: PointSampling | None = None

    def exact(self, task: Integration, activation: str) -> bool:
        """Two points stand for all where both terms of the proxy are homogeneous and weigh the same."""
        homogeneous = activation == "relu" and task.channels == 1
        return homogeneous and not self.bounds and self.current_weight == 1

    def build(self, task: Integration, activation: str) -> Loss:
        if self.exact(task, activation):
            return ReLUProxyLoss(task)
        drawn = self.current_weight, self.fixed, self.sampling or "even"
        return ProxyLoss(task, self.points, self.bounds or None, *drawn)

    def check(self, task: Integration, activation: str) -> None:
        given, channels = ("training.loss.bounds", self.bounds), task.channels
        fits = len(self.bounds) in (0, channels) and all(bound > 0 for bound in self.bounds)
        require(fits, *given, f"{channels} positive numbers, one for each channel")
        require(bool(self.bounds) or max(task.decays) < 1, *given, "bounds of z where a decay is 1")
        fits = not self.fixed or self.sampling in (None, "even")
        require(fits, "training.loss.sampling", self.sampling, "'even' for fixed points")
        fits = self.sampling != "folded" or self.points % 2 == 0
        require(fits, "training.loss.points", self.points, "an even number where they are folded, in pairs")

    def rows(self, task: Integration, activation: str) -> int:
        """Of the products: of points in pairs one half is enough, for nearly every activation that is folded."""
        if self.exact(task, activation):
            return 2
        return self.points // 2 if self.sampling == "folded" else self.points

    def require_memory(self, task: Integration, neurons: int, size: int) -> None:
        row = 3 * size * neurons  # states, currents and their gradients
        what = f"training.loss.points: {self.points}"
        memory.require(self.points * row, what, lambda free: f"up to {int(free / row)}")


def largest_coordinates(task: Integration, bound: float = 1.0) -> tuple[float, ...]:
    r"""$z_{max} = y_{max} / (s\gamma)$, which inputs of size up to `bound` can reach: $x_{max} / (1 - \gamma)$."""
    if any(decay == 1 for decay in task.decays):
        raise InputError(f"decays: {task.decays}; allowed: below 1, or give the bounds of z: the integrals have none")
    return tuple(bound / (1 - decay) for decay in task.decays)


def proxy_value(net: Network, z: Tensor | np.ndarray, current_weight: float = 1.0) -> Tensor:
    r"""$\sum_z |D^\dagger f(WEz) - S\Gamma z|^2 + a\,|W f(WEz) - WE\,\Gamma z|^2$, over the rows z."""
    z = own_inputs(z, net, "point")
    decays, scales = z.new_tensor(net.task.decays), z.new_tensor(net.task.scales)
    driven = net.recurrent(net.encoders.T)  # W E, as rows
    h = net.f(z @ driven)
    output = net.readout(h) - scales * decays * z
    current = net.recurrent(h) - (decays * z) @ driven
    return output.square().sum() + current_weight * current.square().sum()


@torch.no_grad()
def proxy_gradient(
    net: Network, z: Tensor | np.ndarray, current_weight: float = 1.0, factor: float = 1.0, train: Trained = "recurrent"
) -> tuple[float, Gradient]:
    r"""`factor` times `proxy_value` and its gradient.

    With residuals $\rho$ of the outputs and $\kappa$ of the currents,
    $\delta = f'(WEz) \odot (2 D\rho + 2a W^\dagger\kappa)$ and
    $\partial L/\partial W = \sum_z 2a\,\kappa\,(f(WEz) - E\,\Gamma z)^\dagger + \delta\,(E z)^\dagger$; the last
    term has rank D. z: (points, channels).
    """
    parts = trained_parts(net, train)
    z = own_inputs(z, net, "point")
    decays, scales = z.new_tensor(net.task.decays), z.new_tensor(net.task.scales)
    w, e, d = net.recurrent, net.encoders.T.contiguous(), net.decoders.T.contiguous()  # as rows
    driven = w(e)
    nu = z @ driven
    h = net.f(nu)
    output = h @ d.T - scales * decays * z
    current = torch.addmm(w(h), decays * z, driven, alpha=-1)
    loss = factor * (float(output.square().sum()) + current_weight * float(current.square().sum()))

    output *= 2 * factor
    decoder_gradient = h.T @ output if "decoders" in parts else None
    if parts <= {"decoders"}:
        return loss, Gradient(h[:0], h[:0], decoder_gradient)
    current *= 2 * factor * current_weight
    errors = w.pull_back(current, onto=output @ d).mul_(net.f.derivative_at(nu, h))
    first = z.T @ errors
    encoder_gradient = w.pull_back(first - (decays * z).T @ current).T if "encoders" in parts else None
    if "recurrent" not in parts:
        return loss, Gradient(h[:0], h[:0], decoder_gradient, encoder_gradient)
    left = torch.cat([current, first])
    right = torch.cat([torch.addmm(h, decays * z, e, alpha=-1), e])
    return loss, Gradient(left, right, decoder_gradient, encoder_gradient)


def _relu(net: Network) -> Network:
    if net.f.name != "relu":
        raise InputError(f"activation: {net.f.name!r}; allowed: 'relu' for the exact ReLU proxy, or ProxyLoss")
    return net
