"""The command `rni design`."""

from pathlib import Path
from typing import Annotated, cast

import typer

from rni.cli.files import require_network, require_output
from rni.cli.flags import NETWORK, Activation, Decays, Force, Neurons, Scales, Seed, given
from rni.cli.lists import numbers
from rni.cli.specified import design_table, fields_are_flags
from rni.core.errors import InputError


def design(
    context: typer.Context,
    decays: Decays = None,
    scales: Scales = None,
    bounds: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Largest |z|; default: 1 / (1 - decay).")
    ] = None,
    neurons: Neurons = 1000,
    activation: Activation = "relu",
    leak: Annotated[float, typer.Option(help="alpha = dt / tau of a leaky network; 1 is no leak.")] = 1.0,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="File of the network.")] = Path("designed.safetensors"),
    force: Force = False,
    polish: Annotated[Path | None, typer.Option(metavar="NET", help="Make this trained network exact.")] = None,
) -> None:
    """Design a network without training: --decays 0.995 0.993 [--scales 1 2], one of each for a channel.

    Linear and ReLU networks are exact. Others are approximate, for integrals z up to what inputs up to 1 reach, or up
    to --bounds. Sigmoids hold integrals up to about sqrt(neurons / 2 pi), and tanh twice that, for any decays. The
    command prints the error over 2000 steps and a bound for any number of steps. --polish NET.safetensors makes a
    trained network exact instead, and prints how far its weights move.
    """
    if polish is not None:
        if others := given(context) - {"polish", "out", "force"}:
            raise InputError("--polish", sorted(others)[0], "only --out, because all else comes from the network")
        require_network(polish)
        require_output(context, out, NETWORK, force=force, reads=[polish])
        _polish(polish, out)
        return
    from rni.runs.run import DesignRun, parse_run

    with fields_are_flags():
        raw = design_table(decays, scales, neurons, activation, seed, leak)
        if bounds is not None:
            raw["bounds"] = numbers("--bounds", bounds)
        run = cast(DesignRun, parse_run(raw))
        require_output(context, out, NETWORK, force=force)

        from rni.files import native
        from rni.runs.execution import design_network

        result = design_network(run)
    native.save(result.network, out, run.to_dict())
    print(result)
    print(f"wrote {out}")


def _polish(path: Path, out: Path) -> None:
    from rni.designs import polish
    from rni.files import native

    net, specification, _ = native.read(path)
    result = polish(net)
    native.save(result.network, out, specification)
    print(result)
    print(f"wrote {out}")
