"""The network of the lowest loss, for trainings that do not end at it: a constant rate on noisy gradients."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from rni.networks.network import Network

Keep = Literal["best"]
LOWER = 0.75  # of the loss of the last copy; the authors' program has the same


def kept_step(losses: Sequence[float]) -> int:
    """The step before which the network was what a training that keeps the best ends with; the number of steps if that
    is the last one.

    >>> rni.training.kept_step([1.0, 0.3, 0.25, 0.4]), rni.training.kept_step([1.0, 0.3, 0.25])
    (1, 3)
    """
    step, lowest = len(losses), math.inf
    for k, loss in enumerate(losses):
        if loss < LOWER * lowest:
            step, lowest = k, loss
    return step if losses and losses[-1] >= lowest else len(losses)


class Best:
    r"""A copy of the network, made anew where $L < \frac34 L_{copy}$: few copies, whatever the number of steps."""

    def __init__(self):
        self.loss = math.inf
        self._network: dict[str, Tensor] = {}

    def see(self, loss: float, net: Network) -> None:
        """A loss, and the network that has it."""
        if loss < LOWER * self.loss:
            self.loss, self._network = loss, {name: value.clone() for name, value in net.state_dict().items()}

    def put_back(self, net: Network, last: float) -> None:
        """Let the network be the copy again, unless its `last` loss, before its last step, was lower."""
        if last >= self.loss:
            net.load_state_dict(self._network)

    def state(self) -> dict[str, Tensor]:
        return {"loss": torch.tensor(self.loss, dtype=torch.float64)} | self._network

    def restore(self, state: dict[str, Tensor]) -> None:
        self._network = dict(state)
        self.loss = float(self._network.pop("loss"))
