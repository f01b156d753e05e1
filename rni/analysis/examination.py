"""The analysis of a network: all measurements, in the order in which they depend on each other."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, overload

import numpy as np
import torch
from torch import Tensor, nn

from rni.activations import Activation
from rni.analysis.accuracy import INPUTS, MANY, measure_accuracy, sequence_counts
from rni.analysis.behaviour import dynamics
from rni.analysis.coding import Coding, coding
from rni.analysis.decays import RECENT, halves, memory, require_memory
from rni.analysis.manifold import Principal, current_ratio, null_ratio, outliers, principal
from rni.analysis.noisy import noisy
from rni.analysis.readout import Readout, fitted_readout, given_readout
from rni.analysis.recorded import RecordingAnalysis, examine_recording
from rni.analysis.rest import from_rest
from rni.analysis.results import Analysis
from rni.analysis.verdict import judge, time_constant
from rni.core.arrays import as_real_tensor, require_finite, require_independent_columns, require_squarable
from rni.core.errors import InputError, require_whole
from rni.core.tensors import stacked
from rni.files.foreign import Foreign, Reading, interpret
from rni.files.recording import Recording
from rni.networks.network import Network
from rni.networks.vanilla import VanillaRNN
from rni.tasks.inputs import bursts, white_noise
from rni.tasks.integration import Integration, require_integration
from rni.weights import Dale, svd

STEPS = 200  # steps of the white noise on which decays, dimension and selectivity are measured
TRIALS, NOISY_TRIALS = 64, 256  # largest number of sequences of it, without and with process noise
HELD = 2000  # neurons whose currents and activity are kept in memory, evenly spaced if there are more
SAMPLES = 64_000  # product of sequences and neurons that are kept in memory; at least 16 sequences
LEADING = 20  # principal components of the currents in which decays are looked for


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
    """Analyse a network or a recording.

    A network is tested on white noise and on bursts of 200 and of 2000 steps, or on `inputs`.

    Parameters
    ----------
    thing
        A `Network`, a `torch.nn.RNN` or a module that contains one, a pair (RNN, Linear), a state dict, a dict of
        arrays or a recording (see `rni.files.foreign`).
    task : Integration, optional
        What the network should integrate, if the network does not have a task of its own.
    decays, scales : sequence of float, optional
        The decays and scales of this task, instead of `task`.
    inputs : array (batch, time, channels), optional
        Test inputs of the size that the network was made for, if it was not made for N(0, 1).
    activation, **reading
        What a state dict or arrays do not contain (see `rni.files.foreign.Reading`).
    seed : int
        The seed of the test inputs.

    Returns
    -------
    Analysis or RecordingAnalysis
        Under Dale's law the dimension of the currents has one more direction, the mode that carries the signs
        (section 5 of the paper).

    Examples
    --------
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
    if scales is not None and decays is None:
        raise InputError("scales", scales, "decays with the scales, or a task", problem="given without decays")
    if decays is not None:
        if task is not None:
            raise InputError("decays", decays, "a task, or decays with or without scales", problem="given with a task")
        task = Integration(decays, scales)

    given = interpret(thing, activation, **reading)
    if isinstance(given, Recording):
        for name, value in (("task", task), ("inputs", inputs)):
            if value is not None:
                allowed = "none, because a recording has its inputs"
                raise InputError(name, value, allowed, problem="given for a recording")
        return examine_recording(given)
    if task is not None:
        if task.channels != given.channels:
            allowed = f"{given.channels}, one for each input channel"
            raise InputError("decays", task.decays, allowed, problem=str(task.channels))
        given = given.replace(task=task)
    return examine(given, None if inputs is None else check_inputs(inputs, given.channels), seed)


def check_inputs(inputs: Tensor | np.ndarray, channels: int) -> Tensor:
    """Check test inputs and return them as a tensor (batch, time, channels)."""
    x = as_real_tensor("inputs", inputs)
    x = x[None] if x.ndim == 2 else x
    shape = tuple(x.shape)
    if x.ndim != 3 or shape[2] != channels or not x.numel():
        raise InputError("inputs", shape, f"(batch, time, {channels}) or (time, {channels})", problem=f"shape {shape}")
    require_finite("inputs", x)
    empty = [c + 1 for c in range(channels) if not bool(x[..., c].any())]
    if empty:
        problem = f"0 throughout in channel {', '.join(map(str, empty))}"
        raise InputError("inputs", empty, "inputs in each channel", problem=problem)
    require_squarable("inputs", x)
    return x


