"""Tensors by name from files of other people's code: .pt, .npz, .mat. Nothing in a file is ever run."""

import pickle
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from rni.core import memory
from rni.core.errors import InputError

ELSEWHERE = {
    **dict.fromkeys((".h5", ".hdf5", ".keras"), "what numpy.savez(path, *model.get_weights()) writes"),
    **dict.fromkeys((".npy", ".pkl", ".pickle"), "an .npz file, as numpy.savez(path, **arrays) writes it"),
}


class Loaded(NamedTuple):
    """Tensors by name, and what was left in the file."""

    tensors: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def load_tensors(path: Path) -> Loaded | None:
    """What is in a file that is not safetensors; None for one that may be."""
    if path.suffix in ELSEWHERE:
        raise InputError(f"{path}: a {path.suffix} file; allowed: {ELSEWHERE[path.suffix]}")
    readers = {".pt": _state_dict, ".pth": _state_dict, ".npz": _arrays, ".mat": _matlab}
    return readers[path.suffix](path) if path.suffix in readers else None


def _state_dict(path: Path) -> Loaded:
    """Tensors only: a file that would have to run code to be read is refused."""
    allowed = "allowed: a state dict, as torch.save(model.state_dict(), path) writes"
    _require_unpacked(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # of its own doubts, beside which the reason is lost
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever its reader stumbles on
        more = isinstance(error, pickle.UnpicklingError) and zipfile.is_zipfile(path)
        reason = (
            "holds more than tensors, perhaps a whole module" if more else f"can't be read ({type(error).__name__})"
        )
        raise InputError(f"{path}: {reason}; {allowed}") from None
    if isinstance(loaded, Mapping) and not any(isinstance(value, Tensor) for value in loaded.values()):
        inside = [
            v for v in loaded.values() if isinstance(v, Mapping) and any(isinstance(t, Tensor) for t in v.values())
        ]
        loaded = inside[0] if len(inside) == 1 else loaded
    if not isinstance(loaded, Mapping) or not loaded:
        raise InputError(f"{path}: a {type(loaded).__name__}; {allowed}")
    return Loaded(loaded)


def _arrays(path: Path) -> Loaded:
    """Arrays of numbers and texts; what is pickled among them, as a None is, stays in the file."""
    _require_unpacked(path)
    arrays: dict[str, Any] = {}
    pickled = []
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            for name in file.files:
                try:
                    arrays[name] = file[name]
                except ValueError as error:
                    if "allow_pickle" not in str(error):
                        raise
                    pickled.append(name)
        if not arrays:
            raise ValueError(pickled)
    except Exception:  # numpy raises whatever its reader stumbles on
        raise InputError(f"{path}: not an .npz file of numbers; allowed: arrays written by numpy.savez") from None
    return Loaded(arrays, (f"not read, because pickled: {', '.join(pickled)}",) if pickled else ())


def _matlab(path: Path) -> Loaded:
    """Variables by name, fields of structures as structure.field."""
    from scipy.io import loadmat, whosmat

    allowed = "allowed: MATLAB's version 5 or 7, save(file, ..., '-v7')"
    try:
        size = sum(8 * prod(shape) for _, shape, _ in whosmat(path))
    except NotImplementedError:  # version 7.3 is HDF5
        raise InputError(f"{path}: of version 7.3; {allowed}") from None
    except Exception:  # scipy raises whatever its reader stumbles on
        raise InputError(f"{path}: a damaged MATLAB file; {allowed}") from None
    memory.require(size, str(path), "a smaller file")
    try:
        with warnings.catch_warnings(action="ignore"):
            loaded = loadmat(path)
    except Exception:
        raise InputError(f"{path}: a damaged MATLAB file; {allowed}") from None
    return Loaded({key: v for name, value in loaded.items() if name[:2] != "__" for key, v in _flat(name, value)})


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if issparse(value):
        memory.require(8 * prod(value.shape), f"{name}: sparse, {value.shape}", "a smaller one")
        value = value.toarray()
    if not isinstance(value, np.ndarray):
        return
    if value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            yield from _flat(f"{name}.{field}", value.flat[0][field])
    elif value.dtype.kind in "biufU":
        yield name, value


def _require_unpacked(path: Path) -> None:
    """Memory for what is in a zip file: zeros take a thousandth of their size in it."""
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(member.file_size for member in file.infolist())
    except Exception:  # not a zip, or a broken one, of which its reader will say so
        return
    memory.require(size, str(path), "a smaller file")
