"""The interface of the recurrent matrix W. W[i, j] is the weight from neuron j to neuron i.

States are rows, (batch, neurons).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from torch import Tensor, nn

from rni.core.errors import InputError


class Weights(nn.Module, ABC):
    """A recurrent matrix of any form.

    >>> w = rni.weights.Dense(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> isinstance(w, rni.weights.Weights), w(torch.tensor([[1.0, 0.0]])).tolist()
    (True, [[0.0, 2.0]])
    """

    neurons: int
    names: ClassVar[frozenset[str]]  # the names in a file of the tensors that the weights consist of
    optional: ClassVar[frozenset[str]] = frozenset()  # the names of tensors that a file may lack

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """Build the weights from the result of `tensors`."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that the weights consist of, by their names in a file."""

    @abstractmethod
    def masked(self, kept: Tensor) -> "Weights":
        """Return a copy whose rows and columns are 0 for the neurons with `kept`, (neurons,), equal to 0."""

    @abstractmethod
    def forward(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        r"""Return :math:`W h` for each row h of `states`, (rows, neurons). Write it into `out` if given."""

    @abstractmethod
    def pull_back(self, errors: Tensor, onto: Tensor | None = None) -> Tensor:
        r"""Return :math:`W^\dagger \delta` for each row :math:`\delta` of `errors`, (rows, neurons).

        The result is added to `onto` if given.
        """

    @abstractmethod
    def matrix(self) -> Tensor:
        """Return W, (neurons, neurons)."""

    def embed(self, basis: Tensor) -> "Weights":
        r"""Return :math:`Q\,W\,Q^\dagger`, the weights of n neurons that act within the span of a basis.

        Parameters
        ----------
        basis : Tensor, shape (n, neurons)
            The orthonormal columns Q.

        Raises
        ------
        InputError
            If the form has a constraint on single neurons, which cannot be mixed.
        """
        raise InputError("weights", type(self).__name__, "a form without constraints on single neurons")

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """Return (left, right) with W = left @ right.T if the form is factored, and None otherwise."""
        return None

    @abstractmethod
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        r"""Subtract a gradient: :math:`W \leftarrow W - \eta\, l^\dagger r`. Then restore the constraint of the form.

        Parameters
        ----------
        left, right : Tensor, shape (terms, neurons)
            The factors l and r of the gradient.
        learning_rate : float
            The learning rate :math:`\eta`.
        """

    def project_(self) -> None:
        """Restore the constraint of the form. The default is a form without a constraint."""


def check_dtype(name: str, values: Tensor) -> None:
    """Raise an `InputError` if values are no floating-point numbers, because others cannot be trained."""
    if not isinstance(values, Tensor) or not values.is_floating_point():
        given = str(values.dtype) if isinstance(values, Tensor) else type(values).__name__
        raise InputError(name, values, "a tensor of floating-point numbers, float32 or float64", problem=given)
