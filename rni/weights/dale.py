"""Dale's law (section 5): each neuron either excites or inhibits."""

from collections.abc import Callable, Mapping
from typing import Annotated, Self

import torch
from pydantic import Field
from torch import Generator, Tensor

from rni.core.errors import InputError, require_is
from rni.weights.base import WEIGHTS, Weights
from rni.weights.dense import Dense, FullPart, random_matrix


class Dale(Dense):
    """Each neuron excites or inhibits: column j of W has the sign of neuron j, +1 or -1 in `signs` (neurons,).

    >>> w = rni.weights.Dale(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), signs=torch.tensor([1.0, -1.0]))
    >>> w.matrix().tolist()  # the first neuron excites, the second inhibits
    [[1.0, 0.0], [0.0, -1.0]]
    """

    closed_form = True
    names = frozenset({"recurrent", "signs"})
    signs: Tensor

    def __init__(self, value: Tensor, signs: Tensor):
        super().__init__(value)
        require_is("signs", signs, Tensor, f"a tensor ({self.neurons},), each +1 or -1")
        if signs.shape != (self.neurons,) or not bool((signs.abs() == 1).all()):
            raise InputError(f"signs: shape {tuple(signs.shape)}; allowed: ({self.neurons},), each +1 or -1")
        self.register_buffer("signs", signs.to(value.dtype))
        self.project_()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        dale = cls(tensors["recurrent"], tensors["signs"])
        if not torch.equal(dale.matrix(), tensors["recurrent"]):
            raise InputError("recurrent: against Dale's law; allowed: each column of its sign in `signs`")
        return dale

    def tensors(self) -> dict[str, Tensor]:
        return {**super().tensors(), "signs": self.signs}

    def masked(self, kept: Tensor) -> Weights:
        return Dale(self.value * kept * kept[:, None], self.signs)

    lifted = Weights.lifted  # signs are those of neurons

    @torch.no_grad()
    def project_(self) -> None:
        """Set to 0 every weight whose sign is not its column's: the paper's projection after each step."""
        reach = self.signs * float("inf")
        self.value.clamp_(reach.clamp(max=0), reach.clamp(min=0))  # in place: less than the step itself costs


@WEIGHTS.add("dale")
class DalePart(FullPart):
    inhibitory: Annotated[float, Field(ge=0, le=1)] = 0.25
    makes = Dale

    def build(
        self, neurons: int, radius: float, dtype: torch.dtype, stream: Callable[[str], Generator], noisy: bool
    ) -> Weights:
        signs = dale_signs(neurons, self.inhibitory, stream("signs"))
        return Dale(random_matrix(neurons, radius, stream("weights"), signs).to(dtype), signs)


def dale_signs(neurons: int, inhibitory: float, generator: Generator | None = None) -> Tensor:
    """(neurons,) of +1 and -1, the given fraction of them -1, drawn without order.

    >>> rni.weights.dale_signs(1000, inhibitory=0.25).sum().item()
    500.0
    """
    if not 0 <= inhibitory <= 1:
        raise InputError(f"inhibitory: {inhibitory}; allowed: a fraction from 0 to 1")
    signs = torch.ones(neurons, dtype=torch.float64)
    signs[torch.randperm(neurons, generator=generator)[: round(inhibitory * neurons)]] = -1
    return signs
