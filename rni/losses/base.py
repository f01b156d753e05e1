"""What a loss is, for training and for automatic differentiation; and as a part of a specification."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import torch
from torch import Generator, Tensor, nn

from rni.core.errors import InputError
from rni.core.parts import Choice, Family
from rni.losses.gradient import Gradient, Trained, trained_parts
from rni.networks.network import Network, require_network
from rni.tasks.integration import Integration

Schedule = Literal["constant", "warmup", "cosine"]
Sampling = Literal["even", "independent"]  # quasi-random, which has less noise, or each sample for itself


class Loss(ABC):
    """A loss draws its inputs and gives its value to automatic differentiation; and its gradient, by a faster path.

    Called as `loss(net, inputs)`, or `loss(net)` on inputs of its own, it is differentiable.

    >>> loss = rni.BatchLoss(rni.Integration(0.9))
    >>> isinstance(loss, rni.losses.Loss), loss.noisy, loss.schedule, round(loss.rate(), 4)
    (True, True, 'warmup', 0.0741)
    """

    schedule: ClassVar[Schedule] = "constant"  # of the learning rate, where that is left open
    noisy: ClassVar[bool] = True  # whether gradients are those of samples

    @abstractmethod
    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Any:
        """Fresh inputs."""

    @abstractmethod
    def silent(self) -> float:
        """The loss of a network without output: what any training starts from, and must not grow far beyond."""

    @abstractmethod
    def value(self, net: Network, inputs: Any) -> Tensor:
        """The loss, a scalar for automatic differentiation."""

    def gradient(self, net: Network, inputs: Any, train: Trained = "recurrent") -> tuple[float, Gradient]:
        """The loss and its gradient: by automatic differentiation, unless the loss knows a faster way."""
        found = {part: getattr(net, part) for part in trained_parts(net, train)}
        if "recurrent" in found:
            found["recurrent"] = w = net.recurrent.matrix()
            if not isinstance(w, nn.Parameter):
                kind = type(net.recurrent).__name__
                raise InputError(f"weights: {kind}; allowed: Dense or Dale where the gradient is automatic")
        with torch.enable_grad():
            value = self.value(net, inputs)
            if not value.requires_grad:
                raise InputError("loss: does not depend on what is trained; allowed: a differentiable function of it")
            slopes = torch.autograd.grad(value, list(found.values()), materialize_grads=True)
        slope = dict(zip(found, slopes, strict=True))
        right = slope.get("recurrent", net.encoders.new_empty(0, net.neurons))
        left = torch.eye(len(right), net.neurons, dtype=net.dtype, device=right.device)  # W's gradient is 1' times it
        return value.item(), Gradient(left, right, slope.get("decoders"), slope.get("encoders"))

    def rate(self) -> float:
        """A learning rate for plain descent from W = 0, where none is given."""
        raise InputError(f"learning_rate: left open, and {type(self).__name__} has none of its own; allowed: a number")

    def __call__(self, net: Network, inputs: Any = None) -> Tensor:
        require_network(net)
        return self.value(net, self.draw(dtype=net.dtype) if inputs is None else inputs)


class LossPart(Choice):
    """A loss as a part of a specification.

    >>> part = rni.losses.LOSSES.choose({"name": "proxy", "points": 16})
    >>> isinstance(part, rni.losses.LossPart), part.build(rni.Integration([0.9, 0.8]), "relu").points
    (True, 16)
    """

    leaky: ClassVar[bool] = False  # whether it is one of leaky networks too

    @abstractmethod
    def build(self, task: Integration, activation: str) -> Loss:
        """The loss of networks with that activation."""

    def check(self, task: Integration, activation: str) -> None:
        """Refuse what it can't be a loss of."""

    @abstractmethod
    def rows(self, task: Integration, activation: str) -> int:
        """How many states a step multiplies by W, roughly, which says how long it takes."""

    def require_memory(self, task: Integration, neurons: int, size: int) -> None:
        """Refuse, before it begins, a training whose arrays don't fit; `size` is the number of bytes of a number."""


LOSSES: Family[LossPart] = Family()


def largest_scale(task: Integration) -> float:
    """By which learning rates are divided, squared; not 0."""
    return max(*(abs(scale) for scale in task.scales), 1e-3)
