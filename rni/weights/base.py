r"""The recurrent matrix W. W[i, j] is the weight from neuron j to neuron i.

States are rows here, (batch, neurons): `forward` gives $W h$ for each of them, `pull_back` gives $W^\dagger\delta$.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Self

import torch
from torch import Generator, Tensor, nn

from rni.core.errors import InputError, found
from rni.core.parts import Choice, Family


class Weights(nn.Module, ABC):
    """A recurrent matrix of any form.

    >>> w = rni.weights.Dense(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> isinstance(w, rni.weights.Weights), w(torch.tensor([[1.0, 0.0]])).tolist()
    (True, [[0.0, 2.0]])
    """

    neurons: int
    names: ClassVar[frozenset[str]]  # of the tensors that it is made of, in files
    optional: ClassVar[frozenset[str]] = frozenset()  # of those that some files do not have

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """The form that gave these by `tensors`."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that the form is made of, by name."""

    @abstractmethod
    def masked(self, kept: Tensor) -> "Weights":
        """A copy without the rows and columns of neurons for which `kept` (neurons,) is 0."""

    @abstractmethod
    def forward(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        r"""$W h$ for each row h of (rows, neurons), into `out` if given."""

    @abstractmethod
    def pull_back(self, errors: Tensor, onto: Tensor | None = None) -> Tensor:
        r"""$W^\dagger \delta$ for each row $\delta$ of (rows, neurons), added to `onto` if given."""

    @abstractmethod
    def matrix(self) -> Tensor:
        """W itself, (neurons, neurons)."""

    def lifted(self, basis: Tensor) -> "Weights":
        r"""$Q\,W\,Q^\dagger$ of n neurons for orthonormal columns Q (n, neurons): it reads and drives their span."""
        raise InputError(f"weights: {type(self).__name__}; allowed: a form whose neurons may be mixed")

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """(left, right) with W = left @ right.T where the form is factored, else None."""
        return None

    @abstractmethod
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        r"""$W \leftarrow W - \eta\, l^\dagger r$ for a gradient left.T @ right, and back to the form's constraint."""

    def project_(self) -> None:
        """Restore the constraint that the form stands for; none by default."""


class WeightsPart(Choice):
    """Weights as a part of a specification: their form, and how they are before training.

    >>> part = rni.weights.WEIGHTS.choose({"name": "dale", "inhibitory": 0.25})
    >>> part.makes is rni.weights.Dale, part.numbers(neurons=100)
    (True, 10000)
    """

    makes: ClassVar[type[Weights]]

    @abstractmethod
    def build(
        self, neurons: int, radius: float, dtype: torch.dtype, stream: Callable[[str], Generator], noisy: bool
    ) -> Weights:
        """W before training, of the given spectral radius; `noisy`: whether gradients will be those of samples."""

    def check(self, radius: float, element_wise: bool) -> None:
        """Refuse a start, or element-wise steps, that the form can't have."""

    def numbers(self, neurons: int) -> int:
        """How many W has, roughly, which says how long a product takes."""
        return neurons**2

    def require_memory(self, neurons: int, radius: float, size: int) -> None:
        """Refuse, before it is built, what does not fit; `size` is the number of bytes of a weight."""


WEIGHTS: Family[WeightsPart] = Family()


def names() -> list[str]:
    """Of all tensors that weights may be made of.

    >>> rni.weights.names()
    ['recurrent', 'recurrent_left', 'recurrent_right', 'room', 'signs', 'tolerance']
    """
    known = frozenset().union(*(part.makes.names | part.makes.optional for part in WEIGHTS.parts.values()))
    return sorted(known)


def from_tensors(tensors: Mapping[str, Tensor]) -> Weights:
    """The form that gave these tensors by `Weights.tensors`; those of other names are left alone.

    >>> w = rni.weights.LowRank(torch.ones(5, 1), torch.ones(5, 1))
    >>> type(rni.weights.from_tensors(w.tensors())).__name__
    'LowRank'
    """
    forms = [part.makes for part in WEIGHTS.parts.values()]
    given = {name: tensors[name] for name in names() if name in tensors}
    for form in forms:
        if form.names <= given.keys() <= form.names | form.optional:
            return form.from_tensors(given)
    sets = "; or ".join(" and ".join(sorted(form.names)) for form in forms)
    found = "do not make up a matrix" if given else "missing"
    raise InputError(f"{', '.join(given) or 'recurrent'}: {found}; allowed: {sets}")


def check_dtype(name: str, values: Tensor) -> None:
    """Refuse whole numbers and the like, which nothing can be trained in."""
    if not isinstance(values, Tensor) or not values.is_floating_point():
        given = str(values.dtype) if isinstance(values, Tensor) else found(values)
        raise InputError(f"{name}: {given}; allowed: a tensor of floating-point numbers, float32 or float64")
