"""Export of networks to `torch.nn.RNN`, to ONNX and to plain arrays."""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rni.activations import ACTIVATIONS, Sigmoid, Softplus
from rni.core.atomic import write_atomically
from rni.core.errors import InputError
from rni.core.tensors import write_tensors
from rni.files.native import network_tensors
from rni.networks.network import Network
from rni.networks.vanilla import VanillaRNN

LARGEST = 2.1e9  # bytes: an ONNX file has no more than 2 GiB


def to_torch(net: Network, path: Path) -> None:
    """Write the state dict of `torch.nn.ModuleDict({"rnn": RNN, "readout": Linear})`, as .pt or .safetensors."""
    rnn, readout = net.to_torch()
    modules = {"rnn": rnn, "readout": readout}
    tensors = {f"{name}.{key}": v for name, module in modules.items() for key, v in module.state_dict().items()}
    if path.suffix == ".safetensors":
        write_tensors(path, tensors, {})
        return
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    write_atomically(path, buffer.getvalue())


def to_arrays(net: Network, path: Path) -> None:
    """Write the arrays of a network as .npz, under the names of `rni.files.foreign.network_arrays`."""
    if net.f.name not in ACTIVATIONS.parts:
        raise InputError("activation", net.f, ", ".join(ACTIVATIONS.parts))
    tensors = network_tensors(net)
    arrays: dict[str, Any] = {"activation": net.f.name, "decays": net.task.decays, "scales": net.task.scales}
    arrays |= {"leak": net.leak, "form": "rate"} if net.leak != 1 else {}
    arrays |= {key: value for key, value in net.f.config().items() if key != "name"}
    arrays |= {key: value.numpy(force=True) for key, value in (tensors | net.f.values()).items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


class _Standard(NamedTuple):
    r"""$g_t = F(R g_{t-1} + V x_t + c)$, $y_t = C^\dagger g_t + a$, with a function F without parameters.

    The states are $h = k\,g$, elementwise.
    """

    function: str
    recurrent: Tensor
    inputs: Tensor
    bias: Tensor
    decoders: Tensor
    offset: Tensor
    factor: Tensor


def _standard(net: VanillaRNN) -> _Standard:
    r"""Move slopes and thresholds into the weights, which is exact.

    Sigmoid: $f(\nu) = F(k(\nu - \theta))$, so $R = kW$, $V = kU$, $c = k(b - \theta)$. Softplus:
    $f(\nu) = F(k\nu)/k$, so with $g = kh$, $R = k W k^{-1}$, $V = kU$, $c = kb$. k may differ between neurons.
    """
    w, u, b = net.recurrent.matrix().detach(), net.input_weights, net.bias
    assert net.decoders is not None
    offset = u.new_zeros(net.decoders.shape[1]) if net.offset is None else net.offset
    one = torch.ones_like(b)
    functions = {"linear": "Affine", "relu": "Relu", "tanh": "Tanh"}
    if net.f.name in functions:
        return _Standard(functions[net.f.name], w, u, b, net.decoders, offset, one)
    f = net.f.bound()
    if isinstance(f, Sigmoid):
        k = f.slope * one
        bias = k * (b - f.threshold)
        return _Standard("Sigmoid", k[:, None] * w, k[:, None] * u, bias, net.decoders, offset, one)
    if isinstance(f, Softplus):
        k = f.slope * one
        recurrent, decoders = k[:, None] * w / k, net.decoders / k[:, None]
        return _Standard("Softplus", recurrent, k[:, None] * u, k * b, decoders, offset, 1 / k)
    raise InputError("activation", net.f, f"{', '.join(functions)}, sigmoid, softplus in ONNX")


def to_onnx(net: Network, path: Path) -> None:
    """Write an ONNX graph with ONNX's RNN operator, in float32. It needs the extra `export`.

    The graph takes x (batch, time, channels) and gives y (batch, time, channels) and the states h (batch, time,
    neurons), which start at 0. Batch and time may have any size.
    """
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise InputError("onnx", None, "with it, pip install 'rni[export]'", problem="not installed") from None
    if net.leak != 1:
        raise InputError("leak", net.leak, "1 in ONNX, because its RNN operator has none")
    if (size := 4 * net.neurons * (net.neurons + 2 * net.channels)) > LARGEST:
        problem = f"{net.neurons}, {size / 1e9:.1f} GB"
        raise InputError("neurons", net.neurons, f"{LARGEST / 1e9} GB of weights in ONNX", problem=problem)
    with torch.no_grad():
        standard = _standard(VanillaRNN.of(net))
    constants = {
        "input_weights": standard.inputs[None],
        "recurrent": standard.recurrent[None],
        "bias": torch.cat([standard.bias, torch.zeros_like(standard.bias)])[None],
        "decoders": standard.decoders,
        "offset": standard.offset,
        "factor": standard.factor,
    }
    for name, v in constants.items():
        if not bool(torch.isfinite(v.float()).all()):
            allowed = "smaller weights and slopes in ONNX"
            raise InputError(name, None, allowed, problem="beyond the range of float32")
    parts = [numpy_helper.from_array(v.float().numpy(force=True), name) for name, v in constants.items()]
    parts.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "direction"))
    affine = standard.function == "Affine"
    slope: dict[str, Any] = {"activation_alpha": [1.0], "activation_beta": [0.0]} if affine else {}
    weights = ["input_weights", "recurrent", "bias"]
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node(
            "RNN", ["steps", *weights], ["all"], hidden_size=net.neurons, activations=[standard.function], **slope
        ),
        helper.make_node("Squeeze", ["all", "direction"], ["states"]),
        helper.make_node("Transpose", ["states"], ["g"], perm=[1, 0, 2]),
        helper.make_node("MatMul", ["g", "decoders"], ["read"]),
        helper.make_node("Add", ["read", "offset"], ["y"]),
        helper.make_node("Mul", ["g", "factor"], ["h"]),
    ]
    sizes = {"x": net.channels, "y": standard.decoders.shape[1], "h": net.neurons}
    x, y, h = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "time", size]) for name, size in sizes.items()
    )
    graph = helper.make_graph(nodes, "rni", [x], [y, h], parts)
    # these versions are old enough for every runtime in use, and newer runtimes read them too
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="rni")
    checker.check_model(model)
    write_atomically(path, model.SerializeToString())
