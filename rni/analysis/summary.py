"""The standard examination of an integrator, or of recorded activity, in one value."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from torch import Generator, Tensor, nn

from rni.accuracy import error_by_duration, longest_duration
from rni.activation import Activation
from rni.analysis.effective import (
    RECENT,
    Fit,
    Principal,
    fit_integrals,
    fit_readout,
    growth,
    halves,
    memory,
    outliers,
    principal,
    without_starts,
)
from rni.analysis.manifold import current_ratio, linear_map, null_ratio
from rni.analysis.populations import NAMES, population_vectors, populations
from rni.analysis.readout import matching, offset_at_rest
from rni.analysis.results import Analysis, RecordingAnalysis
from rni.analysis.selectivity import mixing
from rni.analysis.verdict import TOLERANCE, judge, percent, time_constant
from rni.errors import InputError
from rni.exchange.foreign import Foreign, interpret
from rni.exchange.recording import Recording
from rni.exchange.vanilla import VanillaRNN
from rni.inputs import bursts, white_noise
from rni.network import Network
from rni.task import Integration
from rni.weights import Dale, svd

INPUTS = {"white noise": white_noise, "bursts": bursts}
TRAJECTORIES = {200: 128, 2000: 16}  # by duration: about as many samples for each
STEPS = 200  # of white noise, on which decays, dimension and selectivity are measured
HELD = 2000  # neurons whose currents and activity are held in memory, evenly spaced where there are more
LEADING = 20  # principal components in which decays are looked for
STARTED = 0.01  # of the variance: more, and the states that trials start with are needed to explain it


@overload
def analyze(
    thing: Network | VanillaRNN | nn.Module | tuple[nn.Module, nn.Linear],
    *,
    task: Integration | None = None,
    inputs: Tensor | np.ndarray | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
) -> Analysis: ...
@overload
def analyze(
    thing: Recording | Mapping[str, Any],
    *,
    task: Integration | None = None,
    inputs: Tensor | np.ndarray | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
) -> Analysis | RecordingAnalysis: ...
@torch.no_grad()
def analyze(
    thing: Foreign,
    *,
    task: Integration | None = None,
    inputs: Tensor | np.ndarray | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
) -> Analysis | RecordingAnalysis:
    """Examine a network on test sequences of each kind, of 200 and of 2000 steps, or on `inputs`; or a recording.

    thing: a `Network`, a `torch.nn.RNN` or a module with one in it, (RNN, Linear), a state dict, a dict of arrays
    (see `rni.exchange.foreign`). task: what it should integrate, where it doesn't say itself. inputs: (batch, time,
    channels), of the size that the network was made for, if N(0, 1) is not. activation: of a state dict or arrays.

    Under Dale's law one more direction counts as inside, the mode that carries the signs (section 5).

    >>> found = rni.analyze(torch.nn.RNN(input_size=1, hidden_size=20))
    >>> found.verdict.kind  # not trained
    'forgets'
    >>> net = rni.design(rni.Integration([0.95, 0.9]), neurons=40).network
    >>> rni.analyze(net).verdict.kind
    'integrates'
    """
    given = interpret(thing, activation)
    if isinstance(given, Recording):
        if task is not None or inputs is not None:
            raise InputError("task, inputs: given with a recording; allowed: neither, it has its inputs")
        return _examine_recording(given)
    if task is not None:
        given = replace(given, task=task)
    return _examine(given, None if inputs is None else _checked(inputs, given.channels), seed)


def _checked(inputs: Tensor | np.ndarray, channels: int) -> Tensor:
    """(batch, time, channels), finite, with something in each channel."""
    allowed = f"finite real numbers, (batch, time, {channels}) or (time, {channels})"
    try:
        x = torch.as_tensor(inputs)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"inputs: {type(inputs).__name__}; allowed: {allowed}") from None
    x = x[None] if x.ndim == 2 else x
    if x.ndim != 3 or x.shape[2] != channels or not x.numel() or x.is_complex() or not bool(torch.isfinite(x).all()):
        raise InputError(f"inputs: shape {tuple(x.shape)}; allowed: {allowed}")
    if empty := [str(c + 1) for c in range(channels) if not bool(x[..., c].any())]:
        raise InputError(f"inputs: 0 throughout in channel {', '.join(empty)}; allowed: inputs in each channel")
    _require_unit(inputs=x)
    return x


def _require_unit(**samples: Tensor) -> None:
    """Refuse numbers whose squares can't be added up."""
    for name, values in samples.items():
        largest = float(values.double().abs().max())
        if largest and not 1e-100 < largest < 1e100:
            raise InputError(f"{name}: up to {largest:.2g}; allowed: from 1e-100 to 1e100, so change the unit")


