"""The activation of a network: a torch module that holds the values which differ between neurons or are trained."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Generator, Tensor, nn

from rni.activations.base import ACTIVATIONS, Activation, Elementwise, Mirror, Normal
from rni.core.errors import InputError
from rni.core.registry import Allowed, build_part, field_names


class ActivationModule(nn.Module):
    """An activation and the tensors that a network passes to it in place of its numbers.

    The tensors move, are saved and are loaded with the network. Those that are `torch.nn.Parameter` can be trained.
    `make` builds such a module.

    Parameters
    ----------
    activation : Activation
        The activation. Its fields are the numbers that all neurons share.
    values : mapping of str to Tensor
        Tensors, (neurons,) or one number, by the names of the fields that they replace.

    Examples
    --------
    >>> f = rni.activations.make("sigmoid", slope=10, threshold=torch.tensor([0.0, 0.5]))
    >>> f
    Sigmoid(slope=10, threshold=<2 values>)
    >>> f(torch.tensor([0.0, 0.5])).tolist()
    [0.5, 0.5]
    """

    def __init__(self, activation: Activation, values: Mapping[str, Tensor]):
        super().__init__()
        self.activation = activation
        for name, value in values.items():
            if isinstance(value, nn.Parameter):
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value)
        self._replaced = tuple(values)
        if isinstance(activation, Elementwise) and isinstance(activation.function, nn.Module):
            self.function = activation.function  # so that torch finds its parameters

    @property
    def name(self) -> str:
        """The registered name of the activation, or ``module:name`` for one from outside the package."""
        return self.activation.name

    def values(self) -> dict[str, Tensor]:
        """Return the tensors by the names of the fields that they replace."""
        return {name: getattr(self, name) for name in self._replaced}

    def config(self) -> dict[str, Any]:
        """Return the name of the activation, and its numbers that are not replaced by tensors."""
        config = ACTIVATIONS.config(self.activation)
        return {name: value for name, value in config.items() if name not in self._replaced}

    def bound(self) -> Activation:
        """Return the activation, with the tensors in place of its numbers."""
        return self.activation.with_values(self.values()) if self._replaced else self.activation

    def forward(self, current: Tensor) -> Tensor:
        return self.bound()(current)

    def derivative(self, current: Tensor) -> Tensor:
        """Return the derivative at each element of `current`, (..., neurons)."""
        return self.bound().derivative(current)

    def derivative_at(self, current: Tensor, value: Tensor) -> Tensor:
        """Return the derivative at each element of `current`, where the `value` of the function is known already."""
        return self.bound().derivative_at(current, value)

    def mirror(self) -> Mirror | None:
        """Return the symmetry of the function, see `Activation.mirror`."""
        return self.bound().mirror()

    def __repr__(self) -> str:
        if isinstance(self.activation, Elementwise):
            return repr(self.activation)
        fields = _fields(self.activation)
        shown = {
            name: f"{value:g}" if isinstance(value, int | float) else repr(value) for name, value in fields.items()
        }
        shown |= {name: f"<{value.numel()} values>" for name, value in self.values().items()}
        return f"{type(self.activation).__name__}({', '.join(f'{name}={text}' for name, text in shown.items())})"


def make(
    activation: "str | Mapping[str, Any] | Activation | ActivationModule | Callable[[Tensor], Tensor]",
    *,
    allow: Allowed = None,
    **parameters: Any,
) -> ActivationModule:
    """Build the activation of a network.

    Parameters
    ----------
    activation : str, mapping, Activation, ActivationModule or callable
        A registered name, a reference ``module:name``, a table with a name and fields, an activation, or an elementwise
        torch function. Modules are copied, because a network converts its modules to its own precision.
    allow : collection of str, optional
        The references ``module:name`` that may be imported. The default allows all of them.
    parameters : float or Tensor, optional
        Fields of the activation. A tensor, (neurons,), has one value for each neuron. A `torch.nn.Parameter` of this
        shape, or with a single number, is trained where all parameters are.

    Examples
    --------
    >>> rni.activations.make("sigmoid", slope=20)
    Sigmoid(slope=20, threshold=0.1)
    >>> rni.activations.make(torch.sin)(torch.tensor([0.0])).tolist()
    [0.0]
    """
    if isinstance(activation, ActivationModule | nn.Module):
        activation = copy.deepcopy(activation)
    if parameters or isinstance(activation, Mapping):
        return _with_parameters(activation, parameters, allow)
    if isinstance(activation, ActivationModule):
        return activation
    return _module(ACTIVATIONS.build(activation, allow=allow), {})


def _with_parameters(activation: Any, parameters: Mapping[str, Any], allow: Allowed) -> ActivationModule:
    if isinstance(activation, Activation):
        activation = {"name": type(activation), **_fields(activation)}
    if not isinstance(activation, str | Mapping):
        raise InputError(next(iter(parameters)), activation, "parameters together with the name of an activation")
    config = {"name": activation} if isinstance(activation, str) else activation
    fields = {**config, **parameters}
    name = fields.pop("name", None)
    values = {field: _tensor(field, value) for field, value in fields.items() if _is_tensor(value)}
    numbers = {field: _number(value) for field, value in fields.items() if field not in values}
    # the numbers that a field allows are an interval, so that the extremes stand for all values
    parts = []
    for extreme in (torch.amin, torch.amax):
        shared = numbers | {field: float(extreme(value.detach())) for field, value in values.items()}
        known = isinstance(name, type)
        parts.append(build_part(name, shared) if known else ACTIVATIONS.build({"name": name, **shared}, allow=allow))
    return _module(parts[0], values)


def draw(activation: Activation, neurons: int, stream: Callable[[str], Generator]) -> ActivationModule:
    """Build the activation of a network, and draw its parameters that differ between neurons.

    Parameters
    ----------
    activation : Activation
        The activation. Fields that are `Normal` are drawn.
    neurons : int
        The number of neurons.
    stream : callable
        Returns the random generator for a purpose. The purpose of the field "slope" is "activation.slope".

    Examples
    --------
    >>> sigmoid = rni.activations.Sigmoid(threshold=rni.activations.Normal(0.1, 0.02))
    >>> rni.activations.draw(sigmoid, 300, lambda purpose: torch.Generator().manual_seed(0))
    Sigmoid(slope=50, threshold=<300 values>)
    """
    normal = {name: value for name, value in _fields(activation).items() if isinstance(value, Normal)}
    return ActivationModule(activation, {k: v.draw(neurons, stream(f"activation.{k}")) for k, v in normal.items()})


def _fields(activation: Activation) -> dict[str, Any]:
    return {name: getattr(activation, name) for name in field_names(type(activation))}


def _module(activation: Activation, values: Mapping[str, Tensor]) -> ActivationModule:
    for name, value in _fields(activation).items():
        if isinstance(value, Normal):
            raise InputError(name, value, "a number, or a tensor (neurons,); only a run draws random values")
    return ActivationModule(activation, values)


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _is_tensor(value: Any) -> bool:
    """Return whether a value has to stay a tensor, because it differs between neurons or can be trained."""
    return isinstance(value, nn.Parameter) or getattr(value, "ndim", 0) > 0


def _tensor(name: str, value: Any) -> Tensor:
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(name, value, "a number, or a tensor (neurons,)") from None
    if tensor.ndim > 1 or not tensor.numel() or tensor.is_complex():
        raise InputError(name, value, "a number, or a tensor (neurons,)", problem=f"shape {tuple(tensor.shape)}")
    # the values stay in float64 until the network converts them to its precision
    copied = tensor.detach().to(torch.float64, copy=True)
    return nn.Parameter(copied, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else copied
