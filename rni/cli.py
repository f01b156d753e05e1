"""The command line. torch is imported by the commands that need it, so that help comes at once."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rni.errors import Diverged, InputError
from rni.runs.cli import app as runs_app

if TYPE_CHECKING:
    from rni.analysis import Analysis

app = typer.Typer(
    help="Recurrent neural integrators: train, simulate, analyse and export networks that integrate several signals.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(runs_app, name="runs")
NetworkFile = Annotated[Path, typer.Argument(metavar="NET.safetensors", help="A network file.")]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="The run's specification.")],
    out: Annotated[Path, typer.Option(help="Where the trained network goes.")] = Path("network.safetensors"),
) -> None:
    """Train a network. Any field of the file can be given as a flag, e.g. --neurons 500 --activation linear.

    A killed or interrupted training goes on where it was when the same command is given again.
    """
    from rni.runs.specification import Specification

    specification = Specification.from_toml(config, _overrides(context.args))

    from rni import files
    from rni.analysis import analyze
    from rni.progress import training_progress
    from rni.runs.execution import run

    _match_threads(specification.network.neurons)
    checkpoint = out.with_name(f"{out.name}.{specification.key()[:8]}.checkpoint")
    try:
        with training_progress(specification.training.steps) as report:
            result = run(specification, callbacks=[report], checkpoint=checkpoint)
    except KeyboardInterrupt:
        print(f"rni: interrupted; the same command goes on from {checkpoint}", file=sys.stderr)
        raise typer.Exit(130) from None
    except Diverged:
        print(f"rni: weights and losses up to then are in {checkpoint}", file=sys.stderr)
        raise
    files.save(result.network, out, specification.model_dump(mode="json"), result.losses)
    checkpoint.unlink(missing_ok=True)
    if result.losses:
        print(f"loss {result.losses[0]:.3g} -> {result.losses[-1]:.3g} in {len(result.losses)} steps")
    _show(analyze(result.network))
    print(f"wrote {out}")


@app.command()
def analyze(
    network: NetworkFile,
    json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Accuracy on white noise and bursts over 200 and 2000 steps, singular values, and the ratio r of the currents."""
    from rni import files
    from rni.analysis import analyze

    analysis = analyze(files.load(network))
    if json:
        print(analysis.to_json())
    else:
        _show(analysis)


