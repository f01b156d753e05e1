"""Network files: safetensors with a header that says what the numbers are. No pickle.

Tensors: `encoders`, `decoders` (neurons, channels); `recurrent` (neurons, neurons), or `recurrent_left` and
`recurrent_right` (neurons, rank) with W = left @ right.T, and the numbers `tolerance` and `room` by which such factors
are compressed in training; `signs` (neurons,) under Dale's law; `activation.NAME` (neurons,) for a parameter of the
activation that differs between neurons; `losses` (steps,) of its training.
Header, as JSON under the key `rni`: `format`, `activation` (name and parameters), `decays`, `scales`, and the
`specification` of the run that made it; that of a designed network has no steps of training.
"""

import json
import math
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rni import memory
from rni.activation import BUILT_IN, make
from rni.atomic import write_atomically as write_atomically
from rni.errors import InputError
from rni.network import Network
from rni.task import Integration
from rni.weights import from_tensors

FORMAT = "rni-network/1"
_SINGLE = (torch.float16, torch.bfloat16, torch.float32)
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def save(
    net: Network, path: str | Path, specification: dict | None = None, losses: Sequence[float] | None = None
) -> None:
    """Write a network, atomically: the file is the old one or the new one, never half of it."""
    if net.f.name not in BUILT_IN:
        raise InputError(f"activation: {net.f!r}; allowed in a file: {', '.join(BUILT_IN)}")
    if net.active is not None:
        raise InputError("network: has silenced neurons; allowed in a file: a whole network")
    tensors = network_tensors(net)
    if losses is not None:
        tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    described: dict[str, object] = {"name": net.f.name}
    for key, value in net.f.parameters_for_file().items():
        if isinstance(value, Tensor):
            tensors[f"activation.{key}"] = value
        else:
            described[key] = value
    header = {
        "format": FORMAT,
        "activation": described,
        "decays": net.task.decays,
        "scales": net.task.scales,
        "specification": specification,
    }
    write_tensors(Path(path), tensors, header)


def network_tensors(net: Network) -> dict[str, Tensor]:
    """Encoders, decoders and the recurrent matrix in its form, by the names they have in a file."""
    return {"encoders": net.encoders, "decoders": net.decoders, **net.recurrent.tensors()}


def load(path: str | Path) -> Network:
    """Read a network, or say in one line what is wrong with the file."""
    return read(path).network


class NetworkFile(NamedTuple):
    """A network, and the specification and losses of the run that made it, where there was one."""

    network: Network
    specification: dict | None
    losses: list[float]


def read(path: str | Path) -> NetworkFile:
    """Everything in a network file."""
    path = Path(path)
    tensors, header = read_tensors(path)
    if header.get("format") != FORMAT:
        raise InputError(f"{path}: format {header.get('format')!r}; allowed: {FORMAT!r}")
    try:
        return _network_file({name: real(name, values) for name, values in tensors.items()}, header)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # fields missing, or other types
        raise InputError(f"{path}: {type(error).__name__} {error}; allowed: a file that rni wrote") from None


def _network_file(tensors: dict[str, Tensor], header: dict[str, Any]) -> NetworkFile:
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{name}: NaN or infinite values; allowed: finite numbers")
    described, specification = dict(header["activation"]), header.get("specification")
    name, losses = described.pop("name"), tensors.get("losses", torch.zeros(0))
    if not isinstance(name, str) or not all(map(_finite, described.values())):
        raise InputError("activation: not a name with numbers; allowed: a file that rni wrote")
    if not isinstance(specification, dict | None) or losses.ndim != 1:
        raise InputError("specification, losses: not a table and a list; allowed: a file that rni wrote")
    described |= {key.removeprefix("activation."): v for key, v in tensors.items() if key.startswith("activation.")}
    task = Integration(header["decays"], header["scales"])
    net = Network(task, tensors["encoders"], tensors["decoders"], from_tensors(tensors), make(name, **described))
    if specification is not None:
        specification = specification.get("design", specification)  # designs of the first version: one level deeper
    return NetworkFile(net, specification, losses.tolist())


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


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
                raise ValueError(f"header: a {type(header).__name__}")
            return {key: file.get_tensor(key) for key in file.keys()}, header  # noqa: SIM118
    except (SafetensorError, TypeError, ValueError, RuntimeError) as error:  # torch's, and JSON that nests too deeply
        with path.open("rb") as file:
            start = file.read(9)
        # the length of a header may begin like a pickle, but then the header follows
        pickled = start.startswith(_PICKLES) and start[8:] != b"{"
        found = "a pickle (torch.save writes those)" if pickled else f"truncated, or not safetensors ({error})"
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
