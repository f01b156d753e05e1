"""The standard examination of recorded activity: what it says without weights."""

import math
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor

from rni.analysis.coding import Coding, coding
from rni.analysis.effective import LEADING, Fit, fit_integrals, fit_readout, halves, memory, principal, without_starts
from rni.analysis.results import RecordingAnalysis
from rni.analysis.samples import require_independent, require_steps, require_unit
from rni.analysis.verdict import forgotten, judge
from rni.core.errors import InputError
from rni.files.recording import Recording
from rni.networks.accuracy import error_by_duration

STARTED = 0.01  # of the variance: more, and the states that trials start with are needed to explain it


def examine_recording(recording: Recording) -> RecordingAnalysis:
    """Effective decays, dimension, selectivity, and the integrals as read out of held-out activity."""
    _require_enough(recording)
    activity, inputs = recording.activity, recording.inputs
    trials, duration = activity.shape[:2]
    shape = principal(activity.flatten(0, 1))
    scores = shape.coordinates(activity, LEADING)
    fit, from_rest = _fit(scores, inputs)
    decays, integrals = tuple(fit.decays.tolist()), fit.integrals(inputs)
    absent = torch.tensor([forgotten(decay) for decay in decays])
    shifted = inputs.roll(1, dims=0) if trials > 1 else inputs.roll(duration // 2, dims=1)
    coded = Coding() if bool(absent.any()) else coding(activity, activity, integrals, shape)
    read = _held_out(activity, integrals, () if from_rest else decays)
    errors = tuple(read.errors.masked_fill(absent, math.nan).tolist())
    started = () if from_rest else ("trials do not start at rest: the integrals that each starts with were fitted",)
    data = coded.data | {
        "variances": shape.variances,
        "candidates": fit.candidates,
        "profile": fit.profile,
        "outputs": read.outputs[0],
        "targets": read.targets[0],
    }
    return RecordingAnalysis(
        verdict=judge(
            {"held-out activity": {duration: errors}},
            decays,
            memory(scores, inputs, fit),
            signals="activity",
            fitted=True,
        ),
        neurons=recording.neurons,
        channels=recording.channels,
        trials=trials,
        duration=duration,
        decays=decays,
        shares=tuple(fit.shares.tolist()),
        chance=float(fit_integrals(scores, shifted, from_rest=from_rest).shares.max()),
        explained=fit.explained,
        errors=errors,
        components=shape.components,
        participation=shape.participation,
        linearity=coded.linearity,
        populations=coded.populations,
        mixing=coded.mixing,
        data={key: value.numpy() for key, value in data.items()},
        notes=started + coded.notes,
    )


def _require_enough(recording: Recording) -> None:
    activity, inputs = recording.activity, recording.inputs
    if not bool((activity != activity[0, 0]).any()):
        raise InputError("activity: constant; allowed: activity that changes")
    samples, least = activity[..., 0].numel(), 4 * recording.channels + 2
    if samples <= least:
        raise InputError(f"signals: {samples} samples; allowed: more than {least}")
    require_unit(activity=activity, inputs=inputs)
    require_steps(inputs)
    require_independent(inputs.diff(dim=1), "change within trials")


def _fit(signals: Tensor, inputs: Tensor) -> tuple[Fit, bool]:
    """With trials that start at rest, and whether: unless initial states explain another percent of the variance."""
    rest = fit_integrals(signals, inputs)
    with suppress(InputError):  # too few samples, or inputs that can't tell
        started = fit_integrals(signals, inputs, from_rest=False)
        if started.explained > rest.explained + STARTED:
            return started, False
    return rest, True


class _HeldOut(NamedTuple):
    """Relative errors (channels,); outputs and targets (trials, time, channels) behind them."""

    errors: Tensor
    outputs: Tensor
    targets: Tensor


def _held_out(activity: Tensor, integrals: Tensor, starts: tuple[float, ...]) -> _HeldOut:
    """Of a linear readout, on the half of the trials, or of the one trial, that it was not fitted on.

    Without what is left of the states that trials started with, if these are not at rest: they were fitted.
    """
    moved = (
        without_starts(values - values.mean((0, 1)) if starts else values, starts) for values in (activity, integrals)
    )
    (seen, new), (targets, truth) = map(halves, moved)
    decoders, offset = fit_readout(seen.flatten(0, 1), targets.flatten(0, 1))
    outputs = new @ decoders + offset
    return _HeldOut(error_by_duration(outputs, truth)[-1], outputs, truth)
