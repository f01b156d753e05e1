"""All n x n weights, free."""

from collections.abc import Callable, Mapping
from math import isqrt
from typing import Self

import torch
from torch import Generator, Tensor, nn

from rni.core import memory
from rni.core.errors import InputError, require_whole
from rni.core.matmul import add_product_, product
from rni.core.rng import require_generator
from rni.weights.base import WEIGHTS, Weights, WeightsPart, check_dtype


class Dense(Weights):
    """All n x n weights, free.

    >>> w = rni.weights.Dense(torch.eye(3))
    >>> w.neurons, w.pull_back(torch.ones(1, 3)).tolist()
    (3, [[1.0, 1.0, 1.0]])
    """

    closed_form = True
    names = frozenset({"recurrent"})

    def __init__(self, value: Tensor):
        super().__init__()
        check_dtype("recurrent", value)
        if value.ndim != 2 or value.shape[0] != value.shape[1] or not len(value):
            raise InputError(f"recurrent: shape {tuple(value.shape)}; allowed: (neurons, neurons)")
        # row by row in memory, however it came: optimisers read it with gradients of that order
        self.value = nn.Parameter(value.detach().clone(memory_format=torch.contiguous_format))
        self.neurons = len(value)

    def forward(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        return product(states.contiguous(), self.value.T, out=out)  # rows: a few columns take times as long

    def pull_back(self, errors: Tensor, onto: Tensor | None = None) -> Tensor:
        return product(errors, self.value) if onto is None else add_product_(onto, errors, self.value)

    def matrix(self) -> Tensor:
        return self.value

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        return cls(tensors["recurrent"])

    def tensors(self) -> dict[str, Tensor]:
        return {"recurrent": self.value}

    def masked(self, kept: Tensor) -> "Weights":
        return Dense(self.value * kept * kept[:, None])

    def lifted(self, basis: Tensor) -> Weights:
        return Dense(basis @ self.value @ basis.T)

    @torch.no_grad()
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        add_product_(self.value, left.T, right, -learning_rate)
        self.project_()


class FullPart(WeightsPart):
    """Weights that are held as a full matrix."""

    def require_memory(self, neurons: int, radius: float, size: int) -> None:
        """W is drawn in float64 and then copied to its precision; its eigenvalues need two copies more."""
        each = 24 if radius else 8 + size
        what = f"network.neurons: {neurons}, with {self.name} weights"
        memory.require(each * neurons**2, what, lambda free: f'up to {isqrt(int(free / each))}, or weights = "lowrank"')


@WEIGHTS.add("dense")
class DensePart(FullPart):
    makes = Dense

    def build(
        self, neurons: int, radius: float, dtype: torch.dtype, stream: Callable[[str], Generator], noisy: bool
    ) -> Weights:
        return Dense(random_matrix(neurons, radius, stream("weights")).to(dtype))


def random_matrix(
    neurons: int, radius: float, generator: Generator | None = None, signs: Tensor | None = None
) -> Tensor:
    """A Gaussian matrix rescaled to the given spectral radius, float64; 0 for radius 0; with Dale's signs if given.

    >>> w = rni.weights.random_matrix(50, radius=0.9, generator=torch.Generator().manual_seed(0))
    >>> round(torch.linalg.eigvals(w).abs().max().item(), 6)
    0.9
    """
    require_whole("neurons", neurons, 1)
    require_generator(generator)
    if not isinstance(radius, int | float) or not 0 <= radius < torch.inf:
        raise InputError(f"radius: {radius!r}; allowed: 0 or more")
    if radius == 0:
        return torch.zeros(neurons, neurons, dtype=torch.float64)
    value = torch.randn(neurons, neurons, generator=generator, dtype=torch.float64)
    if signs is not None:
        value = value.abs() * signs
    return value * (radius / torch.linalg.eigvals(value).abs().max())
