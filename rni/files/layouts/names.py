"""Names that people give to the parts of leaky RNNs that they write themselves.

Such files contain neither the form nor the activation and seldom the leak. The names tell which ones are usual.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from torch import Tensor

from rni.core.errors import InputError
from rni.files.layouts.layout import UnusedTensors


class Usual(NamedTuple):
    """The names of input weights that belong to a name of recurrent weights, and the usual form and activation."""

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
STARTS = ("h0", "x0", "r0", "ah0", "init_state", "initial_state", "initial_hidden")
TIMES = {"alpha": "leak", "leak": "leak", "dt": "dt", "tau": "tau"}


def recurrent_pairs(names: Collection[str]) -> dict[str, str]:
    """Return the name of the recurrent weights and of the input weights next to them, for each RNN."""
    pairs = {}
    for name in names:
        prefix, own = split(name)
        usual = RECURRENT.get(own.removesuffix(".weight").lower())
        if usual:
            layer = ".weight" if own.endswith(".weight") else ""
            others = [other for other in names if split(other)[0] == prefix and other != name]
            siblings = {split(other)[1].lower(): other for other in others}
            inputs = [siblings[wanted + layer] for wanted in usual.inputs if wanted + layer in siblings]
            if inputs:
                pairs[name] = inputs[0]
    return pairs


class LeakyRNN(NamedTuple):
    """What the names of a leaky RNN give: W and U, its other arrays, and the names of the tensors next to them."""

    recurrent: str
    inputs: str
    w: Tensor
    u: Tensor
    usual: Usual
    arrays: dict[str, Tensor]
    siblings: Mapping[str, str]

    @property
    def source(self) -> str:
        return f"a leaky RNN ({self.recurrent})"

    def assumed(self, form: str | None = None) -> dict[str, tuple[str, str]]:
        """Return the usual form and activation."""
        reason = "as is usual with these names: the file does not say"
        return {"form": (form or self.usual.form, reason), "activation": (self.usual.activation, reason)}


def take_leaky_rnn(tensors: UnusedTensors) -> LeakyRNN:
    """Take the weights, the biases, the times and the start of the only leaky RNN."""
    pairs = recurrent_pairs(tensors.tensors)
    if len(pairs) > 1:
        raise InputError(", ".join(pairs), None, "one, or the `names` of one (--map)", problem="several RNNs")
    ((recurrent, inputs),) = pairs.items()
    w, u = tensors.take(recurrent), tensors.take(inputs)
    if w.ndim != 2 or u.ndim != 2 or not len(w) or w.shape[0] != w.shape[1] or len(w) not in u.shape:
        shapes = tuple(w.shape), tuple(u.shape)
        problem = f"shapes {shapes[0]}, {shapes[1]}"
        allowed = "(n, n) and (n, inputs), or `names` (--map)"
        raise InputError(f"{recurrent}, {inputs}", shapes, allowed, problem=problem)
    prefix, own = split(recurrent)
    siblings = {split(name)[1].lower(): name for name in tensors.tensors if split(name)[0] in (prefix, "")}
    biases = [re.sub(r"weight$", "bias", name) for name in (recurrent, inputs)]
    arrays = tensors.biases([*biases, *(siblings[name] for name in BIASES if name in siblings)], len(w))
    arrays |= {ours: tensors.take(siblings[name]).squeeze() for name, ours in TIMES.items() if name in siblings}
    arrays |= take_first("initial", STARTS, tensors, siblings)
    usual = RECURRENT[own.removesuffix(".weight").lower()]
    return LeakyRNN(recurrent, inputs, w, u, usual, arrays, siblings)


def take_first(
    ours: str, names: tuple[str, ...], tensors: UnusedTensors, siblings: Mapping[str, str]
) -> dict[str, Tensor]:
    """Take the first vector of these names that is left, and return it under our name."""
    for name in names:
        if name in siblings:
            return {ours: tensors.take(siblings[name]).flatten()}
    return {}


def split(name: str) -> tuple[str, str]:
    """Split a name before its last part, which contains .weight or .bias if the name ends in one."""
    own = re.search(r"[^.]*(\.(weight|bias))?\Z", name)
    assert own is not None
    return name[: own.start()], own.group()
