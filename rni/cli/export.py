"""`rni export`."""

from pathlib import Path
from typing import Annotated

import typer

from rni.cli.files import require_ending, require_network, require_output
from rni.cli.flags import Force, NetworkFile
from rni.core.errors import InputError, did_you_mean

ENDINGS = {"torch": (".pt", ".safetensors"), "onnx": (".onnx",), "arrays": (".npz",)}


def export(
    context: typer.Context,
    network: NetworkFile,
    to: Annotated[str, typer.Option(help="torch, onnx or arrays.")] = "torch",
    out: Annotated[Path | None, typer.Option(help="Where it goes. Default: NET.pt, NET.onnx, NET.npz.")] = None,
    force: Force = False,
) -> None:
    """Take a network away.

    torch: a state dict (.pt, .safetensors) of torch.nn.RNN and Linear: rnn.weight_ih_l0, rnn.weight_hh_l0,
    readout.weight. onnx: a graph from x (batch, time, channels) to outputs y and states h (needs the extra `export`).
    arrays: numpy's .npz.
    """
    if to not in ENDINGS:
        raise InputError(f"--to: {to!r}; allowed: {', '.join(ENDINGS)}{did_you_mean(to, ENDINGS)}")
    out = out or network.with_suffix(ENDINGS[to][0])
    require_network(network)
    require_ending(out, ENDINGS[to])
    require_output(context, out, ENDINGS[to], force=force, reads=[network])

    from rni.files import native
    from rni.files.export import to_arrays, to_onnx, to_torch

    {"torch": to_torch, "onnx": to_onnx, "arrays": to_arrays}[to](native.load(network), out)
    print(f"wrote {out}")
