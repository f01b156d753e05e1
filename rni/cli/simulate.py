"""`rni simulate`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rni.cli.files import require_network, require_output
from rni.cli.flags import Force, NetworkFile
from rni.cli.inputs import read_inputs
from rni.core.atomic import write_atomically
from rni.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


def simulate(
    context: typer.Context,
    network: NetworkFile,
    inputs: Annotated[Path, typer.Option(metavar="X.npy", help="(batch, time, channels) or (time, channels).")],
    out: Annotated[Path, typer.Option(metavar="Y.npy", help="Where the outputs go, in the shape of the inputs.")],
    force: Force = False,
) -> None:
    """Run a network on given inputs and write its outputs."""
    require_network(network)
    require_output(context, out, [".npy"], force=force, reads=[network, inputs])

    import io

    import numpy as np
    import torch

    from rni.files import native

    net, specification, _ = native.read(network)
    x = read_inputs(inputs, net.channels)
    batch = (x if x.ndim == 3 else x[None]).to(net.dtype)
    if specification is not None:
        _check_range(specification, batch)
    with torch.no_grad():
        y = net.outputs(batch)
    buffer = io.BytesIO()
    np.save(buffer, (y if x.ndim == 3 else y[0]).numpy())
    write_atomically(out, buffer.getvalue())
    print(f"wrote {out}: {tuple(x.shape)}")


def _check_range(specification: dict[str, Any], inputs: "Tensor") -> None:
    """Say it where a network that was trained for some integrals is to make others."""
    import warnings

    from rni.activations import HOMOGENEOUS
    from rni.losses import ProxyLoss
    from rni.runs.run import TrainRun, parse_run

    try:
        run = parse_run(specification, allow=())
    except InputError:  # a run of another version, or with parts from outside: the network does not depend on it
        return
    loss = run.loss() if isinstance(run, TrainRun) else ProxyLoss(run.task, bounds=run.bounds)
    if isinstance(loss, ProxyLoss) and run.network.activation.name not in HOMOGENEOUS and run.network.leak == 1:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loss.check_range(inputs)
        for warning in caught:
            print(f"rni: warning: {warning.message}", file=sys.stderr)
