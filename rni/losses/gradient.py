"""A gradient as the outer product that it is: cheap to keep, to apply and to append; and what a loss asks of a net."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from rni.core.errors import InputError, found, require_one_of
from rni.core.matmul import product
from rni.networks.network import Network
from rni.tasks.integration import Integration

Trained = Literal["recurrent", "recurrent+decoders", "decoders", "all"]
PARTS: dict[Trained, tuple[str, ...]] = {
    "recurrent": ("recurrent",),
    "recurrent+decoders": ("recurrent", "decoders"),
    "decoders": ("decoders",),
    "all": ("recurrent", "decoders", "encoders"),
}


@dataclass(frozen=True)
class Gradient:
    r"""$\partial L/\partial W$ = left.T @ right, both (terms, neurons), without terms where W is not trained.

    (neurons, channels) for the vectors, None where they are not trained; `activation` by name for its own parameters.

    >>> task = rni.Integration(0.9)
    >>> net = rni.Network(task, *rni.vectors.independent(40, 1), torch.zeros(40, 40))
    >>> loss = rni.BatchLoss(task, duration=3, batch=8)
    >>> value, gradient = loss.gradient(net, loss.draw())
    >>> gradient.left.shape, gradient.recurrent().shape  # rank 17: 2 x 8 + 1
    (torch.Size([17, 40]), torch.Size([40, 40]))
    """

    left: Tensor
    right: Tensor
    decoders: Tensor | None = None
    encoders: Tensor | None = None
    activation: Mapping[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def recurrent(self) -> Tensor:
        r"""$\partial L/\partial W$, (neurons, neurons)."""
        return product(self.left.T, self.right)


def trained_parts(net: Network, train: Trained) -> set[str]:
    """What of "recurrent", "decoders" and "encoders" is trained: all of it must require a gradient, as torch says."""
    require_one_of("train", train, PARTS)
    return {part for part in PARTS[train] if all(p.requires_grad for p in _parameters(getattr(net, part)))}


def _parameters(part: nn.Module | nn.Parameter) -> list[nn.Parameter]:
    return list(part.parameters()) if isinstance(part, nn.Module) else [part]


def require_task(net: Network, task: Integration, leaky: bool = False) -> None:
    """Refuse a loss of one task for a network of another, or of h = f(nu) for a leaky one: it would learn otherwise."""
    if net.task != task:
        raise InputError(f"task: {task} of the loss, {net.task} of the network; allowed: the same")
    if net.leak != 1 and not leaky:
        raise InputError(f"leak: {net.leak:g}; allowed: 1, or the batch loss, or `net.without_leak()` and its task")


def require_takes(name: str, function: Any, *arguments: str) -> None:
    """Refuse what is no function of these arguments, before it is called with them."""
    allowed = f"a function of ({', '.join(arguments)})"
    if not callable(function):
        raise InputError(f"{name}: {found(function)}; allowed: {allowed}")
    try:
        signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
    except (TypeError, ValueError):  # of another language
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InputError(f"{name}: {_called(function)}{signature}; allowed: {allowed}") from None


def _called(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def own_inputs(inputs: Tensor | np.ndarray, net: Network, *names: str) -> Tensor:
    """As the network's numbers; refuses what is not (*names, channels), or has none."""
    inputs = net.cast("inputs", inputs)
    if inputs.ndim != len(names) + 1 or inputs.shape[-1] != net.channels or not inputs.numel():
        allowed = f"({', '.join(names)}, {net.channels}), with at least one {' and one '.join(names)}"
        raise InputError(f"inputs: shape {tuple(inputs.shape)}; allowed: {allowed}")
    return inputs
