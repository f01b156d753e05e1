"""The interface of a loss, and the registry of losses."""

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo

from rni.core.errors import InputError, nearest
from rni.core.registry import Allowed, Registry, build_part, field_names, import_reference, reference
from rni.losses.gradient import RECURRENT, Gradient
from rni.tasks.base import TASKS, Task
from rni.tasks.integration import Integration

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor

    from rni.networks import network
    from rni.networks.network import Network
else:
    from rni.core.lazy import LazyModule, torch

    network = LazyModule("rni.networks.network")

Schedule = Literal["constant", "warmup", "cosine"]
Sampling = Literal["even", "independent"]  # "even" samples are quasi-random, so that averages over them have less noise


class Loss(ABC):
    """Base class of losses.

    A loss is a function of a network, and training minimises this function. A subclass has two required methods:
    `draw` draws the inputs of one training step, and `value` returns the loss as a scalar that torch can differentiate.
    A subclass that is used in configurations is decorated with `rni.core.registry.part`. If it has a field ``task``,
    the run gives it its task.

    ``loss(net, inputs)`` is the value for these inputs, and ``loss(net)`` the value for inputs that the loss draws.

    Attributes
    ----------
    default_schedule : str
        The schedule of plain gradient descent if neither schedule nor learning rate is given.
    noisy : bool
        Whether gradients are estimated from random samples.
    accepts_leak : bool
        Whether the loss is defined for networks with a leak below 1.
    closed_form : bool
        Whether `gradient` works without automatic differentiation. A subclass does not inherit it.

    Examples
    --------
    >>> loss = rni.BatchLoss(rni.Integration(0.9))
    >>> isinstance(loss, rni.losses.Loss), loss.noisy, loss.default_schedule, round(loss.default_learning_rate(), 4)
    (True, True, 'warmup', 0.0741)
    """

    default_schedule: ClassVar[Schedule] = "constant"
    noisy: ClassVar[bool] = True
    accepts_leak: ClassVar[bool] = False
    closed_form: ClassVar[bool] = False

    @abstractmethod
    def draw(self, generator: "Generator | None" = None, dtype: "torch.dtype | None" = None) -> Any:
        """Draw the inputs of one training step. The default dtype is float32."""

    @abstractmethod
    def value(self, net: "Network", inputs: Any) -> "Tensor":
        """Return the loss as a scalar that torch can differentiate."""

    def gradient(self, net: "Network", inputs: Any, parameters: frozenset[str] = RECURRENT) -> tuple[float, Gradient]:
        """Return the loss and its gradient with respect to the named parameters of the network.

        This method uses automatic differentiation. A subclass may override it by a closed form.

        Parameters
        ----------
        net : Network
            The network.
        inputs : object
            What `draw` returned.
        parameters : frozenset of str
            The trained parameters, which are some of "recurrent", "decoders" and "encoders".
        """
        tensors: dict[str, Tensor] = {name: getattr(net, name) for name in parameters - RECURRENT}
        if "recurrent" in parameters:
            tensors["recurrent"] = w = net.recurrent.matrix()
            if not isinstance(w, torch.nn.Parameter):
                form = type(net.recurrent).__name__
                raise InputError(
                    "weights", net.recurrent, "Dense or Dale where the gradient is automatic", problem=form
                )
        with torch.enable_grad():
            value = self.value(net, inputs)
            if not value.requires_grad:
                raise InputError(
                    "loss", self, "a differentiable function of it", problem="does not depend on what is trained"
                )
            slopes = torch.autograd.grad(value, list(tensors.values()), materialize_grads=True)
        slope = dict(zip(tensors, slopes, strict=True))
        # the gradient with respect to W is the product of the identity and itself
        right = slope.get("recurrent", net.encoders.new_empty(0, net.neurons))
        left = torch.eye(len(right), net.neurons, dtype=net.dtype, device=right.device)
        return value.item(), Gradient(left, right, slope.get("decoders"), slope.get("encoders"))

    def zero_output_loss(self) -> float:
        """Return the loss of a network whose outputs are 0. Training that far exceeds it has diverged.

        The default is infinity, which stands for unknown: training then diverges when the loss is not finite.
        """
        return float("inf")

    def default_learning_rate(self) -> float:
        """Return a learning rate for plain gradient descent from W = 0."""
        raise InputError(
            "learning_rate", None, "a number", problem=f"left open, and {type(self).__name__} has none of its own"
        )

    @property
    def cost(self) -> int:
        """The approximate number of states that one training step multiplies by W."""
        return 32

    def for_activation(self, activation: str | None) -> "Loss":
        """Return the loss that training minimises for networks with this activation.

        It is the loss itself, unless a loss has an exact form for this activation.

        Parameters
        ----------
        activation : str or None
            The registered name of the activation, or None for any other function.

        Raises
        ------
        InputError
            If the loss is not defined for this activation.
        """
        return self

    def check(self, net: "Network") -> None:
        """Raise `InputError` if the loss is not defined for this network."""
        self.for_activation(net.f.name)
        task = getattr(self, "task", None)
        if task is not None and net.task != task:
            raise InputError("task", task, "the same", problem=f"{task} of the loss, {net.task} of the network")
        if task is not None and net.leak != 1 and not self.accepts_leak:
            raise InputError("leak", net.leak, "1, or the batch loss, or `net.undamped()` and its task")

    def check_inputs(self, net: "Network", inputs: Any) -> Any:
        """Return inputs that a user gave in the dtype of the network, or raise `InputError`."""
        return inputs

    def require_memory(self, neurons: int, itemsize: int) -> None:  # noqa: B027
        """Raise `InputError` if the arrays of one training step do not fit into memory."""

    def __call__(self, net: "Network", inputs: Any = None) -> "Tensor":
        network.require_network(net)
        self.check(net)
        return self.value(net, self.draw(dtype=net.dtype) if inputs is None else self.check_inputs(net, inputs))


