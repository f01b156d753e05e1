"""What was made elsewhere, read as a `VanillaRNN` or a `Recording`: torch modules, state dicts, arrays, files of them.

Names decide (see `rni.files.formats`); `names` maps ours to those of the file, `{"recurrent": "J"}`, where they do
not. Arrays have the names in `network_arrays()`, or activity and inputs for a recording. Nothing is unpickled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from rni import weights
from rni.activations import ACTIVATIONS, Activation, make
from rni.core.errors import InputError, did_you_mean, path_of, printable
from rni.core.tensors import real
from rni.files.formats import SUPPORTED, Found, recognise
from rni.files.layers import TIMES
from rni.files.loading import load_tensors
from rni.files.native import network_file
from rni.files.recording import Recording
from rni.networks.network import Network
from rni.networks.vanilla import Form, Read, VanillaRNN
from rni.tasks.integration import Integration

TEXTS = ("activation", "form", "reads")
RECORDING_ARRAYS = ("activity", "inputs")

Foreign = (
    Network | VanillaRNN | Recording | nn.Module | tuple[nn.Module, nn.Linear] | Mapping[str, Any] | list[np.ndarray]
)


class Reading(TypedDict, total=False):
    r"""What a file does not say: the leak $\alpha$, or the time of a step dt and the time constant $\tau = dt/\alpha$.

    Two of the three give the third. form and reads as in `VanillaRNN`; noise is the deviation of what is added to the
    state at each step; names map ours, those of `network_arrays()`, to the file's, with .T for a matrix that is turned.
    """

    leak: float | Tensor | None
    form: Form | None
    reads: Read | None
    noise: float | None
    dt: float | None
    tau: float | None
    names: Mapping[str, str] | None


def parameters() -> tuple[str, ...]:
    """Those of all activations that there are now, users' own among them."""
    return tuple(dict.fromkeys(name for part in ACTIVATIONS.parts.values() for name in part.model_fields))


def network_arrays() -> tuple[str, ...]:
    """Our names for what a network is made of."""
    return (
        *(*weights.names(), "encoders", "input_weights", "bias", "input_bias", "decoders", "offset", "initial"),
        *("activation", *parameters(), "leak", "form", "reads", "noise", "dt", "tau", "decays", "scales"),
    )


def interpret(
    thing: Foreign, activation: str | Activation | None = None, **reading: Unpack[Reading]
) -> VanillaRNN | Recording:
    """One form for all: of a `Network`, a torch module, (rnn, readout), a state dict, arrays, or a list of Keras's.

    `activation` and what else is in `reading` is for what does not say; modules and networks have their own.
    """
    for name in reading:
        if name not in Reading.__annotations__:
            known = ("task", "decays", "scales", "inputs", "activation", "seed", *Reading.__annotations__)
            raise InputError(f"{name}: no such option; allowed: {', '.join(known)}{did_you_mean(name, known)}")
    given: dict[str, Any] = {key: value for key, value in reading.items() if value is not None}
    if activation is not None:
        given["activation"] = activation
    if isinstance(thing, tuple) and len(thing) == 2 and all(isinstance(part, nn.Module) for part in thing):
        rnn, readout = thing
        if getattr(rnn, "hidden_size", None) != (read := getattr(readout, "in_features", None)):
            reads = f"{type(readout).__name__} of {read} neurons beside {type(rnn).__name__}"
            raise InputError(f"readout: {reads}; allowed: (RNN, Linear), of as many neurons")
        thing = nn.ModuleList(thing)
    if isinstance(thing, Recording) and given:
        raise InputError(f"{', '.join(given)}: given for a recording; allowed: none")
    if isinstance(thing, Recording):
        return thing
    if isinstance(thing, VanillaRNN | Network):
        _refuse(given, thing, ("activation", "leak", "form", "reads", "names"))
        return _timed(thing if isinstance(thing, VanillaRNN) else VanillaRNN.of(thing), given)
    if isinstance(thing, nn.Module):
        return from_module(thing, given)
    if isinstance(thing, list):
        thing = {f"arr_{k}": values for k, values in enumerate(thing)}
    if isinstance(thing, Mapping):
        return from_tensors(thing, given)
    raise InputError(
        f"{type(thing).__name__}: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: "
        "its `network`), a Recording, a torch.nn.RNN, (RNN, Linear), a state dict, a dict of arrays, or a list of "
        "Keras's weights"
    )