def examine(given: VanillaRNN, inputs: Tensor | None, seed: int) -> Analysis:
    """Examine a network.

    Parameters
    ----------
    given : VanillaRNN
        The network.
    inputs : Tensor (batch, time, channels), optional
        Test inputs instead of white noise and bursts.
    seed : int
        The seed of the latter.
    """
    net, task_known = from_rest(given).replace(noise=0.0), given.task is not None
    own_readout = net.decoders is not None and net.decoders.shape[1] == net.channels  # an output for each channel
    # A leaky neuron filters its inputs also without any recurrent weights, so that what the slowest neuron holds by its
    # leak alone does not count as memory of the network.
    leak = float(torch.as_tensor(net.leak).min())
    recent = round(RECENT / leak)
    held = torch.linspace(0, net.neurons - 1, min(net.neurons, HELD), dtype=torch.float64).round().long()

    # Inputs under which the network is observed. If a readout or decays are fitted, it is tested on other ones.
    if inputs is None:
        trials = max(16, SAMPLES // len(held))
        drive = white_noise(min(TRIALS, trials), STEPS, net.channels, torch.Generator().manual_seed(seed + 1))
    elif task_known and own_readout:
        drive = inputs
    else:
        require_memory(inputs)
        require_independent_columns("inputs", inputs.double().flatten(0, 1))
        drive, inputs = halves(inputs)
    driven = "N(0, 1) inputs" if inputs is None else "these inputs"
    currents, activity, components, readout = observe(net, drive, held, own_readout, driven)
    unread, net, task, fit = net, readout.net, readout.task, readout.fit
    absent = torch.tensor([not task_known and time_constant(decay) <= recent for decay in task.decays])

    # Errors on test sequences.
    generator = torch.Generator().manual_seed(seed)
    counts = sequence_counts(net.neurons)
    if inputs is None:
        sequences = [
            (kind, draw(count, steps, net.channels, generator))
            for kind, draw in INPUTS.items()
            for steps, count in counts.items()
        ]
        test = bursts(counts[200], 200, net.channels, generator)
    else:
        sequences, test = [("inputs", inputs)], inputs
    accuracy = measure_accuracy(net, task, absent, sequences)

    # How neurons code the integrals, and in how many dimensions.
    coded = Coding()
    if not bool(absent.any()):
        coded = coding(currents, activity, task.targets(drive.double()), components)
    spectrum = svd(net.recurrent)
    values = torch.cat([spectrum.values, spectrum.values.new_zeros(net.neurons - len(spectrum.values))])
    dimension = min(net.channels + isinstance(net.recurrent, Dale), net.neurons)
    data = coded.data | {
        "variances": components.variances,
        "candidates": fit.candidates,
        "profile": fit.profile,
        "errors": accuracy.worst,
        "singular_values": values,
        "outputs": net.outputs(test[:1])[0],
        "targets": task.targets(test[0].double()),
    }

    # The verdict, by the signals under inputs and by the states without inputs.
    tenth = -(-drive.shape[1] // 10)
    at_start, at_end = (float(values.square().mean().sqrt()) for values in (currents[:, :tenth], currents[:, -tenth:]))
    without_inputs = dynamics(net.replace(noise=given.noise), inputs, values=values, seed=seed)
    verdict = judge(
        accuracy.errors,
        fit.decays.tolist(),
        memory(readout.signals, drive, fit, recent),
        signals="outputs" if readout.source == "given" else "currents",
        fitted=not task_known,
        dynamics=without_inputs,
        silent=not bool((activity != activity[:1, :1]).any()),
        growth=at_end / at_start if at_start > 0 else 0.0,
        durations=accuracy.durations,
        recent=recent,
        alone=time_constant(1 - leak),
        linearity=coded.linearity,
        largest=accuracy.largest,
    )

    # The network with its process noise, and with its own readout or one that is fitted to noisy activity.
    with_noise = None
    if given.noise:
        whole = (net if readout.source == "given" else unread).replace(noise=given.noise, task=task)
        noisy_drive = drive
        if inputs is None:
            trials = min(NOISY_TRIALS, max(16, SAMPLES // len(held)))
            noisy_drive = white_noise(trials, STEPS, net.channels, torch.Generator().manual_seed(seed + 1))
        *_, noisy_readout = observe(whole, noisy_drive, held, own_readout, f"{driven} with its noise")
        noisy_accuracy = measure_accuracy(noisy_readout.net, task, absent, sequences)
        with_noise = noisy(noisy_readout.net, drive, noisy_accuracy.errors, noisy_readout.fit.decays)
        verdict = verdict.with_evidence(with_noise.clause(verdict.kind))
        data |= {"noisy_errors": noisy_accuracy.worst, "noisy_outputs": noisy_readout.net.outputs(test[:1])[0]}

    # What a user should know about the examination itself.
    notes = list(net.notes)
    if not task_known and inputs is None:
        notes.append("tested on N(0, 1) inputs and bursts of ±1: give those it was made for, if others")
    if net.neurons > HELD:
        notes.append(f"dimension and selectivity: of {HELD} of the neurons, evenly spaced")
    if net.neurons > MANY and inputs is None:
        fewer = " and ".join(f"{count} of {steps} steps" for steps, count in counts.items())
        notes.append(f"tested on fewer sequences than a small network: {fewer}, of each kind")

    return Analysis(
        verdict=verdict,
        noisy=with_noise,
        dynamics=without_inputs,
        neurons=net.neurons,
        activation=repr(net.f),
        form=net.form,
        leak=tuple(net.leak.tolist()) if isinstance(net.leak, Tensor) else net.leak,
        noise=given.noise,
        dt=net.dt,
        times=tuple((net.dt or 1.0) * time_constant(decay) for decay in fit.decays.tolist()),
        decays=task.decays,
        scales=task.scales,
        errors=accuracy.errors,
        singular_values=tuple(values[: net.channels + 5].tolist()),
        dimension=dimension,
        ratio=current_ratio(net, spectrum.left[:, :dimension], test) if bool(values.any()) else math.nan,
        null_ratio=null_ratio(net.neurons, dimension),
        readout=readout.source,
        fitted_decays=tuple(fit.decays.tolist()),
        fitted_scales=readout.scales,
        offset=readout.offset,
        durations=accuracy.durations,
        limits=accuracy.limits,
        tested=len(accuracy.worst),
        outliers=outliers(values),
        components=components.components,
        participation=components.participation,
        principal_ratio=components.ratio(currents, dimension),
        linearity=coded.linearity,
        populations=coded.populations,
        mixing=coded.mixing,
        notes=(*notes, *readout.notes, *coded.notes),
        data={key: value.numpy() for key, value in data.items()},
    )


def observe(
    net: VanillaRNN, inputs: Tensor, held: Tensor, own_readout: bool, driven: str
) -> tuple[Tensor, Tensor, Principal, Readout]:
    """Run a network, and examine or fit its readout.

    Parameters
    ----------
    net : VanillaRNN
        The network.
    inputs : Tensor (trials, time, channels)
        The inputs.
    held : Tensor (held,)
        The indices of the neurons that are kept in memory.
    own_readout : bool
        Whether the network has an output for each channel. Otherwise a readout is fitted.
    driven : str
        The name of the inputs, for an error message.

    Returns
    -------
    currents, activity : Tensor (trials, time, held)
        The currents and the activity of these neurons.
    components : Principal
        The principal components of the currents.
    readout : Readout
        The readout of the network.
    """
    spanned = net.spanned(inputs) if net.alike else None
    if spanned is not None:
        basis, steps = spanned
        currents = stacked((c for c, _ in steps), inputs.shape[1]) @ basis[held].T
        activity = net.f(currents + net.bias[held])
    else:
        of_groups = []
        for group in net.groups(inputs):
            nu, h = zip(*((nu[:, held], h[:, held]) for nu, h in net.steps(group)), strict=True)
            of_groups.append((torch.stack(nu, dim=1), torch.stack(h, dim=1)))
        currents, activity = (torch.cat(parts) for parts in zip(*of_groups, strict=True))
    currents, activity = currents.double(), activity.double()
    if not bool(torch.isfinite(currents.square().sum() + activity.square().sum())):
        problem = f"runs away within {inputs.shape[1]} steps of {driven}"
        raise InputError("network", None, "activity that stays finite, perhaps on smaller inputs", problem=problem)

    components = principal(currents.flatten(0, 1))
    if own_readout:
        return currents, activity, components, given_readout(net, inputs)
    signals = components.coordinates(currents, LEADING)
    return currents, activity, components, fitted_readout(net, inputs, signals, activity, held)
