"""The standard examination of an integrator, or of recorded activity, in one value."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack, overload

import numpy as np
import torch
from torch import Generator, Tensor, nn

from rni.activations import Activation
from rni.analysis.behaviour import dynamics, feedforward
from rni.analysis.coding import Coding, coding
from rni.analysis.effective import LEADING, RECENT, Principal, growth, halves, memory, outliers, principal
from rni.analysis.manifold import current_ratio, null_ratio
from rni.analysis.noisy import noisy
from rni.analysis.readout import Readout, fitted_readout, given_readout, reads
from rni.analysis.recorded import examine_recording
from rni.analysis.rest import from_rest
from rni.analysis.results import Analysis, RecordingAnalysis
from rni.analysis.samples import given_inputs, require_independent, require_steps
from rni.analysis.verdict import TOLERANCE, forgotten, judge, named, time_constant
from rni.core.errors import InputError, require_whole
from rni.core.tensors import stacked
from rni.files.foreign import Foreign, Reading, interpret
from rni.files.recording import Recording
from rni.networks.accuracy import error_by_duration, longest_duration
from rni.networks.network import Network
from rni.networks.vanilla import VanillaRNN
from rni.tasks.inputs import bursts, white_noise
from rni.tasks.integration import Integration, require_integration
from rni.weights import Dale, svd

INPUTS = {"white noise": white_noise, "bursts": bursts}
TRAJECTORIES = {200: 128, 2000: 16}  # by duration: about as many samples for each
MANY = 20_000  # neurons, beyond which there are fewer, and a quarter at least
STEPS = 200  # of white noise, on which decays, dimension and selectivity are measured
HELD = 2000  # neurons whose currents and activity are held in memory, evenly spaced where there are more


@overload
def analyze(
    thing: Network | VanillaRNN | nn.Module | tuple[nn.Module, nn.Linear],
    *,
    task: Integration | None = None,
    decays: Sequence[float] | float | None = None,
    scales: Sequence[float] | float | None = None,
    inputs: Tensor | np.ndarray | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
    **reading: Unpack[Reading],
) -> Analysis: ...
@overload
def analyze(
    thing: Recording,
    *,
    task: Integration | None = None,
    decays: Sequence[float] | float | None = None,
    scales: Sequence[float] | float | None = None,
    inputs: Tensor | np.ndarray | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
    **reading: Unpack[Reading],
) -> RecordingAnalysis: ...
@overload
def analyze(
    thing: Mapping[str, Any] | list[np.ndarray],
    *,
    task: Integration | None = None,
    decays: Sequence[float] | float | None = None,
    scales: Sequence[float] | float | None = None,
    inputs: Tensor | np.ndarray | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
    **reading: Unpack[Reading],
) -> Analysis | RecordingAnalysis: ...
@torch.no_grad()
def analyze(
    thing: Foreign,
    *,
    task: Integration | None = None,
    decays: Sequence[float] | float | None = None,
    scales: Sequence[float] | float | None = None,
    inputs: Tensor | np.ndarray | None = None,
    activation: str | Activation | None = None,
    seed: int = 0,
    **reading: Unpack[Reading],
) -> Analysis | RecordingAnalysis:
    """Examine a network on test sequences of each kind, of 200 and of 2000 steps, or on `inputs`; or a recording.

    thing: a `Network`, a `torch.nn.RNN` or a module with one in it, (RNN, Linear), a state dict, a dict of arrays
    (see `rni.files.foreign`). task, or decays and scales: what it should integrate, where it doesn't say itself.
    inputs: (batch, time, channels), of the size that the network was made for, if N(0, 1) is not. activation, reading:
    what a state dict or arrays do not say, see `rni.files.foreign.Reading`.

    Under Dale's law one more direction counts as inside, the mode that carries the signs (section 5).

    >>> found = rni.analyze(torch.nn.RNN(input_size=1, hidden_size=20))
    >>> found.verdict.kind  # not trained
    'forgets'
    >>> net = rni.design(rni.Integration([0.95, 0.9]), neurons=40).network
    >>> rni.analyze(net).verdict.kind
    'integrates'
    """
    require_whole("seed", seed, 0)
    if task is not None:
        require_integration(task)
    if decays is not None or scales is not None:
        if task is not None or decays is None:
            raise InputError(
                "decays, scales: with a task, or scales alone; allowed: a task, or decays with scales or not"
            )
        task = Integration(decays, scales)
    given = interpret(thing, activation, **reading)
    if isinstance(given, Recording):
        if task is not None or inputs is not None:
            raise InputError("task, inputs: given with a recording; allowed: neither, it has its inputs")
        return examine_recording(given)
    if task is not None:
        given = replace(given, task=task)
    return _examine(given, None if inputs is None else given_inputs(inputs, given.channels), seed)


def _examine(given: VanillaRNN, inputs: Tensor | None, seed: int) -> Analysis:
    net, known = replace(from_rest(given), noise=0.0), given.task is not None
    # without loops, what is left of the inputs is the neurons' own leak
    recent = round(RECENT / float(torch.as_tensor(net.leak).max())) if feedforward(net) else RECENT
    held = torch.linspace(0, net.neurons - 1, min(net.neurons, HELD), dtype=torch.float64).round().long()
    if inputs is None:
        drive = _drive(64, net.channels, held, seed)
    elif known and reads(net):
        drive = inputs
    else:  # what is fitted is judged on other sequences
        require_steps(inputs)
        require_independent(inputs, "are")
        drive, inputs = halves(inputs)
    driven = "N(0, 1) inputs" if inputs is None else "these inputs"
    currents, activity, shape, read = _observed(net, drive, held, driven)
    unread, net, task, fit = net, read.net, read.task, read.fit
    absent = torch.tensor([not known and forgotten(decay, recent) for decay in task.decays])

    generator = _generator(seed)
    sequences = list(_tests(net, inputs, generator))
    tests = _tested(net, task, absent, sequences)
    test = bursts(trajectories(200, net.neurons), 200, net.channels, generator) if inputs is None else inputs
    coded = Coding() if bool(absent.any()) else coding(currents, activity, task.targets(drive.double()), shape)
    spectrum = svd(net.recurrent)
    values = torch.cat([spectrum.values, spectrum.values.new_zeros(net.neurons - len(spectrum.values))])
    dimension = min(net.channels + isinstance(net.recurrent, Dale), net.neurons)
    data = coded.data | {
        "variances": shape.variances,
        "candidates": fit.candidates,
        "profile": fit.profile,
        "errors": tests.worst,
        "singular_values": values,
        "outputs": net.outputs(test[:1])[0],
        "targets": task.targets(test[0].double()),
    }
    found = judge(
        tests.errors,
        fit.decays.tolist(),
        memory(read.signals, drive, fit, recent),
        signals="outputs" if read.source == "given" else "currents",
        fitted=not known,
        silent=not bool((activity != activity[:1, :1]).any()),
        growth=growth(currents),
        durations=tests.durations,
        recent=recent,
        linearity=coded.linearity,
        largest=tests.largest,
    )
    alone = dynamics(replace(net, noise=given.noise), inputs, values=values, seed=seed)
    verdict, as_heard = named(found, alone, fitted=not known), None
    if given.noise:
        # its own readout, right but for order and offset; else one that was fitted under noise
        whole = replace(net if read.source == "given" else unread, noise=given.noise, task=task)
        more = drive if inputs is not None else _drive(256, net.channels, held, seed)
        heard = _observed(whole, more, held, f"{driven} with its noise").read
        told = _tested(heard.net, task, absent, sequences)
        as_heard = noisy(heard.net, drive, told.errors, heard.fit.decays)
        verdict = replace(verdict, evidence=f"{verdict.evidence}; {as_heard.clause(verdict.kind)}")
        data |= {"noisy_errors": told.worst, "noisy_outputs": heard.net.outputs(test[:1])[0]}
    return Analysis(
        verdict=verdict,
        noisy=as_heard,
        dynamics=alone,
        neurons=net.neurons,
        activation=repr(net.f),
        form=net.form,
        leak=tuple(net.leak.tolist()) if isinstance(net.leak, Tensor) else net.leak,
        noise=given.noise,
        dt=net.dt,
        times=tuple((net.dt or 1.0) * time_constant(decay) for decay in fit.decays.tolist()),
        decays=task.decays,
        scales=task.scales,
        errors=tests.errors,
        singular_values=tuple(values[: net.channels + 5].tolist()),
        dimension=dimension,
        ratio=current_ratio(net, spectrum.left[:, :dimension], test) if bool(values.any()) else math.nan,
        null_ratio=null_ratio(net.neurons, dimension),
        readout=read.source,
        fitted_decays=tuple(fit.decays.tolist()),
        fitted_scales=read.scales,
        offset=read.offset,
        durations=tests.durations,
        limits=tests.limits,
        tested=len(tests.worst),
        outliers=outliers(values),
        components=shape.components,
        participation=shape.participation,
        principal_ratio=shape.ratio(currents, dimension),
        linearity=coded.linearity,
        populations=coded.populations,
        mixing=coded.mixing,
        notes=(
            *net.notes,
            *_assumed(net, known, inputs is not None),
            *read.notes,
            *coded.notes,
        ),
        data={key: value.numpy() for key, value in data.items()},
    )


def trajectories(duration: int, neurons: int) -> int:
    """How many test sequences of that duration: fewer of a large network, where each takes long and says as much."""
    most = TRAJECTORIES[duration]
    return max(most // 4, min(most, most * MANY // neurons))


def _sampled(net: VanillaRNN, inputs: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """Currents and activity of the neurons `held`, (batch, time, held) each."""
    if net.alike and (spanned := net.spanned(inputs)):
        basis, steps = spanned
        currents = stacked((c for c, _ in steps), inputs.shape[1]) @ basis[held].T
        return currents, net.f(currents + net.bias[held])
    groups = (
        zip(*((nu[:, held], h[:, held]) for nu, h in net.steps(group)), strict=True) for group in net.groups(inputs)
    )
    currents, activity = zip(*([torch.stack(part, dim=1) for part in group] for group in groups), strict=True)
    return torch.cat(currents), torch.cat(activity)


def _assumed(net: VanillaRNN, task: bool, inputs: bool) -> Iterator[str]:
    """What to know of the examination itself: whether a task was told, and inputs."""
    if not (task or inputs):
        yield "tested on N(0, 1) inputs and bursts of ±1: give those it was made for, if others"
    if net.neurons > HELD:
        yield f"dimension and selectivity: of {HELD} of the neurons, evenly spaced"
    if net.neurons > MANY and not inputs:
        few = " and ".join(f"{trajectories(t, net.neurons)} of {t} steps" for t in TRAJECTORIES)
        yield f"tested on fewer sequences than a small network: {few}, of each kind"


def _drive(most: int, channels: int, held: Tensor, seed: int) -> Tensor:
    """White noise, of as many trials, or as can be held in memory."""
    return white_noise(min(most, max(16, 64_000 // len(held))), STEPS, channels, _generator(seed + 1))


class _Observed(NamedTuple):
    """Currents and activity (trials, time, held) of the neurons `held`, their principal components, and the readout."""

    currents: Tensor
    activity: Tensor
    shape: Principal
    read: Readout


def _observed(net: VanillaRNN, drive: Tensor, held: Tensor, driven: str) -> _Observed:
    currents, activity = (each.double() for each in _sampled(net, drive, held))
    if not bool(torch.isfinite(currents.square().sum() + activity.square().sum())):
        found = f"runs away within {drive.shape[1]} steps of {driven}"
        raise InputError(f"network: {found}; allowed: activity that stays finite, perhaps on smaller inputs")
    shape = principal(currents.flatten(0, 1))
    if reads(net):
        return _Observed(currents, activity, shape, given_readout(net, drive))
    signals = shape.coordinates(currents, LEADING)
    return _Observed(currents, activity, shape, fitted_readout(net, drive, signals, activity, held))


class _Tested(NamedTuple):
    """Relative errors by kind of test, duration and channel, not a number in channels without an integral.

    worst: (time, channels), the largest of any kind by duration. largest: integral that was tested. durations: the
    longest sequences within the tolerance on every kind of test, (channels,); limits: the kind that ends each.
    """

    errors: dict[str, dict[int, tuple[float, ...]]]
    worst: Tensor
    largest: float
    durations: tuple[int, ...]
    limits: tuple[str, ...]


def _tested(net: VanillaRNN, task: Integration, absent: Tensor, tests: Iterable[tuple[str, Tensor]]) -> _Tested:
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    curves: dict[str, Tensor] = {}  # of the longest sequences of each kind
    largest = 0.0
    tests = list(tests)
    for (kind, x), outputs in zip(tests, net.outputs_of([x for _, x in tests]), strict=True):
        targets = task.targets(x.double())
        largest = max(largest, float(targets.abs().max()))
        curve = error_by_duration(outputs, targets, x).masked_fill(absent, math.nan)
        errors.setdefault(kind, {})[x.shape[1]] = tuple(curve[-1].tolist())
        curves[kind] = curve
    durations = {kind: longest_duration(curve, TOLERANCE) for kind, curve in curves.items()}
    limits = tuple(min(durations, key=lambda kind, c=c: durations[kind][c]) for c in range(net.channels))
    shortest = tuple(durations[kind][c] for c, kind in enumerate(limits))
    return _Tested(errors, torch.stack(list(curves.values())).amax(0), largest, shortest, limits)


def _tests(net: VanillaRNN, inputs: Tensor | None, generator: Generator) -> Iterator[tuple[str, Tensor]]:
    """Test sequences by kind."""
    if inputs is not None:
        yield "inputs", inputs
        return
    for kind, make in INPUTS.items():
        for duration in TRAJECTORIES:
            yield kind, make(trajectories(duration, net.neurons), duration, net.channels, generator)


def _generator(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)