@app.command()
def simulate(
    network: NetworkFile,
    inputs: Annotated[Path, typer.Option(metavar="X.npy", help="(batch, time, channels) or (time, channels).")],
    out: Annotated[Path, typer.Option(metavar="Y.npy", help="Where the outputs go, in the shape of the inputs.")],
) -> None:
    """Run a network on given inputs and write its outputs."""
    import io

    import numpy as np
    import torch

    from rni import files

    net = files.load(network)
    try:
        x = np.asarray(np.load(inputs, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{inputs}: {error}; allowed: an array of numbers written by numpy.save") from None
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3) or not np.isfinite(x).all():
        allowed = f"finite numbers, (batch, time, {net.channels}) or (time, {net.channels})"
        raise InputError(f"{inputs}: {x.dtype} of shape {x.shape}; allowed: {allowed}")
    batch = torch.as_tensor(x, dtype=net.dtype)
    with torch.no_grad():
        y = net.outputs(batch if x.ndim == 3 else batch[None])
    buffer = io.BytesIO()
    np.save(buffer, (y if x.ndim == 3 else y[0]).numpy())
    files.write_atomically(out, buffer.getvalue())
    print(f"wrote {out}: {tuple(x.shape)}")


@app.command()
def export(
    network: NetworkFile,
    to: Annotated[str, typer.Option(help="torch: the state dict of a torch.nn.RNN and its linear readout.")] = "torch",
    out: Annotated[Path | None, typer.Option(help="Where it goes: .pt, or .safetensors. Default: NET.pt.")] = None,
) -> None:
    """Take a network away to torch.nn.RNN: tensors rnn.weight_ih_l0, rnn.weight_hh_l0 and readout.weight."""
    from rni import files

    if to != "torch":
        raise InputError(f"--to: {to!r}; allowed: torch")
    out = out or network.with_suffix(".pt")
    if out.suffix not in (".pt", ".safetensors"):
        raise InputError(f"--out: {str(out)!r}; allowed: a name that ends in .pt or .safetensors")
    files.export_torch(files.load(network), out)
    print(f"wrote {out}")


@app.command()
def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID ...]", help="fig5 table1 ...; default: all.")] = None,
    profile: Annotated[str, typer.Option(help="quick (minutes) or paper (1000 neurons, all seeds).")] = "quick",
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("report"),
    workers: Annotated[int | None, typer.Option(min=1, help="Local processes; default: all cores.")] = None,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler instead.")] = None,
    store: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of finished runs.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the figures and stop.")] = False,
) -> None:
    """Reproduce the paper: runs, figures, a verdict on every claim, and a report.

    Finished runs are kept: a killed reproduction goes on where it was.
    """
    from rni.paper.figure import PROFILES
    from rni.paper.reproduce import all_figures, chosen_figures

    if list_:
        for figure in all_figures().values():
            print(f"{figure.id:<8} {figure.title}")
        return
    if profile not in PROFILES:
        raise InputError(f"--profile: {profile!r}; allowed: {', '.join(PROFILES)}")
    if workers is not None and scheduler is not None:
        raise InputError("--scheduler: given with --workers; allowed: one of the two")
    chosen = chosen_figures(ids or [])

    from rni.paper.reproduce import reproduce
    from rni.runs.engine import cluster, local

    with cluster(scheduler) if scheduler else local(workers) as executor:
        outcomes, page = reproduce(chosen, PROFILES[profile], out, executor, store)
    for outcome in outcomes:
        for claim in outcome.claims:
            print(f"{claim.verdict:<27} {claim.id}")
        if outcome.failure:
            print(f"{'failed':<27} {outcome.figure.id}: {outcome.failure}")
    print(f"wrote {page}")


@app.command()
def theory(
    network: Annotated[Path | None, typer.Argument(metavar="[NET.safetensors]", help="A linear network file.")] = None,
    decay: Annotated[float, typer.Option(help="Decay of the integral.")] = 0.995,
    scale: Annotated[float, typer.Option(help="Scale of the integral.")] = 1.0,
    duration: Annotated[int, typer.Option(help="Length T of the training sequences.")] = 3,
    encoder_norm: Annotated[float, typer.Option(help="Norm |e| of the encoder.")] = 1.0,
    decoder_norm: Annotated[float, typer.Option(help="Norm |d| of the decoder.")] = 1.0,
    overlap: Annotated[float, typer.Option(help="Scalar product d.e of decoder and encoder.")] = 0.0,
) -> None:
    """Linear networks: the best learning rate, the time to converge and the scales to avoid, for one channel.

    With a network file: is it a generalizing integrator, and if not, which of its modes is at fault?
    """
    if network is not None:
        _show_conditions(network)
        return
    if not 0 < decay <= 1:
        raise InputError(f"--decay: {decay}; allowed: above 0, up to 1")

    from rni.theory import advise, plane

    advice = advise(plane(encoder_norm, decoder_norm, overlap), decay, scale, duration)
    here = advice.convergence
    print(f"one linear channel, |e| = {encoder_norm:g}, |d| = {decoder_norm:g}, d.e = {overlap:g}, T = {duration}")
    print(f"decay {decay:g}, scale {scale:g}, descent from W = 0 on the averaged loss:")
    print(f"  best learning rate         {here.learning_rate:.4g}  (stable below {2 * here.learning_rate:.4g})")
    print(f"  time to converge           {here.condition_number:.4g} steps for each factor e of the distance, at least")
    print(f"fastest scale              {advice.best_scale:.4g}  ({advice.best_time:.4g} steps)")
    avoid = ", ".join(f"{low:.3g} to {high:.3g}" for low, high in advice.avoid) or "none"
    print(f"scales to avoid            {avoid}  (ten times slower, of those from 0.001 to 10 |e||d|)")


