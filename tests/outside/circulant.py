"""A form of recurrent weights outside of the package, with its configuration in the same file."""

import torch

from rni.core.registry import part
from rni.weights import Dense, WeightsConfiguration


class Circulant(Dense):
    """Each row of W is the row above it, shifted by one neuron."""

    names = frozenset({"first_row"})

    def __init__(self, row: torch.Tensor):
        super().__init__(torch.stack([row.roll(k) for k in range(len(row))]))

    @classmethod
    def from_tensors(cls, tensors):
        return cls(tensors["first_row"])

    def tensors(self):
        return {"first_row": self.value[0]}

    @torch.no_grad()
    def project_(self):
        rows = torch.stack([row.roll(-k) for k, row in enumerate(self.value)])
        self.value.copy_(torch.stack([rows.mean(0).roll(k) for k in range(self.neurons)]))


@part
class CirculantWeights(WeightsConfiguration):
    @classmethod
    def form(cls):
        return Circulant

    def build(self, neurons, radius, dtype, stream, noisy):
        return Circulant(torch.zeros(neurons, dtype=dtype))
