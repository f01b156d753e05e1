"""The list of arrays that Keras's `get_weights` returns for a SimpleRNN, alone or with a Dense readout."""

import re
from collections.abc import Collection

from rni.core.errors import InputError
from rni.files.layouts.layout import LAYOUTS, FoundArrays, Layout, UnusedTensors, require_no_gates

ALLOWED = "a SimpleRNN's kernel (inputs, n), recurrent kernel (n, n), bias (n), and a Dense layer's two"


@LAYOUTS.register("Keras")
class KerasWeights(Layout):
    """Arrays without names. States are rows in Keras, so that matrices are (from, to)."""

    def recognises(self, names: Collection[str]) -> bool:
        return bool(names) and all(re.fullmatch(r"arr_\d+", name) for name in names)

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        values = [tensors.take(name) for name in sorted(tensors.tensors, key=lambda name: int(name[4:]))]
        shapes = [tuple(value.shape) for value in values]
        error = InputError("arrays", shapes, ALLOWED, problem=f"shapes {', '.join(map(str, shapes))}")
        if len(values) < 2 or any(value.ndim != 2 for value in values[:2]):
            raise error
        u, w, *others = values
        require_no_gates("arr_1", (w.shape[1], w.shape[0]), ALLOWED)
        arrays = {"recurrent": w.T, "input_weights": u.T}
        for name, dimensions in (("bias", 1), ("decoders", 2), ("offset", 1)):
            if others and others[0].ndim == dimensions and (name == "offset" or len(others[0]) == len(w)):
                arrays[name] = others.pop(0)
        if others or ("offset" in arrays and "decoders" not in arrays):
            raise error
        reason = "Keras's default: weights do not say which"
        return FoundArrays("Keras's SimpleRNN", arrays, {"activation": ("tanh", reason), "leak": (1.0, "")})
