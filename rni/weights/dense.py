"""A full recurrent matrix without constraints."""

from collections.abc import Mapping
from typing import Self

import torch
from torch import Generator, Tensor, nn

from rni.core.errors import InputError, require_whole
from rni.core.matmul import add_product_, product
from rni.core.rng import require_generator
from rni.weights.base import Weights, check_dtype


class Dense(Weights):
    """A full matrix W, (neurons, neurons), without constraints.

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
            raise InputError("recurrent", value, "(neurons, neurons)", problem=f"shape {tuple(value.shape)}")
        # optimizers read the rows one after the other, together with gradients that are stored by rows
        self.value = nn.Parameter(value.detach().clone(memory_format=torch.contiguous_format))
        self.neurons = len(value)

    def forward(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        return product(
            states.contiguous(), self.value.T, out=out
        )  # a product with few columns takes several times as long

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

    def embed(self, basis: Tensor) -> Weights:
        return Dense(basis @ self.value @ basis.T)

    @torch.no_grad()
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        add_product_(self.value, left.T, right, -learning_rate)
        self.project_()


def random_matrix(
    neurons: int, radius: float, generator: Generator | None = None, signs: Tensor | None = None
) -> Tensor:
    """Draw a Gaussian matrix, (neurons, neurons) in float64, and scale it to a spectral radius.

    The matrix is 0 for radius 0. Column j has the sign `signs[j]` if `signs`, (neurons,), are given.

    >>> w = rni.weights.random_matrix(50, radius=0.9, generator=torch.Generator().manual_seed(0))
    >>> round(torch.linalg.eigvals(w).abs().max().item(), 6)
    0.9
    """
    require_whole("neurons", neurons, 1)
    require_generator(generator)
    if not isinstance(radius, int | float) or not 0 <= radius < torch.inf:
        raise InputError("radius", radius, "a finite number, 0 or more")
    if radius == 0:
        return torch.zeros(neurons, neurons, dtype=torch.float64)
    value = torch.randn(neurons, neurons, generator=generator, dtype=torch.float64)
    if signs is not None:
        value = value.abs() * signs
    return value * (radius / torch.linalg.eigvals(value).abs().max())