@app.command()
def cite() -> None:
    """How to cite the paper, and this software."""
    from rni import __version__

    print(
        "Fanthomme A., Monasson R. (2021). Low-Dimensional Manifolds Support Multiplexed Integrations in Recurrent\n"
        "Neural Networks. Neural Computation 33(4), 1063-1112. arXiv:2011.10435\n"
        f"rni {__version__}: recurrent neural integrators."
    )


def main() -> None:
    """Run the command line: what the user can mend is one line on standard error and exit code 2."""
    try:
        app()
    except (InputError, Diverged) as error:
        for line in str(error).splitlines():
            print(f"rni: {line}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("rni: interrupted", file=sys.stderr)
        sys.exit(130)


def _match_threads(neurons: int) -> None:
    """Small products are slower on several threads, much slower beside another process."""
    import torch

    if neurons < 300:
        torch.set_num_threads(1)


def _overrides(arguments: list[str]) -> dict[str, Any]:
    """Flags such as `--neurons 500` or `--network.neurons=500`."""
    values: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        flag, given, text = rest.pop(0).partition("=")
        if not flag.startswith("--"):
            raise InputError(f"{flag}: unexpected; allowed: --FIELD VALUE for a field of the specification")
        if not given:
            if not rest:
                raise InputError(f"{flag}: no value; allowed: {flag} VALUE")
            text = rest.pop(0)
        values[flag.removeprefix("--").replace("-", "_")] = _value(text)
    return values


def _value(text: str) -> Any:
    """What a flag says: TOML, or a number as people write it (.5), or else text."""
    import tomllib

    with suppress(tomllib.TOMLDecodeError, KeyError):
        return tomllib.loads(f"value = {text}")["value"]
    with suppress(ValueError):
        return float(text)
    return text


def _show_conditions(path: Path) -> None:
    from rni import files
    from rni.theory import is_generalizing_integrator, shortest_guaranteed_duration

    net = files.load(path)
    if net.f.name != "linear":
        raise InputError(f"{path}: activation {net.f.name!r}; allowed: 'linear', for which the conditions are exact")
    w, e, d = (tensor.detach() for tensor in (net.recurrent.matrix(), net.encoders, net.decoders))
    report = is_generalizing_integrator(w, e, d, net.task.decays, net.task.scales)
    verdict = "a generalizing integrator" if report else "not a generalizing integrator"
    print(f"{verdict}: largest error of a moment {report.moment_error:.2g}, allowed {report.tolerance:.2g}")
    print(f"rank {report.rank}, spectral radius {report.spectral_radius:.6g}")
    print(f"sequences of {shortest_guaranteed_duration(w)} steps guarantee generalisation at this rank")
    for mode in sorted(report.modes, key=lambda mode: -mode.residual)[:8]:
        value = f"{mode.eigenvalue.real:.6g}" + (f"{mode.eigenvalue.imag:+.2g}i" if mode.eigenvalue.imag else "")
        part = "missing" if mode.multiplicity == 0 else f"multiplicity {mode.multiplicity}"
        print(f"  eigenvalue {value:>12}  {part:<15} residual {mode.residual:.2g}")


def _show(analysis: "Analysis") -> None:
    print(f"{analysis.neurons} neurons, {analysis.activation}, decays {_numbers(analysis.decays)}")
    for kind, errors in analysis.errors.items():
        for duration, by_channel in errors.items():
            print(f"relative error, {kind}, {duration} steps: {'  '.join(f'{100 * e:.2f} %' for e in by_channel)}")
    print(f"singular values: {_numbers(analysis.singular_values)} ...")
    print(
        f"currents outside / inside {analysis.dimension} dimensions: r = {analysis.ratio:.3g} "
        f"(by chance {analysis.null_ratio:.3g})"
    )


def _numbers(values: tuple[float, ...]) -> str:
    return "  ".join(f"{value:.4g}" for value in values)