LOSSES: Registry[Loss] = Registry("loss", Loss)


def build_loss(config: Any, task: Task, allow: Allowed = None) -> Loss:
    """Build the loss of a run from its configuration, and give it the task of the run.

    Parameters
    ----------
    config : str, mapping, callable or Loss
        The name of a loss, a table with its name and fields, or a loss with the task of the run.
    task : Task
        The task of the run.
    allow : collection of str, optional
        The references ``module:name`` that may be imported; see `Registry.build`.
    """
    if isinstance(config, Loss):
        own = getattr(config, "task", task)
        if own != task:
            raise InputError("loss.task", own, f"the task of the run, {task}")
        return config
    if not isinstance(config, str | Mapping):
        return LOSSES.build(config)
    fields = {"name": config} if isinstance(config, str) else dict(config)
    found: Any = LOSSES.find(fields.pop("name", None), allow)
    try:
        if not isinstance(found, type):  # a function of the user
            return build_part(LOSSES.parts["custom"], {"function": found, **fields}, allow)
        known = field_names(found) if dataclasses.is_dataclass(found) else []
        own = [name for name in known if name != "task"]  # the task of a run is its table [task]
        for name, value in fields.items():
            if name not in own:
                raise InputError(name, value, ", ".join(own), problem="no such field", hint=nearest(name, own))
        made: Any = build_part(found, fields | ({"task": task} if "task" in known else {}), allow)
        return made
    except InputError as error:
        raise error.within("loss") from None


def loss_config(loss: Any) -> Any:
    """Return the configuration of a loss without its task, from which `build_loss` makes the same loss again."""
    if not isinstance(loss, Loss):
        return {"name": loss} if isinstance(loss, str) else loss
    try:
        config = LOSSES.config(loss)
    except InputError as error:
        raise error.within("training.loss") from None
    return {name: value for name, value in config.items() if name != "task" and value is not None}


def known_fields() -> list[str]:
    """Return the fields of all registered losses, each once, without the task."""
    return [
        name for name in dict.fromkeys(f for cls in LOSSES.parts.values() for f in field_names(cls)) if name != "task"
    ]


TaskField = TASKS.field


def function_field(field: str) -> tuple[BeforeValidator, PlainSerializer]:
    """Return the annotations of a field that holds a function, or its reference ``module:name`` in a configuration."""

    def load(function: Any, info: ValidationInfo) -> Any:
        if isinstance(function, str):
            return import_reference(function, field, (info.context or {}).get("allow"))
        if function is not None and not callable(function):
            raise InputError(field, function, "a function, or its reference module:name")
        return function

    def dump(function: Any) -> str | None:
        return None if function is None else reference(function, field)

    return BeforeValidator(load), PlainSerializer(dump)


def check_arguments(field: str, function: Callable[..., Any], *arguments: str) -> None:
    """Raise `InputError` if a function cannot be called with these arguments."""
    try:
        # the signature of a torch module is that of its method forward
        signature = inspect.signature(getattr(function, "forward", function))
    except (TypeError, ValueError):  # functions that are written in C may have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        allowed = f"a function of ({', '.join(arguments)})"
        raise InputError(field, function, allowed, problem=f"{name}{signature}") from None


def check_shape(net: "Network", inputs: Any, *axes: str) -> "Tensor":
    """Return inputs of the shape (\\*axes, channels) in the dtype of the network, or raise `InputError`."""
    inputs = net.cast("inputs", inputs)
    if inputs.ndim != len(axes) + 1 or inputs.shape[-1] != net.channels or not inputs.numel():
        allowed = f"({', '.join(axes)}, {net.channels}), with at least one {' and one '.join(axes)}"
        raise InputError("inputs", inputs, allowed, problem=f"shape {tuple(inputs.shape)}")
    return inputs


def largest_scale(task: Integration) -> float:
    """Return the largest scale. Learning rates are divided by its square, so that it is at least 0.001."""
    return max(*(abs(scale) for scale in task.scales), 1e-3)
