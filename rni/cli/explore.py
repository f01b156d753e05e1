"""`rni explore`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rni.atomic import require_writable
from rni.cli.flags import Activation, Decays, Neurons, Scales, Seed, given, require_page
from rni.cli.specified import without_training
from rni.errors import InputError

if TYPE_CHECKING:
    from rni.exchange.native import NetworkFile
    from rni.network import Network
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
) -> None:
    """Write a page in which a network runs: push it, look inside, disturb it, watch it learn.

    NET.safetensors with the snapshots that stand beside it (rni train --snapshots 40), or else a network designed for
    --decays 0.99 0.9 [--scales 1 2].
    """
    require_page(out)
    if network is not None and (others := given(context) - {"network", "out"}):
        flags = ", ".join(f"--{name}" for name in sorted(others))
        raise InputError(f"{flags}: given with {network}; allowed: one network file, or --decays and --scales")
    require_writable(out)

    from rni.pages import explore

    if network is not None:
        file, series = _with_snapshots(network)
        explore(file.network, out, name=network.name, snapshots=series, losses=file.losses)
    else:
        default = "0.99 0.9" if decays is None and scales is None else decays
        explore(_designed(default, scales, neurons, activation, seed), out)
    print(f"wrote {out}: {out.stat().st_size / 1e6:.2g} MB")


def _designed(decays: str | None, scales: str | None, neurons: int, activation: str, seed: int) -> "Network":
    from rni.runs.specification import Specification

    drawn = Specification.parse(without_training(decays, scales, neurons, activation, seed)).build()

    from rni.designs import design

    return design(drawn.task, neurons, drawn.f, seed=seed).network


def _with_snapshots(path: Path) -> "tuple[NetworkFile, list[Snapshot]]":
    """A network file, and the snapshots of the same training that stand beside it."""
    from rni.exchange import native
    from rni.pages.snapshots import beside, read
    from rni.runs.specification import Specification

    file = native.read(path)
    trained = file.specification is not None and "training" in file.specification
    if not trained or not beside(path).exists():
        return file, []
    series = read(beside(path), Specification.parse(file.specification).key())
    if not series:
        print(f"rni: warning: {beside(path)}: of another training; left out", file=sys.stderr)
    return file, series
