"""The standard examination of an integrator, or of recorded activity, in one value."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, overload

import numpy as np
import torch
from torch import Generator, Tensor, nn

from rni.activation import Activation
from rni.analysis.manifold import current_ratio, linear_map, null_ratio
from rni.analysis.populations import NAMES, population_vectors, populations
from rni.analysis.recording import (
    Fit,
    Principal,
    error_by_duration,
    fit_integrals,
    fit_readout,
    longest_duration,
    outliers,
    principal,
)
from rni.analysis.selectivity import mixing
from rni.analysis.spectrum import svd
from rni.errors import InputError
from rni.foreign import Foreign, interpret
from rni.network import Network
from rni.rnn import RNN, Recording
from rni.task import Integration, bursts, white_noise
from rni.weights import Dale

INPUTS = {"white noise": white_noise, "bursts": bursts}
TRAJECTORIES = {200: 128, 2000: 16}  # by duration: about as many samples for each
STEPS = 200  # of white noise, on which decays, dimension and selectivity are measured
HELD = 2000  # neurons whose currents and activity are held in memory, evenly spaced where there are more
LEADING = 20  # principal components in which decays are looked for
TOLERANCE = 0.1  # relative error up to which a network counts as integrating


@dataclass(frozen=True)
class _Result:
    def to_json(self) -> str:
        """All but the arrays; what is not finite is null."""
        values = {key: value for key, value in asdict(self).items() if key != "data"}
        return json.dumps(_finite(values), indent=2)


@dataclass(frozen=True)
class Analysis(_Result):
    """Relative errors by kind of input and duration, for each channel; leading singular values; the ratio r.

    r compares the currents outside and inside the best D-dimensional subspace, on bursts of 200 steps as in Table 1.
    decays, scales: of the task, or the fitted ones where no task is known. readout: "given" with the network, or
    "fitted" by least squares to the integrals. fitted_decays, fitted_scales: of the integrals that are closest to the
    outputs; or to the currents, which have no scale, where the readout is fitted. durations: the longest sequences
    with an error up to 10 %, of those up to `tested` steps. outliers: singular values before the largest gap.
    components, participation: principal components of the currents for 99 % of the variance, and their effective
    number; principal_ratio is r for the first D of them, about the mean. linearity: part of the currents' variance
    that is linear in the integrals. populations (one channel, activity that is never negative): parts of the neurons.
    mixing (several channels): 0 is pure, 1 is even selectivity. data: the arrays behind the figures.
    """

    neurons: int
    activation: str
    decays: tuple[float, ...]
    scales: tuple[float, ...]
    errors: dict[str, dict[int, tuple[float, ...]]]
    singular_values: tuple[float, ...]
    dimension: int
    ratio: float
    null_ratio: float
    readout: str
    fitted_decays: tuple[float, ...]
    fitted_scales: tuple[float, ...] | None
    durations: tuple[int, ...]
    tested: int
    outliers: int
    components: int
    participation: float
    principal_ratio: float
    linearity: float
    populations: dict[str, float] | None
    mixing: float | None
    notes: tuple[str, ...]
    data: dict[str, np.ndarray] = field(repr=False, compare=False)


@dataclass(frozen=True)
class RecordingAnalysis(_Result):
    """What recorded activity says without weights: effective decays, dimension, selectivity.

    decays: of the integrals that explain most of the activity's variance beside the present input. shares: what each
    integral adds to the explained variance; chance: the most that one adds when the inputs are those of other trials
    (of another time, for one trial). explained: integrals and present inputs together. errors: relative errors of the
    integrals as read out linearly, fitted on one half of the trials (of the time, for one trial), tested on the other.
    components, participation, linearity, populations, mixing, data: as in `Analysis`, of activity.
    """

    neurons: int
    channels: int
    trials: int
    duration: int
    decays: tuple[float, ...]
    shares: tuple[float, ...]
    chance: float
    explained: float
    errors: tuple[float, ...]
    components: int
    participation: float
    linearity: float
    populations: dict[str, float] | None
    mixing: float | None
    notes: tuple[str, ...]
    data: dict[str, np.ndarray] = field(repr=False, compare=False)


@overload
def analyze(
    thing: Network | RNN | nn.Module | tuple[nn.Module, nn.Linear],
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
    (see `rni.foreign`). task: what it should integrate, where it doesn't say itself. inputs: (batch, time, channels),
    of the size that the network was made for, if N(0, 1) is not. activation: of a state dict or arrays.

    Under Dale's law one more direction counts as inside, the mode that carries the signs (section 5).
    """
    given = interpret(thing, activation)
    if isinstance(given, Recording):
        if task is not None or inputs is not None:
            raise InputError("task, inputs: given with a recording; allowed: neither, it has its inputs")
        return _examine_recording(given)
    if task is not None:
        given = replace(given, task=task)
    if inputs is not None:
        inputs = torch.as_tensor(inputs)
        inputs = inputs[None] if inputs.ndim == 2 else inputs
        if inputs.ndim != 3 or inputs.shape[2] != given.channels or not bool(torch.isfinite(inputs).all()):
            allowed = f"finite numbers, (batch, time, {given.channels}) or (time, {given.channels})"
            raise InputError(f"inputs: shape {tuple(inputs.shape)}; allowed: {allowed}")
    return _examine(given, inputs, seed)


