"""The command line. torch is imported by the commands that need it, so that help comes at once."""

import os
import signal
import sys
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rni.atomic import OF_THE_SYSTEM, require_writable, said, write_atomically
from rni.errors import Diverged, InputError
from rni.runs.cli import app as runs_app

if TYPE_CHECKING:
    from torch import Tensor

    from rni.exchange.native import NetworkFile as ReadNetwork
    from rni.network import Network
    from rni.pages.snapshots import Snapshot

app = typer.Typer(
    help="Recurrent neural integrators: train, simulate, analyse and export networks that integrate several signals.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(runs_app, name="runs")
NetworkFile = Annotated[Path, typer.Argument(metavar="NET.safetensors", help="A network file.")]
HOMOGENEOUS = ("linear", "relu")  # activations for which integrals of any size are alike


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
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


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def design(
    context: typer.Context,
    neurons: Annotated[int, typer.Option(help="How many.")] = 1000,
    activation: Annotated[str, typer.Option(help="A name, or a table: {name = 'sigmoid', slope = 50}.")] = "relu",
    seed: Annotated[int, typer.Option(help="Encoders and decoders are those of a training with this seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the network goes.")] = Path("network.safetensors"),
    polish: Annotated[Path | None, typer.Option(metavar="NET", help="The exact integrator next to this one.")] = None,
) -> None:
    """Design a network without training: --decays 0.995 0.993 [--scales 1 2], one of each for a channel.

    Linear and ReLU networks come out exact, others for integrals z up to what inputs up to 1 reach, or up to --bounds.
    Prints the error over 2000 steps and the bound for any number of steps. --polish NET.safetensors makes a trained
    network exact instead, and says how far that moves it.
    """
    if polish is not None:
        _polish(polish, context, out)
        return
    from rni.runs.specification import Specification

    task = _lists(context.args, ("decays", "scales", "bounds"))
    bounds = task.pop("bounds", None)
    parts = {"neurons": neurons, "activation": _value(activation), "weights": "lowrank", "precision": "float64"}
    raw = {"seed": seed, "task": task, "network": parts, "training": {"steps": 0}}
    specification = Specification.parse(raw)
    if specification.network.activation.name not in HOMOGENEOUS:  # the proxy loss knows the range of integrals
        raw["training"] |= {"loss": "proxy", "bounds": bounds or []}
        specification = Specification.parse(raw)
    require_writable(out)

    from rni.designs import design
    from rni.exchange import native

    drawn = specification.build()
    vectors = {"encoders": drawn.encoders, "decoders": drawn.decoders}
    result = design(drawn.task, neurons, drawn.f, **vectors, bounds=bounds, seed=seed)
    native.save(result.network, out, specification.to_dict())
    print(result)
    print(f"wrote {out}")


@app.command()
def analyze(
    what: Annotated[Path, typer.Argument(metavar="NET", help="NET.safetensors, a .pt state dict, or .npz arrays.")],
    json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="PAGE.html", help="A page of results with figures.")] = None,
    inputs: Annotated[Path | None, typer.Option(metavar="X.npy", help="Test on these, not on N(0, 1).")] = None,
    activation: Annotated[str | None, typer.Option(help="Of a state dict; torch's default is tanh.")] = None,
    decays: Annotated[str | None, typer.Option(help="What it should integrate, e.g. 0.95,0.9, if not fitted.")] = None,
    scales: Annotated[str | None, typer.Option(help="The scales that go with them; default: 1.")] = None,
    disturbed: Annotated[bool, typer.Option("--robustness", help="Of NET.safetensors: errors when disturbed.")] = False,
) -> None:
    """Examine any vanilla RNN, or recorded activity: what it integrates, how well and how long, and how it codes it.

    A network file of ours; the state dict of a torch.nn.RNN, alone or in a model with a linear readout (.pt,
    .safetensors); arrays (.npz): recurrent, input_weights or encoders, bias, decoders, activation, ...; or a
    recording (.npz): activity (trials, time, neurons) and inputs (trials, time, channels).
    """
    if out is not None and out.suffix not in (".html", ".htm"):
        raise InputError(f"--out: {str(out)!r}; allowed: a name that ends in .html")
    if disturbed and what.suffix != ".safetensors":
        raise InputError(f"--robustness: with {str(what)!r}; allowed: with a network file of ours, NET.safetensors")
    if scales is not None and decays is None:
        raise InputError("--scales: given without --decays; allowed: both")
    if out is not None:
        require_writable(out)

    from rni.analysis import analyze
    from rni.exchange.foreign import read
    from rni.exchange.vanilla import VanillaRNN
    from rni.task import Integration

    given = read(what, activation)
    options: dict[str, Any] = {}
    if decays is not None:
        options["task"] = Integration(_floats("--decays", decays), _floats("--scales", scales) if scales else None)
    if inputs is not None:
        options["inputs"] = _read_inputs(inputs, given.channels)
    if isinstance(given, VanillaRNN):
        _match_threads(given.neurons)
    analysis = analyze(given, **options)
    if json:
        print(analysis.to_json())
    else:
        print(analysis)
    if out is not None:
        from rni.pages.analysis import write_page

        write_page(analysis, out, what.name)
        print(f"wrote {out}", file=sys.stderr if json else sys.stdout)
    if disturbed:
        from rni.analysis import robustness
        from rni.exchange import native

        print(robustness(native.load(what)), file=sys.stderr if json else sys.stdout)


