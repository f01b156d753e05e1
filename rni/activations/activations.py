"""Elementwise activation functions and their derivatives."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import Field

from rni.activations.base import ACTIVATIONS, Activation, Mirror, Normal
from rni.core.registry import Number, Positive, part

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    # numbers in a configuration, and tensors where a network has one value for each neuron
    NumberOrNormal: TypeAlias = Any
    PositiveOrNormal: TypeAlias = Any
    ExponentOrNormal: TypeAlias = Any
else:
    from rni.core.lazy import torch

    NumberOrNormal = Annotated[Number | Normal, Normal.from_table]
    PositiveOrNormal = Annotated[Positive | Normal, Normal.from_table]
    ExponentOrNormal = Annotated[Annotated[Number, Field(gt=1)] | Normal, Normal.from_table]

HOMOGENEOUS = ("linear", "relu")
"""Activations with f(a x) = a f(x) for a > 0. Networks with them treat integrals of any size alike."""


@ACTIVATIONS.register("linear")
@part
class Linear(Activation):
    """The identity, :math:`f(x) = x`.

    Examples
    --------
    >>> rni.activations.Linear()(torch.tensor([-1.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    closed_form: ClassVar[bool] = True

    def __call__(self, current: "Tensor") -> "Tensor":
        return current

    def derivative(self, current: "Tensor") -> "Tensor":
        return torch.ones_like(current)

    def mirror(self) -> Mirror:
        return -1.0, 0.0, 0.0


@ACTIVATIONS.register("relu")
@part
class ReLU(Activation):
    r"""Rectified linear unit, :math:`f(x) = \max(x, 0)`.

    The derivative at 0 is 1/2, as in the paper. Every current is exactly 0 when W = 0. Training from W = 0 would
    therefore never start if the derivative at 0 were 0.

    Examples
    --------
    >>> f = rni.activations.ReLU()
    >>> f(torch.tensor([-1.0, 0.0, 2.0])).tolist(), f.derivative(torch.tensor([-1.0, 0.0, 2.0])).tolist()
    ([0.0, 0.0, 2.0], [0.0, 0.5, 1.0])
    """

    closed_form: ClassVar[bool] = True

    def __call__(self, current: "Tensor") -> "Tensor":
        if torch.is_grad_enabled():
            # automatic differentiation gives (x + |x|) / 2 the derivative 1/2 at x = 0
            return (current + current.abs()) / 2
        return current.clamp(min=0)

    def derivative(self, current: "Tensor") -> "Tensor":
        return current.sign().add_(1).mul_(0.5)

    def mirror(self) -> Mirror:
        return 1.0, -1.0, 0.0


@ACTIVATIONS.register("sigmoid")
@part
class Sigmoid(Activation):
    r"""Sigmoid, :math:`f(x) = 1 / (1 + e^{-k (x - \theta)})`.

    Parameters
    ----------
    slope : float or Normal
        The slope :math:`k`. The default is that of the paper.
    threshold : float or Normal
        The threshold :math:`\theta`, in units of the current. The default is that of the paper.

    Examples
    --------
    >>> rni.activations.Sigmoid(slope=50, threshold=0.1)(torch.tensor([0.1])).tolist()
    [0.5]
    """

    closed_form: ClassVar[bool] = True

    slope: PositiveOrNormal = 50.0
    threshold: NumberOrNormal = 0.1

    def __call__(self, current: "Tensor") -> "Tensor":
        return torch.sigmoid(self.slope * (current - self.threshold))

    def derivative(self, current: "Tensor") -> "Tensor":
        return self.derivative_at(current, self(current))

    def derivative_at(self, current: "Tensor", value: "Tensor") -> "Tensor":
        return self.slope * torch.addcmul(value, value, value, value=-1)  # k f (1 - f)

    def mirror(self) -> Mirror | None:
        return None if bool(torch.as_tensor(self.threshold).any()) else (-1.0, 0.0, 1.0)


@ACTIVATIONS.register("tanh")
@part
class Tanh(Activation):
    r"""Hyperbolic tangent, :math:`f(x) = \tanh x`.

    Examples
    --------
    >>> rni.activations.Tanh().derivative(torch.tensor([0.0])).tolist()
    [1.0]
    """

    closed_form: ClassVar[bool] = True

    def __call__(self, current: "Tensor") -> "Tensor":
        return torch.tanh(current)

    def derivative(self, current: "Tensor") -> "Tensor":
        return self.derivative_at(current, self(current))

    def derivative_at(self, current: "Tensor", value: "Tensor") -> "Tensor":
        return 1 - value.square()

    def mirror(self) -> Mirror:
        return -1.0, 0.0, 0.0


@ACTIVATIONS.register("softplus")
@part
class Softplus(Activation):
    r"""Smooth rectifier, :math:`f(x) = \log(1 + e^{k x}) / k`.

    Parameters
    ----------
    slope : float or Normal
        The slope :math:`k`. The function tends to a ReLU for large slopes.

    Examples
    --------
    >>> rni.activations.Softplus(slope=100)(torch.tensor([1.0], dtype=torch.float64)).tolist()
    [1.0]
    """

    closed_form: ClassVar[bool] = True

    slope: PositiveOrNormal = 50.0

    def __call__(self, current: "Tensor") -> "Tensor":
        scaled = self.slope * current
        return torch.logaddexp(scaled, torch.zeros_like(scaled)) / self.slope

    def derivative(self, current: "Tensor") -> "Tensor":
        return torch.sigmoid(self.slope * current)

    def mirror(self) -> Mirror:
        return 1.0, -1.0, 0.0


@ACTIVATIONS.register("rectified_power")
@part
class RectifiedPower(Activation):
    r"""Rectified power, :math:`f(x) = \max(x, 0)^p`.

    Parameters
    ----------
    exponent : float or Normal
        The exponent :math:`p`, above 1. For 1 and below, silent neurons would have a derivative other than 0.

    Examples
    --------
    >>> rni.activations.RectifiedPower(exponent=2)(torch.tensor([-3.0, 3.0])).tolist()
    [0.0, 9.0]
    """

    closed_form: ClassVar[bool] = True

    exponent: ExponentOrNormal = 2.0

    def __call__(self, current: "Tensor") -> "Tensor":
        return current.clamp(min=0) ** self._exponent(current)

    def derivative(self, current: "Tensor") -> "Tensor":
        exponent = self._exponent(current)
        return exponent * current.clamp(min=0) ** (exponent - 1)

    def _exponent(self, current: "Tensor") -> "Tensor":
        # torch computes a power with a number in another way than with a tensor, and rounds it differently
        return torch.as_tensor(self.exponent, dtype=current.dtype, device=current.device)
