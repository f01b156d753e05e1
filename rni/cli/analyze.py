"""`rni analyze`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rni.atomic import require_writable
from rni.cli.flags import Scales, require_page
from rni.cli.inputs import read_inputs
from rni.cli.lists import numbers
from rni.errors import InputError


def analyze(
    what: Annotated[Path, typer.Argument(metavar="NET", help="NET.safetensors, a .pt state dict, or .npz arrays.")],
    json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="PAGE.html", help="A page of results with figures.")] = None,
    inputs: Annotated[Path | None, typer.Option(metavar="X.npy", help="Test on these, not on N(0, 1).")] = None,
    activation: Annotated[str | None, typer.Option(help="Of a state dict; torch's default is tanh.")] = None,
    decays: Annotated[str | None, typer.Option(help="What it should integrate, e.g. 0.95 0.9, if not fitted.")] = None,
    scales: Scales = None,
    disturbed: Annotated[bool, typer.Option("--robustness", help="Of NET.safetensors: errors when disturbed.")] = False,
) -> None:
    """Examine any vanilla RNN, or recorded activity: what it integrates, how well and how long, and how it codes it.

    A network file of ours; the state dict of a torch.nn.RNN, alone or in a model with a linear readout (.pt,
    .safetensors); arrays (.npz): recurrent, input_weights or encoders, bias, decoders, activation, ...; or a
    recording (.npz): activity (trials, time, neurons) and inputs (trials, time, channels).
    """
    if out is not None:
        require_page(out)
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
        options["task"] = Integration(numbers("--decays", decays), numbers("--scales", scales) if scales else None)
    if inputs is not None:
        options["inputs"] = read_inputs(inputs, given.channels)
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


def _match_threads(neurons: int) -> None:
    """Small products are slower on several threads, much slower beside another process."""
    import torch

    if neurons < 300:
        torch.set_num_threads(1)
