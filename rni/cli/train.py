"""`rni train`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rni.cli.files import require_kind, require_output
from rni.cli.flags import NETWORK, Force
from rni.cli.lists import value
from rni.core.atomic import require_writable
from rni.core.errors import Diverged, InputError

if TYPE_CHECKING:
    from rni.runs.execution import Result


def train(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="The run's specification.")],
    out: Annotated[Path, typer.Option(help="Where the trained network goes.")] = Path("network.safetensors"),
    force: Force = False,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:NAME", help="Code that CONFIG.toml may name. May be repeated.")
    ] = None,
    snapshots: Annotated[
        int, typer.Option(min=0, help="Keep so many of them, NET.snapshots.safetensors, to explore.")
    ] = 0,
) -> None:
    """Train a network. Any field of the file can be given as a flag, e.g. --neurons 500 --activation linear.

    A killed or interrupted training goes on where it was when the same command is given again.
    """
    if str(config).startswith("--"):
        raise InputError("CONFIG.toml: missing; allowed: rni train CONFIG.toml, and then any of its fields as flags")
    require_kind(config, ("configuration", "text", "empty"), "a configuration, CONFIG.toml")

    from rni.runs.run import read_run

    specification = read_run(config, _overrides(context.args), allow=allow or ())
    checkpoint = Path(f"{out}.{specification.key()[:8]}.checkpoint")
    require_output(context, out, NETWORK, force=force or checkpoint.exists(), reads=[config])
    require_writable(checkpoint)

    from rni.analysis import analyze
    from rni.analysis.dale import obstacle
    from rni.files import native
    from rni.pages.snapshots import Snapshots, beside
    from rni.runs.execution import run
    from rni.runs.progress import training_progress
    from rni.weights import Dale

    steps, key = specification.steps, specification.key()
    series = [Snapshots(beside(out), snapshots, steps, key)] if snapshots else []
    if checkpoint.exists():
        print(f"going on from {checkpoint}", file=sys.stderr)
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
        snapshot.take(result.step, result.losses[min(result.step, len(result.losses) - 1)], result.network)
    checkpoint.unlink(missing_ok=True)
    recurrent = result.network.recurrent
    impossible = obstacle(recurrent.signs) if isinstance(recurrent, Dale) else None
    if impossible:
        print(f"rni: warning: Dale's law with {impossible}", file=sys.stderr)
    if result.losses:
        kept = f"; kept: {result.losses[result.step]:.3g}" if result.step < len(result.losses) else ""
        print(f"loss {result.losses[0]:.3g} -> {result.losses[-1]:.3g} in {len(result.losses)} steps{kept}")
    analysis = analyze(result.network)
    print(analysis)
    if analysis.verdict.kind != "integrates" and not impossible:
        print(f"not an integrator; what to do: {_advice(result)}")
    print(f"wrote {out}")


def _advice(result: "Result") -> str:
    """For a network that does not integrate."""
    from rni.activations import HOMOGENEOUS
    from rni.designs.smooth import largest_outputs
    from rni.losses import ProxyLoss
    from rni.runs.run import TrainRun

    net, losses = result.network, result.losses
    if net.f.name not in HOMOGENEOUS:
        most = largest_outputs(net.f, net.decoders).tolist()
        for wanted, largest in zip(net.task.largest_integral(), most, strict=True):
            if wanted > largest:
                return (
                    f"integrals reach {wanted:.3g}, and {net.f!r} with these decoders gives {largest:.3g} at most: "
                    "smaller decays or scales, more neurons (it grows as their square root), or relu, which holds any"
                )
    part = max(1, len(losses) // 10)
    before, last = (sum(losses[end - part : end]) for end in (len(losses) - part, len(losses)))
    if len(losses) < 2 or last < 0.98 * before:
        fall = f", by {1 - last / before:.0%} over the last tenth of the steps" if len(losses) > 1 else ""
        return f"train longer: the loss still falls{fall}; --steps {max(5000, 2 * len(losses))}"
    run = result.specification
    has_proxy = isinstance(run, TrainRun) and isinstance(run.training.loss, ProxyLoss)
    proxy = "" if has_proxy else "--loss proxy, "
    return f"the loss falls no more: {proxy}more --neurons, or another --learning-rate"


def _overrides(arguments: list[str]) -> dict[str, Any]:
    """Return the values of flags such as `--neurons 500` or `--network.neurons=500`."""
    from rni.runs.run import full_name

    values: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        flag, equals, text = rest.pop(0).partition("=")
        if not flag.startswith("--"):
            raise InputError(f"{flag}: unexpected; allowed: --FIELD VALUE for a field of the specification")
        if not equals:
            if not rest or rest[0].startswith("--"):
                full_name(flag.removeprefix("--").replace("-", "_"))  # which refuses what is no field
                raise InputError(f"{flag}: no value; allowed: {flag} VALUE")
            text = rest.pop(0)
        name = flag.removeprefix("--").replace("-", "_")
        if name in values:
            raise InputError(f"{flag}: given twice; allowed: once, with all its values")
        values[name] = value(text)
    return values
