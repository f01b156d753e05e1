"""A loss of one's own: any differentiable function of the network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from rni.core.errors import InputError
from rni.losses.base import Loss
from rni.losses.gradient import require_takes
from rni.networks.network import Network


@dataclass(frozen=True)
class OwnLoss(Loss):
    """function(network), or function(network, inputs) with the inputs of draw(generator): a scalar with a gradient.

    `rni.train` makes one of a plain function. It has no learning rate of its own.

    >>> net = rni.Network(rni.Integration(0.9), *rni.vectors.independent(20, 1), torch.zeros(20, 20))
    >>> loss = rni.OwnLoss(lambda net: (net.recurrent.matrix() - torch.eye(20)).square().sum())
    >>> losses = rni.train(net, loss, learning_rate=0.1, steps=50)
    >>> losses[0], losses[-1] < 1e-3
    (20.0, True)
    """

    function: Callable[..., Tensor]
    inputs: Callable[[Generator | None], Any] | None = None

    def __post_init__(self):
        if self.inputs is None:
            require_takes("loss", self.function, "network")
        else:
            require_takes("loss", self.function, "network", "inputs")
            require_takes("inputs", self.inputs, "generator")

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Any:
        """What the function gets beside the network, None where that is nothing."""
        return None if self.inputs is None else self.inputs(generator)

    def silent(self) -> float:
        """Not known, so that training goes on while the loss is finite."""
        return torch.inf

    def value(self, net: Network, inputs: Any) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        value: Any = self.function(net) if self.inputs is None else self.function(net, inputs)
        if not isinstance(value, Tensor) or value.ndim or not value.is_floating_point():
            found = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise InputError(f"loss: {found}; allowed: a function whose value is a tensor with one real number")
        return value
