"""The base class of layouts, their registry, and the tensors of a file that a layout takes one by one."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError, printable
from rni.core.registry import Registry
from rni.core.tensors import real


class FoundArrays(NamedTuple):
    """The arrays of a network under the names of `rni.files.foreign.network_arrays`, and what the file does not say.

    Parameters
    ----------
    source : str
        The program or the names that the arrays come from, for messages.
    arrays : dict
        Tensors, numbers and texts by our names.
    assumed : mapping, optional
        For names that the file does not contain: the usual value, and the reason for it. The reason becomes a note;
        it is empty where the value is certain. A leak that is neither here nor in the arrays has to be given.
    """

    source: str
    arrays: dict[str, Any]
    assumed: Mapping[str, tuple[Any, str]] = MappingProxyType({})


class UnusedTensors:
    """The tensors of a file that no part of the network has taken yet. What is left in the end is named in a note."""

    def __init__(self, tensors: Mapping[str, Any]):
        self.tensors = dict(tensors)
        self.said: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def take(self, name: str) -> Tensor:
        """Remove the tensor of this name and return it."""
        if name not in self.tensors:
            raise InputError(name, None, f"a tensor of this name with {', '.join(self.tensors)}", problem="missing")
        return real(name, self.tensors.pop(name))

    def find(self, name: str) -> Tensor | None:
        """Remove the tensor of this name and return it, or return None if there is none."""
        return self.take(name) if name in self.tensors else None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the arrays that are left."""
        return {name: tuple(value.shape) for name, value in self.tensors.items() if hasattr(value, "shape")}

    def note(self, text: str) -> None:
        """Tell the user how a tensor was understood."""
        self.said.append(text)

    def notes(self) -> list[str]:
        """Return all notes, and one that names the tensors that are left."""
        left = [f"not part of the analysis: {', '.join(self.tensors)}"] if self.tensors else []
        return [printable(note) for note in self.said + left]

    def biases(self, names: Iterable[str], neurons: int) -> dict[str, Tensor]:
        """Remove the biases of these names that exist, and return {"bias": their sum}."""
        biases = {name: self.take(name) for name in names if name in self.tensors}
        for name, values in biases.items():
            if values.squeeze().shape != (neurons,):
                shape = tuple(values.shape)
                raise InputError(name, shape, f"({neurons},)", problem=f"shape {shape}")
        return {"bias": torch.stack([values.flatten() for values in biases.values()]).sum(0)} if biases else {}

    def readout(self, neurons: int) -> dict[str, Tensor]:
        """Remove the only matrix of shape (outputs, neurons) and its bias, and return the decoders and their offset."""
        names = [name for name, shape in self.shapes().items() if len(shape) == 2 and shape[1] == neurons]
        if len(names) > 1:
            allowed = f"one matrix of shape (outputs, {neurons}), so leave out the others"
            raise InputError(", ".join(names), None, allowed, problem="each could be the readout")
        if not names:
            return {}
        decoders, offset = self.take(names[0]).T, self.find(re.sub(r"weight$", "bias", names[0]))
        return {"decoders": decoders} | ({} if offset is None else {"offset": offset})


class Layout(ABC):
    """A way in which programs name the tensors of a network.

    Examples
    --------
    A file of your own that reads the files of your own program:

    >>> from rni.files.layouts import LAYOUTS, FoundArrays, Layout
    >>> @LAYOUTS.register("my program")
    ... class MyProgram(Layout):
    ...     def recognises(self, names):
    ...         return {"synapses", "drive"} <= set(names)
    ...
    ...     def read(self, tensors):
    ...         arrays = {"recurrent": tensors.take("synapses"), "input_weights": tensors.take("drive")}
    ...         return FoundArrays("my program", arrays, {"leak": (1.0, ""), "activation": ("relu", "as it always is")})
    >>> net = rni.files.foreign.interpret({"synapses": torch.eye(3), "drive": torch.ones(3, 1)})
    >>> net.notes
    ('read as the weights of my program', 'activation relu, as it always is')
    >>> del LAYOUTS.parts["my program"]
    """

    announced: ClassVar[bool] = True  # whether a note says what the file was read as

    @abstractmethod
    def recognises(self, names: Collection[str]) -> bool:
        """Return whether tensors of these names make up a network of this layout."""

    @abstractmethod
    def read(self, tensors: UnusedTensors) -> FoundArrays:
        """Take the tensors of the network.

        Raises
        ------
        InputError
            If tensors are missing or have wrong shapes.
        """


LAYOUTS: Registry[Layout] = Registry("layout", Layout)


def recognise(tensors: Mapping[str, Any]) -> tuple[FoundArrays, list[str]] | None:
    """Read tensors by the layout that recognises their names: its arrays, and notes on how they were understood.

    Layouts that were registered later are tried first. The result is None if no layout recognises the names.
    """
    for make_layout in reversed(LAYOUTS.parts.values()):
        layout = make_layout()
        if layout.recognises(tensors.keys()):
            unused = UnusedTensors(tensors)
            found = layout.read(unused)
            announced = [f"read as the weights of {printable(found.source)}"] if layout.announced else []
            return found, announced + unused.notes()
    return None


def last_part(name: str) -> str:
    """Return what follows the last dot of a name."""
    return name.rsplit(".", 1)[-1]


def require_no_gates(name: str, shape: tuple[int, ...], allowed: str) -> None:
    """Refuse recurrent weights that are no square matrix; those of GRUs and LSTMs have 3 and 4 times as many rows."""
    rows, columns = shape if len(shape) == 2 else (0, 0)
    cell = {0: "", columns: "", 3 * columns: ", a GRU", 4 * columns: ", an LSTM"}.get(rows, "")
    if rows != columns or not rows:
        raise InputError(name, shape, allowed, problem=f"shape {shape}{cell}")
