"""Leaky RNNs as people write them: recurrent and input weights as `Linear` layers, or plain matrices, by their names.

Such files hold neither form nor activation nor, mostly, the leak; names tell what is usual, and that is said.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.files.remainder import Remainder


class Usual(NamedTuple):
    """Names of input weights beside recurrent weights of some name; the form and activation that go with them."""

    inputs: tuple[str, ...]
    form: str = "rate"
    activation: str = "tanh"


RECURRENT = {  # in lower case
    "h2h": Usual(("input2h", "in2h", "i2h"), activation="relu"),
    "hidden2hidden": Usual(("input2hidden",), activation="relu"),
    "fc_h2ah": Usual(("fc_x2ah",), form="current"),
    "w_rec": Usual(("w_in",)),
    "wrec": Usual(("win",)),
    "w_hh": Usual(("w_ih", "w_xh")),
    "w": Usual(("w_in", "win")),
    "j": Usual(("b", "w_in", "win"), form="current"),
}
BIASES = ("bias", "b", "b_rec", "brec", "b_h", "b_hh", "b_in")
READOUTS = ("w_out", "wout", "w_o", "w_y")
OFFSETS = ("b_out", "bout", "b_o", "b_y")
STARTS = ("h0", "x0", "r0", "ah0", "init_state", "initial_state", "initial_hidden")
TIMES = {"alpha": "leak", "leak": "leak", "dt": "dt", "tau": "tau"}


class Layers(NamedTuple):
    """The name of the recurrent weights, the network by our names, what is usual, and notes."""

    recurrent: str
    arrays: dict[str, Any]
    usual: Usual
    notes: tuple[str, ...]


def layers(tensors: Mapping[str, Any]) -> Layers | None:
    """The RNN whose recurrent and input weights have a pair of the names in `RECURRENT`, side by side."""
    found = {key: inputs for key in tensors if (inputs := _inputs(key, tensors))}
    if len(found) > 1:
        raise InputError(f"{', '.join(found)}: several RNNs; allowed: one, or the `names` of one (--map)")
    if not found:
        return None
    ((name, inputs),) = found.items()
    rest = Remainder(tensors)
    w, u = rest.take(name), rest.take(inputs)
    if w.ndim != 2 or u.ndim != 2 or not len(w) or w.shape[0] != w.shape[1] or len(w) not in u.shape:
        shapes = f"{tuple(w.shape)}, {tuple(u.shape)}"
        raise InputError(f"{name}, {inputs}: shapes {shapes}; allowed: (n, n) and (n, inputs), or `names` (--map)")
    prefix, own = _split(name)
    usual = RECURRENT[own.removesuffix(".weight").lower()]
    near = {_split(key)[1].lower(): key for key in rest.tensors if _split(key)[0] in (prefix, "")}
    biases = [re.sub(r"weight$", "bias", key) for key in (name, inputs)]
    arrays: dict[str, Any] = rest.biases([*biases, *(near[key] for key in BIASES if key in near)], len(w))
    arrays |= {ours: rest.take(near[key]).squeeze() for key, ours in TIMES.items() if key in near}
    arrays |= _first("initial", STARTS, rest, near)
    if not own.endswith(".weight"):
        arrays |= _plain(name, inputs, w, u, rest, near)
    elif excitatory := _reading_fewer(rest, len(w)):
        arrays |= {"input_weights": u} | _excitatory(w, rest, excitatory)
        usual = usual._replace(form="current")
    else:
        arrays |= {"recurrent": w, "input_weights": u} | rest.readout(len(w))
    return Layers(name, arrays, usual, rest.notes())


def _inputs(key: str, tensors: Mapping[str, Any]) -> str | None:
    """The name of the input weights beside recurrent weights of this name, if that is what they are."""
    prefix, own = _split(key)
    layer = ".weight" if own.endswith(".weight") else ""
    beside = {_split(other)[1].lower(): other for other in tensors if _split(other)[0] == prefix and other != key}
    wanted = RECURRENT.get(own.removesuffix(".weight").lower(), Usual(())).inputs
    return next((beside[name + layer] for name in wanted if name + layer in beside), None)


def _plain(name: str, inputs: str, w: Tensor, u: Tensor, rest: Remainder, near: Mapping[str, str]) -> dict[str, Tensor]:
    r"""Matrices without a layer: of $W h$ where U is (neurons, inputs), of $h^\dagger W$ where it is turned."""
    n, columns = len(w), len(u) == len(w)
    if u.shape == (n, n):
        raise InputError(
            f"{inputs}: shape {(n, n)}, from and to can't be told; allowed: `names` (--map), .T for the turned"
        )
    shape = "(neurons, inputs)" if columns else "(inputs, neurons)"
    rest.said.append(f"{name} taken as {'(to, from)' if columns else '(from, to)'}, because {inputs} is {shape}")
    arrays = {"recurrent": w if columns else w.T, "input_weights": u if columns else u.T}
    readouts = [near[key] for key in READOUTS if key in near]
    if not readouts:
        return arrays | rest.readout(n)
    read = rest.take(readouts[0])
    if read.ndim != 2 or n not in read.shape:
        raise InputError(f"{readouts[0]}: shape {tuple(read.shape)}; allowed: (outputs, {n}) or ({n}, outputs)")
    turned = columns if read.shape == (n, n) else read.shape[1] == n
    return arrays | {"decoders": read.T if turned else read} | _first("offset", OFFSETS, rest, near)


def _first(ours: str, names: tuple[str, ...], rest: Remainder, near: Mapping[str, str]) -> dict[str, Tensor]:
    return next(({ours: rest.take(near[name]).flatten()} for name in names if name in near), {})


def _reading_fewer(rest: Remainder, neurons: int) -> str | None:
    """The one layer that reads some of the neurons, where none reads all."""
    widths = {name: s[1] for name, s in rest.shapes().items() if name.endswith(".weight") and len(s) == 2}
    return next(iter(widths)) if len(widths) == 1 and max(widths.values()) < neurons else None


def _excitatory(w: Tensor, rest: Remainder, readout: str) -> dict[str, Tensor]:
    """E-I networks: |W| with the sign of the neuron that it comes from and without autapses, read from E alone."""
    read, offset = rest.take(readout), rest.find(re.sub(r"weight$", "bias", readout))
    n, e = len(w), read.shape[1]
    rest.said.append(f"{readout} reads the first {e} neurons of {n}, so the others are taken as inhibitory: W = ±|W|")
    signs = torch.cat([w.new_ones(e), -w.new_ones(n - e)])
    decoders = torch.cat([read.T, read.new_zeros(n - e, len(read))])
    arrays = {"recurrent": w.abs() * signs * (1 - torch.eye(n, dtype=w.dtype)), "signs": signs, "decoders": decoders}
    return arrays if offset is None else arrays | {"offset": offset}


def _split(name: str) -> tuple[str, str]:
    """What stands before the last part of a name, and that part, with .weight or .bias if it ends in one."""
    own = re.search(r"[^.]*(\.(weight|bias))?\Z", name)
    assert own is not None
    return name[: own.start()], own.group()
