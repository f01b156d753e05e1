"""What was made elsewhere, read as an `RNN` or a `Recording`: torch modules, state dicts, arrays, and files of them.

A state dict needs no particular names: the RNN is found by the endings that torch gives (weight_ih_l0, weight_hh_l0,
bias_ih_l0, bias_hh_l0; without _l0 for a cell), its readout as the one other matrix of shape (outputs, neurons).
Arrays have the names in `NETWORK_ARRAYS`, or activity and inputs for a recording. Nothing is unpickled.
"""

import pickle
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rni import memory, weights
from rni.activation import ACTIVATIONS, Activation, make
from rni.errors import InputError, printable
from rni.exchange.native import load
from rni.exchange.recording import Recording
from rni.exchange.vanilla import VanillaRNN
from rni.network import Network
from rni.task import Integration
from rni.tensors import read_tensors, real, require_file
from rni.weights import Dense

SUPPORTED = "allowed: one torch.nn.RNN or RNNCell, one layer, one direction, tanh or relu; others as a recording (.npz)"
PARAMETERS = tuple(dict.fromkeys(name for part in ACTIVATIONS.parts.values() for name in part.model_fields))
NETWORK_ARRAYS = (
    *(*weights.names(), "encoders", "input_weights", "bias", "decoders", "offset"),
    *("activation", *PARAMETERS, "decays", "scales"),
)
RECORDING_ARRAYS = ("activity", "inputs")

Foreign = Network | VanillaRNN | Recording | nn.Module | tuple[nn.Module, nn.Linear] | Mapping[str, Any]


def interpret(thing: Foreign, activation: str | Activation | None = None) -> VanillaRNN | Recording:
    """One form for all: of a `Network`, a torch module with one RNN in it, (rnn, readout), a state dict, or arrays.

    `activation` is for state dicts and arrays, which do not say; modules and networks have their own.
    """
    if isinstance(thing, VanillaRNN | Recording | Network | nn.Module | tuple) and activation is not None:
        raise InputError(f"activation: {activation!r} for a {type(thing).__name__}; allowed: none, it has its own")
    if isinstance(thing, VanillaRNN | Recording):
        return thing
    if isinstance(thing, Network):
        return VanillaRNN.of(thing)
    if isinstance(thing, nn.Module):
        return from_module(thing)
    if isinstance(thing, tuple) and len(thing) == 2 and all(isinstance(part, nn.Module) for part in thing):
        return from_module(nn.ModuleList(thing))
    if isinstance(thing, Mapping):
        torch_names = any(_ending(str(name)).startswith(("weight_hh", "weight_ih")) for name in thing)
        return from_state_dict(thing, activation) if torch_names else from_arrays(thing, activation)
    raise InputError(
        f"{type(thing).__name__}: can't be analysed; allowed: a Network, a torch.nn.RNN, (RNN, Linear), a state dict, "
        "or a dict of arrays"
    )


def read(path: str | Path, activation: str | None = None) -> VanillaRNN | Recording:
    """A network file of ours, a state dict (.pt, .pth or .safetensors), or arrays (.npz)."""
    path = Path(path)
    require_file(path)
    try:
        if path.suffix in (".pt", ".pth"):
            return from_state_dict(_load_state_dict(path), activation)
        if path.suffix == ".npz":
            return interpret(_load_arrays(path), activation)
    except InputError as error:
        raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    tensors, header = read_tensors(path)
    if "format" in header or "encoders" in tensors:
        return interpret(load(path), activation)
    try:
        return from_state_dict(tensors, activation)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def from_module(module: nn.Module) -> VanillaRNN:
    """The one RNN in a module, and the linear readout beside it if there is one."""
    cells = [m for m in module.modules() if isinstance(m, nn.RNNBase | nn.RNNCellBase)]
    if len(cells) != 1:
        found = ", ".join(type(cell).__name__ for cell in cells) or "no RNN"
        raise InputError(f"{type(module).__name__}: {found} in it; {SUPPORTED}")
    if not isinstance(cells[0], nn.RNN | nn.RNNCell):
        raise InputError(f"{type(cells[0]).__name__}: has gates; {SUPPORTED}")
    return _from_torch(module.state_dict(), str(cells[0].nonlinearity))


