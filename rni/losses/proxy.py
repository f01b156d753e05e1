r"""Proxy losses (sections 4.2, 4.3 and 5): conditions on W that make any activation integrate, without any input.

If the currents are to stay linear in the integrals, $\nu = W E z$ with $z_c = \bar y_c / (s_c \gamma_c)$, the outputs
must follow, $D^\dagger f(W E z) = S\Gamma z$, and the next currents too, $W f(W E z) = W E\,\Gamma z$, for every z.
"""

import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from rni.core import memory
from rni.core.errors import InputError
from rni.core.registry import Numbers, part
from rni.losses.base import LOSSES, Loss, Sampling, TaskField, check_shape, largest_scale
from rni.losses.gradient import RECURRENT, Gradient, without_autograd
from rni.tasks.integration import Integration

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Generator, Tensor

    from rni.core import rng
    from rni.losses import mirrored
    from rni.networks.network import Network
else:
    from rni.core.lazy import LazyModule, torch

    rng, mirrored = LazyModule("rni.core.rng"), LazyModule("rni.losses.mirrored")

PointSampling = Sampling | Literal["folded"]


class RangeWarning(UserWarning):
    """A warning that inputs leave the range of integrals that a network was trained for.

    Examples
    --------
    >>> import warnings
    >>> loss = rni.ProxyLoss(rni.Integration(0.5), bounds=(1.0,))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     loss.check_range(torch.ones(1, 10, 1))
    >>> caught[0].category.__name__
    'RangeWarning'
    """


