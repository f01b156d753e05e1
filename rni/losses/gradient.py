"""The gradient of a loss, whose part for W is kept as an outer product: cheap to store, to apply and to append."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

from rni.core.errors import require_one_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from rni.core import matmul
    from rni.networks.network import Network
else:
    from rni.core.lazy import LazyModule, torch

    matmul = LazyModule("rni.core.matmul")

P = ParamSpec("P")
T = TypeVar("T")

Trained = Literal["recurrent", "recurrent+decoders", "decoders", "all"]
PARAMETERS: dict[Trained, frozenset[str]] = {
    "recurrent": frozenset({"recurrent"}),
    "recurrent+decoders": frozenset({"recurrent", "decoders"}),
    "decoders": frozenset({"decoders"}),
    "all": frozenset({"recurrent", "decoders", "encoders"}),
}
RECURRENT = PARAMETERS["recurrent"]


@dataclass(frozen=True)
class Gradient:
    r"""The gradient of a loss with respect to the trained parameters of a network.

    .. math:: \partial L/\partial W = l^\dagger r

    Attributes
    ----------
    left, right : Tensor, shape (terms, neurons)
        The factors l and r. They have no rows if W is not trained.
    decoders, encoders : Tensor, shape (neurons, channels), or None
        The gradients with respect to the vectors. They are None if the vectors are not trained.
    activation : mapping of str to Tensor
        The gradients with respect to the activation's own parameters, by name.

    Examples
    --------
    >>> task = rni.Integration(0.9)
    >>> net = rni.Network(task, *rni.vectors.independent(40, 1), torch.zeros(40, 40))
    >>> loss = rni.BatchLoss(task, duration=3, batch=8)
    >>> value, gradient = loss.gradient(net, loss.draw())
    >>> gradient.left.shape, gradient.recurrent().shape  # rank 17: 2 x 8 + 1
    (torch.Size([17, 40]), torch.Size([40, 40]))
    """

    left: "Tensor"
    right: "Tensor"
    decoders: "Tensor | None" = None
    encoders: "Tensor | None" = None
    activation: "Mapping[str, Tensor]" = field(default_factory=dict)

    def recurrent(self) -> "Tensor":
        r"""Return $\partial L/\partial W$, of shape (neurons, neurons)."""
        with torch.no_grad():
            return matmul.product(self.left.T, self.right)


def trained_parameters(net: "Network", train: Trained) -> frozenset[str]:
    """Return which of "recurrent", "decoders" and "encoders" are trained.

    A parameter is trained if `train` names it and if all of its tensors require a gradient.
    """
    require_one_of("train", train, PARAMETERS)
    tensors = {"recurrent": list(net.recurrent.parameters()), "decoders": [net.decoders], "encoders": [net.encoders]}
    return frozenset(name for name in PARAMETERS[train] if all(tensor.requires_grad for tensor in tensors[name]))


def without_autograd(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function under `torch.no_grad`. Unlike the decorator of torch, this one does not import torch."""

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> T:
        with torch.no_grad():
            return function(*args, **options)

    return run
