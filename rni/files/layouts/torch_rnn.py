"""`torch.nn.RNN` and `torch.nn.RNNCell`, alone or in a model with a linear readout."""

import re
from collections.abc import Collection

from rni.core.errors import InputError
from rni.core.tensors import real
from rni.files.layouts.layout import LAYOUTS, FoundArrays, Layout, UnusedTensors, last_part, require_no_gates

SUPPORTED = "one torch.nn.RNN or RNNCell, one layer, one direction, tanh or relu; others as a recording (.npz)"


@LAYOUTS.register("torch.nn.RNN")
class TorchRNN(Layout):
    """A state dict whose names end as torch names them; the readout is the only other matrix of its width."""

    announced = False

    def recognises(self, names: Collection[str]) -> bool:
        return any(last_part(name).startswith(("weight_hh", "weight_ih")) for name in names)

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        recurrent = _recurrent_name(tensors)
        prefix, _, layer = recurrent.rpartition("weight_hh")
        input_weights = f"{prefix}weight_ih{layer}"
        if input_weights not in tensors:
            raise InputError(input_weights, None, SUPPORTED, problem="missing")

        w, u = tensors.take(recurrent), tensors.take(input_weights)
        arrays = {"recurrent": w, "input_weights": u}
        arrays |= tensors.biases([f"{prefix}bias_ih{layer}", f"{prefix}bias_hh{layer}"], len(w))
        arrays |= tensors.readout(len(w))
        reason = "torch's default: a state dict does not say which"
        return FoundArrays("torch.nn.RNN", arrays, {"activation": ("tanh", reason), "leak": (1.0, "")})


def _recurrent_name(tensors: UnusedTensors) -> str:
    """Return the name of the recurrent matrix, and refuse RNNs that are not supported."""
    endings = {name: last_part(name) for name in tensors.tensors}
    for name, ending in endings.items():
        if ending.endswith("_reverse"):
            raise InputError(name, None, SUPPORTED, problem="a bidirectional RNN")
        if ending.startswith("weight_hr"):
            raise InputError(name, None, SUPPORTED, problem="an RNN with projections")
        if re.fullmatch(r"weight_hh_l[1-9]\d*", ending):
            raise InputError(name, None, SUPPORTED, problem="an RNN of 2 layers or more")
    matrices = [name for name, ending in endings.items() if ending in ("weight_hh_l0", "weight_hh")]
    if len(matrices) != 1:
        names = ", ".join(matrices or list(endings)[:8])
        problem = "several RNNs" if matrices else "no recurrent weights (weight_hh_l0)"
        raise InputError(names, None, SUPPORTED, problem=problem)
    require_no_gates(matrices[0], tuple(real(matrices[0], tensors.tensors[matrices[0]]).shape), SUPPORTED)
    return matrices[0]
