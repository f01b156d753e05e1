"""Safetensors files with a header, and the conversion of arrays of any kind to plain tensors of real numbers."""

import json
import stat
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rni.core import file_type, memory
from rni.core.atomic import write_atomically
from rni.core.errors import InputError

_SINGLE = (torch.float16, torch.bfloat16, torch.float32)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def real(name: str, values: Any) -> Tensor:
    """Convert values to a plain tensor of real numbers.

    Parameters
    ----------
    name : str
        What the values are called in an error.
    values : tensor, array, sequence or number
        Real numbers.

    Returns
    -------
    Tensor
        On the CPU, without a gradient: float32 for numbers of at most 32 bits, otherwise float64.

    Raises
    ------
    InputError
        If the values are no real numbers, or need more memory than is free.
    """
    if isinstance(values, Tensor):
        if values.layout != torch.strided or values.is_quantized or values.is_meta or values.is_nested:
            problem = "sparse, quantised, or without data"
            raise InputError(name, values.layout, "a plain tensor of numbers", problem=problem)
        dtype, size = str(values.dtype).removeprefix("torch."), values.numel()
        known = values.dtype in _WHOLE + _SINGLE + (torch.float64,)
    else:
        dtype = values.dtype.name if isinstance(values, np.ndarray) else type(values).__name__
        try:
            values = np.asarray(values)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise InputError(name, dtype, "an array of numbers", problem=dtype) from None
        size, known = values.size, values.dtype.kind in "biuf"
    if not known:
        raise InputError(name, dtype, "an array of numbers, real ones", problem=dtype)
    memory.require(4 * size, f"{name}: shape {tuple(values.shape)}", "a smaller one")
    if isinstance(values, Tensor):
        return values.detach().cpu().to(torch.float32 if values.dtype in _SINGLE else torch.float64)
    single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    return torch.from_numpy(np.require(values, np.float32 if single else np.float64, ["C", "W"]))


def stacked(values: Iterable[Tensor], steps: int) -> Tensor:
    """(batch, steps, ...) from as many values (batch, ...), `torch.stack` in one piece of memory from the start.

    Small arrays that stay, made between large ones that go, keep the C library from using the large ones' memory again.
    """
    if torch.is_grad_enabled():
        return torch.stack(list(values), dim=1)
    values = iter(values)
    first = next(values)
    whole = first.new_empty(len(first), steps, *first.shape[1:])
    for step, value in enumerate(chain([first], values)):
        whole[:, step] = value
    return whole


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write a safetensors file atomically."""
    from safetensors.torch import save as pack

    # one JSON text under one key: safetensors writes several keys in a random order, and equal files should be equal
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
                raise TypeError("header: not a table")
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