def from_state_dict(tensors: Mapping[str, Any], activation: str | Activation | None = None) -> VanillaRNN:
    """The RNN in a state dict, with torch's default activation, tanh, if none is given: a state dict does not say."""
    _require_names(tensors)
    assumed = ("activation tanh, torch's default: a state dict does not say which",) if activation is None else ()
    return _from_torch(tensors, activation or "tanh", assumed)


def _from_torch(tensors: Mapping[str, Any], activation: str | Activation, notes: tuple[str, ...] = ()) -> VanillaRNN:
    name = _recurrent_name(tensors)
    prefix, layer = re.fullmatch(r"(?s)(.*)weight_hh(_l0)?", name).groups("")  # pyright: ignore[reportOptionalMemberAccess]
    own = {key: f"{prefix}{key}{layer}" for key in ("weight_hh", "weight_ih", "bias_ih", "bias_hh")}
    if own["weight_ih"] not in tensors:
        raise InputError(f"{own['weight_ih']}: missing; {SUPPORTED}")
    w = real(name, tensors[name])
    n = len(w)
    biases = {key: real(key, tensors[key]) for key in (own["bias_ih"], own["bias_hh"]) if key in tensors}
    for key, value in biases.items():
        if value.shape != (n,):
            raise InputError(f"{key}: shape {tuple(value.shape)}; allowed: ({n},)")
    rest = {key: real(key, value) for key, value in tensors.items() if key not in own.values()}
    readouts = [key for key, value in rest.items() if value.ndim == 2 and value.shape[1] == n]
    if len(readouts) > 1:
        raise InputError(
            f"{', '.join(readouts)}: each could be the readout; allowed: one matrix of shape (outputs, {n}), so leave "
            "out the others"
        )
    decoders = offset = None
    if readouts:
        decoders = rest.pop(readouts[0]).T
        offset = rest.pop(re.sub(r"weight$", "bias", readouts[0]), None)
    if rest:
        notes += (printable(f"not part of the analysis: {', '.join(rest)}"),)
    return VanillaRNN(
        Dense(w),
        real(own["weight_ih"], tensors[own["weight_ih"]]),
        make(activation),
        sum(biases.values(), w.new_zeros(n)),
        decoders,
        offset,
        None,
        notes,
    )


