"""Networks and recordings from other programs: torch modules, state dicts, arrays, and files of them.

All of them become a `VanillaRNN` or a `Recording`. The names of the tensors decide which layout they have (see
`rni.files.layouts`). Where no layout fits, `names` maps our names to those of the file, `{"recurrent": "J"}`. Our names
are those of `network_arrays()`, and activity and inputs for a recording.
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
from rni.activations import ACTIVATIONS, Activation
from rni.activations.module import ActivationModule, make
from rni.core.errors import InputError, nearest, path_of, printable
from rni.core.registry import field_names
from rni.core.tensors import real
from rni.files.layouts import FoundArrays, recognise
from rni.files.layouts.names import TIMES
from rni.files.layouts.torch_rnn import SUPPORTED
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
    r"""What a file does not say about its network.

    Parameters
    ----------
    leak, dt, tau : float or tensor, optional
        The leak $\alpha$, the time of a step and the time constant $\tau = dt/\alpha$. Two of the three give the third.
    form, reads : str, optional
        As in `VanillaRNN`.
    noise : float, optional
        The standard deviation of the noise that is added to the state at each step.
    names : mapping, optional
        For our names, those of `network_arrays()`, the names in the file, with .T for a matrix that is transposed.
    """

    leak: float | Tensor | None
    form: Form | None
    reads: Read | None
    noise: float | None
    dt: float | None
    tau: float | None
    names: Mapping[str, str] | None


def parameters() -> tuple[str, ...]:
    """Return the names of the parameters of all registered activations."""
    return tuple(dict.fromkeys(name for part in ACTIVATIONS.parts.values() for name in field_names(part)))


def network_arrays() -> tuple[str, ...]:
    """Return our names for the arrays, numbers and texts of a network."""
    return (
        *(*weights.names(), "encoders", "input_weights", "bias", "input_bias", "decoders", "offset", "initial"),
        *("activation", *parameters(), "leak", "form", "reads", "noise", "dt", "tau", "decays", "scales"),
    )


def interpret(
    thing: Foreign, activation: str | Activation | None = None, **reading: Unpack[Reading]
) -> VanillaRNN | Recording:
    """Convert a network or a recording from anywhere to a `VanillaRNN` or a `Recording`.

    Parameters
    ----------
    thing : Network, VanillaRNN, Recording, torch module, (rnn, readout), state dict, arrays, or a list of arrays
        A list contains the arrays that Keras's `get_weights` returns.
    activation : str or Activation, optional
        For tensors that do not say which. Modules and networks have their own.
    **reading
        What else the tensors do not say, see `Reading`.

    Raises
    ------
    InputError
        If the thing is not supported, or if it contradicts itself or what is given.
    """
    for name in reading:
        if name not in Reading.__annotations__:
            known = ("task", "decays", "scales", "inputs", "activation", "seed", *Reading.__annotations__)
            hint = nearest(name, known)
            raise InputError(name, reading[name], ", ".join(known), problem="no such option", hint=hint)
    given: dict[str, Any] = {key: value for key, value in reading.items() if value is not None}
    if activation is not None:
        given["activation"] = activation
    if isinstance(thing, tuple) and len(thing) == 2 and all(isinstance(part, nn.Module) for part in thing):
        rnn, readout = thing
        if getattr(rnn, "hidden_size", None) != (read := getattr(readout, "in_features", None)):
            problem = f"{type(readout).__name__} of {read} neurons beside {type(rnn).__name__}"
            raise InputError("readout", readout, "(RNN, Linear), of as many neurons", problem=problem)
        thing = nn.ModuleList(thing)
    if isinstance(thing, Recording):
        _refuse_for_recording(given)
        return thing
    if isinstance(thing, VanillaRNN | Network):
        _refuse(given, thing, ("activation", "leak", "form", "reads", "names"))
        net = thing if isinstance(thing, VanillaRNN) else VanillaRNN.of(thing)
        if not given:
            return net
        _, dt = _leak("", net.leak, given.get("dt", net.dt), given.get("tau"))
        return replace(net, dt=dt, noise=given.get("noise", net.noise))
    if isinstance(thing, nn.Module):
        return _from_module(thing, given)
    if isinstance(thing, list):
        thing = {f"arr_{k}": values for k, values in enumerate(thing)}
    if isinstance(thing, Mapping):
        return _from_tensors(thing, given)
    allowed = (
        "a Network (of a file: rni.load(path), of a design: its `network`), a Recording, a torch.nn.RNN, (RNN, Linear),"
        " a state dict, a dict of arrays, or a list of Keras's weights"
    )
    raise InputError("network", thing, allowed, problem=f"{type(thing).__name__}, can't be analysed")


def read(path: str | Path, activation: str | None = None, **reading: Unpack[Reading]) -> VanillaRNN | Recording:
    """Read a network or a recording: a network file, a state dict (.pt, .safetensors), or arrays (.npz, .mat).

    Parameters
    ----------
    path : str or Path
        The file.
    activation, **reading
        What the file does not say, as for `interpret`.

    Raises
    ------
    InputError
        If the file cannot be read, or if its network is not supported.
    """
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


def _from_module(module: nn.Module, given: Mapping[str, Any]) -> VanillaRNN:
    """Read the only RNN in a module, its linear readout if there is one, and its leak if it has one as an attribute."""
    cells = [m for m in module.modules() if isinstance(m, nn.RNNBase | nn.RNNCellBase)]
    if not cells:
        recognised = _recognise(module.state_dict() | _attributes(module), given)
        if recognised:
            return _network(*recognised, given)
    if len(cells) != 1:
        problem = f"{', '.join(type(cell).__name__ for cell in cells) or 'no RNN'} in it"
        raise InputError(type(module).__name__, module, SUPPORTED, problem=problem)
    if not isinstance(cells[0], nn.RNN | nn.RNNCell):
        raise InputError(type(cells[0]).__name__, module, SUPPORTED, problem="has gates")
    _refuse(given, module, ("activation", "names"))
    recognised = recognise(module.state_dict())
    assert recognised is not None
    found, notes = recognised
    arrays = found.arrays | {"activation": str(cells[0].nonlinearity)}
    leak = _attributes(module).get("alpha", 1.0)
    looped = isinstance(cells[0], nn.RNNCell) and 0 < leak < 1  # between the steps of a layer no code can run
    assumed = {"leak": (leak, "its attribute alpha")} if looped else found.assumed
    return _network(found._replace(arrays=arrays, assumed=assumed), notes, given)


def _from_tensors(tensors: Mapping[str, Any], given: Mapping[str, Any]) -> VanillaRNN | Recording:
    """Read tensors under the names of a recording, of a layout, or those that are given."""
    for name in tensors:
        if not isinstance(name, str):
            problem = type(name).__name__
            raise InputError("a name", name, "text, as in a state dict or an .npz file", problem=problem)
    if "activity" in tensors and "names" not in given:
        return _recording(tensors, given)
    recognised = _recognise(tensors, given)
    ours = not set(tensors) - set(network_arrays())
    if not tensors or (not ours and (recognised is None or recognised[0].source == "arrays")):
        raise _unknown(tensors)
    if recognised is None:
        raise InputError("recurrent", None, f"a network of {', '.join(weights.names())}", problem="missing")
    return _network(*recognised, given)


def _recognise(tensors: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[FoundArrays, list[str]] | None:
    return _mapped(tensors, given["names"]) if "names" in given else recognise(tensors)


def _mapped(tensors: Mapping[str, Any], names: Mapping[str, str]) -> tuple[FoundArrays, list[str]]:
    """Read tensors by the names that the user gave."""
    arrays: dict[str, Any] = {}
    used = set()
    for ours, theirs in names.items():
        if ours not in (known := network_arrays()):
            raise InputError("map", ours, ", ".join(known), hint=nearest(ours, known))
        transposed = theirs not in tensors and theirs.endswith(".T")
        name = theirs.removesuffix(".T") if transposed else theirs
        if name not in tensors:
            allowed = f"of this file {_shown(tensors)}"
            raise InputError("map", theirs, allowed, problem=f"{ours}={theirs}", hint=nearest(name, tensors))
        arrays[ours] = tensors[name] if ours in TEXTS else _plain(ours, real(name, tensors[name]))
        arrays[ours] = arrays[ours].T if transposed else arrays[ours]
        used.add(name)
    unused = [name for name in tensors if name not in used]
    notes = [printable(f"not part of the analysis: {', '.join(unused)}")] if unused else []
    return FoundArrays("tensors named by map", arrays, {"leak": (1.0, "as none was given")}), notes


def _plain(name: str, values: Tensor) -> Tensor:
    """Flatten vectors of shape (1, n) or (n, 1), as MATLAB has them."""
    vectors = ("bias", "input_bias", "offset", "initial", "leak", "tau", "decays", "scales", "signs", *parameters())
    return values.flatten() if name in vectors and values.ndim == 2 and 1 in values.shape else values


def _network(found: FoundArrays, notes: list[str], given: Mapping[str, Any]) -> VanillaRNN:
    """Build a network of the arrays that were found, what the user gave, and what is assumed for the rest."""
    arrays, notes = dict(found.arrays), list(notes)
    twice = [name for name in given if name in arrays and name not in ("names", "noise", "activation")]
    if twice:
        raise InputError(", ".join(twice), None, "once", problem="given, and in the file")
    known = given.keys() | arrays.keys()
    known |= {"leak"} if {"dt", "tau"} <= known else set()
    for name, (value, reason) in found.assumed.items():
        if name not in known:
            arrays[name] = value
            notes += [f"{name} {value}, {printable(reason)}"] if reason else []

    # what the dynamics are
    values = {name: given.get(name, arrays.get(name)) for name in ("leak", "dt", "tau", "form", "reads", "noise")}
    leak, dt = _leak(found.source, values["leak"], values["dt"], values["tau"])
    form, reads = (_text(name, values[name]) for name in ("form", "reads"))
    if form is None and not (isinstance(leak, float) and leak == 1):
        notes.append("form rate, as none was given: h <- (1 - leak) h + leak f(W h + U x + b)")
    noise = _number("noise", values["noise"] or 0.0)
    if isinstance(noise, Tensor):
        raise InputError("noise", noise, "one number", problem=f"{noise.numel()} values")

    # what the weights are
    times = ("leak", "dt", "tau", "noise")
    tensors = {key: real(key, value) for key, value in arrays.items() if key not in (*TEXTS, *times)}
    recurrent = weights.from_tensors(tensors)
    like, n = next(recurrent.parameters()).detach(), recurrent.neurons
    if ("encoders" in tensors) == ("input_weights" in tensors):
        problem = "both" if "encoders" in tensors else f"neither, beside {_shown(tensors)}"
        allowed = "one of the two, encoders E, fed through W, or input_weights U, (neurons, channels)"
        raise InputError("encoders, input_weights", None, allowed, problem=problem)
    name = "encoders" if "encoders" in tensors else "input_weights"
    input_weights = tensors[name].to(like)
    if input_weights.ndim != 2 or len(input_weights) != n or not input_weights.shape[1]:
        shape = tuple(input_weights.shape)
        raise InputError(name, shape, f"({n}, channels)", problem=f"shape {shape}")
    if name == "encoders":
        with torch.no_grad():
            input_weights = recurrent(input_weights.T).T
    biases = [tensors[key] for key in ("bias", "input_bias") if key in tensors] or [like.new_zeros(n)]
    for bias in biases:
        if bias.shape != (n,):
            shape = tuple(bias.shape)
            raise InputError("bias", shape, f"({n},)", problem=f"shape {shape}")
    return VanillaRNN(
        recurrent,
        input_weights,
        _activation(_text("activation", arrays.get("activation")), given.get("activation"), tensors),
        torch.stack(biases).sum(0),
        tensors.get("decoders"),
        tensors.get("offset"),
        _task(tensors),
        tuple(notes),
        leak,
        form=form or "rate",  # pyright: ignore[reportArgumentType]: the network checks it
        reads=reads or "rates",  # pyright: ignore[reportArgumentType]
        initial=tensors.get("initial"),
        noise=noise,
        dt=dt,
    )


def _task(tensors: Mapping[str, Tensor]) -> Integration | None:
    """Return the task whose decays and scales are among the arrays."""
    numbers = {key: tensors[key] for key in ("decays", "scales") if key in tensors}
    if any(values.ndim > 1 for values in numbers.values()) or list(numbers) == ["scales"]:
        allowed = "decays (channels,), optionally with scales (channels,)"
        raise InputError("decays, scales", None, allowed, problem="scales alone, or a matrix")
    return Integration(*(values.tolist() for values in numbers.values())) if numbers else None


def _leak(source: str, leak: Any, dt: Any, tau: Any) -> tuple[float | Tensor, float | None]:
    r"""Return $\alpha = dt / \tau$ and dt, from two of the three, or from the leak alone."""
    leak, dt, tau = (None if v is None else _number(name, v) for name, v in (("leak", leak), ("dt", dt), ("tau", tau)))
    if isinstance(dt, Tensor):
        raise InputError("dt", dt, "one number", problem=f"{dt.numel()} values")
    if None not in (leak, dt, tau):
        allowed = "two of the three, because leak = dt / tau"
        raise InputError("leak, dt, tau", (leak, dt, tau), allowed, problem=f"{leak}, {dt}, {tau}")
    for name, value in (("dt", dt), ("tau", tau)):
        if value is not None and not bool((torch.as_tensor(value) > 0).all()):
            raise InputError(name, value, "above 0")
    if leak is None and (dt is None or tau is None):
        problem = f"not in the file, which is of {source}"
        raise InputError("leak", None, "leak (1 for none), or dt and tau (leak = dt / tau)", problem=problem)
    if leak is None or tau is None:
        return (dt / tau if leak is None else leak), dt
    if isinstance(leak, Tensor) or isinstance(tau, Tensor):
        raise InputError("leak, tau", None, "numbers, or dt and tau", problem="one for each neuron")
    return leak, leak * tau


def _number(name: str, value: Any) -> float | Tensor:
    values = real(name, value)
    return float(values) if values.numel() == 1 else values


def _recording(arrays: Mapping[str, Any], given: Mapping[str, Any]) -> Recording:
    _refuse_for_recording(given)
    if unknown := sorted(set(arrays) - set(RECORDING_ARRAYS)):
        raise _unknown({name: arrays[name] for name in unknown})
    if "inputs" not in arrays:
        allowed = "activity with the inputs that it was recorded under"
        raise InputError("inputs", None, allowed, problem="missing")
    return Recording(*(real(name, arrays[name]) for name in RECORDING_ARRAYS))


def _activation(named: str | None, activation: str | Activation | None, tensors: dict[str, Tensor]) -> ActivationModule:
    own: dict[str, Any] = {key: tensors[key] for key in parameters() if key in tensors}
    if (named is None) == (activation is None):
        problem = "missing" if named is None else f"given, and in the file {named}"
        raise InputError("activation", named, f"given once, {', '.join(ACTIVATIONS.parts)}", problem=problem)
    kind = named or activation
    assert kind is not None
    return make(kind, **own)


def _text(name: str, value: Any) -> str | None:
    if isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.size == 1:
        value = value.item()
    if value is not None and not isinstance(value, str):
        raise InputError(name, value, "a text", problem=type(value).__name__)
    return value


def _attributes(module: nn.Module) -> dict[str, float]:
    """Return the leak or the times that a module, or one in it, has as numbers. The outermost module counts."""
    attributes: dict[str, float] = {}
    for part in module.modules():
        for name in TIMES:
            value = getattr(part, name, None)
            if isinstance(value, Real) and any(True for _ in part.parameters()):  # not the alpha of an activation
                attributes.setdefault(name, float(value))
    return {"alpha": attributes["alpha"]} if "alpha" in attributes else attributes


def _refuse(given: Mapping[str, Any], thing: Any, names: Sequence[str]) -> None:
    for name in names:
        if name in given:
            problem = f"{given[name]!r} for a {type(thing).__name__}"
            raise InputError(name, given[name], "none, it has its own", problem=problem)


def _refuse_for_recording(given: Mapping[str, Any]) -> None:
    if given:
        raise InputError(", ".join(given), None, "none", problem="given for a recording")


def _unknown(tensors: Mapping[str, Any]) -> InputError:
    """Return an error with the names that are allowed, and those that are there."""
    unknown = sorted(set(tensors) - set(network_arrays()) - set(RECORDING_ARRAYS))
    names = ", ".join(map(_brief, (unknown or sorted(tensors))[:6])) or "nothing"
    networks, recordings = ", ".join(network_arrays()), ", ".join(RECORDING_ARRAYS)
    allowed = (
        f"{networks} for a network, {recordings} for a recording, or names of this file for those of ours by `names` "
        f"(--map); in it: {_shown(tensors)}"
    )
    return InputError(names, None, allowed, problem="unknown" if unknown else "not enough")


def _shown(tensors: Mapping[str, Any]) -> str:
    """Return the first names with their shapes."""
    shapes = {name: tuple(getattr(value, "shape", ())) for name, value in tensors.items()}
    listed = [f"{_brief(name)} {'x'.join(map(str, shape)) or 'number'}" for name, shape in list(shapes.items())[:12]]
    return ", ".join(listed) + (f" and {len(shapes) - 12} more" if len(shapes) > 12 else "")


def _brief(name: str) -> str:
    """Shorten a name of a file, so that a line has room for what is allowed."""
    return name if len(name) <= 40 else f"{name[:30]}..."