def read(path: str | Path, activation: str | None = None, **reading: Unpack[Reading]) -> VanillaRNN | Recording:
    """A network file of ours, a state dict (.pt, .pth or .safetensors), or arrays (.npz, .mat)."""
    path = path_of(path)
    loaded = load_tensors(path)
    if "format" in loaded.header:
        return interpret(network_file(path, loaded.tensors, loaded.header).network, activation, **reading)
    try:
        net = interpret(loaded.tensors, activation, **reading)
    except InputError as error:
        raise error.in_file(path, "; ".join(loaded.notes)) from None
    notes = map(printable, loaded.notes)
    return replace(net, notes=(*net.notes, *notes)) if isinstance(net, VanillaRNN) and loaded.notes else net


def from_module(module: nn.Module, given: Mapping[str, Any] | None = None) -> VanillaRNN:
    """The one RNN in a module, and the linear readout beside it if there is one; its leak where it has one."""
    given = dict(given or {})
    cells = [m for m in module.modules() if isinstance(m, nn.RNNBase | nn.RNNCellBase)]
    tensors = module.state_dict() | _attributes(module)
    if not cells and (found := _recognised(tensors, given)):
        return _network(found, given)
    if len(cells) != 1:
        found = ", ".join(type(cell).__name__ for cell in cells) or "no RNN"
        raise InputError(f"{type(module).__name__}: {found} in it; {SUPPORTED}")
    if not isinstance(cells[0], nn.RNN | nn.RNNCell):
        raise InputError(f"{type(cells[0]).__name__}: has gates; {SUPPORTED}")
    _refuse(given, module, ("activation", "names"))
    found = recognise(module.state_dict())
    assert found is not None
    arrays = found.arrays | {"activation": str(cells[0].nonlinearity)}
    leak = _attributes(module).get("alpha", 1.0)
    looped = isinstance(cells[0], nn.RNNCell) and 0 < leak < 1  # a layer runs without anything in between
    assumed = {"leak": (leak, "its attribute alpha")} if looped else found.assumed
    return _network(found._replace(arrays=arrays, assumed=assumed), given)


def from_state_dict(tensors: Mapping[str, Any], activation: str | Activation | None = None) -> VanillaRNN:
    """The RNN in a state dict, with torch's default activation, tanh, if none is given: a state dict does not say."""
    net = interpret(tensors, activation)
    assert isinstance(net, VanillaRNN)
    return net


def from_tensors(tensors: Mapping[str, Any], given: Mapping[str, Any]) -> VanillaRNN | Recording:
    """By our own names; by those of a format; by those that are `given`."""
    for name in tensors:
        if not isinstance(name, str):
            raise InputError(f"a name: {type(name).__name__}; allowed: text, as in a state dict or an .npz file")
    if found := _recognised(tensors, given):
        return _network(found, given)
    if "activity" in tensors:
        return _recording(tensors, given)
    if not tensors or set(tensors) - set(network_arrays()):
        raise InputError(_unknown(tensors))
    return _network(Found("arrays", dict(tensors), {"leak": (1.0, "")}), given)


def from_arrays(arrays: Mapping[str, Any], activation: str | Activation | None = None) -> VanillaRNN | Recording:
    """A network of `network_arrays()`, or a recording of activity and inputs."""
    return interpret(arrays, activation)


def _recognised(tensors: Mapping[str, Any], given: Mapping[str, Any]) -> Found | None:
    if "names" in given:
        return _mapped(tensors, given["names"])
    ours = {"recurrent", "recurrent_left", "activity"} & set(tensors)
    return None if ours else recognise(tensors)


def _mapped(tensors: Mapping[str, Any], names: Mapping[str, str]) -> Found:
    """Tensors by names that are given."""
    arrays: dict[str, Any] = {}
    for ours, theirs in names.items():
        if ours not in (known := network_arrays()):
            raise InputError(f"map: {ours!r}; allowed: {', '.join(known)}{did_you_mean(ours, known)}")
        turned = theirs not in tensors and theirs.endswith(".T")
        name = theirs.removesuffix(".T") if turned else theirs
        if name not in tensors:
            raise InputError(
                f"map: {ours}={theirs}; allowed: of this file {_shown(tensors)}{did_you_mean(name, tensors)}"
            )
        arrays[ours] = tensors[name] if ours in TEXTS else _plain(ours, real(name, tensors[name]))
        arrays[ours] = arrays[ours].T if turned else arrays[ours]
    left = [
        name for name in tensors if name not in {v.removesuffix(".T") for v in names.values()} | set(names.values())
    ]
    notes = (f"not part of the analysis: {', '.join(left)}",) if left else ()
    return Found("tensors named by map", arrays, {"leak": (1.0, "as none was given")}, notes)


