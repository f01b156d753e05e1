r"""Activations $f$, applied to each neuron's current: $h = f(\nu)$.

An activation is a module, so that its parameters (one number, or one for each neuron) move, save and load with the
network. Besides its value it gives its derivative, which the hand-written gradients need.

>>> list(rni.activations.ACTIVATIONS.parts)
['linear', 'relu', 'sigmoid', 'tanh', 'softplus', 'rectified_power']
>>> f = rni.activations.make("softplus", slope=10)
>>> f.name, round(f(torch.tensor(0.0)).item(), 4)
('softplus', 0.0693)
"""

import copy
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from types import BuiltinFunctionType
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Generator, Tensor, nn

from rni.core.errors import InputError, did_you_mean, found
from rni.core.parts import Choice, Family, Part, Positive

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "ActivationPart",
    "Elementwise",
    "Linear",
    "Normal",
    "ReLU",
    "RectifiedPower",
    "Sigmoid",
    "Softplus",
    "Tanh",
    "make",
]

SLOPE, THRESHOLD, EXPONENT = 50.0, 0.1, 2.0
Mirror = tuple[float, float, float]  # sigma = 1 or -1, a and b of f(-nu) = sigma f(nu) + a nu + b


class Activation(nn.Module):
    """An elementwise function of the currents (..., neurons) with its derivative.

    >>> class Cubic(rni.activations.Activation):
    ...     name = "cubic"
    ...
    ...     def forward(self, currents):
    ...         return currents**3
    >>> Cubic().derivative(torch.tensor([2.0])).tolist()
    [12.0]
    """

    name: ClassVar[str]

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        own = vars(cls)  # what is inherited beside it is of another function
        if "derivative" in own and "derivative_at" not in own:
            cls.derivative_at = Activation.derivative_at
        if ("forward" in own or "derivative" in own) and "mirror" not in own:
            cls.mirror = Activation.mirror

    def derivative(self, currents: Tensor) -> Tensor:
        r"""$f'(\nu)$, elementwise; by automatic differentiation unless the activation knows better."""
        with torch.enable_grad():
            nu = currents.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self(nu).sum(), nu)
        return slope

    def derivative_at(self, currents: Tensor, value: Tensor) -> Tensor:
        r"""$f'(\nu)$ where the `value` $f(\nu)$ is there already, and may save computing it again."""
        return self.derivative(currents)

    def mirror(self) -> Mirror | None:
        r"""$\sigma = \pm 1$, a and b, if there are such, of $f(-\nu) = \sigma f(\nu) + a\nu + b$ for every neuron.

        The derivative has to be one of it too, $f'(-\nu) = -\sigma f'(\nu) - a$.

        >>> rni.activations.ReLU().mirror(), rni.activations.Sigmoid().mirror()
        ((1.0, -1.0, 0.0), None)
        """
        return None

    def parameters_for_file(self) -> dict[str, float | Tensor]:
        """Parameters by name: a number where all neurons share it, (neurons,) otherwise."""
        return {key: value.item() if value.ndim == 0 else value for key, value in self.named_buffers()}

    def extra_repr(self) -> str:
        shown = self.parameters_for_file().items()
        return ", ".join(f"{key}=<{v.numel()} values>" if isinstance(v, Tensor) else f"{key}={v:g}" for key, v in shown)


class _Parametrised(Activation):
    def __init__(self, **parameters: float | Tensor):
        """Parameters are float64 until a network casts them."""
        super().__init__()
        for key, given in parameters.items():
            try:
                value = torch.as_tensor(given, dtype=torch.float64).detach().clone()
            except (TypeError, ValueError, RuntimeError):
                raise InputError(f"{self.name}.{key}: {given!r}; allowed: a number or (neurons,)") from None
            if value.ndim > 1:
                raise InputError(f"{self.name}.{key}: shape {tuple(value.shape)}; allowed: a number or (neurons,)")
            if not bool(value.isfinite().all()):
                raise InputError(f"{self.name}.{key}: NaN or infinite values; allowed: finite numbers")
            self.register_buffer(key, value)


