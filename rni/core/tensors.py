"""Tensors in safetensors files with a header, and sequences of tensors in one piece of memory."""

import json
import stat
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rni.core import file_type, memory
from rni.core.arrays import as_real_tensor
from rni.core.atomic import write_atomically
from rni.core.errors import InputError


def real(field: str, values: Any) -> Tensor:
    """Convert numbers that were read from a file to a real tensor without a graph, as `as_real_tensor` does."""
    return as_real_tensor(field, values).detach()


def stacked(values: Iterable[Tensor], steps: int) -> Tensor:
    """Stack the values (batch, ...) of all time steps to (batch, steps, ...), in memory that is allocated at the start.

    With `torch.stack`, the small arrays of the steps would be allocated between large temporary arrays, which keeps the
    C library from using the memory of the large arrays again.
    """
    if torch.is_grad_enabled():
        return torch.stack(list(values), dim=1)
    values = iter(values)
    first = next(values)
    sequence = first.new_empty(len(first), steps, *first.shape[1:])
    for step, value in enumerate(chain([first], values)):
        sequence[:, step] = value
    return sequence


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write a safetensors file atomically."""
    from safetensors.torch import save as pack

    # One JSON text under one key: safetensors writes several keys in random order, and equal files should be equal.
    metadata = {"rni": json.dumps(header)} if header else None
    write_atomically(path, pack({key: v.detach().cpu().contiguous() for key, v in tensors.items()}, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read all tensors and the header of a safetensors file.

    Raises
    ------
    InputError
        If the file cannot be read, is no safetensors file, or has a header of more than 1 MB.
    """
    from safetensors import SafetensorError, safe_open

    size = require_file(path)
    memory.require(size, str(path), "a smaller file")
    try:
        with path.open("rb") as file:
            header_size = int.from_bytes(file.read(8), "little")
        if file_type.MAX_HEADER < header_size < size:
            allowed = f"a safetensors file whose header has at most {file_type.MAX_HEADER} bytes"
            raise InputError(str(path), header_size, allowed, problem=f"a header of {header_size} bytes")
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("rni", "{}"))
            if not isinstance(header, dict):
                raise TypeError("the header is not a table")
            return {key: file.get_tensor(key) for key in file.keys()}, header  # noqa: SIM118
    except InputError:
        raise
    except (SafetensorError, OSError, TypeError, ValueError, RuntimeError):  # RecursionError: JSON that nests deeply
        kind = file_type.kind(path)
        another = kind not in ("", "empty", "text", *file_type.SAFETENSORS)
        problem = file_type.called(path) if another else "truncated, or not safetensors"
        raise InputError(str(path), kind, "a whole safetensors file", problem=problem) from None


def require_file(path: Path) -> int:
    """Return the size of a file that can be read.

    Raises
    ------
    InputError
        If there is no such file, if it is a folder or a pipe, or if it cannot be read.
    """
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            path.open("rb").close()
            return status.st_size
        problem = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file"
    except FileNotFoundError:
        problem = "no such file"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except ValueError as error:  # a name that no system has
        problem = str(error)
    raise InputError(str(path), None, "a file that can be read", problem=problem)