def _plain(name: str, values: Tensor) -> Tensor:
    """Vectors may come as (1, n) or (n, 1), as in MATLAB."""
    vectors = ("bias", "input_bias", "offset", "initial", "leak", "tau", "decays", "scales", "signs", *parameters())
    return values.flatten() if name in vectors and values.ndim == 2 and 1 in values.shape else values


def _network(found: Found, given: Mapping[str, Any]) -> VanillaRNN:
    """The network of arrays by our names, with what is given, and what is assumed where nothing is."""
    arrays, notes = dict(found.arrays), [*found.read, *found.notes]
    twice = [name for name in given if name in arrays and name not in ("names", "noise")]
    if twice and twice != ["activation"]:
        raise InputError(f"{', '.join(twice)}: given, and in the file; allowed: once")
    known = given.keys() | arrays.keys()
    known |= {"leak"} if {"dt", "tau"} <= known else set()
    for name, (value, why) in found.assumed.items():
        if name not in known:
            arrays[name] = value
            notes += [f"{name} {value}, {why}"] if why else []
    own = {name: given.get(name, arrays.pop(name, None)) for name in ("leak", "dt", "tau", "form", "reads")}
    leak, dt = _leak(found.format, own["leak"], own["dt"], own["tau"])
    form, reads = (_text(name, own[name]) for name in ("form", "reads"))
    if form is None and not (isinstance(leak, float) and leak == 1):
        notes.append("form rate, as none was given: h <- (1 - leak) h + leak f(W h + U x + b)")
    net = _from_arrays(arrays, given.get("activation"))
    named = {"form": form, "reads": reads, "noise": given.get("noise")}
    changed = {name: value for name, value in named.items() if value is not None}
    return replace(net, leak=leak, dt=dt, notes=(*net.notes, *notes), **changed)


def _leak(found: str, leak: Any, dt: Any, tau: Any) -> tuple[float | Tensor, float | None]:
    r"""$\alpha = dt / \tau$ from two of the three, and dt; the leak alone, or leak and dt, are enough too."""
    leak, dt, tau = (None if v is None else _number(name, v) for name, v in (("leak", leak), ("dt", dt), ("tau", tau)))
    if isinstance(dt, Tensor):
        raise InputError(f"dt: {dt.numel()} values; allowed: one number")
    if None not in (leak, dt, tau):
        raise InputError(f"leak, dt, tau: {leak}, {dt}, {tau}; allowed: two of the three, because leak = dt / tau")
    for name, value in (("dt", dt), ("tau", tau)):
        if value is not None and not bool((torch.as_tensor(value) > 0).all()):
            raise InputError(f"{name}: {value}; allowed: above 0")
    if leak is None and (dt is None or tau is None):
        raise InputError(
            f"leak: not in the file, which is of {found}; allowed: leak (1 for none), or dt and tau (leak = dt / tau)"
        )
    if leak is None or tau is None:
        return (dt / tau if leak is None else leak), dt
    if isinstance(leak, Tensor) or isinstance(tau, Tensor):
        raise InputError("leak, tau: one for each neuron; allowed: numbers, or dt and tau")
    return leak, leak * tau


def _timed(net: VanillaRNN, given: Mapping[str, Any]) -> VanillaRNN:
    """A network that has its leak, with what is given of time and noise."""
    _, dt = _leak("", net.leak, given.get("dt", net.dt), given.get("tau"))
    return replace(net, dt=dt, noise=given.get("noise", net.noise))


def _number(name: str, value: Any) -> float | Tensor:
    values = real(name, value)
    return float(values) if values.numel() == 1 else values


