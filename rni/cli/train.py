"""`rni train`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rni.atomic import require_writable
from rni.cli.lists import value
from rni.errors import Diverged, InputError


def train(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="The run's specification.")],
    out: Annotated[Path, typer.Option(help="Where the trained network goes.")] = Path("network.safetensors"),
    snapshots: Annotated[int, typer.Option(help="Keep so many of them, NET.snapshots.safetensors, to explore.")] = 0,
) -> None:
    """Train a network. Any field of the file can be given as a flag, e.g. --neurons 500 --activation linear.

    A killed or interrupted training goes on where it was when the same command is given again.
    """
    from rni.runs.specification import Specification

    specification = Specification.from_toml(config, _overrides(context.args))
    require_writable(out)
    checkpoint = out.with_name(f"{out.name}.{specification.key()[:8]}.checkpoint")
    require_writable(checkpoint)

    from rni.analysis import analyze
    from rni.analysis.dale import obstacle
    from rni.exchange import native
    from rni.pages.snapshots import Snapshots, beside
    from rni.runs.execution import run
    from rni.runs.progress import training_progress
    from rni.weights import Dale

    steps, key = specification.training.steps, specification.key()
    series = [Snapshots(beside(out), snapshots, steps, key)] if snapshots else []
    try:
        with training_progress(steps) as report:
            result = run(specification, callbacks=[report, *series], checkpoint=checkpoint)
    except KeyboardInterrupt:
        kept = f"goes on from {checkpoint}" if checkpoint.exists() else "begins afresh: nothing was saved yet"
        print(f"rni: interrupted; the same command {kept}", file=sys.stderr)
        raise typer.Exit(130) from None
    except Diverged:
        print(f"rni: weights and losses up to then are in {checkpoint}", file=sys.stderr)
        raise
    native.save(result.network, out, specification.to_dict(), result.losses)
    for snapshot in series if result.losses else []:
        snapshot.take(len(result.losses), result.losses[-1], result.network)
    checkpoint.unlink(missing_ok=True)
    if isinstance(result.network.recurrent, Dale) and (reason := obstacle(result.network.recurrent.signs)):
        print(f"rni: warning: Dale's law with {reason}", file=sys.stderr)
    if result.losses:
        print(f"loss {result.losses[0]:.3g} -> {result.losses[-1]:.3g} in {len(result.losses)} steps")
    print(analyze(result.network))
    print(f"wrote {out}")


def _overrides(arguments: list[str]) -> dict[str, Any]:
    """Flags such as `--neurons 500` or `--network.neurons=500`."""
    values: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        flag, equals, text = rest.pop(0).partition("=")
        if not flag.startswith("--"):
            raise InputError(f"{flag}: unexpected; allowed: --FIELD VALUE for a field of the specification")
        if not equals:
            if not rest:
                raise InputError(f"{flag}: no value; allowed: {flag} VALUE")
            text = rest.pop(0)
        values[flag.removeprefix("--").replace("-", "_")] = value(text)
    return values
