"""Leaky RNNs of `Linear` layers, as in tutorials: input2h, h2h, fc."""

import re
from collections.abc import Collection

import torch
from torch import Tensor

from rni.files.layouts.layout import LAYOUTS, FoundArrays, Layout, UnusedTensors
from rni.files.layouts.names import recurrent_pairs, take_leaky_rnn


@LAYOUTS.register("linear layers")
class LinearLayers(Layout):
    """Recurrent and input weights that are layers; the readout is the only other layer of their width.

    Where a layer reads fewer neurons than there are, the network is one of excitatory and inhibitory neurons.
    """

    def recognises(self, names: Collection[str]) -> bool:
        return any(name.endswith(".weight") for name in recurrent_pairs(names))

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        rnn = take_leaky_rnn(tensors)
        arrays = rnn.arrays | {"input_weights": rnn.u}
        widths = {
            name: shape[1] for name, shape in tensors.shapes().items() if name.endswith(".weight") and len(shape) == 2
        }
        if len(widths) == 1 and max(widths.values()) < len(rnn.w):
            arrays |= _excitatory_inhibitory(rnn.w, tensors, next(iter(widths)))
            return FoundArrays(rnn.source, arrays, rnn.assumed(form="current"))
        arrays |= {"recurrent": rnn.w} | tensors.readout(len(rnn.w))
        return FoundArrays(rnn.source, arrays, rnn.assumed())


def _excitatory_inhibitory(w: Tensor, tensors: UnusedTensors, readout: str) -> dict[str, Tensor]:
    r"""Give |W| the signs of the neurons that weights come from, and remove autapses. Only E neurons are read."""
    read, offset = tensors.take(readout), tensors.find(re.sub(r"weight$", "bias", readout))
    n, e = len(w), read.shape[1]
    tensors.note(f"{readout} reads the first {e} neurons of {n}, so the others are taken as inhibitory: W = ±|W|")
    signs = torch.cat([w.new_ones(e), -w.new_ones(n - e)])
    decoders = torch.cat([read.T, read.new_zeros(n - e, len(read))])
    arrays = {"recurrent": w.abs() * signs * (1 - torch.eye(n, dtype=w.dtype)), "signs": signs, "decoders": decoders}
    return arrays if offset is None else arrays | {"offset": offset}