def _from_arrays(arrays: Mapping[str, Any], activation: str | Activation | None) -> VanillaRNN:
    tensors = {key: real(key, value) for key, value in arrays.items() if key not in TEXTS}
    recurrent = weights.from_tensors(tensors)
    like = next(recurrent.parameters()).detach()
    if ("encoders" in arrays) == ("input_weights" in arrays):
        found = "both" if "encoders" in arrays else f"neither, beside {_shown(tensors)}"
        raise InputError(
            f"encoders, input_weights: {found}; allowed: one of the two, encoders E, fed through W, or input_weights "
            "U, (neurons, channels)"
        )
    name = "encoders" if "encoders" in arrays else "input_weights"
    fed, n = tensors[name].to(like), recurrent.neurons
    if fed.ndim != 2 or len(fed) != n or not fed.shape[1]:
        raise InputError(f"{name}: shape {tuple(fed.shape)}; allowed: ({n}, channels)")
    if name == "encoders":
        with torch.no_grad():
            fed = recurrent(fed.T).T
    numbers = {key: tensors[key] for key in ("decays", "scales") if key in arrays}
    if any(values.ndim > 1 for values in numbers.values()) or list(numbers) == ["scales"]:
        raise InputError(
            "decays, scales: scales alone, or a matrix; allowed: decays (channels,), and scales beside them"
        )
    task = Integration(*(values.tolist() for values in numbers.values())) if numbers else None
    f = _activation(_text("activation", arrays.get("activation")), activation, tensors)
    biases = [tensors[key] for key in ("bias", "input_bias") if key in tensors] or [like.new_zeros(n)]
    for bias in biases:
        if bias.shape != (n,):
            raise InputError(f"bias: shape {tuple(bias.shape)}; allowed: ({n},)")
    noise = _number("noise", arrays.get("noise", 0.0))
    if isinstance(noise, Tensor):
        raise InputError(f"noise: {noise.numel()} values; allowed: one number")
    return VanillaRNN(
        recurrent,
        fed,
        f,
        torch.stack(biases).sum(0),
        tensors.get("decoders"),
        tensors.get("offset"),
        task,
        initial=tensors.get("initial"),
        noise=noise,
    )


def _recording(arrays: Mapping[str, Any], given: Mapping[str, Any]) -> Recording:
    if given:
        raise InputError(f"{', '.join(given)}: given for a recording; allowed: none")
    if unknown := sorted(set(arrays) - set(RECORDING_ARRAYS)):
        raise InputError(_unknown({name: arrays[name] for name in unknown}))
    if "inputs" not in arrays:
        raise InputError("inputs: missing; allowed: activity with the inputs that it was recorded under")
    return Recording(*(real(name, arrays[name]) for name in RECORDING_ARRAYS))


def _activation(named: str | None, activation: str | Activation | None, tensors: dict[str, Tensor]) -> Activation:
    own = {key: tensors[key] for key in parameters() if key in tensors}
    if (named is None) == (activation is None):
        found = "missing" if named is None else f"given, and in the file {named}"
        raise InputError(f"activation: {found}; allowed: given once, {', '.join(ACTIVATIONS.parts)}")
    kind = named or activation
    assert kind is not None
    return make(kind, **own)


def _text(name: str, value: Any) -> str | None:
    if isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.size == 1:
        value = value.item()
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name}: {type(value).__name__}; allowed: a text")
    return value


def _attributes(module: nn.Module) -> dict[str, float]:
    """The leak and the times that a module, or one in it, has as numbers; the outermost counts."""
    found: dict[str, float] = {}
    for part in module.modules():
        for name in TIMES:
            value = getattr(part, name, None)
            if isinstance(value, Real) and any(True for _ in part.parameters()):  # an activation's alpha is none
                found.setdefault(name, float(value))
    return {"alpha": found["alpha"]} if "alpha" in found else found


def _refuse(given: Mapping[str, Any], thing: Any, names: Sequence[str]) -> None:
    for name in names:
        if name in given:
            raise InputError(f"{name}: {given[name]!r} for a {type(thing).__name__}; allowed: none, it has its own")


def _unknown(tensors: Mapping[str, Any]) -> str:
    unknown = sorted(set(tensors) - set(network_arrays()) - set(RECORDING_ARRAYS))
    names = ", ".join(map(_brief, (unknown or sorted(tensors))[:6])) or "nothing"
    networks, recordings = ", ".join(network_arrays()), ", ".join(RECORDING_ARRAYS)
    return (
        f"{names}: {'unknown' if unknown else 'not enough'}; allowed: {networks} for a network, {recordings} for a "
        f"recording, or names of this file for those of ours by `names` (--map); in it: {_shown(tensors)}"
    )


def _shown(tensors: Mapping[str, Any]) -> str:
    """Names and shapes, the first of them."""
    shapes = {name: tuple(getattr(value, "shape", ())) for name, value in tensors.items()}
    listed = [f"{_brief(name)} {'x'.join(map(str, shape)) or 'number'}" for name, shape in list(shapes.items())[:12]]
    return ", ".join(listed) + (f" and {len(shapes) - 12} more" if len(shapes) > 12 else "")


def _brief(name: str) -> str:
    """A name of a file, which may be of any length: what is allowed stands behind it in the same line."""
    return name if len(name) <= 40 else f"{name[:30]}..."
