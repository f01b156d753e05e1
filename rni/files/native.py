"""Network files: safetensors with a header that says what the numbers are. No pickle.

Tensors: `encoders`, `decoders` (neurons, channels); `recurrent` (neurons, neurons), or `recurrent_left` and
`recurrent_right` (neurons, rank) with W = left @ right.T, and the numbers `tolerance` and `room` by which such factors
are compressed in training; `signs` (neurons,) under Dale's law; `activation.NAME` (neurons,) for a parameter of the
activation that differs between neurons; `losses` (steps,) of its training.
Header, as JSON under the key `rni`: `format`, `activation` and `task` (each with its name and fields), `leak`, and the
`specification` of the run that made it; that of a designed network has no steps of training. The name of an activation
or a task from outside the package is `module:name`, which is imported only with `allow=`.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.activations.module import make
from rni.core.atomic import require_folder
from rni.core.atomic import write_atomically as write_atomically
from rni.core.errors import InputError, path_of
from rni.core.tensors import read_tensors, real, write_tensors
from rni.networks.network import Network, require_network
from rni.tasks import TASKS
from rni.tasks.integration import require_integration
from rni.weights import from_tensors

FORMAT = "rni-network/3"
FOREIGN = (".pt", ".pth", ".npz", ".npy", ".mat", ".onnx", ".h5", ".pkl", ".toml")  # endings of other kinds of files


def save(
    net: Network, path: str | Path, specification: dict | None = None, losses: Sequence[float] | None = None
) -> None:
    """Write a network, atomically: the file is the old one or the new one, never half of it.

    >>> net = rni.design(rni.Integration([0.99, 0.9]), neurons=100).network
    >>> rni.save(net, "integrator.safetensors")
    >>> torch.equal(rni.load("integrator.safetensors").encoders, net.encoders)
    True
    """
    require_network(net)
    if (path := path_of(path)).suffix in FOREIGN:
        raise InputError("path", str(path), "a name that ends in .safetensors (other kinds: `rni export`)")
    require_folder(path.parent)
    tensors = network_tensors(net)
    if losses is not None:
        tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensors |= {f"activation.{name}": values for name, values in net.f.values().items()}
    header = {
        "format": FORMAT,
        "activation": net.f.config(),
        "leak": net.leak,
        "task": TASKS.config(net.task),
        "specification": specification,
    }
    write_tensors(path, tensors, header)


def network_tensors(net: Network) -> dict[str, Tensor]:
    """Encoders, decoders and the recurrent matrix in its form, by the names they have in a file."""
    return {"encoders": net.encoders, "decoders": net.decoders, **net.recurrent.tensors()}


def load(path: str | Path, allow: Collection[str] = ()) -> Network:
    """Read a network, or say in one line what is wrong with the file; its losses and specification: `rni.read(path)`.

    An activation of one's own is code, of which a file has only the place: it is imported if `allow` names it.

    >>> rni.save(rni.design(rni.Integration(0.9), neurons=40).network, "integrator.safetensors")
    >>> rni.load("integrator.safetensors").task
    Integration(decays=(0.9,), scales=(1.0,))
    >>> rni.load("missing.safetensors")
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: missing.safetensors: no such file; allowed: a file that can be read
    """
    return read(path, allow).network


class NetworkFile(NamedTuple):
    """A network, and the specification and losses of the run that made it, where there was one.

    >>> rni.save(rni.design(rni.Integration(0.9), neurons=40).network, "net.safetensors")
    >>> isinstance(rni.read("net.safetensors"), rni.NetworkFile)
    True
    """

    network: Network
    specification: dict | None
    losses: list[float]


def read(path: str | Path, allow: Collection[str] = ()) -> NetworkFile:
    """Everything in a network file; `allow` as for `load`.

    >>> rni.save(rni.design(rni.Integration(0.9), neurons=40).network, "net.safetensors", losses=[0.5, 0.1])
    >>> network, specification, losses = rni.read("net.safetensors")
    >>> network.neurons, specification, losses
    (40, None, [0.5, 0.1])
    """
    path = path_of(path)
    return network_file(path, *read_tensors(path), allow)


def network_file(
    path: Path, tensors: Mapping[str, Any], header: Mapping[str, Any], allow: Collection[str] = ()
) -> NetworkFile:
    """Build the network of a file from its tensors and its header.

    Raises
    ------
    InputError
        If the file holds no network, or one that contradicts itself.
    """
    if isinstance(allow, str):
        raise InputError("allow", allow, "a list of places of activations, ['MODULE:NAME']")
    if header.get("format") != FORMAT:
        raise InputError("format", header.get("format"), repr(FORMAT)).in_file(path)
    try:
        return _network_file({name: real(name, values) for name, values in tensors.items()}, header, allow)
    except InputError as error:
        raise error.in_file(path) from None
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # fields missing, or other types
        problem = f"{type(error).__name__} {error}"
        raise InputError(str(path), None, "a file that rni wrote", problem=problem) from None


def _network_file(tensors: dict[str, Tensor], header: Mapping[str, Any], allow: Collection[str]) -> NetworkFile:
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(name, None, "finite numbers", problem="NaN or infinite values")
    described, specification = dict(header["activation"]), header.get("specification")
    losses = tensors.get("losses", torch.zeros(0))
    if not isinstance(specification, dict | None) or losses.ndim != 1:
        raise InputError("specification, losses", None, "a file that rni wrote", problem="not a table and a list")
    described |= {key.removeprefix("activation."): v for key, v in tensors.items() if key.startswith("activation.")}
    f = make(described, allow=allow)
    task = require_integration(TASKS.build(header["task"], allow=allow))
    net = Network(task, tensors["encoders"], tensors["decoders"], from_tensors(tensors), f, header["leak"])
    return NetworkFile(net, specification, losses.tolist())