def _recurrent_name(tensors: Mapping[str, Any]) -> str:
    """The name of the recurrent matrix, where the state dict is of an RNN that is supported."""
    endings = {key: _ending(key) for key in tensors}
    for key, ending in endings.items():
        if ending.endswith("_reverse"):
            raise InputError(f"{key}: a bidirectional RNN; {SUPPORTED}")
        if ending.startswith("weight_hr"):
            raise InputError(f"{key}: an RNN with projections; {SUPPORTED}")
        if re.fullmatch(r"weight_hh_l[1-9]\d*", ending):
            raise InputError(f"{key}: an RNN of 2 layers or more; {SUPPORTED}")
    found = [key for key, ending in endings.items() if ending in ("weight_hh_l0", "weight_hh")]
    if len(found) != 1:
        names = ", ".join(found or list(tensors)[:8]) or "nothing"
        raise InputError(f"{names}: {'several RNNs' if found else 'no recurrent weights (weight_hh_l0)'}; {SUPPORTED}")
    shape = tuple(real(found[0], tensors[found[0]]).shape)
    kinds = {1: None, 3: "a GRU", 4: "an LSTM"}
    if len(shape) != 2 or not shape[1] or shape[0] % shape[1] or shape[0] // shape[1] not in kinds:
        raise InputError(f"{found[0]}: shape {shape}; {SUPPORTED}")
    if kind := kinds[shape[0] // shape[1]]:
        raise InputError(f"{found[0]}: shape {shape}, {kind}; {SUPPORTED}")
    return found[0]


def from_arrays(arrays: Mapping[str, Any], activation: str | Activation | None = None) -> VanillaRNN | Recording:
    """A network of `NETWORK_ARRAYS`, or a recording of activity and inputs."""
    _require_names(arrays)
    given = set(arrays)
    allowed = RECORDING_ARRAYS if "activity" in given else NETWORK_ARRAYS
    if unknown := sorted(given - set(allowed)):
        networks, recordings = ", ".join(NETWORK_ARRAYS), ", ".join(RECORDING_ARRAYS)
        raise InputError(
            f"{', '.join(unknown)}: unknown; allowed: {networks} for a network, {recordings} for a recording"
        )
    if "activity" in given:
        if activation is not None:
            raise InputError(f"activation: {activation!r} for a recording; allowed: none")
        if "inputs" not in given:
            raise InputError("inputs: missing; allowed: activity with the inputs that it was recorded under")
        return Recording(*(real(name, arrays[name]) for name in RECORDING_ARRAYS))
    tensors = {key: real(key, value) for key, value in arrays.items() if key != "activation"}
    recurrent = weights.from_tensors(tensors)
    like = next(recurrent.parameters()).detach()
    if ("encoders" in given) == ("input_weights" in given):
        raise InputError(
            "encoders, input_weights: one of the two; allowed: encoders E, fed through W, or input_weights U, both "
            "(neurons, channels)"
        )
    name = "encoders" if "encoders" in given else "input_weights"
    fed, n = tensors[name].to(like), recurrent.neurons
    if fed.ndim != 2 or len(fed) != n or not fed.shape[1]:
        raise InputError(f"{name}: shape {tuple(fed.shape)}; allowed: ({n}, channels)")
    if name == "encoders":
        with torch.no_grad():
            fed = recurrent(fed.T).T
    numbers = {key: tensors[key] for key in ("decays", "scales") if key in given}
    if any(values.ndim > 1 for values in numbers.values()) or list(numbers) == ["scales"]:
        raise InputError(
            "decays, scales: scales alone, or a matrix; allowed: decays (channels,), and scales beside them"
        )
    task = Integration(*(values.tolist() for values in numbers.values())) if numbers else None
    f = _activation(str(arrays["activation"]) if "activation" in given else None, activation, tensors)
    bias = tensors.get("bias", like.new_zeros(n))
    return VanillaRNN(recurrent, fed, f, bias, tensors.get("decoders"), tensors.get("offset"), task)


def _activation(named: str | None, activation: str | Activation | None, tensors: dict[str, Tensor]) -> Activation:
    parameters = {key: tensors[key] for key in PARAMETERS if key in tensors}
    if (named is None) == (activation is None):
        raise InputError(f"activation: {named or 'missing'}; allowed: given once, {', '.join(ACTIVATIONS.parts)}")
    kind = named or activation
    assert kind is not None
    return make(kind, **parameters)


def _ending(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _require_names(tensors: Mapping[Any, Any]) -> None:
    for name in tensors:
        if not isinstance(name, str):
            raise InputError(f"a name: {type(name).__name__}; allowed: text, as in a state dict or an .npz file")


def _load_state_dict(path: Path) -> Mapping[str, Any]:
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
    return loaded


def _load_arrays(path: Path) -> Mapping[str, Any]:
    _require_unpacked(path)
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception:  # numpy raises whatever its reader stumbles on
        raise InputError(f"{path}: not an .npz file of numbers; allowed: arrays written by numpy.savez") from None


def _require_unpacked(path: Path) -> None:
    """Memory for what is in a zip file: zeros take a thousandth of their size in it."""
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(member.file_size for member in file.infolist())
    except Exception:  # not a zip, or a broken one, of which its reader will say so
        return
    memory.require(size, str(path), "a smaller file")
