"""The analysis of recorded activity, of which no weights are known."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rni.analysis.coding import Coding, coding
from rni.analysis.decays import RECENT, Fit, fit_integrals, halves, memory, require_memory, without_starts
from rni.analysis.manifold import principal
from rni.analysis.readout import fit_readout
from rni.analysis.results import Result
from rni.analysis.verdict import GOOD, judge, percent, time_constant
from rni.core.arrays import require_squarable
from rni.core.errors import InputError
from rni.core.text_result import join_numbers
from rni.files.recording import Recording
from rni.networks.accuracy import error_by_duration

LEADING = 20  # principal components of the activity in which decays are looked for
STARTED = 0.01  # if initial states explain more than this part of the variance, trials do not start at rest


@dataclass(frozen=True, kw_only=True, repr=False)
class RecordingAnalysis(Result):
    """The result of an analysis of recorded activity, without weights. `print` shows it as text.

    Attributes
    ----------
    verdict : Verdict
        What the recording shows.
    neurons, channels, trials, duration : int
        The size of the recording.
    decays : tuple of float
        The effective decays: those of the integrals that explain most of the activity's variance in addition to the
        present input.
    shares : tuple of float
        The part of the variance that each integral explains in addition.
    chance : float
        The largest such part if the inputs are those of other trials, or of another time if there is one trial.
    explained : float
        The part of the variance that integrals and present inputs explain together, adjusted for the number of
        coefficients.
    errors : tuple of float
        Relative errors of a linear readout of the integrals, fitted on one half of the trials (or of the time, if there
        is one trial) and tested on the other half.
    components, participation, linearity, populations, mixing, notes, data
        As in `Analysis`, for the activity.

    Examples
    --------
    >>> net = rni.design(rni.Integration(0.95), neurons=20).network
    >>> x = rni.inputs.white_noise(30, 50, 1, torch.Generator().manual_seed(0)).double()
    >>> found = rni.analyze({"activity": net(x)[0].detach(), "inputs": x})
    >>> round(found.decays[0], 3), found.chance < 0.1 < found.shares[0]
    (0.95, True)
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
    data: dict[str, np.ndarray] = field(repr=False, compare=False)

    def lines(self) -> Iterator[str]:
        yield str(self.verdict)
        size = f"{self.trials} trials of {self.duration} steps, {self.channels} input channels"
        yield f"recording of {self.neurons} neurons, {size}"
        yield f"effective decays: {join_numbers(self.decays)}"
        shares = "  ".join(map(percent, self.shares))
        yield f"variance that each integral adds: {shares} (by chance {percent(self.chance)})"
        yield f"variance explained by integrals and present inputs: {percent(self.explained)}"
        errors = f"{'  '.join(map(percent, self.errors))} (good: below {percent(GOOD)}; by chance 100 %)"
        yield f"relative error of the integrals, read out of held-out activity: {errors}"
        effective = f"(effective number {self.participation:.3g})"
        yield f"principal components of the activity: {self.components} for 99 % {effective}"
        yield from self.coding_lines()


def examine_recording(recording: Recording) -> RecordingAnalysis:
    """Measure effective decays, dimension and selectivity, and read the integrals out of held-out activity."""
    require_enough(recording)
    activity, inputs = recording.activity, recording.inputs
    trials, duration = activity.shape[:2]
    components = principal(activity.flatten(0, 1))
    scores = components.coordinates(activity, LEADING)
    fit, from_rest = fit_with_or_without_starts(scores, inputs)
    decays, integrals = tuple(fit.decays.tolist()), fit.integrals(inputs)
    shifted = inputs.roll(1, dims=0) if trials > 1 else inputs.roll(duration // 2, dims=1)
    chance = float(fit_integrals(scores, shifted, from_rest=from_rest).shares.max())

    absent = torch.tensor([time_constant(decay) <= RECENT for decay in decays])
    coded = Coding() if bool(absent.any()) else coding(activity, activity, integrals, components)
    outputs, targets = held_out(activity, integrals, () if from_rest else decays)
    errors = tuple(error_by_duration(outputs, targets)[-1].masked_fill(absent, math.nan).tolist())
    verdict = judge(
        {"held-out activity": {duration: errors}},
        decays,
        memory(scores, inputs, fit),
        signals="activity",
        fitted=True,
    )
    started = () if from_rest else ("trials do not start at rest: the integrals that each starts with were fitted",)
    data = coded.data | {
        "variances": components.variances,
        "candidates": fit.candidates,
        "profile": fit.profile,
        "outputs": outputs[0],
        "targets": targets[0],
    }
    return RecordingAnalysis(
        verdict=verdict,
        neurons=recording.neurons,
        channels=recording.channels,
        trials=trials,
        duration=duration,
        decays=decays,
        shares=tuple(fit.shares.tolist()),
        chance=chance,
        explained=fit.explained,
        errors=errors,
        components=components.components,
        participation=components.participation,
        linearity=coded.linearity,
        populations=coded.populations,
        mixing=coded.mixing,
        data={key: value.numpy() for key, value in data.items()},
        notes=started + coded.notes,
    )


def require_enough(recording: Recording) -> None:
    """Raise an error if a recording is constant, too short, of numbers that are too large, or of dependent inputs."""
    activity, inputs = recording.activity, recording.inputs
    if not bool((activity != activity[0, 0]).any()):
        raise InputError("activity", None, "activity that changes", problem="constant")
    samples, least = activity[..., 0].numel(), 4 * recording.channels + 2
    if samples <= least:
        raise InputError("activity", samples, f"more than {least} samples", problem=f"{samples} samples")
    require_squarable("activity", activity)
    require_squarable("inputs", inputs)
    require_memory(inputs)
    # inputs that are constant within trials cannot be told apart from the constant of the regression
    rank = int(torch.linalg.matrix_rank(inputs.diff(dim=1).flatten(0, 1)))
    if rank < recording.channels:
        allowed = f"{recording.channels} channels that change within trials, independently of each other"
        raise InputError("inputs", rank, allowed, problem=f"changes within trials of rank {rank}")


def fit_with_or_without_starts(signals: Tensor, inputs: Tensor) -> tuple[Fit, bool]:
    """Fit integrals, and return whether trials start at rest.

    They do not if initial states explain another percent of the variance.
    """
    rest = fit_integrals(signals, inputs)
    with suppress(InputError):  # too few samples, or inputs from which initial states cannot be told apart
        started = fit_integrals(signals, inputs, from_rest=False)
        if started.explained > rest.explained + STARTED:
            return started, False
    return rest, True


def held_out(activity: Tensor, integrals: Tensor, starts: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Read integrals out linearly on the half of the trials, or of the one trial, that the readout was not fitted on.

    If trials do not start at rest, what is left of their initial states is taken away, because it was fitted.

    Parameters
    ----------
    activity, integrals : Tensor (trials, time, neurons), (trials, time, channels)
        The activity and the integrals.
    starts : tuple of float
        The decays of the initial states, if trials do not start at rest.

    Returns
    -------
    tuple of Tensor (trials, time, channels)
        The outputs of the readout, and the integrals.
    """
    if starts:
        activity, integrals = (without_starts(values - values.mean((0, 1)), starts) for values in (activity, integrals))
    (seen, new), (targets, truth) = halves(activity), halves(integrals)
    decoders, offset = fit_readout(seen.flatten(0, 1), targets.flatten(0, 1))
    return new @ decoders + offset, truth
