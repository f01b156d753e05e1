"""The low-rank RNNs of the literature, and the RNNs of full rank that come with their code."""

from collections.abc import Collection
from typing import Any

from rni.core.errors import InputError
from rni.files.layouts.layout import LAYOUTS, FoundArrays, Layout, UnusedTensors, last_part

ASSUMED = {
    "form": ("current", ""),
    "activation": ("tanh", "as low-rank RNNs have it by default, in the recurrence and before the readout"),
    "leak": (0.2, "as low-rank RNNs have it by default: the file does not say"),
}


@LAYOUTS.register("full rank")
class FullRank(Layout):
    r"""$W$ = wrec, $U = w_i s_i$, $D = w_o s_o$ in the current form, whose state is called h there."""

    def recognises(self, names: Collection[str]) -> bool:
        return _prefix(names, ("wrec", "wi", "wo")) is not None

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        prefix = _prefix(tensors.tensors, ("wrec", "wi", "wo")) or ""
        if prefix + "b" not in tensors:
            tensors.note("wrec, wo taken as they are: divide them by N, if the code does")
        w = tensors.take(prefix + "wrec")
        if w.ndim != 2 or w.shape[0] != w.shape[1] or not len(w):
            shape = tuple(w.shape)
            raise InputError("wrec", shape, "(neurons, neurons)", problem=f"shape {shape}")
        arrays = {"recurrent": w} | _vectors(tensors, prefix, len(w), 1.0)
        return FoundArrays("a full-rank RNN with wrec, wi, wo", arrays, ASSUMED)


@LAYOUTS.register("low rank")
class LowRank(Layout):
    r"""$W = m n^\dagger / N$, $U = w_i s_i$, $D = w_o s_o / N$ in the current form, whose state is called h there."""

    def recognises(self, names: Collection[str]) -> bool:
        return _prefix(names, ("m", "n", "wi", "wo")) is not None

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        prefix = _prefix(tensors.tensors, ("m", "n", "wi", "wo")) or ""
        m, n = tensors.take(prefix + "m"), tensors.take(prefix + "n")
        if m.ndim != 2 or m.shape != n.shape or not len(m):
            shapes = tuple(m.shape), tuple(n.shape)
            raise InputError("m, n", shapes, "both (neurons, rank)", problem=f"shapes {shapes[0]}, {shapes[1]}")
        arrays = {"recurrent_left": m / len(m), "recurrent_right": n}
        arrays |= _vectors(tensors, prefix, len(m), 1 / len(m))
        return FoundArrays("a low-rank RNN", arrays, ASSUMED)


def _prefix(names: Collection[str], parts: tuple[str, ...]) -> str | None:
    """Return what precedes each of the parts in the names, if all of them are there."""
    prefixes = [name.removesuffix(parts[0]) for name in names if last_part(name) == parts[0]]
    return next((prefix for prefix in prefixes if all(prefix + part in names for part in parts)), None)


def _vectors(tensors: UnusedTensors, prefix: str, neurons: int, readout: float) -> dict[str, Any]:
    r"""Take wi (inputs, n) and wo (n, outputs), their scales, the start, the leak of a module, and the threshold b.

    The recurrence has $f(h + b)$ and the readout $f(h)$. With the state $v = h + b$, the threshold is a bias of the
    current form. The first step of such code, $f(h_0)$, has no b.
    """
    wi, wo = tensors.take(prefix + "wi"), tensors.take(prefix + "wo")
    si, so, b, h0 = (tensors.find(prefix + name) for name in ("si", "so", "b", "h0"))
    for name, matrix, scale, along in (("wi", wi, si, 0), ("wo", wo, so, 1)):
        shape = tuple(matrix.shape)
        if matrix.ndim != 2 or matrix.shape[1 - along] != neurons:
            allowed = f"(inputs, {neurons})" if name == "wi" else f"({neurons}, outputs)"
            raise InputError(name, shape, allowed, problem=f"shape {shape}")
        if scale is not None and scale.shape not in ((), (1,), matrix.shape[along : along + 1]):
            given = tuple(scale.shape)
            raise InputError(f"s{name[1]}", given, f"({matrix.shape[along]},)", problem=f"shape {given}")
    for name, vector in (("b", b), ("h0", h0)):
        if vector is not None and vector.numel() != neurons:
            given = tuple(vector.shape)
            raise InputError(name, given, f"({neurons},)", problem=f"shape {given}")

    arrays: dict[str, Any] = {"input_weights": wi.T if si is None else wi.T * si}
    arrays["decoders"] = readout * (wo if so is None else wo * so)
    if h0 is not None:
        arrays["initial"] = h0.flatten()
    if (leak := tensors.find("alpha")) is not None:
        arrays["leak"] = leak
    if b is not None and bool(b.any()):
        arrays |= {"bias": b.flatten(), "initial": arrays.get("initial", 0) + b.flatten(), "reads": "unbiased"}
        tensors.note("b counts in the first step too, in which such code leaves it out")
    return arrays