@app.command()
def simulate(
    network: NetworkFile,
    inputs: Annotated[Path, typer.Option(metavar="X.npy", help="(batch, time, channels) or (time, channels).")],
    out: Annotated[Path, typer.Option(metavar="Y.npy", help="Where the outputs go, in the shape of the inputs.")],
) -> None:
    """Run a network on given inputs and write its outputs."""
    require_writable(out)

    import io

    import numpy as np
    import torch

    from rni.exchange import native

    net, specification, _ = native.read(network)
    x = _read_inputs(inputs, net.channels)
    batch = (x if x.ndim == 3 else x[None]).to(net.dtype)
    if specification is not None:
        _check_range(specification, batch)
    with torch.no_grad():
        y = net.outputs(batch)
    buffer = io.BytesIO()
    np.save(buffer, (y if x.ndim == 3 else y[0]).numpy())
    write_atomically(out, buffer.getvalue())
    print(f"wrote {out}: {tuple(x.shape)}")


@app.command()
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
    endings = {"torch": (".pt", ".safetensors"), "onnx": (".onnx",), "arrays": (".npz",)}
    if to not in endings:
        raise InputError(f"--to: {to!r}; allowed: {', '.join(endings)}")
    out = out or network.with_suffix(endings[to][0])
    if out.suffix not in endings[to]:
        raise InputError(f"--out: {str(out)!r}; allowed: a name that ends in {' or '.join(endings[to])}")
    require_writable(out)

    from rni.exchange import native
    from rni.exchange.export import to_arrays, to_onnx, to_torch

    {"torch": to_torch, "onnx": to_onnx, "arrays": to_arrays}[to](native.load(network), out)
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

    from rni.paper.claims import tally
    from rni.paper.reproduce import reproduce
    from rni.runs.engine import cluster, local
    from rni.runs.store import Store

    try:
        with cluster(scheduler) if scheduler else local(workers) as executor:
            outcomes, page = reproduce(chosen, PROFILES[profile], out, executor, store)
    except KeyboardInterrupt:
        kept = f"finished runs, and those begun as far as they are, are kept in {Store(store).root}"
        print(f"rni: interrupted; {kept}: the same command goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    for outcome in outcomes:
        for claim in outcome.claims:
            print(f"{claim.verdict:<27} {claim.id}")
        if outcome.failure:
            print(f"{'failed':<27} {outcome.figure.id}: {outcome.failure}")
    for origin, counts in tally(claim for outcome in outcomes for claim in outcome.claims).items():
        whose = {"paper": "the paper's", "ours": "ours"}[origin]
        print(f"claims, {whose}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    print(f"wrote {page}")
    if failed := sum(bool(outcome.failure) for outcome in outcomes):
        print(f"rni: {failed} of {len(outcomes)} failed; the same command tries those again", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def theory(
    network: Annotated[Path | None, typer.Argument(metavar="[NET.safetensors]", help="A linear network file.")] = None,
    decay: Annotated[float, typer.Option(help="Decay of the integral.")] = 0.995,
    scale: Annotated[float, typer.Option(help="Scale of the integral.")] = 1.0,
    duration: Annotated[int, typer.Option(help="Length T of the training sequences.")] = 3,
    encoder_norm: Annotated[float, typer.Option(help="Norm |e| of the encoder.")] = 1.0,
    decoder_norm: Annotated[float, typer.Option(help="Norm |d| of the decoder.")] = 1.0,
    overlap: Annotated[float, typer.Option(help="Scalar product d.e of decoder and encoder.")] = 0.0,
    capacity: Annotated[bool, typer.Option("--capacity", help="Integrals that neurons can hold exactly.")] = False,
    neurons: Annotated[int | None, typer.Option(help="With --capacity: how many channels they can integrate.")] = None,
    channels: Annotated[int | None, typer.Option(help="With --capacity: how many neurons they need.")] = None,
) -> None:
    """Linear networks: the best learning rate, the time to converge and the scales to avoid, for one channel.

    Rates and times hold close to the integrator that descent converges to fastest; from W = 0 it may come to another
    one, so the rate up to which it settles from there is measured.

    With a network file: is it a generalizing integrator, and if not, which of its modes is at fault? With --capacity:
    how many channels --neurons can integrate exactly, or how many neurons --channels need, linear and ReLU.
    """
    if capacity:
        _show_capacity(neurons, channels)
        return
    if neurons is not None or channels is not None:
        raise InputError("--neurons, --channels: given without --capacity; allowed: with it")
    if network is not None:
        _show_conditions(network)
        return
    if not 0 < decay <= 1:
        raise InputError(f"--decay: {decay}; allowed: above 0, up to 1")

    import numpy as np

    from rni.theory import advise, plane
    from rni.training.limit import STEPS, settling_rate

    space = plane(encoder_norm, decoder_norm, overlap)
    advice = advise(space, decay, scale, duration)
    here = advice.convergence
    rate = here.learning_rate
    settling = settling_rate(space, decay, scale, duration, rate * np.linspace(0.1, 2.5, 49))
    end = "the largest tried" if settling.refused is None else f"and not at {settling.refused:.4g}"
    print(f"one linear channel, |e| = {encoder_norm:g}, |d| = {decoder_norm:g}, d.e = {overlap:g}, T = {duration}")
    print(f"decay {decay:g}, scale {scale:g}, descent on the averaged loss:")
    print(f"  best learning rate         {rate:.4g}, at the integrator that is fastest to converge to")
    print(
        f"  time to converge           {here.condition_number:.4g} steps for each factor e of the distance, close to it"
    )
    print(f"  stays there                below a rate of {2 * rate:.4g}, started close to it")
    verb = "converges" if settling.loss < 1e-6 else "falls steadily"
    print(f"  from W = 0                 {verb} up to a rate of {settling.rate:.4g}, {end}")
    print(f"                             (measured: {settling.loss:.2g} of the loss is left after {STEPS} steps)")
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


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    options_metavar="[NET.safetensors | --decays ...] [OPTIONS]",
)
def explore(
    context: typer.Context,
    neurons: Annotated[int, typer.Option(help="Of a designed network.")] = 1000,
    activation: Annotated[str, typer.Option(help="Of a designed network: a name, or a table.")] = "relu",
    seed: Annotated[int, typer.Option(help="Of a designed network.")] = 0,
    out: Annotated[Path, typer.Option(metavar="PAGE.html", help="Where the page goes.")] = Path("explore.html"),
) -> None:
    """Write a page in which a network runs: push it, look inside, disturb it, watch it learn.

    NET.safetensors with the snapshots that stand beside it (rni train --snapshots 40), or else a network designed for
    --decays 0.99 0.9 [--scales 1 2].
    """
    if out.suffix not in (".html", ".htm"):
        raise InputError(f"--out: {str(out)!r}; allowed: a name that ends in .html")
    given = list(takewhile(lambda argument: not argument.startswith("--"), context.args))
    task = _lists(context.args[len(given) :], ("decays", "scales"))
    if len(given) > 1 or (given and task):
        raise InputError(f"{' '.join(context.args)}: unexpected; allowed: one network file, or --decays and --scales")
    for name in ("neurons", "activation", "seed") if given else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise InputError(f"--{name}: given with {given[0]}; allowed: for a network to be designed")
    require_writable(out)

    from rni.pages import explore

    if given:
        file, series = _with_snapshots(Path(given[0]))
        explore(file.network, out, name=Path(given[0]).name, snapshots=series, losses=file.losses)
    else:
        explore(_designed(task or {"decays": [0.99, 0.9]}, neurons, activation, seed), out)
    print(f"wrote {out}: {out.stat().st_size / 1e6:.2g} MB")


def main() -> None:
    """Run the command line: what the user can mend is one line on standard error and exit code 2."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # batch systems send it first: time to save
    try:
        try:
            app()
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except (InputError, Diverged) as error:
        for line in str(error).splitlines():
            print(f"rni: {line}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.errno not in OF_THE_SYSTEM:
            raise
        if error.filename is None:  # standard output: nothing more can go there, not even at the exit
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"rni: {said(error)}; the same command goes on once that is mended", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("rni: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGTERM, before)


def _designed(task: dict[str, list[float]], neurons: int, activation: str, seed: int) -> "Network":
    from rni.runs.specification import Specification

    parts = {"neurons": neurons, "activation": _value(activation), "weights": "lowrank", "precision": "float64"}
    drawn = Specification.parse({"seed": seed, "task": task, "network": parts}).build()

    from rni.designs import design

    return design(drawn.task, neurons, drawn.f, seed=seed).network


def _with_snapshots(path: Path) -> "tuple[ReadNetwork, list[Snapshot]]":
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


def _polish(path: Path, context: typer.Context, out: Path) -> None:
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    if context.args or given - {"polish", "out"}:
        raise InputError("--polish: given with other options; allowed: --out, as all else is the network's own")

    from rni.designs import polish
    from rni.exchange import native

    net, specification, _ = native.read(path)
    result = polish(net)
    native.save(result.network, out, specification)
    print(result)
    print(f"wrote {out}")


def _show_capacity(neurons: int | None, channels: int | None) -> None:
    if (neurons is None) == (channels is None):
        raise InputError("--capacity: needs one of --neurons and --channels; allowed: e.g. --neurons 1000")

    from rni.theory import largest_channels, least_neurons

    vectors = {"given": "encoders and decoders given, in general position", "free": "decoders free"}
    for activation in ("relu", "linear"):
        for decoders, words in vectors.items():
            if neurons is not None:
                line = f"at most {largest_channels(neurons, activation, decoders)} channels"
            else:
                line = f"at least {least_neurons(channels or 0, activation, decoders)} neurons"
            print(f"{activation:<7} {line:<24} {words}")


def _check_range(specification: dict[str, Any], inputs: "Tensor") -> None:
    """Say it where a network that was trained for some integrals is to make others."""
    import warnings

    from rni.losses import ProxyLoss
    from rni.runs.specification import Specification

    try:
        made = Specification.parse(specification)
    except InputError:  # another version's, or a user's own: it is for the record, and the network is whole
        return
    loss = made.loss()
    if isinstance(loss, ProxyLoss) and made.network.activation.name not in HOMOGENEOUS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loss.check_range(inputs)
        for warning in caught:
            print(f"rni: warning: {warning.message}", file=sys.stderr)


def _match_threads(neurons: int) -> None:
    """Small products are slower on several threads, much slower beside another process."""
    import torch

    if neurons < 300:
        torch.set_num_threads(1)


def _read_inputs(path: Path, channels: int) -> "Tensor":
    """Finite numbers, (batch, time, channels) or (time, channels)."""
    import numpy as np

    from rni.tensors import real, require_file

    require_file(path)
    try:
        with path.open("rb") as file:
            x = np.load(file, allow_pickle=False)
    except Exception as error:  # numpy raises whatever its reader stumbles on
        reason = type(error).__name__
        raise InputError(f"{path}: can't be read ({reason}); allowed: an array written by numpy.save") from None
    if not isinstance(x, np.ndarray):
        raise InputError(f"{path}: several arrays; allowed: one, written by numpy.save")
    fits = x.ndim in (2, 3) and x.shape[-1] == channels and x.size
    if x.dtype.kind not in "fiub" or not fits or not np.isfinite(x).all():
        allowed = f"finite numbers, (batch, time, {channels}) or (time, {channels})"
        raise InputError(f"{path}: {x.dtype} of shape {x.shape}; allowed: {allowed}")
    return real(str(path), x)


def _floats(flag: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.strip("[] ").replace(",", " ").split()]
    except ValueError:
        raise InputError(f"{flag}: {text!r}; allowed: numbers, e.g. 0.95,0.9") from None


def _lists(arguments: list[str], flags: tuple[str, ...]) -> dict[str, list[float]]:
    """Flags with several values, `--decays 0.995 0.993` or `--decays 0.995,0.993`."""
    lists: dict[str, list[float]] = {}
    name = ""
    for argument in arguments:
        if argument.startswith("--"):
            name, _, argument = argument.removeprefix("--").partition("=")
            if name not in flags:
                raise InputError(f"--{name}: no such option; allowed: {', '.join('--' + flag for flag in flags)}")
            lists[name] = []
        if not name:
            raise InputError(f"{argument}: unexpected; allowed: --{flags[0]} {argument}")
        lists[name] += _floats(f"--{name}", argument) if argument else []
    return lists


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

    with suppress(ValueError, KeyError, RecursionError):  # what is no TOML, or nests too deeply for it
        return tomllib.loads(f"value = {text}")["value"]
    with suppress(ValueError):
        return float(text)
    return text


def _show_conditions(path: Path) -> None:
    from rni.exchange import native
    from rni.theory import is_generalizing_integrator, shortest_guaranteed_duration

    net = native.load(path)
    if net.f.name != "linear":
        raise InputError(f"{path}: activation {net.f.name!r}; allowed: 'linear', for which the conditions are exact")
    w, e, d = (tensor.detach() for tensor in (net.recurrent.matrix(), net.encoders, net.decoders))
    report = is_generalizing_integrator(w, e, d, net.task.decays, net.task.scales)
    print(report)
    print(f"sequences of {shortest_guaranteed_duration(w)} steps guarantee generalisation at this rank")
