"""Arrays by name from files of other programs: .safetensors, .pt, .npz and .mat.

Nothing in a file is ever run, and the memory that a file needs is checked before it is unpacked.
"""

import pickle
import pickletools
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from rni.core import memory
from rni.core.errors import InputError
from rni.core.file_type import open_zip
from rni.core.tensors import read_tensors, require_file
from rni.files import matlab

ELSEWHERE = {
    **dict.fromkeys((".h5", ".hdf5", ".keras"), "what numpy.savez(path, *model.get_weights()) writes"),
    **dict.fromkeys((".npy", ".pkl", ".pickle"), "an .npz file, as numpy.savez(path, **arrays) writes it"),
}
UNPACKED = 2**25  # bytes into which any file may unpack
RATIO = 20  # bytes into which each byte of a larger file may unpack; weights of which 95 % are 0 have about 10
MAX_OPCODES = 200_000  # of the pickle in a state dict; each takes up to 230 bytes, and a tensor has about 50
STATE_DICT = "a state dict, as torch.save(model.state_dict(), path) writes"
ARRAYS = "arrays written by numpy.savez"


class Loaded(NamedTuple):
    """The arrays in a file by name, its header if it is a safetensors file, and notes on what was not read."""

    tensors: Mapping[str, Any]
    header: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()


def load_tensors(path: Path) -> Loaded:
    """Read the arrays in a file.

    Raises
    ------
    InputError
        If the file cannot be read, holds something else, or needs too much memory.
    """
    size = require_file(path)
    if path.suffix in ELSEWHERE:
        raise InputError(str(path), path.suffix, ELSEWHERE[path.suffix], problem=f"a {path.suffix} file")
    match path.suffix:
        case ".pt" | ".pth":
            return _state_dict(path, size)
        case ".npz":
            return _arrays(path, size)
        case ".mat":
            return _matlab(path, size)
    return Loaded(*read_tensors(path))


def most_unpacked(size: int) -> float:
    """Return the number of bytes into which a file of `size` bytes may unpack."""
    return max(UNPACKED, RATIO * size)


def require_unpacked(path: Path, size: int, unpacked: float) -> None:
    """Refuse a file of `size` bytes that unpacks to much more than its size, or to more than the free memory."""
    if unpacked > (limit := most_unpacked(size)):
        allowed = f"up to {limit / 1e6:.0f} MB for its size, so save it without compression"
        raise InputError(str(path), unpacked, allowed, problem="unpacks to much more than its size")
    memory.require(unpacked, str(path), "a smaller file")


def _state_dict(path: Path, size: int) -> Loaded:
    """Read a state dict. A file that would have to run code to be read is refused."""
    with path.open("rb") as stream:
        archived = stream.read(2) == b"PK"
        try:
            if archived:
                with open_zip(stream) as archive:
                    members = archive.infolist()
                    require_unpacked(path, size, sum(member.file_size for member in members))
                    for member in members:
                        if member.filename.endswith(".pkl"):
                            with archive.open(member) as pickled:
                                _require_short_pickle(path, pickled, 1)
            else:  # an older file: three short pickles, that of the state dict, and a list of keys, before the tensors
                stream.seek(0)
                _require_short_pickle(path, stream, 5)
            with warnings.catch_warnings(action="ignore"):  # the error says what is wrong
                loaded = torch.load(path, map_location="cpu", weights_only=True)
        except InputError:
            raise
        except Exception as error:  # the libraries raise errors of any type for damaged files
            code = isinstance(error, pickle.UnpicklingError) and archived
            problem = (
                "holds more than tensors, perhaps a whole module" if code else f"can't be read ({type(error).__name__})"
            )
            raise InputError(str(path), None, STATE_DICT, problem=problem) from None

    # checkpoints hold the state dict among other things
    if isinstance(loaded, Mapping) and not _has_tensors(loaded):
        nested = [value for value in loaded.values() if _has_tensors(value)]
        loaded = nested[0] if len(nested) == 1 else loaded
    if not isinstance(loaded, Mapping) or not loaded:
        raise InputError(str(path), type(loaded), STATE_DICT, problem=f"a {type(loaded).__name__}")
    # a tensor may repeat the same few numbers without holding them
    tensors = [value for value in loaded.values() if isinstance(value, Tensor) and value.layout == torch.strided]
    repeated = sum(value.nbytes for value in tensors if 0 in value.stride())
    require_unpacked(path, size, repeated)
    return Loaded(loaded)


def _has_tensors(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(v, Tensor) for v in value.values())


def _require_short_pickle(path: Path, stream: Any, pickles: int) -> None:
    """Refuse pickles of many opcodes, which fill the memory with lists and the like."""
    count = 0
    for _ in range(pickles):
        try:
            for _ in pickletools.genops(stream):
                count += 1
                if count > MAX_OPCODES:
                    allowed = f"{STATE_DICT}, of at most {MAX_OPCODES} steps"
                    raise InputError(str(path), None, allowed, problem="a pickle of too many steps")
        except InputError:
            raise
        except Exception:  # torch says what is wrong with it
            return


def _arrays(path: Path, size: int) -> Loaded:
    """Read arrays of numbers and texts. Pickled ones among them, for example None, stay in the file."""
    arrays: dict[str, Any] = {}
    pickled = []
    try:
        with path.open("rb") as file, open_zip(file) as archive:
            members = archive.infolist()
            require_unpacked(path, size, sum(member.file_size for member in members))
            for member in members:
                # zipfile bounds what it unpacks at once for these two methods only
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("another compression")
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as stream:
                    dtype = _npy_dtype(stream)
                if dtype.hasobject:
                    pickled.append(name)
                    continue
                with archive.open(member) as stream:
                    arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
        if not arrays:
            raise ValueError("no arrays of numbers")
    except InputError:
        raise
    except Exception:  # numpy and zipfile raise errors of any type for damaged files
        raise InputError(str(path), None, ARRAYS, problem="not an .npz file of numbers") from None
    return Loaded(arrays, notes=(f"not read, because pickled: {', '.join(pickled)}",) if pickled else ())


def _npy_dtype(stream: IO[bytes]) -> np.dtype:
    """Return the type of the numbers in an .npy file."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read_header(stream)[2]


def _matlab(path: Path, size: int) -> Loaded:
    """Read variables by name. The name of a field of a structure is structure.field."""
    from scipy.io import loadmat

    allowed = "MATLAB's version 5 or 7, save(file, ..., '-v7')"
    try:
        with path.open("rb") as stream:
            needed = matlab.memory_needed(stream, most_unpacked(size))
        require_unpacked(path, size, needed)
        with warnings.catch_warnings(action="ignore"):
            loaded = loadmat(path)
    except InputError:
        raise
    except NotImplementedError:  # version 7.3 is HDF5
        raise InputError(str(path), "7.3", allowed, problem="of version 7.3") from None
    except Exception:  # scipy raises errors of any type for damaged files
        raise InputError(str(path), None, allowed, problem="a damaged MATLAB file") from None
    arrays: dict[str, Any] = {}
    for name, value in loaded.items():
        if not name.startswith("__"):
            arrays |= _fields(path, size, name, value)
    return Loaded(arrays)


def _fields(path: Path, size: int, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a variable of numbers or text, or the fields of a structure."""
    if issparse(value):
        require_unpacked(path, size, 8 * prod(value.shape))
        value = value.toarray()
    if not isinstance(value, np.ndarray):
        return
    if value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            yield from _fields(path, size, f"{name}.{field}", value.flat[0][field])
    elif value.dtype.kind in "biufU":
        yield name, value