def _examine(net: RNN, inputs: Tensor | None, seed: int) -> Analysis:
    held = torch.linspace(0, net.neurons - 1, min(net.neurons, HELD), dtype=torch.float64).round().long()
    trajectories = min(64, max(16, 64_000 // len(held)))
    drive = white_noise(trajectories, STEPS, net.channels, _generator(seed + 1)) if inputs is None else inputs
    sampled = ((nu[:, held], h[:, held]) for nu, h in net.steps(drive))
    currents, activity = (torch.stack(each, dim=1).double() for each in zip(*sampled, strict=True))
    if not bool(torch.isfinite(activity).all()):
        found = f"runs away within {drive.shape[1]} steps of {'N(0, 1)' if inputs is None else 'these'} inputs"
        raise InputError(f"network: {found}; allowed: activity that stays finite, perhaps on smaller inputs")
    shape = principal(currents.flatten(0, 1))
    if inputs is None and net.task is None:
        net = replace(
            net, notes=(*net.notes, "tested on N(0, 1) inputs and bursts of ±1: give those it was made for, if others")
        )
    if len(held) < net.neurons:
        net = replace(net, notes=(*net.notes, f"dimension and selectivity: of {HELD} of the neurons, evenly spaced"))
    net, task, readout, fit, fitted_scales = _completed(net, drive, currents, activity, shape, held)

    generator = _generator(seed)
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    curves: list[Tensor] = []
    for kind, x in _tests(net.channels, inputs, generator):
        y, targets = net.outputs(x), task.targets(x.double())
        curves.append(error_by_duration(y, targets))
        errors.setdefault(kind, {})[x.shape[1]] = tuple(curves[-1][-1].tolist())
    test = bursts(TRAJECTORIES[200], 200, net.channels, generator) if inputs is None else inputs
    longest = max(curves[: len(TRAJECTORIES)], key=len)

    spectrum = svd(net.recurrent)
    values = torch.cat([spectrum.values, spectrum.values.new_zeros(net.neurons - len(spectrum.values))])
    dimension = min(net.channels + isinstance(net.recurrent, Dale), net.neurons)
    coding, arrays = _coding(currents, activity, task.targets(drive.double()), shape)
    arrays |= {"candidates": fit.candidates, "profile": fit.profile, "errors": longest, "singular_values": values}
    arrays |= {"outputs": net.outputs(test[:1])[0], "targets": task.targets(test[0].double())}
    return Analysis(
        neurons=net.neurons,
        activation=repr(net.f),
        decays=task.decays,
        scales=task.scales,
        errors=errors,
        singular_values=tuple(values[: net.channels + 5].tolist()),
        dimension=dimension,
        ratio=current_ratio(net, spectrum.left[:, :dimension], test),
        null_ratio=null_ratio(net.neurons, dimension),
        readout=readout,
        fitted_decays=tuple(fit.decays.tolist()),
        fitted_scales=fitted_scales,
        durations=longest_duration(longest, TOLERANCE),
        tested=len(longest),
        outliers=outliers(values),
        components=shape.components,
        participation=shape.participation,
        principal_ratio=shape.ratio(currents, dimension),
        notes=net.notes,
        data={key: value.numpy() for key, value in arrays.items()},
        **coding,
    )


def _completed(
    net: RNN, inputs: Tensor, currents: Tensor, activity: Tensor, shape: Principal, held: Tensor
) -> tuple[RNN, Integration, str, Fit, tuple[float, ...] | None]:
    """The network with a readout and a task, fitted where it has none, and the integrals closest to what it does."""
    if net.decoders is not None and net.decoders.shape[1] == net.channels:
        outputs = net.outputs(inputs).double()
        size = outputs.flatten(0, 1).std(0).clamp(min=torch.finfo(outputs.dtype).tiny)
        fit = fit_integrals(outputs / size, inputs)  # each output counts alike
        scales = tuple((fit.gains * size[:, None]).diagonal().tolist())
        task = net.task or Integration(fit.decays.tolist(), [scale or 1.0 for scale in scales])
        return net, task, "given", fit, scales
    fit = fit_integrals(shape.coordinates(currents, LEADING), inputs)
    task = net.task or Integration(fit.decays.tolist())
    fitted, offset = fit_readout(activity.flatten(0, 1), task.targets(inputs.double()).flatten(0, 1))
    decoders = fitted.new_zeros(net.neurons, net.channels).index_copy(0, held, fitted)
    if net.decoders is not None:
        note = f"its readout has {net.decoders.shape[1]} outputs for {net.channels} channels: another was fitted"
        net = replace(net, notes=(*net.notes, note))
    return replace(net, decoders=decoders, offset=offset), task, "fitted", fit, None


def _tests(channels: int, inputs: Tensor | None, generator: Generator) -> Iterator[tuple[str, Tensor]]:
    """Test sequences by kind."""
    if inputs is not None:
        yield "inputs", inputs
        return
    for kind, make in INPUTS.items():
        for duration, trajectories in TRAJECTORIES.items():
            yield kind, make(trajectories, duration, channels, generator)


def _coding(
    currents: Tensor, activity: Tensor, integrals: Tensor, shape: Principal
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """How neurons code the integrals: the summary's fields, and the arrays behind them."""
    nu, h, y = (values.flatten(0, 1) for values in (currents, activity, integrals))
    channels, spread = y.shape[1], y.std(0)
    line = linear_map(nu - nu.mean(0), y - y.mean(0))
    variance = (nu - nu.mean(0)).square().sum(0)
    fields: dict[str, Any] = {
        "linearity": float((line.explained * variance).nansum() / variance.sum()),
        "populations": None,
        "mixing": float(mixing(line.matrix * spread).mean) if channels > 1 else None,
    }
    directions = shape.directions[:, :channels]
    arrays = {
        "variances": shape.variances,
        "selectivity": line.matrix * spread,
        "coordinates": shape.coordinates(nu, channels),
        "predicted": (y - y.mean(0)) @ line.matrix.T @ directions,
    }
    if channels == 1 and bool((h >= 0).all()):
        vectors = population_vectors(h, y[:, 0])
        arrays["vectors"] = torch.stack(vectors)
        # the paper's 1e-3 for 1000 neurons, whatever the size of the activity
        arrays["populations"] = populations(vectors, 1000**-0.5 * float(arrays["vectors"].square().mean().sqrt()))
        fields["populations"] = {
            name: float((arrays["populations"] == k).double().mean()) for k, name in enumerate(NAMES)
        }
    return fields, arrays


def _examine_recording(recording: Recording) -> RecordingAnalysis:
    activity, inputs = recording.activity, recording.inputs
    trials, duration = activity.shape[:2]
    if not bool((activity != activity[0, 0]).any()):
        raise InputError("activity: constant; allowed: activity that changes")
    shape = principal(activity.flatten(0, 1))
    scores = shape.coordinates(activity, LEADING)
    fit = fit_integrals(scores, inputs)
    integrals = Integration(fit.decays.tolist()).targets(inputs)
    shifted = inputs.roll(1, dims=0) if trials > 1 else inputs.roll(duration // 2, dims=1)
    coding, arrays = _coding(activity, activity, integrals, shape)
    errors, read = _held_out(activity, integrals)
    arrays |= {"candidates": fit.candidates, "profile": fit.profile} | read
    return RecordingAnalysis(
        neurons=recording.neurons,
        channels=recording.channels,
        trials=trials,
        duration=duration,
        decays=tuple(fit.decays.tolist()),
        shares=tuple(fit.shares.tolist()),
        chance=float(fit_integrals(scores, shifted).shares.max()),
        explained=fit.explained,
        errors=errors,
        components=shape.components,
        participation=shape.participation,
        data={key: value.numpy() for key, value in arrays.items()},
        notes=(),
        **coding,
    )


def _held_out(activity: Tensor, integrals: Tensor) -> tuple[tuple[float, ...], dict[str, Tensor]]:
    """Relative errors of a linear readout on the half of the trials, or of the one trial, that it was not fitted on."""
    if len(activity) > 1:
        fitted, tested = slice(0, None, 2), slice(1, None, 2)
        parts = [(values[fitted], values[tested]) for values in (activity, integrals)]
    else:
        half = activity.shape[1] // 2
        parts = [(values[:, :half], values[:, half:]) for values in (activity, integrals)]
    (seen, new), (targets, truth) = parts
    decoders, offset = fit_readout(seen.flatten(0, 1), targets.flatten(0, 1))
    outputs = new @ decoders + offset
    return tuple(error_by_duration(outputs, truth)[-1].tolist()), {"outputs": outputs[0], "targets": truth[0]}


def _generator(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
