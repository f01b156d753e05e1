"""Dale's law (section 5): each neuron either excites or inhibits."""

from collections.abc import Mapping
from typing import Self

import torch
from torch import Generator, Tensor

from rni.core.errors import InputError
from rni.weights.base import Weights
from rni.weights.dense import Dense


class Dale(Dense):
    """A full matrix W in which each neuron either excites or inhibits all others.

    Column j of W has the sign of neuron j, which is +1 or -1 in `signs`, (neurons,).

    >>> w = rni.weights.Dale(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), signs=torch.tensor([1.0, -1.0]))
    >>> w.matrix().tolist()  # the first neuron excites, the second inhibits
    [[1.0, 0.0], [0.0, -1.0]]
    """

    closed_form = True
    names = frozenset({"recurrent", "signs"})
    signs: Tensor

    def __init__(self, value: Tensor, signs: Tensor):
        super().__init__(value)
        allowed = f"a tensor ({self.neurons},), each +1 or -1"
        if not isinstance(signs, Tensor):
            raise InputError("signs", signs, allowed)
        if signs.shape != (self.neurons,) or not bool((signs.abs() == 1).all()):
            raise InputError("signs", signs, allowed, problem=f"shape {tuple(signs.shape)}")
        self.register_buffer("signs", signs.to(value.dtype))
        self.project_()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        dale = cls(tensors["recurrent"], tensors["signs"])
        if not torch.equal(dale.matrix(), tensors["recurrent"]):
            allowed = "columns with the signs in `signs`"
            raise InputError("recurrent", tensors["recurrent"], allowed, problem="against Dale's law")
        return dale

    def tensors(self) -> dict[str, Tensor]:
        return {**super().tensors(), "signs": self.signs}

    def masked(self, kept: Tensor) -> Weights:
        return Dale(self.value * kept * kept[:, None], self.signs)

    embed = Weights.embed  # a mixture of neurons has no sign

    @torch.no_grad()
    def project_(self) -> None:
        """Set all weights with the wrong sign to 0, as the paper does after each step."""
        limits = self.signs * float("inf")
        self.value.clamp_(limits.clamp(max=0), limits.clamp(min=0))


def dale_signs(neurons: int, inhibitory: float, generator: Generator | None = None) -> Tensor:
    """Draw the signs of neurons, (neurons,). A fraction `inhibitory` of them is -1, and the others are +1.

    >>> rni.weights.dale_signs(1000, inhibitory=0.25).sum().item()
    500.0
    """
    if not 0 <= inhibitory <= 1:
        raise InputError("inhibitory", inhibitory, "a fraction from 0 to 1")
    signs = torch.ones(neurons, dtype=torch.float64)
    signs[torch.randperm(neurons, generator=generator)[: round(inhibitory * neurons)]] = -1
    return signs