def _require_steps(inputs: Tensor) -> None:
    """Refuse sequences in which nothing could be remembered for longer than what counts as forgotten."""
    if inputs.shape[1] <= RECENT:
        raise InputError(f"inputs: {inputs.shape[1]} steps; allowed: {RECENT + 1} or more, or decays can't be found")


def _require_independent(inputs: Tensor, what: str) -> None:
    """Refuse inputs, or changes of inputs, of which the integrals can't be told apart by their decays."""
    channels, rank = inputs.shape[2], int(torch.linalg.matrix_rank(inputs.double().flatten(0, 1)))
    if rank < channels:
        raise InputError(f"inputs: {what} along {rank} directions; allowed: {channels}, as many as channels")


def _examine(net: VanillaRNN, inputs: Tensor | None, seed: int) -> Analysis:
    held = torch.linspace(0, net.neurons - 1, min(net.neurons, HELD), dtype=torch.float64).round().long()
    trajectories = min(64, max(16, 64_000 // len(held)))
    drive = white_noise(trajectories, STEPS, net.channels, _generator(seed + 1)) if inputs is None else inputs
    known = net.task is not None
    if inputs is not None and not (known and _reads(net)):
        _require_steps(inputs)
        _require_independent(inputs, "are")
        drive, inputs = halves(inputs)  # what is fitted is judged on other sequences
    sampled = ((nu[:, held], h[:, held]) for nu, h in net.steps(drive))
    currents, activity = (torch.stack(each, dim=1).double() for each in zip(*sampled, strict=True))
    if not bool(torch.isfinite(currents.square().sum() + activity.square().sum())):
        found = f"runs away within {drive.shape[1]} steps of {'N(0, 1)' if inputs is None else 'these'} inputs"
        raise InputError(f"network: {found}; allowed: activity that stays finite, perhaps on smaller inputs")
    shape = principal(currents.flatten(0, 1))
    if inputs is None and not known:
        net = _noted(net, "tested on N(0, 1) inputs and bursts of ±1: give those it was made for, if others")
    if len(held) < net.neurons:
        net = _noted(net, f"dimension and selectivity: of {HELD} of the neurons, evenly spaced")
    done = _completed(net, drive, currents, activity, shape, held)
    net, task, fit = done.net, done.task, done.fit
    absent = torch.tensor([not known and time_constant(decay) <= RECENT for decay in task.decays])

    generator = _generator(seed)
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    curves: dict[str, Tensor] = {}
    for kind, x in _tests(net.channels, inputs, generator):
        curve = error_by_duration(net.outputs(x), task.targets(x.double()), x)
        curves[kind] = curve.masked_fill(absent, math.nan)
        errors.setdefault(kind, {})[x.shape[1]] = tuple(curves[kind][-1].tolist())
    test = bursts(TRAJECTORIES[200], 200, net.channels, generator) if inputs is None else inputs
    durations = {kind: longest_duration(curve, TOLERANCE) for kind, curve in curves.items()}
    limits = [min(durations, key=lambda kind, c=c: durations[kind][c]) for c in range(net.channels)]
    shortest = tuple(durations[kind][c] for c, kind in enumerate(limits))

    spectrum = svd(net.recurrent)
    values = torch.cat([spectrum.values, spectrum.values.new_zeros(net.neurons - len(spectrum.values))])
    dimension = min(net.channels + isinstance(net.recurrent, Dale), net.neurons)
    coding, arrays, notes = _coding(currents, activity, task.targets(drive.double()), shape, bool(absent.any()))
    worst = torch.stack(list(curves.values())).amax(0)
    arrays |= {"candidates": fit.candidates, "profile": fit.profile, "errors": worst, "singular_values": values}
    arrays |= {"outputs": net.outputs(test[:1])[0], "targets": task.targets(test[0].double())}
    return Analysis(
        verdict=judge(
            errors,
            fit.decays.tolist(),
            memory(done.signals, drive, fit),
            signals="outputs" if done.readout == "given" else "currents",
            fitted=not known,
            silent=not bool((activity != activity[:1, :1]).any()),
            growth=growth(currents),
            durations=shortest,
        ),
        neurons=net.neurons,
        activation=repr(net.f),
        decays=task.decays,
        scales=task.scales,
        errors=errors,
        singular_values=tuple(values[: net.channels + 5].tolist()),
        dimension=dimension,
        ratio=current_ratio(net, spectrum.left[:, :dimension], test) if bool(values.any()) else math.nan,
        null_ratio=null_ratio(net.neurons, dimension),
        readout=done.readout,
        fitted_decays=tuple(fit.decays.tolist()),
        fitted_scales=done.scales,
        offset=done.offset,
        durations=shortest,
        limits=tuple(limits),
        tested=len(worst),
        outliers=outliers(values),
        components=shape.components,
        participation=shape.participation,
        principal_ratio=shape.ratio(currents, dimension),
        notes=(*net.notes, *notes),
        data={key: value.numpy() for key, value in arrays.items()},
        **coding,
    )


class _Completed(NamedTuple):
    """A network with a readout and a task, and the integrals closest to its signals: outputs, or currents."""

    net: VanillaRNN
    task: Integration
    readout: str
    signals: Tensor
    fit: Fit
    scales: tuple[float, ...] | None
    offset: tuple[float, ...] | None


def _completed(
    net: VanillaRNN, inputs: Tensor, currents: Tensor, activity: Tensor, shape: Principal, held: Tensor
) -> _Completed:
    """What the network has not is fitted: a readout, a task."""
    if not _reads(net):
        signals = shape.coordinates(currents, LEADING)
        fit = fit_integrals(signals, inputs)
        task = net.task or Integration(fit.decays.tolist())
        fitted, offset = fit_readout(activity.flatten(0, 1), task.targets(inputs.double()).flatten(0, 1))
        decoders = fitted.new_zeros(net.neurons, net.channels).index_copy(0, held, fitted)
        if net.decoders is not None:
            net = _noted(
                net, f"its readout has {net.decoders.shape[1]} outputs for {net.channels} channels: another was fitted"
            )
        net = replace(net, decoders=decoders, offset=offset)
        return _Completed(net, task, "fitted", signals, fit, None, None)
    assert net.decoders is not None
    net, rest = _from_rest(net, inputs)
    outputs = net.outputs(inputs).double()
    size = outputs.flatten(0, 1).std(0)
    size[size == 0] = 1
    signals = outputs / size  # each output counts alike
    fit = fit_integrals(signals, inputs)
    integrals = net.task.targets(inputs.double()) if net.task else fit.integrals(inputs)
    order, signs = matching(outputs.flatten(0, 1), integrals.flatten(0, 1))
    if net.task is None and order.tolist() != list(range(net.channels)):
        net = _noted(net, f"outputs taken in the order {_counted(order)}, in which they are integrals of the channels")
        assert net.decoders is not None
        assert net.offset is not None
        net = replace(net, decoders=net.decoders[:, order], offset=net.offset[order])
        fit, size, rest = fit._replace(gains=fit.gains[order]), size[order], rest[order]
        signals = signals[..., order]
    elif net.task is not None and (order.tolist() != list(range(net.channels)) or bool((signs < 0).any())):
        turned = error_by_duration(outputs[..., order] * signs, integrals)[-1]
        if bool((turned <= TOLERANCE).all()):
            signed = " ".join("+" if sign > 0 else "-" for sign in signs)
            found = f"relative error {percent(float(turned.max()))}"
            net = _noted(
                net, f"outputs in the order {_counted(order)}, signs {signed}, would be the integrals: {found}"
            )
    scales = tuple((fit.gains * size[:, None]).diagonal().tolist())
    task = net.task or Integration(fit.decays.tolist(), [scale or 1.0 for scale in scales])
    return _Completed(net, task, "given", signals, fit, scales, tuple(rest.tolist()))


def _reads(net: VanillaRNN) -> bool:
    """Whether it has an output for each channel."""
    return net.decoders is not None and net.decoders.shape[1] == net.channels


def _from_rest(net: VanillaRNN, inputs: Tensor) -> tuple[VanillaRNN, Tensor]:
    """The network without the constant that its outputs have at rest, and the constant."""
    rest = offset_at_rest(net, STEPS)
    given = torch.zeros_like(rest) if net.offset is None else net.offset
    net = replace(net, offset=given - rest)
    if bool((rest.abs() > 0.01 * net.outputs(inputs).double().square().mean((0, 1)).sqrt()).any()):
        shown = "  ".join(f"{value:.4g}" for value in rest.tolist())
        net = _noted(net, f"outputs at rest: {shown}, taken away from the outputs before they are judged")
    return net, rest


def _noted(net: VanillaRNN, note: str) -> VanillaRNN:
    return replace(net, notes=(*net.notes, note))


def _counted(order: Tensor) -> str:
    return " ".join(str(k + 1) for k in order.tolist())


def _tests(channels: int, inputs: Tensor | None, generator: Generator) -> Iterator[tuple[str, Tensor]]:
    """Test sequences by kind."""
    if inputs is not None:
        yield "inputs", inputs
        return
    for kind, make in INPUTS.items():
        for duration, trajectories in TRAJECTORIES.items():
            yield kind, make(trajectories, duration, channels, generator)


def _coding(
    currents: Tensor, activity: Tensor, integrals: Tensor, shape: Principal, absent: bool
) -> tuple[dict[str, Any], dict[str, Tensor], tuple[str, ...]]:
    """How neurons code the integrals: the summary's fields, the arrays behind them, and notes.

    Where an integral is `absent`, its fitted decay too fast to be one, nothing is said of how it is coded.
    """
    nu, h, y = (values.flatten(0, 1) for values in (currents, activity, integrals))
    channels, spread = y.shape[1], y.std(0)
    directions = shape.directions[:, :channels]
    fields: dict[str, Any] = {"linearity": math.nan, "populations": None, "mixing": None}
    arrays = {"variances": shape.variances}
    if absent or not bool(spread.all()):
        return fields, arrays, ()
    line = linear_map(nu - nu.mean(0), y - y.mean(0))
    variance = (nu - nu.mean(0)).square().sum(0)
    fields["linearity"] = float((line.explained * variance).nansum() / variance.sum())
    fields["mixing"] = float(mixing(line.matrix * spread).mean) if channels > 1 else None
    arrays |= {
        "selectivity": line.matrix * spread,
        "coordinates": shape.coordinates(nu, channels),
        "predicted": (y - y.mean(0)) @ line.matrix.T @ directions,
    }
    if channels > 1 or not bool((h >= 0).all()):
        return fields, arrays, ()
    if bool((y >= 0).all()) or bool((y <= 0).all()):
        return fields, arrays, ("populations: left out, the integral has one sign only",)
    vectors = population_vectors(h, y[:, 0])
    arrays["vectors"] = torch.stack(vectors)
    # the paper's 1e-3 for 1000 neurons, whatever the size of the activity
    arrays["populations"] = populations(vectors, 1000**-0.5 * float(arrays["vectors"].square().mean().sqrt()))
    fields["populations"] = {name: float((arrays["populations"] == k).double().mean()) for k, name in enumerate(NAMES)}
    return fields, arrays, ()


def _examine_recording(recording: Recording) -> RecordingAnalysis:
    activity, inputs = recording.activity, recording.inputs
    trials, duration = activity.shape[:2]
    if not bool((activity != activity[0, 0]).any()):
        raise InputError("activity: constant; allowed: activity that changes")
    if trials * duration <= 4 * recording.channels + 2:
        raise InputError(f"signals: {trials * duration} samples; allowed: more than {4 * recording.channels + 2}")
    _require_unit(activity=activity, inputs=inputs)
    _require_steps(inputs)
    _require_independent(inputs.diff(dim=1), "change within trials")
    shape = principal(activity.flatten(0, 1))
    scores = shape.coordinates(activity, LEADING)
    fit, from_rest = _fit_recording(scores, inputs)
    integrals = fit.integrals(inputs)
    absent = torch.tensor([time_constant(decay) <= RECENT for decay in fit.decays.tolist()])
    shifted = inputs.roll(1, dims=0) if trials > 1 else inputs.roll(duration // 2, dims=1)
    coding, arrays, notes = _coding(activity, activity, integrals, shape, bool(absent.any()))
    errors, read = _held_out(activity, integrals, () if from_rest else tuple(fit.decays.tolist()))
    errors = tuple(errors.masked_fill(absent, math.nan).tolist())
    arrays |= {"candidates": fit.candidates, "profile": fit.profile} | read
    if not from_rest:
        notes = ("trials do not start at rest: the integrals that each starts with were fitted", *notes)
    return RecordingAnalysis(
        verdict=judge(
            {"held-out activity": {duration: errors}},
            fit.decays.tolist(),
            memory(scores, inputs, fit),
            signals="activity",
            fitted=True,
        ),
        neurons=recording.neurons,
        channels=recording.channels,
        trials=trials,
        duration=duration,
        decays=tuple(fit.decays.tolist()),
        shares=tuple(fit.shares.tolist()),
        chance=float(fit_integrals(scores, shifted, from_rest=from_rest).shares.max()),
        explained=fit.explained,
        errors=errors,
        components=shape.components,
        participation=shape.participation,
        data={key: value.numpy() for key, value in arrays.items()},
        notes=notes,
        **coding,
    )


def _fit_recording(signals: Tensor, inputs: Tensor) -> tuple[Fit, bool]:
    """With trials that start at rest, unless initial states explain another percent of the variance."""
    rest = fit_integrals(signals, inputs)
    with suppress(InputError):  # too few samples, or inputs that can't tell
        started = fit_integrals(signals, inputs, from_rest=False)
        if started.explained > rest.explained + STARTED:
            return started, False
    return rest, True


def _held_out(activity: Tensor, integrals: Tensor, starts: tuple[float, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """Relative errors of a linear readout on the half of the trials, or of the one trial, that it was not fitted on.

    Without what is left of the states that trials started with, if these are not at rest: they were fitted.
    """
    moved = (
        without_starts(values - values.mean((0, 1)) if starts else values, starts) for values in (activity, integrals)
    )
    (seen, new), (targets, truth) = map(halves, moved)
    decoders, offset = fit_readout(seen.flatten(0, 1), targets.flatten(0, 1))
    outputs = new @ decoders + offset
    return error_by_duration(outputs, truth)[-1], {"outputs": outputs[0], "targets": truth[0]}


def _generator(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)
