"""Leaky RNNs of plain matrices: W_rec, W_in, W_out and the like, also from MATLAB."""

from collections.abc import Collection

from torch import Tensor

from rni.core.errors import InputError
from rni.files.layouts.layout import LAYOUTS, FoundArrays, Layout, UnusedTensors
from rni.files.layouts.names import LeakyRNN, recurrent_pairs, take_first, take_leaky_rnn

READOUTS = ("w_out", "wout", "w_o", "w_y")
OFFSETS = ("b_out", "bout", "b_o", "b_y")


@LAYOUTS.register("matrices")
class Matrices(Layout):
    r"""$W h$ where U is (neurons, inputs), and $h^\dagger W$ where U is (inputs, neurons)."""

    def recognises(self, names: Collection[str]) -> bool:
        return any(not name.endswith(".weight") for name in recurrent_pairs(names))

    def read(self, tensors: UnusedTensors) -> FoundArrays:
        rnn = take_leaky_rnn(tensors)
        n, columns = len(rnn.w), len(rnn.u) == len(rnn.w)
        if rnn.u.shape == (n, n):
            problem = f"shape {(n, n)}, from and to can't be told"
            raise InputError(rnn.inputs, (n, n), "`names` (--map), .T for a transposed matrix", problem=problem)
        shape = "(neurons, inputs)" if columns else "(inputs, neurons)"
        order = "(to, from)" if columns else "(from, to)"
        tensors.note(f"{rnn.recurrent} taken as {order}, because {rnn.inputs} is {shape}")
        weights = (rnn.w, rnn.u) if columns else (rnn.w.T, rnn.u.T)
        arrays = rnn.arrays | dict(zip(("recurrent", "input_weights"), weights, strict=True))
        return FoundArrays(rnn.source, arrays | _readout(tensors, rnn, columns), rnn.assumed())


def _readout(tensors: UnusedTensors, rnn: LeakyRNN, columns: bool) -> dict[str, Tensor]:
    """Take the readout, by its name or as the only matrix of its width."""
    n = len(rnn.w)
    named = [rnn.siblings[name] for name in READOUTS if name in rnn.siblings]
    if not named:
        return tensors.readout(n)
    matrix = tensors.take(named[0])
    if matrix.ndim != 2 or n not in matrix.shape:
        shape = tuple(matrix.shape)
        raise InputError(named[0], shape, f"(outputs, {n}) or ({n}, outputs)", problem=f"shape {shape}")
    transposed = columns if matrix.shape == (n, n) else matrix.shape[1] == n
    decoders = {"decoders": matrix.T if transposed else matrix}
    return decoders | take_first("offset", OFFSETS, tensors, rnn.siblings)
