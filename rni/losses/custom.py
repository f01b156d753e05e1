"""A loss that is any differentiable function of the network."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from rni.core.errors import InputError
from rni.core.registry import part
from rni.losses.base import LOSSES, Loss, check_arguments, function_field

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor

    from rni.networks.network import Network
else:
    from rni.core.lazy import torch


@LOSSES.register("custom")
@part
class CustomLoss(Loss):
    """A function of the network, which returns a scalar tensor that torch can differentiate.

    `rni.train` makes such a loss of a plain function. It has no default learning rate.

    Parameters
    ----------
    function : callable
        A function of the network, or of the network and the inputs if there are any. In a configuration it is a
        reference ``module:function``, so that lambdas and local functions can be trained on, but not saved.
    inputs : callable, optional
        A function of a generator that draws the inputs of one training step.

    Examples
    --------
    >>> net = rni.Network(rni.Integration(0.9), *rni.vectors.independent(20, 1), torch.zeros(20, 20))
    >>> loss = rni.CustomLoss(lambda net: (net.recurrent.matrix() - torch.eye(20)).square().sum())
    >>> losses = rni.train(net, loss, learning_rate=0.1, steps=50)
    >>> losses[0], losses[-1] < 1e-3
    (20.0, True)
    """

    function: Annotated[Callable[..., Any], *function_field("function")]
    inputs: Annotated[Callable[..., Any] | None, *function_field("inputs")] = None

    accepts_leak = True

    def __post_init__(self):
        check_arguments("loss", self.function, "network", *(["inputs"] if self.inputs else []))
        if self.inputs:
            check_arguments("inputs", self.inputs, "generator")

    def draw(self, generator: "Generator | None" = None, dtype: "torch.dtype | None" = None) -> Any:
        """Draw what the function receives beside the network, or None if it receives nothing."""
        return None if self.inputs is None else self.inputs(generator)

    def value(self, net: "Network", inputs: Any) -> "Tensor":
        value: Any = self.function(net) if self.inputs is None else self.function(net, inputs)
        if not isinstance(value, torch.Tensor) or value.ndim or not value.is_floating_point():
            problem = f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            raise InputError("loss", value, "a function that returns a tensor with one real number", problem=problem)
        return value


LOSSES.from_function = CustomLoss
