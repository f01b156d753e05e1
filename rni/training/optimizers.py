"""Gradient descent and Adam on factored gradients."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from rni.errors import InputError
from rni.losses import Gradient, Loss, Schedule
from rni.network import Network


@runtime_checkable
class Optimizer(Protocol):
    """One step on the trained parameters, at a given learning rate; its memory as named tensors.

    `defaults`: learning rate and schedule for a loss and a network of that leak, where they are left open.
    """

    def defaults(self, loss: Loss, leak: float) -> tuple[float, Schedule]: ...

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None: ...

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: dict[str, Tensor]) -> None: ...


class GradientDescent:
    r"""$W \leftarrow W - \eta\,\partial L/\partial W$, and the same for trained vectors.

    >>> descent = rni.training.GradientDescent()
    >>> rate, schedule = descent.defaults(rni.BatchLoss(rni.Integration(0.9), duration=3))
    >>> round(rate, 4), schedule
    (0.0741, 'warmup')
    """

    def defaults(self, loss: Loss, leak: float) -> tuple[float, Schedule]:
        """The outputs of one step have the leak as a factor, and their errors' curvature its square."""
        return loss.rate() / leak**2, loss.schedule

    @torch.no_grad()
    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        if len(gradient.left):
            net.recurrent.descend_(gradient.left, gradient.right, learning_rate)
        for _, parameter, slope in _beside_recurrent(net, gradient):
            parameter.sub_(slope, alpha=learning_rate)

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        del state


class Adam:
    """Adam (Kingma & Ba 2015), torch's own, with its default moments. Fills W's bulk: its steps are element-wise.

    Each parameter has moments of its own: one Adam may train several networks, or other parts of one. Its `state` is
    that of the parameters in the last step, and what is restored goes to those of the next one.

    >>> task = rni.Integration(0.9)
    >>> net = rni.Network(task, *rni.vectors.independent(40, 1), torch.zeros(40, 40))
    >>> losses = rni.train(net, rni.BatchLoss(task), optimizer=rni.training.Adam(), steps=200)
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(self):
        self._adam = torch.optim.Adam([nn.Parameter(torch.empty(0))], fused=True)  # torch refuses to have none
        self._last: dict[str, nn.Parameter] = {}
        self._restored: dict[str, Tensor] | None = None

    def defaults(self, loss: Loss, leak: float) -> tuple[float, Schedule]:
        return 5e-4, "constant"

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        trained = {name: (parameter, slope) for name, parameter, slope in _beside_recurrent(net, gradient)}
        if len(gradient.left):
            w = net.recurrent.matrix()
            if not isinstance(w, nn.Parameter):
                found = type(net.recurrent).__name__
                raise InputError(f"weights: {found}; allowed: Dense or Dale for training W with Adam")
            trained["recurrent"] = (w, gradient.recurrent())
        self._last = {name: parameter for name, (parameter, _) in trained.items()}
        self._take_restored()
        for parameter, slope in trained.values():
            # torch's fused step takes all memory for row-major
            parameter.data, parameter.grad = parameter.data.contiguous(), slope.contiguous()
        self._adam.param_groups[0] |= {"params": list(self._last.values()), "lr": learning_rate}
        self._adam.step()
        for parameter in self._last.values():
            parameter.grad = None
        if "recurrent" in trained:
            net.recurrent.project_()

    def state(self) -> dict[str, Tensor]:
        if self._restored is not None:
            return self._restored
        slots = {name: self._adam.state[parameter] for name, parameter in self._last.items()}
        return {f"{name}.{key}": tensor for name, entry in slots.items() for key, tensor in entry.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._restored = dict(state)

    def _take_restored(self) -> None:
        if self._restored is None:
            return
        for name, parameter in self._last.items():
            own = {key.rpartition(".")[2]: v for key, v in self._restored.items() if key.rpartition(".")[0] == name}
            self._adam.state[parameter] = own
        self._restored = None


OPTIMIZERS: dict[str, type[GradientDescent] | type[Adam]] = {"sgd": GradientDescent, "adam": Adam}


def make(optimizer: Optimizer | str | None) -> Optimizer:
    """The optimizer itself, or one by its name; gradient descent by default."""
    if optimizer is None:
        return GradientDescent()
    if isinstance(optimizer, str) and optimizer in OPTIMIZERS:
        return OPTIMIZERS[optimizer]()
    if isinstance(optimizer, str | type) or not isinstance(optimizer, Optimizer):
        named = ", ".join(map(repr, OPTIMIZERS))
        raise InputError(f"optimizer: {optimizer!r}; allowed: {named}, or an optimizer of rni.training")
    return optimizer


def _beside_recurrent(net: Network, gradient: Gradient) -> Iterator[tuple[str, nn.Parameter, Tensor]]:
    """Name, parameter and slope of whatever is trained beside W."""
    for name, parameter in (("decoders", net.decoders), ("encoders", net.encoders)):
        slope = getattr(gradient, name)
        if slope is not None:
            yield name, parameter, slope
    for name, slope in gradient.activation.items():
        yield f"activation.{name}", net.f.get_parameter(name), slope
