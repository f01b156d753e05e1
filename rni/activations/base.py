"""The interface of an activation, and the registry of activations.

An activation is a part: its fields are plain numbers, which all neurons share. Values that differ between neurons, or
that are trained, are tensors, and belong to the network. It keeps them in an `ActivationModule`, which passes them to
the activation in place of its numbers.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field

from rni.core.errors import InputError
from rni.core.registry import Number, Registry, build_part, part

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    from rni.core.lazy import torch

Mirror = tuple[float, float, float]


@part
class Normal:
    """A parameter that differs between neurons. Each run draws it once from a Gaussian distribution.

    A configuration writes it as a table: ``threshold = { mean = 0.1, deviation = 0.02 }``.

    Examples
    --------
    >>> rni.activations.Normal(mean=0.1, deviation=0.02).draw(300, torch.Generator().manual_seed(0)).shape
    torch.Size([300])
    """

    mean: Number
    deviation: Annotated[Number, Field(ge=0)]
    from_table: ClassVar = BeforeValidator(
        lambda value: build_part(Normal, value) if isinstance(value, dict) else value
    )

    def draw(self, neurons: int, generator: "Generator") -> "Tensor":
        """Draw one value for each neuron, (neurons,) in float64."""
        return self.mean + self.deviation * torch.randn(neurons, generator=generator, dtype=torch.float64)


@part
class Activation(ABC):
    r"""Base class of activations.

    An activation is an elementwise function :math:`f` of the current. Its derivative is used by the closed-form
    gradients. An activation outside of the package is a subclass in a file of its own. A configuration names it as
    ``module:Class``. Its fields, if any, are plain numbers with defaults.

    Examples
    --------
    >>> from rni.core.registry import part
    >>> @part
    ... class Cubic(rni.activations.Activation):
    ...     strength: float = 1.0
    ...
    ...     def __call__(self, current):
    ...         return self.strength * current**3
    >>> Cubic(2.0).derivative(torch.tensor([2.0])).tolist()
    [24.0]
    """

    def __init_subclass__(cls, **options: Any):
        # The closed forms of a parent class are wrong in a subclass that changes the function or its derivative.
        super().__init_subclass__(**options)
        changed = vars(cls).keys() & {"__call__", "derivative"}
        derived = {"__call__": ("derivative", "derivative_at", "mirror"), "derivative": ("derivative_at", "mirror")}
        for method in {name for source in changed for name in derived[source]} - vars(cls).keys():
            setattr(cls, method, getattr(Activation, method))

    @property
    def name(self) -> str:
        """The registered name, or ``module:name`` for an activation from outside the package."""
        return ACTIVATIONS.name(self)

    @abstractmethod
    def __call__(self, current: "Tensor") -> "Tensor":
        """Return the value of the function at each element of `current`, (..., neurons)."""

    def derivative(self, current: "Tensor") -> "Tensor":
        """Return the derivative of the function at each element of `current`.

        Automatic differentiation computes it, unless the activation overrides this method by a closed form.
        """
        with torch.enable_grad():
            current = current.detach().requires_grad_()
            (derivative,) = torch.autograd.grad(self(current).sum(), current)
        return derivative

    def derivative_at(self, current: "Tensor", value: "Tensor") -> "Tensor":
        """Return the derivative at each element of `current`, where the `value` of the function is known already."""
        return self.derivative(current)

    def mirror(self) -> Mirror | None:
        r"""Return the numbers :math:`\sigma = \pm 1`, :math:`a` and :math:`b` of a symmetry of the function.

        .. math:: f(-x) = \sigma f(x) + a x + b, \qquad f'(-x) = -\sigma f'(x) - a

        The default, None, is an activation without such a symmetry.

        Examples
        --------
        >>> rni.activations.ReLU().mirror(), rni.activations.Sigmoid().mirror()
        ((1.0, -1.0, 0.0), None)
        """
        return None

    def with_values(self, values: "Mapping[str, Tensor]") -> Self:
        """Return a copy that computes with tensors, (neurons,), in place of some of its numbers."""
        bound = copy.copy(self)
        vars(bound).update(values)  # a frozen part cannot be assigned to, and its fields are checked as numbers
        return bound


@part
class Elementwise(Activation):
    """An elementwise torch function of the user, such as `torch.sin`.

    A file names the function as ``module:name``.

    Examples
    --------
    >>> rni.activations.Elementwise(torch.sin).derivative(torch.tensor([0.0])).tolist()
    [1.0]
    """

    function: Callable[..., Any]

    def __call__(self, current: "Tensor") -> "Tensor":
        return self.function(current)


def _from_function(function: Callable[..., Any]) -> Activation:
    """Return a function of the user as an activation.

    Raises
    ------
    InputError
        If values depend on other elements of the current, or on the order of the neurons, or are no tensors.
    """
    rows = torch.tensor([[-1.0, 0.5, 2.0], [0.0, 1.0, 3.0]], requires_grad=True)
    try:
        at_once, one_by_one = function(rows), torch.stack([function(row[[2, 1, 0]]) for row in rows])
        elementwise = bool(torch.isclose(at_once, one_by_one.flip(1), rtol=1e-3, atol=1e-5, equal_nan=True).all())
    except Exception as error:  # the code is the user's, and may raise anything
        # a function with a tensor of its own for each neuron fits only a network of that size
        elementwise = isinstance(error, InputError) or "size of tensor" in str(error)
    if not elementwise:
        name = getattr(function, "__name__", repr(function))
        raise InputError("activation", function, "an elementwise torch function", problem=name)
    return Elementwise(function)


ACTIVATIONS: Registry[Activation] = Registry("activation", Activation, _from_function)
