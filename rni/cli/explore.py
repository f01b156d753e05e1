"""`rni explore`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rni.cli.files import require_ending, require_network, require_output
from rni.cli.flags import PAGE, Activation, Decays, Force, Neurons, Scales, Seed, given
from rni.cli.specified import design_table, fields_are_flags
from rni.core.errors import InputError

if TYPE_CHECKING:
    from rni.files.native import NetworkFile
    from rni.networks.network import Network
    from rni.pages.snapshots import Snapshot


def explore(
    context: typer.Context,
    network: Annotated[Path | None, typer.Argument(metavar="[NET.safetensors]", help="A network file.")] = None,
    decays: Decays = None,
    scales: Scales = None,
    neurons: Neurons = 1000,
    activation: Activation = "relu",
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(metavar="PAGE.html", help="Where the page goes.")] = Path("explore.html"),
    force: Force = False,
) -> None:
    """Write a page in which a network runs: push it, look inside, disturb it, watch it learn.

    NET.safetensors with the snapshots that stand beside it (rni train --snapshots 40), or else a network designed for
    --decays 0.99 0.9 [--scales 1 2].
    """
    if network is not None and (others := given(context) - {"network", "out", "force"}):
        flags = ", ".join(f"--{name}" for name in sorted(others))
        raise InputError(f"{flags}: given with {network}; allowed: one network file, or --decays and --scales")
    if network is not None:
        require_network(network)
    require_ending(out, PAGE)
    require_output(context, out, PAGE, force=force, reads=[network])

    from rni.pages import explore

    if network is not None:
        file, series = _with_snapshots(network)
        explore(file.network, out, name=network.name, snapshots=series, losses=file.losses)
    else:
        default = "0.99 0.9" if decays is None and scales is None else decays
        explore(_designed(default, scales, neurons, activation, seed), out)
    print(f"wrote {out}: {out.stat().st_size / 1e6:.2g} MB")


def _designed(decays: str | None, scales: str | None, neurons: int, activation: str, seed: int) -> "Network":
    from rni.runs.execution import design_network
    from rni.runs.run import DesignRun, parse_run

    with fields_are_flags():
        run = cast(DesignRun, parse_run(design_table(decays, scales, neurons, activation, seed)))
        return design_network(run).network


def _with_snapshots(path: Path) -> "tuple[NetworkFile, list[Snapshot]]":
    """A network file, and the snapshots of the same training that stand beside it."""
    from rni.files import native
    from rni.pages.snapshots import beside, read
    from rni.runs.run import parse_run

    file = native.read(path)
    trained = file.specification is not None and "training" in file.specification
    if not trained or not beside(path).exists():
        return file, []
    series = read(beside(path), parse_run(file.specification, allow=()).key())
    if not series:
        print(f"rni: warning: {beside(path)}: of another training; left out", file=sys.stderr)
    return file, series
