"""Tensors of a file, taken one after the other; what is left in the end is named."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from rni.core.errors import InputError, printable
from rni.core.tensors import real


class Remainder:
    """`said` are notes on what was taken, and how."""

    def __init__(self, tensors: Mapping[str, Any]):
        self.tensors = dict(tensors)
        self.said: list[str] = []

    def take(self, name: str) -> Tensor:
        """The tensor of that name."""
        if name not in self.tensors:
            raise InputError(f"{name}: missing; allowed: beside {', '.join(self.tensors)}")
        return real(name, self.tensors.pop(name))

    def find(self, name: str) -> Tensor | None:
        """The tensor of that name, if there is one."""
        return self.take(name) if name in self.tensors else None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all that is left and has one."""
        return {name: tuple(value.shape) for name, value in self.tensors.items() if hasattr(value, "shape")}

    def notes(self) -> tuple[str, ...]:
        """What was said, and what is left."""
        left = [f"not part of the analysis: {', '.join(self.tensors)}"] if self.tensors else []
        return tuple(map(printable, self.said + left))

    def biases(self, names: Iterable[str], neurons: int) -> dict[str, Tensor]:
        """The sum of those that are there."""
        found = {name: self.take(name) for name in names if name in self.tensors}
        for name, values in found.items():
            if values.squeeze().shape != (neurons,):
                raise InputError(f"{name}: shape {tuple(values.shape)}; allowed: ({neurons},)")
        return {"bias": torch.stack([values.flatten() for values in found.values()]).sum(0)} if found else {}

    def readout(self, neurons: int) -> dict[str, Tensor]:
        """The one matrix left of shape (outputs, neurons), and its bias."""
        found = [name for name, shape in self.shapes().items() if len(shape) == 2 and shape[1] == neurons]
        if len(found) > 1:
            raise InputError(
                f"{', '.join(found)}: each could be the readout; allowed: one matrix of shape (outputs, {neurons}), so "
                "leave out the others"
            )
        if not found:
            return {}
        decoders, offset = self.take(found[0]).T, self.find(re.sub(r"weight$", "bias", found[0]))
        return {"decoders": decoders} | ({} if offset is None else {"offset": offset})
