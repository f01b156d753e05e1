"""Gradient descent and Adam on factored gradients."""

from typing import Protocol

import torch
from torch import Tensor

from rni.errors import InputError
from rni.losses import Gradient
from rni.network import Network


class Optimizer(Protocol):
    """One step on the trained parameters, at a given learning rate; its memory as named tensors."""

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None: ...

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: dict[str, Tensor]) -> None: ...


class GradientDescent:
    r"""$W \leftarrow W - \eta\,\partial L/\partial W$, and the same for trained vectors."""

    @torch.no_grad()
    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        net.recurrent.descend_(gradient.left, gradient.right, learning_rate)
        if gradient.decoders is not None:
            net.decoders.sub_(gradient.decoders, alpha=learning_rate)
        if gradient.encoders is not None:
            net.encoders.sub_(gradient.encoders, alpha=learning_rate)

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        del state


class Adam:
    """Adam (Kingma & Ba 2015), torch's own, with its default moments. Fills W's bulk: its steps are element-wise."""

    def __init__(self):
        self._adam: torch.optim.Adam | None = None
        self._memory: dict[str, Tensor] = {}

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        w = net.recurrent.matrix()
        if not (w.is_leaf and w.requires_grad):
            raise InputError(f"weights: {type(net.recurrent).__name__}; allowed: Dense or Dale for training with Adam")
        trained = [w]
        w.grad = torch.mm(gradient.left.T, gradient.right, out=w.grad)
        for vectors, slope in ((net.decoders, gradient.decoders), (net.encoders, gradient.encoders)):
            if slope is not None:
                vectors.grad = slope
                trained.append(vectors)
        if self._adam is None:
            self._adam = torch.optim.Adam(trained, fused=True)
            for k, parameter in enumerate(trained):
                slots = {key.split(".")[1]: v for key, v in self._memory.items() if key.startswith(f"{k}.")}
                if slots:
                    self._adam.state[parameter] = slots
        self._adam.param_groups[0]["lr"] = learning_rate
        self._adam.step()
        net.recurrent.project_()

    def state(self) -> dict[str, Tensor]:
        if self._adam is None:
            return self._memory
        slots = self._adam.state_dict()["state"]
        return {f"{k}.{name}": tensor for k, entry in slots.items() for name, tensor in entry.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._adam, self._memory = None, dict(state)


OPTIMIZERS: dict[str, type[GradientDescent] | type[Adam]] = {"sgd": GradientDescent, "adam": Adam}
