"""`rni analyze`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rni.cli.files import require_ending, require_kind, require_output
from rni.cli.flags import PAGE, Force, Scales, Threads
from rni.cli.inputs import read_inputs
from rni.cli.lists import numbers
from rni.cli.specified import said_of_flags
from rni.core.errors import InputError

KINDS = ("network", "safetensors", "state dict", "pickle", "arrays", "MATLAB file")


def analyze(
    context: typer.Context,
    what: Annotated[
        Path, typer.Argument(metavar="NET", help="NET.safetensors, a .pt state dict, .npz or .mat arrays.")
    ],
    json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="PAGE.html", help="A page of results with figures.")] = None,
    force: Force = False,
    inputs: Annotated[Path | None, typer.Option(metavar="X.npy", help="Test on these, not on N(0, 1).")] = None,
    activation: Annotated[str | None, typer.Option(help="Of a state dict; torch's default is tanh.")] = None,
    leak: Annotated[float | None, typer.Option(help="alpha = dt / tau of a leaky network.")] = None,
    form: Annotated[str | None, typer.Option(help="rate: h is the state; current: v is, and h = f(v).")] = None,
    reads: Annotated[str | None, typer.Option(help="What outputs are read from: rates, or the state.")] = None,
    dt: Annotated[float | None, typer.Option(help="The time of a step, in which time constants are then told.")] = None,
    tau: Annotated[
        float | None, typer.Option(help="The time constant of a neuron; with --dt in place of --leak.")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Deviation of what is added to the state at each step.")] = None,
    names: Annotated[
        str | None, typer.Option("--map", help="Names in the file: 'recurrent=J,input_weights=B.T'.")
    ] = None,
    decays: Annotated[str | None, typer.Option(help="What it should integrate, e.g. 0.95 0.9, if not fitted.")] = None,
    scales: Scales = None,
    disturbed: Annotated[bool, typer.Option("--robustness", help="Of NET.safetensors: errors when disturbed.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Of NET.safetensors: the way to an exact integrator.")] = False,
    threads: Threads = None,
) -> None:
    """Examine any vanilla RNN, or recorded activity: what it integrates, how well and how long, and how it codes it.

    A network file of ours; the state dict of a torch.nn.RNN, alone or in a model with a linear readout (.pt,
    .safetensors); leaky RNNs of layers (input2h, h2h, fc; W_in, W, W_out), low-rank RNNs (m, n, wi, wo), PsychRNN's
    .npz, Keras's weights (.npz), .mat; arrays (.npz): recurrent, input_weights or encoders, bias, decoders,
    activation, leak, form, ...; or a recording (.npz): activity (trials, time, neurons) and inputs (trials, time,
    channels). What a file does not say is given by --leak, --form, --activation, or assumed, and then said.

    Words: currents are what arrives at the neurons; they lie near a plane, the manifold, of as many dimensions as
    channels, and r is their size outside of it over that inside; bursts are inputs that keep one sign for long.
    """
    require_kind(what, KINDS, "NET.safetensors, a .pt state dict, .npz or .mat arrays")
    for flag, asked in (("--robustness", disturbed), ("--exact", exact)):
        if asked and what.suffix != ".safetensors":
            raise InputError(f"{flag}: with {str(what)!r}; allowed: with a network file of ours, NET.safetensors")
    if scales is not None and decays is None:
        raise InputError("--scales: given without --decays; allowed: both")
    if out is not None:
        require_ending(out, PAGE)
        require_output(context, out, PAGE, force=force, reads=[what, inputs])

    from rni.analysis import analyze
    from rni.core.threads import fitting
    from rni.core.threads import threads as running_on
    from rni.files.foreign import read
    from rni.tasks.integration import Integration

    reading: Any = {"leak": leak, "form": form, "reads": reads, "dt": dt, "tau": tau, "noise": noise}
    given = read(what, activation, **reading, names=_pairs(names) if names is not None else None)
    options: dict[str, Any] = {}
    if decays is not None:
        with said_of_flags():
            options["task"] = Integration(numbers("--decays", decays), numbers("--scales", scales) if scales else None)
    if inputs is not None:
        options["inputs"] = read_inputs(inputs, given.channels)
    context.with_resource(running_on(threads or fitting(given.neurons)))
    analysis = analyze(given, **options)
    if out is not None:
        from rni.pages.analysis import write_page

        write_page(analysis, out, what.name)
    if json:
        print(analysis.to_json())
    else:
        print(analysis)
    if out is not None:
        print(f"wrote {out}", file=sys.stderr if json else sys.stdout)
    if disturbed:
        from rni.analysis import robustness
        from rni.files import native

        print(robustness(native.load(what)), file=sys.stderr if json else sys.stdout)
    if exact:
        from rni.designs import polish
        from rni.files import native

        print(f"next to it, an exact integrator:\n{polish(native.load(what))}", file=sys.stderr if json else sys.stdout)


def _pairs(text: str) -> dict[str, str]:
    """{"recurrent": "J", "input_weights": "B"} from "recurrent=J,input_weights=B"."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(ours.strip() and theirs.strip() for ours, _, theirs in pairs):
        raise InputError(f"--map: {text!r}; allowed: OURS=THEIRS,..., as in recurrent=J,input_weights=B")
    names = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if len(names) < len(pairs):
        raise InputError(f"--map: {text!r}, a name of ours twice; allowed: each once")
    return names
