r"""What other people's code saves: its names for the parts of an RNN, and what it makes of them.

A format is recognised by its names. What it leaves open, because the code and not the file has it, is assumed as the
code has it where there is one way, and asked for where there are several.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.core.tensors import real
from rni.files.layers import layers
from rni.files.remainder import Remainder

SUPPORTED = "allowed: one torch.nn.RNN or RNNCell, one layer, one direction, tanh or relu; others as a recording (.npz)"

PLAIN = ("torch.nn.RNN", "arrays", "tensors named by map")


class Found(NamedTuple):
    """A network by our names (see `rni.files.foreign`), and what its file leaves open: the value, and why that one.

    A leak that is neither in the arrays nor assumed has to be given.
    """

    format: str
    arrays: dict[str, Any]
    assumed: dict[str, tuple[Any, str]]
    notes: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[str, ...]:
        """A note of what it was taken for, where that is another code."""
        return () if self.format in PLAIN else (f"read as the weights of {self.format}",)


def recognise(tensors: Mapping[str, Any]) -> Found | None:
    """What the names say that this is."""
    formats: tuple[Callable[[Mapping[str, Any]], Found | None], ...] = (
        torch_rnn,
        psychrnn,
        low_rank,
        full_rank,
        keras,
        by_hand,
    )
    return next((found for found in (form(tensors) for form in formats) if found), None)


def torch_rnn(tensors: Mapping[str, Any]) -> Found | None:
    """`torch.nn.RNN` or RNNCell by the endings that torch gives, its readout as the one other matrix of its width."""
    if not any(_ending(name).startswith(("weight_hh", "weight_ih")) for name in tensors):
        return None
    name = _torch_recurrent(tensors)
    prefix, layer = re.fullmatch(r"(?s)(.*)weight_hh(_l0)?", name).groups("")  # pyright: ignore[reportOptionalMemberAccess]
    own = {key: f"{prefix}{key}{layer}" for key in ("weight_hh", "weight_ih", "bias_ih", "bias_hh")}
    if own["weight_ih"] not in tensors:
        raise InputError(f"{own['weight_ih']}: missing; {SUPPORTED}")
    rest = Remainder(tensors)
    w, u = rest.take(name), rest.take(own["weight_ih"])
    arrays = {"recurrent": w, "input_weights": u}
    arrays |= rest.biases([own["bias_ih"], own["bias_hh"]], len(w)) | rest.readout(len(w))
    why = "torch's default: a state dict does not say which"
    return Found("torch.nn.RNN", arrays, {"activation": ("tanh", why), "leak": (1.0, "")}, rest.notes())


def _torch_recurrent(tensors: Mapping[str, Any]) -> str:
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
        names = ", ".join(found or list(tensors)[:8])
        raise InputError(f"{names}: {'several RNNs' if found else 'no recurrent weights (weight_hh_l0)'}; {SUPPORTED}")
    _require_no_gates(found[0], tuple(real(found[0], tensors[found[0]]).shape), SUPPORTED)
    return found[0]


def _require_no_gates(name: str, shape: tuple[int, ...], allowed: str) -> None:
    kinds = {1: None, 3: "a GRU", 4: "an LSTM"}
    if len(shape) != 2 or not shape[1] or shape[0] % shape[1] or shape[0] // shape[1] not in kinds:
        raise InputError(f"{name}: shape {shape}; {allowed}")
    if kind := kinds[shape[0] // shape[1]]:
        raise InputError(f"{name}: shape {shape}, {kind}; {allowed}")


def psychrnn(tensors: Mapping[str, Any]) -> Found | None:
    r"""PsychRNN's weights: $v \leftarrow (1-\alpha)v + \alpha(W f(v) + U x + b)$, masks that multiply, Dale's law.

    Under it, $W = |W_{rec}|$ Dale_rec, $U = |W_{in}|$ and $D^\dagger = |W_{out}|$ Dale_out; |W| is what newer versions
    save anyway.
    """
    matrices = {"W_rec": "rec_connectivity", "W_in": "input_connectivity", "W_out": "output_connectivity"}
    if not tensors.keys() >= matrices.keys() or not tensors.keys() & {"Dale_rec", *matrices.values()}:
        return None
    rest = Remainder(tensors)
    w, u, out = (_masked(rest, *pair) for pair in matrices.items())
    n = len(w)
    signs, read = (_diagonal(rest, name, n) for name in ("Dale_rec", "Dale_out"))
    ratio = rest.find("dale_ratio")
    arrays: dict[str, Any] = {"recurrent": w, "input_weights": u, "decoders": out.T}
    if bool((signs < 0).any()) or (ratio is not None and bool((ratio > 0).all())):
        arrays = {"recurrent": w.abs() * signs, "signs": signs, "input_weights": u.abs()}
        arrays["decoders"] = (out.abs() * read).T if out.shape[-1] == n else out.T
    arrays |= {key: rest.take(name) for key, name in (("bias", "b_rec"), ("offset", "b_out")) if name in tensors}
    if "init_state" in tensors:
        arrays["initial"] = rest.take("init_state").flatten()
    assumed = {"form": ("current", ""), "activation": ("relu", "PsychRNN's default: the file does not say which")}
    return Found("PsychRNN", arrays, assumed, rest.notes())


def low_rank(tensors: Mapping[str, Any]) -> Found | None:
    r"""Low-rank RNNs: $W = m n^\dagger / N$, $U = w_i s_i$, $D = w_o s_o / N$, and h for v in the current form."""
    prefix = _prefix(tensors, ("m", "n", "wi", "wo"))
    if prefix is None:
        return None
    rest = Remainder(tensors)
    m, n = (rest.take(prefix + name) for name in "mn")
    if m.ndim != 2 or m.shape != n.shape or not len(m):
        raise InputError(f"m, n: shapes {tuple(m.shape)}, {tuple(n.shape)}; allowed: both (neurons, rank)")
    arrays: dict[str, Any] = {"recurrent_left": m / len(m), "recurrent_right": n}
    arrays |= _scaled(rest, prefix, len(m), 1 / len(m))
    return Found("a low-rank RNN", arrays, _OF_LOW_RANK, rest.notes())


def full_rank(tensors: Mapping[str, Any]) -> Found | None:
    r"""Their full-rank companions: $W$ = wrec, $U = w_i s_i$, $D = w_o s_o$."""
    prefix = _prefix(tensors, ("wrec", "wi", "wo"))
    if prefix is None:
        return None
    rest = Remainder(tensors)
    w = rest.take(prefix + "wrec")
    if w.ndim != 2 or w.shape[0] != w.shape[1] or not len(w):
        raise InputError(f"wrec: shape {tuple(w.shape)}; allowed: (neurons, neurons)")
    if prefix + "b" not in tensors:
        rest.said.append("wrec, wo taken as they are: divide them by N, if the code does")
    arrays = {"recurrent": w} | _scaled(rest, prefix, len(w), 1.0)
    return Found("a full-rank RNN with wrec, wi, wo", arrays, _OF_LOW_RANK, rest.notes())


_OF_LOW_RANK = {
    "form": ("current", ""),
    "activation": ("tanh", "as low-rank RNNs have it by default, in the recurrence and before the readout"),
    "leak": (0.2, "as low-rank RNNs have it by default: the file does not say"),
}


def _scaled(rest: Remainder, prefix: str, neurons: int, readout: float) -> dict[str, Any]:
    r"""wi (inputs, n), wo (n, outputs), their scales, and a threshold: $f(h + b)$ in the recurrence, $f(h)$ read out.

    With $v = h + b$ that is a bias of the current form; the first step of such code, $f(h_0)$, has no b.
    """
    wi, wo = (rest.take(prefix + name) for name in ("wi", "wo"))
    si, so, b, h0 = (rest.find(prefix + name) for name in ("si", "so", "b", "h0"))
    for name, matrix, scale, along in (("wi", wi, si, 0), ("wo", wo, so, 1)):
        if matrix.ndim != 2 or matrix.shape[1 - along] != neurons:
            allowed = f"(inputs, {neurons})" if name == "wi" else f"({neurons}, outputs)"
            raise InputError(f"{name}: shape {tuple(matrix.shape)}; allowed: {allowed}")
        if scale is not None and scale.shape not in ((), (1,), matrix.shape[along : along + 1]):
            raise InputError(
                f"s{name[1]}: shape {tuple(scale.shape)}; allowed: {tuple(matrix.shape[along : along + 1])}"
            )
    arrays: dict[str, Any] = {"input_weights": wi.T if si is None else wi.T * si}
    arrays["decoders"] = readout * (wo if so is None else wo * so)
    for name, vector in (("b", b), ("h0", h0)):
        if vector is not None and vector.numel() != neurons:
            raise InputError(f"{name}: shape {tuple(vector.shape)}; allowed: ({neurons},)")
    if h0 is not None:
        arrays["initial"] = h0.flatten()
    if (leak := rest.find("alpha")) is not None:  # of a module
        arrays["leak"] = leak
    if b is not None and bool(b.any()):
        start = arrays.get("initial", 0)
        arrays |= {"bias": b.flatten(), "initial": start + b.flatten(), "reads": "unbiased"}
        rest.said.append("b counts in the first step too, in which such code leaves it out")
    return arrays


def keras(tensors: Mapping[str, Any]) -> Found | None:
    """The list that Keras's get_weights gives: kernel, recurrent kernel, bias; and those of a Dense layer that reads.

    States are rows there: matrices are (from, to).
    """
    if not tensors or not all(re.fullmatch(r"arr_\d+", name) for name in tensors):
        return None
    values = [real(name, tensors[name]) for name in sorted(tensors, key=lambda name: int(name[4:]))]
    shapes = ", ".join(str(tuple(value.shape)) for value in values)
    allowed = "allowed: a SimpleRNN's kernel (inputs, n), recurrent kernel (n, n), bias (n), and a Dense layer's two"
    if len(values) < 2 or any(value.ndim != 2 for value in values[:2]):
        raise InputError(f"arrays of shapes {shapes}; {allowed}")
    u, w, *more = values
    _require_no_gates("arr_1", tuple(w.shape[::-1]), allowed)
    arrays = {"recurrent": w.T, "input_weights": u.T}
    for name, dimension in (("bias", 1), ("decoders", 2), ("offset", 1)):
        if more and more[0].ndim == dimension and len(more[0]) == (len(w) if name != "offset" else more[0].numel()):
            arrays[name] = more.pop(0)
    if more or ("offset" in arrays and "decoders" not in arrays):
        raise InputError(f"arrays of shapes {shapes}; {allowed}")
    why = "Keras's default: weights do not say which"
    return Found("Keras's SimpleRNN", arrays, {"activation": ("tanh", why), "leak": (1.0, "")})


def _masked(rest: Remainder, name: str, mask: str) -> Tensor:
    values, kept = rest.take(name), rest.find(mask)
    if values.ndim != 2 or not len(values) or (kept is not None and kept.shape != values.shape):
        shapes = f"{tuple(values.shape)}{'' if kept is None else f', {tuple(kept.shape)}'}"
        raise InputError(f"{name}, {mask}: shapes {shapes}; allowed: matrices, the same of both")
    return values if kept is None else values * kept


def _diagonal(rest: Remainder, name: str, neurons: int) -> Tensor:
    values = rest.find(name)
    if values is None:
        return torch.ones(neurons)
    if values.shape != (neurons, neurons):
        raise InputError(f"{name}: shape {tuple(values.shape)}; allowed: {(neurons, neurons)}")
    return values.diagonal()


def _prefix(tensors: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """What stands before each of the names, where all are there."""
    starts = [key[: -len(names[0])] for key in tensors if _ending(key) == names[0]]
    return next((start for start in starts if all(start + name in tensors for name in names)), None)


def by_hand(tensors: Mapping[str, Any]) -> Found | None:
    """Leaky RNNs as people write them, see `rni.files.layers`."""
    found = layers(tensors)
    if found is None:
        return None
    why = "as is usual with these names: the file does not say"
    assumed = {"form": (found.usual.form, why), "activation": (found.usual.activation, why)}
    return Found(f"a leaky RNN ({found.recurrent})", found.arrays, assumed, found.notes)


def _ending(name: str) -> str:
    return name.rsplit(".", 1)[-1]