@LOSSES.register("proxy")
@part
class ProxyLoss(Loss):
    r"""The proxy loss on the box $Z_1 \times \dots \times Z_D$, averaged over points of the box.

    .. math:: L = \big\langle |D^\dagger f(WEz) - S\Gamma z|^2 + a\,|W f(WEz) - WE\,\Gamma z|^2 \big\rangle_{z \in Z}

    This is the paper's integral over the box, divided by its volume. For one channel and ReLU the training uses
    `ReLUProxyLoss` in its place, unless bounds or the weight of the current term are given.

    Parameters
    ----------
    task : Task
        The task.
    points : int
        The number of points per training step.
    bounds : sequence of float, optional
        The bound of $Z_c = [-z_{max}, z_{max}]$ of each channel. The default is the largest z that inputs between -1
        and 1 can reach.
    current_weight : float
        The weight a of the current term, which is 1 in the paper.
    fixed : bool
        Whether all training steps use the same points.
    sampling : {"even", "independent", "folded"}
        "even" points are quasi-random, and each step shifts them all by one random vector, around the box. They leave
        less noise than "independent" points. "folded" points come in pairs of opposite points. These need half of the
        products where f is symmetric (ReLU, sigmoids of threshold 0), and many of them leave still less noise.

    Examples
    --------
    >>> task = rni.Integration([0.9, 0.8])
    >>> loss = rni.ProxyLoss(task, points=32)
    >>> loss.draw().shape, [round(bound, 3) for bound in loss.box]
    (torch.Size([32, 2]), [10.0, 5.0])
    >>> loss(rni.design(task, neurons=40).network).item() < 1e-12
    True
    """

    task: Annotated[Integration, *TaskField]
    points: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    bounds: Numbers = ()
    current_weight: Annotated[float, Field(ge=0)] = 1.0
    fixed: bool = False
    sampling: PointSampling = "even"

    closed_form = True

    def __post_init__(self):
        channels = self.task.channels
        if len(self.bounds) not in (0, channels) or not all(bound > 0 for bound in self.bounds):
            raise InputError("bounds", self.bounds, f"{channels} positive numbers, one for each channel")
        if not self.bounds and max(self.task.decays) == 1:
            raise InputError("bounds", self.bounds, "bounds of z where a decay is 1, because its integral has none")
        if self.fixed and self.sampling != "even":
            raise InputError("sampling", self.sampling, "'even' for fixed points")
        if self.sampling == "folded" and self.points % 2:
            raise InputError("points", self.points, "an even number if they are folded, in pairs")

    @cached_property
    def box(self) -> tuple[float, ...]:
        """The bound of z of each channel."""
        return self.bounds or largest_coordinates(self.task)

    def draw(self, generator: "Generator | None" = None, dtype: "torch.dtype | None" = None) -> "Tensor":
        """Draw points of the box, of shape (points, channels)."""
        dtype = dtype or torch.float32
        bounds, size = torch.tensor(self.box, dtype=dtype), (self.points, self.task.channels)
        if self.sampling == "folded":
            return rng.folded_points(self.points // 2, self.task.channels, generator).to(dtype) * bounds
        if self.sampling == "independent":
            unit = torch.rand(*size, generator=generator, dtype=torch.float64)
        else:
            unit = rng.points(*size) if self.fixed else rng.shifted_points(*size, generator)
        return (2 * unit - 1).to(dtype) * bounds

    def zero_output_loss(self) -> float:
        r"""Return the loss at W = 0 for f(0) = 0, which is $\sum_c s_c^2\gamma_c^2 z_{max,c}^2 / 3$."""
        terms = zip(self.task.scales, self.task.decays, self.box, strict=True)
        return sum((s * g * bound) ** 2 / 3 for s, g, bound in terms)

    def check_inputs(self, net: "Network", inputs: "Tensor | np.ndarray") -> "Tensor":
        return check_shape(net, inputs, "point")

    def value(self, net: "Network", inputs: "Tensor") -> "Tensor":
        return proxy_value(net, self.task, inputs, self.current_weight) / len(inputs)

    def gradient(
        self, net: "Network", inputs: "Tensor", parameters: frozenset[str] = RECURRENT
    ) -> tuple[float, Gradient]:
        z = inputs.to(net.encoders)
        options = self.current_weight, 1 / len(z), parameters
        if self.sampling == "folded" and (mirror := net.f.mirror()) and mirrored.is_mirrored(z):
            return mirrored.mirrored_gradient(net, self.task, z[: len(z) // 2], mirror, *options)
        return proxy_gradient(net, self.task, z, *options)

    def default_learning_rate(self) -> float:
        """Return the rate of the exact ReLU proxy, scaled by the ratio of the mean squares of z."""
        return _unit_rate(self.task) * 6 / max(self.box) ** 2

    @property
    def cost(self) -> int:
        # nearly every activation for which points are folded needs the products of one half
        return self.points // 2 if self.sampling == "folded" else self.points

    def for_activation(self, activation: str | None) -> Loss:
        # both terms of the proxy are homogeneous for ReLU, so that two points are enough if both weigh the same
        if activation == "relu" and self.task.channels == 1 and not self.bounds and self.current_weight == 1:
            return ReLUProxyLoss(self.task)
        return self

    def require_memory(self, neurons: int, itemsize: int) -> None:
        point = 3 * itemsize * neurons  # states, currents and their gradients
        field = f"training.loss.points: {self.points}"
        memory.require(self.points * point, field, lambda free: f"up to {int(free / point)}")

    def check_range(self, inputs: "Tensor") -> None:
        r"""Warn if signals (batch, time, channels) lead to $|z_c| = |\bar y_c| / (s_c\gamma_c)$ outside of the box."""
        unit = Integration(self.task.decays)  # for scale 1, z is y / gamma
        decays = inputs.new_tensor(self.task.decays).clamp(min=1e-30)
        reached = (unit.targets(inputs) / decays).abs().amax((0, 1)).tolist()
        for c, (z, bound) in enumerate(zip(reached, self.box, strict=True)):
            if z > bound * (1 + 1e-6):
                message = f"inputs: channel {c + 1} reaches |z| = {z:.3g}; trained for at most {bound:.3g}"
                warnings.warn(f"{message}: outputs beyond are not to be trusted", RangeWarning, stacklevel=2)


@part
class ReLUProxyLoss(Loss):
    r"""The proxy loss for ReLU and one channel, which is exact.

    .. math:: L = \sum_{z=\pm1} (d^\dagger\lfloor zWe\rfloor_+ - zs\gamma)^2 + |W\lfloor zWe\rfloor_+ - z\gamma We|^2

    Both terms are homogeneous in z, so that two points are enough. In configurations it is ``loss = "proxy"``.

    Parameters
    ----------
    task : Task
        The task, with one channel.

    Examples
    --------
    >>> task = rni.Integration(0.9)
    >>> loss = rni.ReLUProxyLoss(task)
    >>> loss.draw().tolist(), loss(rni.design(task, neurons=40).network).item() < 1e-12
    ([[1.0], [-1.0]], True)
    """

    task: Annotated[Integration, *TaskField]

    noisy = False
    closed_form = True

    def __post_init__(self):
        if self.task.channels != 1:
            problem = f"{self.task.channels} channels"
            raise InputError("task", self.task, "1 for the exact ReLU proxy, or ProxyLoss", problem=problem)

    def draw(self, generator: "Generator | None" = None, dtype: "torch.dtype | None" = None) -> "Tensor":
        """Return z = 1 and z = -1, of shape (2, 1)."""
        return torch.tensor([[1.0], [-1.0]], dtype=dtype or torch.float32)

    def zero_output_loss(self) -> float:
        r"""Return the loss at W = 0, which is $2 s^2\gamma^2$."""
        return 2 * (self.task.scales[0] * self.task.decays[0]) ** 2

    def check_inputs(self, net: "Network", inputs: "Tensor | np.ndarray") -> "Tensor":
        return check_shape(net, inputs, "point")

    def value(self, net: "Network", inputs: "Tensor") -> "Tensor":
        return proxy_value(net, self.task, inputs)

    def gradient(
        self, net: "Network", inputs: "Tensor", parameters: frozenset[str] = RECURRENT
    ) -> tuple[float, Gradient]:
        return proxy_gradient(net, self.task, inputs, parameters=parameters)

    def default_learning_rate(self) -> float:
        """Return the authors' rate."""
        return _unit_rate(self.task)

    @property
    def cost(self) -> int:
        return 2

    def for_activation(self, activation: str | None) -> Loss:
        if activation != "relu":
            problem = f"the exact ReLU proxy for {activation!r}"
            raise InputError("loss", self, "ProxyLoss for other activations than 'relu'", problem=problem)
        return self


def _unit_rate(task: Integration) -> float:
    return 0.05 / max(1.0, largest_scale(task) ** 2)


def largest_coordinates(task: Integration, bound: float = 1.0) -> tuple[float, ...]:
    r"""Return $z_{max} = y_{max} / (s\gamma) = x_{max} / (1 - \gamma)$ for inputs of size up to `bound`, by channel."""
    if any(decay == 1 for decay in task.decays):
        raise InputError("decays", task.decays, "below 1, or give the bounds of z: the integrals have none")
    return tuple(bound / (1 - decay) for decay in task.decays)


def proxy_value(net: "Network", task: Integration, z: "Tensor", current_weight: float = 1.0) -> "Tensor":
    r"""Return $\sum_z |D^\dagger f(WEz) - S\Gamma z|^2 + a\,|W f(WEz) - WE\,\Gamma z|^2$ over the rows of z.

    Parameters
    ----------
    net : Network
        The network.
    task : Task
        The task, with the decays $\Gamma$ and the scales S.
    z : Tensor, shape (points, channels)
        The points.
    current_weight : float
        The weight a.
    """
    z = z.to(net.encoders)
    decays, scales = z.new_tensor(task.decays), z.new_tensor(task.scales)
    driven = net.recurrent(net.encoders.T)  # W E, as rows
    h = net.f(z @ driven)
    output = net.readout(h) - scales * decays * z
    current = net.recurrent(h) - (decays * z) @ driven
    return output.square().sum() + current_weight * current.square().sum()


@without_autograd
def proxy_gradient(
    net: "Network",
    task: Integration,
    z: "Tensor",
    current_weight: float = 1.0,
    factor: float = 1.0,
    parameters: frozenset[str] = RECURRENT,
) -> tuple[float, Gradient]:
    r"""Return `factor` times `proxy_value`, and its gradient.

    With residuals $\rho$ of the outputs and $\kappa$ of the currents,
    $\delta = f'(WEz) \odot (2 D\rho + 2a W^\dagger\kappa)$ and
    $\partial L/\partial W = \sum_z 2a\,\kappa\,(f(WEz) - E\,\Gamma z)^\dagger + \delta\,(E z)^\dagger$; the last
    term has rank D.
    """
    z = z.to(net.encoders)
    decays, scales = z.new_tensor(task.decays), z.new_tensor(task.scales)
    w, e, d = net.recurrent, net.encoders.T.contiguous(), net.decoders.T.contiguous()  # as rows
    driven = w(e)
    nu = z @ driven
    h = net.f(nu)
    output = h @ d.T - scales * decays * z
    current = torch.addmm(w(h), decays * z, driven, alpha=-1)
    loss = factor * (float(output.square().sum()) + current_weight * float(current.square().sum()))

    output *= 2 * factor
    decoder_gradient = h.T @ output if "decoders" in parameters else None
    if parameters <= {"decoders"}:
        return loss, Gradient(h[:0], h[:0], decoder_gradient)
    current *= 2 * factor * current_weight
    errors = w.pull_back(current, onto=output @ d).mul_(net.f.derivative_at(nu, h))
    first = z.T @ errors
    encoder_gradient = w.pull_back(first - (decays * z).T @ current).T if "encoders" in parameters else None
    if "recurrent" not in parameters:
        return loss, Gradient(h[:0], h[:0], decoder_gradient, encoder_gradient)
    left = torch.cat([current, first])
    right = torch.cat([torch.addmm(h, decays * z, e, alpha=-1), e])
    return loss, Gradient(left, right, decoder_gradient, encoder_gradient)
