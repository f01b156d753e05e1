"""Network files: safetensors with a header that says what the numbers are. No pickle.

Tensors: `encoders`, `decoders` (neurons, channels); `recurrent` (neurons, neurons), or `recurrent_left` and
`recurrent_right` (neurons, rank) with W = left @ right.T; `signs` (neurons,) under Dale's law; `activation.NAME`
(neurons,) for a parameter of the activation that differs between neurons; `losses` (steps,) of its training.
Header, as JSON under the key `rni`: `format`, `activation` (name and parameters), `decays`, `scales`, and the
`specification` of the run that made it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.activation import BUILT_IN, make
from rni.atomic import write_atomically as write_atomically
from rni.errors import InputError
from rni.network import Network
from rni.task import Integration
from rni.weights import Dale, Dense, LowRank, Weights

FORMAT = "rni-network/1"


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
    tensors: dict[str, Tensor] = {"encoders": net.encoders, "decoders": net.decoders}
    factors = net.recurrent.factors()
    if factors is None:
        tensors["recurrent"] = net.recurrent.matrix()
    else:
        tensors["recurrent_left"], tensors["recurrent_right"] = factors
    if isinstance(net.recurrent, Dale):
        tensors["signs"] = net.recurrent.signs
    return tensors


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
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{path}: {name} has NaN or infinite values; allowed: finite numbers")
    try:
        described = dict(header["activation"])
        task = Integration(header["decays"], header["scales"])
        parameters = {key.removeprefix("activation."): v for key, v in tensors.items() if key.startswith("activation.")}
        f = make(described.pop("name"), **described, **parameters)
        net = Network(task, tensors["encoders"], tensors["decoders"], _weights(tensors), f)
        losses = tensors["losses"].tolist() if "losses" in tensors else []
        return NetworkFile(net, header.get("specification"), losses)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {type(error).__name__} {error}; allowed: a file that rni wrote") from None


def _weights(tensors: dict[str, Tensor]) -> Weights:
    if "recurrent_left" in tensors:
        return LowRank(tensors["recurrent_left"], tensors["recurrent_right"])
    if "signs" not in tensors:
        return Dense(tensors["recurrent"])
    dale = Dale(tensors["recurrent"], tensors["signs"])
    if not torch.equal(dale.matrix(), tensors["recurrent"]):
        raise InputError("recurrent: has weights against Dale's law; allowed: each column of the sign in `signs`")
    return dale


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write a safetensors file beside its place, flush it to disk and move it there."""
    from safetensors.torch import save as pack

    # one JSON text under one key: safetensors writes several keys in a random order, and equal files should be equal
    metadata = {"rni": json.dumps(header)} if header else None
    write_atomically(path, pack({key: v.detach().cpu().contiguous() for key, v in tensors.items()}, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All tensors and the header of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            return tensors, json.loads((file.metadata() or {}).get("rni", "{}"))
    except (SafetensorError, ValueError) as error:
        with path.open("rb") as file:
            pickled = file.read(4).startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))
        found = "a pickle (torch.save writes those)" if pickled else f"truncated, or not safetensors ({error})"
        raise InputError(f"{path}: {found}; allowed: a whole safetensors file") from None