class Linear(Activation):
    r"""$f(\nu) = \nu$.

    >>> rni.activations.Linear()(torch.tensor([-1.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    name = "linear"
    closed_form = True

    def forward(self, currents: Tensor) -> Tensor:
        return currents

    def derivative(self, currents: Tensor) -> Tensor:
        return torch.ones_like(currents)

    def mirror(self) -> Mirror:
        return -1.0, 0.0, 0.0


class ReLU(Activation):
    r"""$f(\nu) = \max(\nu, 0)$, with derivative 1/2 at exactly 0, without which training never leaves W = 0.

    >>> f = rni.activations.ReLU()
    >>> f(torch.tensor([-1.0, 0.0, 2.0])).tolist(), f.derivative(torch.tensor([-1.0, 0.0, 2.0])).tolist()
    ([0.0, 0.0, 2.0], [0.0, 0.5, 1.0])
    """

    name = "relu"
    closed_form = True

    def forward(self, currents: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return (currents + currents.abs()) / 2  # the same number, and autograd's slope at 0 is 1/2
        return currents.clamp(min=0)

    def derivative(self, currents: Tensor) -> Tensor:
        return currents.sign().add_(1).mul_(0.5)

    def mirror(self) -> Mirror:
        return 1.0, -1.0, 0.0


HOMOGENEOUS = (Linear.name, ReLU.name)  # f(a x) = a f(x) for a > 0: integrals of any size are alike


class Sigmoid(_Parametrised):
    r"""$f(\nu) = 1 / (1 + e^{-k(\nu - \theta)})$, slope k and threshold $\theta$ (the paper's by default).

    >>> rni.activations.Sigmoid(slope=50, threshold=0.1)(torch.tensor([0.1])).tolist()
    [0.5]
    >>> rni.activations.Sigmoid(threshold=torch.linspace(0, 0.2, 300))  # one for each of 300 neurons
    Sigmoid(slope=50, threshold=<300 values>)
    """

    name = "sigmoid"
    closed_form = True
    slope: Tensor
    threshold: Tensor

    def __init__(self, slope: float | Tensor = SLOPE, threshold: float | Tensor = THRESHOLD):
        super().__init__(slope=slope, threshold=threshold)

    def forward(self, currents: Tensor) -> Tensor:
        return torch.sigmoid(self.slope * (currents - self.threshold))

    def derivative(self, currents: Tensor) -> Tensor:
        return self.derivative_at(currents, self(currents))

    def derivative_at(self, currents: Tensor, value: Tensor) -> Tensor:
        return self.slope * torch.addcmul(value, value, value, value=-1)  # k h (1 - h)

    def mirror(self) -> Mirror | None:
        return None if bool(self.threshold.any()) else (-1.0, 0.0, 1.0)


class Tanh(Activation):
    r"""$f(\nu) = \tanh \nu$.

    >>> rni.activations.Tanh().derivative(torch.tensor([0.0])).tolist()
    [1.0]
    """

    name = "tanh"
    closed_form = True

    def forward(self, currents: Tensor) -> Tensor:
        return torch.tanh(currents)

    def derivative(self, currents: Tensor) -> Tensor:
        return self.derivative_at(currents, self(currents))

    def derivative_at(self, currents: Tensor, value: Tensor) -> Tensor:
        return 1 - value.square()

    def mirror(self) -> Mirror:
        return -1.0, 0.0, 0.0


class Softplus(_Parametrised):
    r"""$f(\nu) = \log(1 + e^{k\nu}) / k$, a smooth ReLU of slope k.

    >>> rni.activations.Softplus(slope=100)(torch.tensor([1.0], dtype=torch.float64)).tolist()
    [1.0]
    """

    name = "softplus"
    closed_form = True
    slope: Tensor

    def __init__(self, slope: float | Tensor = SLOPE):
        super().__init__(slope=slope)
        if not bool(self.slope.all()):
            raise InputError("softplus.slope: 0; allowed: any other number")

    def forward(self, currents: Tensor) -> Tensor:
        scaled = self.slope * currents
        return torch.logaddexp(scaled, torch.zeros_like(scaled)) / self.slope

    def derivative(self, currents: Tensor) -> Tensor:
        return torch.sigmoid(self.slope * currents)

    def mirror(self) -> Mirror:
        return 1.0, -1.0, 0.0


class RectifiedPower(_Parametrised):
    r"""$f(\nu) = \max(\nu, 0)^p$ with exponent p > 1.

    >>> rni.activations.RectifiedPower(exponent=2)(torch.tensor([-3.0, 3.0])).tolist()
    [0.0, 9.0]
    """

    name = "rectified_power"
    closed_form = True
    exponent: Tensor

    def __init__(self, exponent: float | Tensor = EXPONENT):
        super().__init__(exponent=exponent)
        if not bool((self.exponent > 1).all()):
            raise InputError(f"rectified_power.exponent: {float(self.exponent.min()):g}; allowed: above 1")

    def forward(self, currents: Tensor) -> Tensor:
        return currents.clamp(min=0) ** self.exponent

    def derivative(self, currents: Tensor) -> Tensor:
        return self.exponent * currents.clamp(min=0) ** (self.exponent - 1)


class Elementwise(Activation):
    """Any elementwise torch function, e.g. `Elementwise(torch.sin)`. A network file names the place it is found at.

    >>> rni.activations.Elementwise(torch.sin).derivative(torch.tensor([0.0])).tolist()
    [1.0]
    """

    name = "elementwise"

    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, currents: Tensor) -> Tensor:
        return self.function(currents)


def _elementwise(function: Callable[[Tensor], Tensor]) -> Elementwise:
    """Refuse a function of something else than torch's numbers, each for itself, before a network is made of it.

    One with numbers of its own for each neuron fits none but its network, and is not judged here.
    """
    rows = torch.tensor([[-1.0, 0.5, 2.0], [0.0, 1.0, 3.0]], requires_grad=True)
    try:
        together, apart = function(rows), torch.stack([function(row[[2, 1, 0]]) for row in rows])
        alike = bool(torch.isclose(together, apart.flip(1), rtol=1e-3, atol=1e-5, equal_nan=True).all())
    except Exception as error:  # whatever a user's function raises
        alike = isinstance(error, InputError) or "size of tensor" in str(error)
    if not alike:
        name = getattr(function, "__name__", repr(function))
        raise InputError(f"activation: {name}; allowed: an elementwise torch function, each number for itself")
    return Elementwise(function)


def place(f: Activation) -> str:
    """Where an activation of one's own is found, "module:name", for a file, which never holds code."""
    thing: Any = f.function if isinstance(f, Elementwise) else type(f)
    builtin = isinstance(thing, BuiltinFunctionType)  # of torch, whose qualified names can't be imported
    module, name = getattr(thing, "__module__", ""), getattr(thing, "__name__" if builtin else "__qualname__", "")
    try:
        if at(f"{module}:{name}") is thing and (isinstance(f, Elementwise) or not [*f.parameters(), *f.buffers()]):
            return f"{module}:{name}"
    except InputError:
        pass
    raise InputError(
        f"activation: {f!r}; allowed in a file: {', '.join(ACTIVATIONS.parts)}, a function at the top of a module that "
        "can be imported, or one added to rni.activations.ACTIVATIONS"
    )


def at(place: str) -> Any:
    """What is at "module:name", by importing the module."""
    module, _, name = place.partition(":")
    try:
        return attrgetter(name)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"activation: {place}, not found ({error}); allowed: a place that can be imported") from None


