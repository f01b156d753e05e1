"""`rni analyze`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rni.cli.files import require_ending, require_kind, require_output
from rni.cli.flags import PAGE, Force, Scales, Threads
from rni.cli.inputs import read_inputs
from rni.cli.lists import numbers
from rni.cli.specified import fields_are_flags
from rni.core.errors import InputError

KINDS = ("network", "safetensors", "state dict", "pickle", "arrays", "MATLAB file")


def analyze(
    context: typer.Context,
    what: Annotated[
        Path, typer.Argument(metavar="NET", help="NET.safetensors, a .pt state dict, .npz or .mat arrays.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="PAGE.html", help="Write a page with figures.")] = None,
    force: Force = False,
    inputs: Annotated[
        Path | None, typer.Option(metavar="X.npy", help="Test on these inputs instead of N(0, 1).")
    ] = None,
    activation: Annotated[
        str | None, typer.Option(help="The activation of a state dict; torch's default is tanh.")
    ] = None,
    leak: Annotated[float | None, typer.Option(help="The leak alpha = dt / tau.")] = None,
    form: Annotated[str | None, typer.Option(help="rate: h is the state; current: v is, and h = f(v).")] = None,
    reads: Annotated[str | None, typer.Option(help="What the readout reads: rates or state.")] = None,
    dt: Annotated[float | None, typer.Option(help="The time of a step, the unit of time constants.")] = None,
    tau: Annotated[
        float | None, typer.Option(help="The time constant of a neuron; with --dt instead of --leak.")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation of the noise on the state at each step.")
    ] = None,
    names: Annotated[
        str | None, typer.Option("--map", help="Names in the file: 'recurrent=J,input_weights=B.T'.")
    ] = None,
    decays: Annotated[
        str | None, typer.Option(help="The decays that it should have, e.g. 0.95 0.9; fitted by default.")
    ] = None,
    scales: Scales = None,
    disturbed: Annotated[
        bool, typer.Option("--robustness", help="For NET.safetensors: errors under disturbances.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="For NET.safetensors: an exact integrator close to it.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Analyse a vanilla RNN, or recorded activity: what it integrates, how well and how long, and how it codes it.

    A network file of rni; the state dict of a torch.nn.RNN, alone or in a model with a linear readout (.pt,
    .safetensors); leaky RNNs of layers (input2h, h2h, fc; W_in, W, W_out), low-rank RNNs (m, n, wi, wo), PsychRNN's
    .npz, Keras's weights (.npz), .mat; arrays (.npz): recurrent, input_weights or encoders, bias, decoders,
    activation, leak, form, ...; or a recording (.npz): activity (trials, time, neurons) and inputs (trials, time,
    channels). What a file does not contain is given by --leak, --form and --activation. Otherwise it is assumed, and a
    note says so.

    Currents are the inputs that neurons receive. In an integrator they are close to a plane, the manifold, of as many
    dimensions as there are channels. r is the size of the currents outside of this plane over that inside. Bursts are
    inputs that keep one sign for a long time.
    """
    require_kind(what, KINDS, "NET.safetensors, a .pt state dict, .npz or .mat arrays")
    for flag, asked in (("--robustness", disturbed), ("--exact", exact)):
        if asked and what.suffix != ".safetensors":
            raise InputError(flag, str(what), "a network file of rni, NET.safetensors")
    if scales is not None and decays is None:
        raise InputError("--scales", scales, "--decays with --scales", problem="given without --decays")
    if out is not None:
        require_ending(out, PAGE)
        require_output(context, out, PAGE, force=force, reads=[what, inputs])

    from rni.analysis.examination import analyze
    from rni.core.threads import fitting
    from rni.core.threads import threads as running_on
    from rni.files import native
    from rni.files.foreign import interpret, read
    from rni.tasks.integration import Integration

    reading: Any = {"leak": leak, "form": form, "reads": reads, "dt": dt, "tau": tau, "noise": noise}
    reading["names"] = _pairs(names) if names is not None else None
    network = native.load(what) if disturbed or exact else None
    given = read(what, activation, **reading) if network is None else interpret(network, activation, **reading)
    options: dict[str, Any] = {}
    if decays is not None:
        with fields_are_flags():
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
    if network is not None and disturbed:
        from rni.analysis import robustness

        print(robustness(network), file=sys.stderr if json else sys.stdout)
    if network is not None and exact:
        from rni.designs import polish

        print(f"next to it, an exact integrator:\n{polish(network)}", file=sys.stderr if json else sys.stdout)


def _pairs(text: str) -> dict[str, str]:
    """Return {"recurrent": "J", "input_weights": "B"} from "recurrent=J,input_weights=B"."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(ours.strip() and theirs.strip() for ours, _, theirs in pairs):
        raise InputError("--map", text, "OURS=THEIRS,..., as in recurrent=J,input_weights=B")
    names = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if len(names) < len(pairs):
        raise InputError("--map", text, "each name once", problem=f"{text!r}, which has a name twice")
    return names
