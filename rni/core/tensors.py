"""Tensors on disk and from elsewhere: safetensors files with a header, and plain real numbers of whatever came."""

import json
import stat
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rni.core import file_type as kinds
from rni.core import memory
from rni.core.atomic import write_atomically
from rni.core.errors import InputError

_SINGLE = (torch.float16, torch.bfloat16, torch.float32)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def real(name: str, values: Any) -> Tensor:
    """Finite memory's worth of real numbers in a plain tensor: float16 and the like as float32, all else as float64."""
    if isinstance(values, Tensor):
        if values.layout != torch.strided or values.is_quantized or values.is_meta or values.is_nested:
            raise InputError(f"{name}: sparse, quantised, or without data; allowed: a plain tensor of numbers")
        kind, size = str(values.dtype).removeprefix("torch."), values.numel()
        known = values.dtype in _WHOLE + _SINGLE + (torch.float64,)
    else:
        kind = values.dtype.name if isinstance(values, np.ndarray) else type(values).__name__
        try:
            values = np.asarray(values)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise InputError(f"{name}: {kind}; allowed: an array of numbers") from None
        size, known = values.size, values.dtype.kind in "biuf"
    if not known:
        raise InputError(f"{name}: {kind}; allowed: an array of numbers, real ones")
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
    """Write a safetensors file beside its place, flush it to disk and move it there."""
    from safetensors.torch import save as pack

    # one JSON text under one key: safetensors writes several keys in a random order, and equal files should be equal
    metadata = {"rni": json.dumps(header)} if header else None
    write_atomically(path, pack({key: v.detach().cpu().contiguous() for key, v in tensors.items()}, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All tensors and the header of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    size = require_file(path)
    memory.require(size, str(path), "a smaller file")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("rni", "{}"))
            if not isinstance(header, dict):
                raise TypeError("header: not a table")
            return {key: file.get_tensor(key) for key in file.keys()}, header  # noqa: SIM118
    except (SafetensorError, TypeError, ValueError, RuntimeError):  # torch's, and JSON that nests too deeply
        known = kinds.kind(path) not in ("", "empty", "text", *kinds.SAFETENSORS)
        found = kinds.called(path) if known else "truncated, or not safetensors"
        raise InputError(f"{path}: {found}; allowed: a whole safetensors file") from None


def require_file(path: Path) -> int:
    """Its size, where it is a file that can be read; else why it can't."""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            path.open("rb").close()
            return status.st_size
        reason = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file"
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        reason = error.strerror
    except ValueError as error:  # a name that no system has
        reason = str(error)
    raise InputError(f"{path}: {reason}; allowed: a file that can be read")