class Normal(Part):
    """A parameter that differs between neurons: Gaussian, drawn once from the seed.

    >>> rni.activations.Normal(mean=0.1, deviation=0.02).draw(300, torch.Generator().manual_seed(0)).shape
    torch.Size([300])
    """

    mean: float
    deviation: Annotated[float, Field(ge=0)]

    def draw(self, neurons: int, generator: Generator) -> Tensor:
        return self.mean + self.deviation * torch.randn(neurons, generator=generator, dtype=torch.float64)


class ActivationPart(Choice):
    """An activation as a part of a specification: its class, and its parameters as fields.

    >>> part = rni.activations.ACTIVATIONS.choose({"name": "sigmoid", "slope": 20})
    >>> isinstance(part, rni.activations.ActivationPart), part.slope, part.threshold
    (True, 20.0, 0.1)
    """

    makes: ClassVar[type[Activation]]

    def build(self, neurons: int, stream: Callable[[str], Generator]) -> Activation:
        """The activation of that many neurons; `stream` gives random numbers for each parameter."""
        return self.makes(
            **{k: v.draw(neurons, stream(f"activation.{k}")) if isinstance(v, Normal) else v for k, v in self}
        )


ACTIVATIONS: Family[ActivationPart] = Family()


@ACTIVATIONS.add("linear")
class LinearPart(ActivationPart):
    makes = Linear


@ACTIVATIONS.add("relu")
class ReLUPart(ActivationPart):
    makes = ReLU


@ACTIVATIONS.add("sigmoid")
class SigmoidPart(ActivationPart):
    slope: Positive | Normal = SLOPE
    threshold: float | Normal = THRESHOLD
    makes = Sigmoid


@ACTIVATIONS.add("tanh")
class TanhPart(ActivationPart):
    makes = Tanh


@ACTIVATIONS.add("softplus")
class SoftplusPart(ActivationPart):
    slope: Positive | Normal = SLOPE
    makes = Softplus


@ACTIVATIONS.add("rectified_power")
class RectifiedPowerPart(ActivationPart):
    exponent: Annotated[float, Field(gt=1)] | Normal = EXPONENT
    makes = RectifiedPower


def make(kind: "str | Activation | Callable[[Tensor], Tensor]", **parameters: Any) -> Activation:
    """The activation of a given name with its parameters; a copy of an `Activation`; a function made into one.

    A module is copied because networks cast what they have to their own precision.

    >>> rni.activations.make("sigmoid", slope=20)
    Sigmoid(slope=20, threshold=0.1)
    >>> rni.activations.make(torch.sin).name
    'elementwise'
    >>> rni.activations.make("relu", slope=2)
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: slope: not a parameter of relu; allowed: none
    """
    if isinstance(kind, str) and kind in ACTIVATIONS.parts:
        part = ACTIVATIONS.parts[kind]
        known = list(part.model_fields)
        for name in parameters:
            if name not in known:
                raise InputError(f"{name}: not a parameter of {kind}; allowed: {', '.join(known) or 'none'}")
        return part.makes(**parameters)
    if isinstance(kind, type) or not callable(kind):
        known = ", ".join(ACTIVATIONS.parts)
        likely = did_you_mean(kind, ACTIVATIONS.parts)
        raise InputError(f"activation: {found(kind)}; allowed: {known}, or an elementwise torch function{likely}")
    if parameters:
        raise InputError(f"{', '.join(parameters)}: given beside {kind!r}; allowed: with the name of an activation")
    own = copy.deepcopy(kind) if isinstance(kind, nn.Module) else kind
    return own if isinstance(own, Activation) else _elementwise(own)
