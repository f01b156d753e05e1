"""`rni export`."""

from pathlib import Path
from typing import Annotated

import typer

from rni.atomic import require_writable
from rni.cli.flags import NetworkFile
from rni.errors import InputError

ENDINGS = {"torch": (".pt", ".safetensors"), "onnx": (".onnx",), "arrays": (".npz",)}


def export(
    network: NetworkFile,
    to: Annotated[str, typer.Option(help="torch, onnx or arrays.")] = "torch",
    out: Annotated[Path | None, typer.Option(help="Where it goes. Default: NET.pt, NET.onnx, NET.npz.")] = None,
) -> None:
    """Take a network away.

    torch: a state dict (.pt, .safetensors) of torch.nn.RNN and Linear: rnn.weight_ih_l0, rnn.weight_hh_l0,
    readout.weight. onnx: a graph from x (batch, time, channels) to outputs y and states h (needs the extra `export`).
    arrays: numpy's .npz.
    """
    if to not in ENDINGS:
        raise InputError(f"--to: {to!r}; allowed: {', '.join(ENDINGS)}")
    out = out or network.with_suffix(ENDINGS[to][0])
    if out.suffix not in ENDINGS[to]:
        raise InputError(f"--out: {str(out)!r}; allowed: a name that ends in {' or '.join(ENDINGS[to])}")
    require_writable(out)

    from rni.exchange import native
    from rni.exchange.export import to_arrays, to_onnx, to_torch

    {"torch": to_torch, "onnx": to_onnx, "arrays": to_arrays}[to](native.load(network), out)
    print(f"wrote {out}")
