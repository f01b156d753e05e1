"""The command `rni theory`."""

from pathlib import Path
from typing import Annotated

import typer

from rni.cli.files import require_network
from rni.core.errors import InputError


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
    """Compute the best learning rate, the time to converge and the scales to avoid of a linear network, for one
    channel.

    Learning rates and times hold close to the integrator to which descent converges fastest. From W = 0 descent may
    reach another integrator. The command therefore also measures up to which learning rate it settles from W = 0.

    With a network file, the command says whether the network is a generalizing integrator, and if not, which of its
    modes violates the conditions. With --capacity, it says how many channels --neurons can integrate exactly, or how
    many neurons --channels need, for linear and ReLU networks.
    """
    if capacity:
        _show_capacity(neurons, channels)
        return
    if neurons is not None or channels is not None:
        flag, value = ("--neurons", neurons) if neurons is not None else ("--channels", channels)
        raise InputError(flag, value, "only with --capacity")
    if network is not None:
        require_network(network)
        _show_conditions(network)
        return
    if not 0 < decay <= 1:
        raise InputError("--decay", decay, "above 0, up to 1")

    import numpy as np

    from rni.theory import advise, plane
    from rni.training.stability import STEPS, settling_rate

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


def _show_capacity(neurons: int | None, channels: int | None) -> None:
    if (neurons is None) == (channels is None):
        raise InputError("--capacity", None, "with one of --neurons and --channels", problem="one of two is needed")

    from rni.theory import largest_channels, least_neurons

    vectors = {"given": "encoders and decoders given, in general position", "free": "decoders free"}
    for activation in ("relu", "linear"):
        for decoders, words in vectors.items():
            if neurons is not None:
                line = f"at most {largest_channels(neurons, activation, decoders)} channels"
            else:
                line = f"at least {least_neurons(channels or 0, activation, decoders)} neurons"
            print(f"{activation:<7} {line:<24} {words}")


def _show_conditions(path: Path) -> None:
    from rni.files import native
    from rni.theory import is_generalizing_integrator, shortest_guaranteed_duration

    net = native.load(path)
    if net.f.name != "linear":
        allowed = "a linear network, for which the conditions are exact"
        raise InputError(str(path), net.f.name, allowed, problem=f"activation {net.f.name!r}")
    w, e, d = (tensor.detach() for tensor in (net.recurrent.matrix(), net.encoders, net.decoders))
    report = is_generalizing_integrator(w, e, d, net.task.decays, net.task.scales)
    print(report)
    print(f"sequences of {shortest_guaranteed_duration(w)} steps guarantee generalisation at this rank")
