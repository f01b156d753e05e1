"""The command line. torch is imported by the commands that need it, so that help comes at once."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rni.errors import Diverged, InputError

if TYPE_CHECKING:
    from rni.analysis import Analysis

app = typer.Typer(
    help="Recurrent neural integrators: train, simulate, analyse and export networks that integrate several signals.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
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
