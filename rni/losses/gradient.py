"""A gradient as the outer product that it is: cheap to keep, to apply and to append."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

Trained = Literal["recurrent", "recurrent+decoders", "all"]


@dataclass(frozen=True)
class Gradient:
    r"""$\partial L/\partial W$ = left.T @ right, both (terms, neurons); (neurons, channels) for the trained vectors."""

    left: Tensor
    right: Tensor
    decoders: Tensor | None = None
    encoders: Tensor | None = None

    def recurrent(self) -> Tensor:
        r"""$\partial L/\partial W$, (neurons, neurons)."""
        return self.left.T @ self.right
