"""The weights that PsychRNN saves."""

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.files.layouts.layout import LAYOUTS, FoundArrays, Layout, UnusedTensors

MASKS = {"W_rec": "rec_connectivity", "W_in": "input_connectivity", "W_out": "output_connectivity"}


@LAYOUTS.register("PsychRNN")
class PsychRNN(Layout):
    r"""$v \leftarrow (1-\alpha)v + \alpha(W f(v) + U x + b)$ with masks that multiply the weights, and Dale's law.

    Under Dale's law, $W = |W_{rec}|$ Dale_rec, $U = |W_{in}|$ and $D^\dagger = |W_{out}|$ Dale_out. Newer versions save
    |W| itself.
    """

    def recognises(self, names: Collection[str]) -> bool:
        return set(names) >= MASKS.keys() and bool(set(names) & {"Dale_rec", *MASKS.values()})

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        w, u, out = (_masked(tensors, name, mask) for name, mask in MASKS.items())
        n = len(w)
        signs, output_signs = (_diagonal(tensors, name, n) for name in ("Dale_rec", "Dale_out"))
        excitatory = tensors.find("dale_ratio")
        arrays: dict[str, Any] = {"recurrent": w, "input_weights": u, "decoders": out.T}
        if bool((signs < 0).any()) or (excitatory is not None and bool((excitatory > 0).all())):
            arrays = {"recurrent": w.abs() * signs, "signs": signs, "input_weights": u.abs()}
            arrays["decoders"] = (out.abs() * output_signs).T if out.shape[-1] == n else out.T

        for name, ours in (("b_rec", "bias"), ("b_out", "offset")):
            if name in tensors:
                arrays[ours] = tensors.take(name)
        if "init_state" in tensors:
            arrays["initial"] = tensors.take("init_state").flatten()
        assumed = {"form": ("current", ""), "activation": ("relu", "PsychRNN's default: the file does not say which")}
        return FoundArrays("PsychRNN", arrays, assumed)


def _masked(tensors: UnusedTensors, name: str, mask_name: str) -> Tensor:
    """Take a matrix and multiply it by its mask, if there is one."""
    values, mask = tensors.take(name), tensors.find(mask_name)
    if values.ndim != 2 or not len(values) or (mask is not None and mask.shape != values.shape):
        shapes = [tuple(v.shape) for v in (values, mask) if v is not None]
        problem = f"shapes {', '.join(map(str, shapes))}"
        raise InputError(f"{name}, {mask_name}", shapes, "matrices of one shape", problem=problem)
    return values if mask is None else values * mask


def _diagonal(tensors: UnusedTensors, name: str, neurons: int) -> Tensor:
    """Take the diagonal of a matrix, or ones if there is none."""
    values = tensors.find(name)
    if values is None:
        return torch.ones(neurons)
    if values.shape != (neurons, neurons):
        shape = tuple(values.shape)
        raise InputError(name, shape, f"({neurons}, {neurons})", problem=f"shape {shape}")
    return values.diagonal()
