"""How accurately a network integrates: test sequences of two kinds, and the errors on them."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from rni.analysis.verdict import TOLERANCE
from rni.networks.accuracy import error_by_duration, longest_duration
from rni.networks.vanilla import VanillaRNN
from rni.tasks.inputs import bursts, white_noise
from rni.tasks.integration import Integration

INPUTS = {"white noise": white_noise, "bursts": bursts}
TRAJECTORIES = {200: 128, 2000: 16}  # number of sequences by duration: about as many samples for each
MANY = 20_000  # with more neurons there are fewer sequences, but at least a quarter


def sequence_counts(neurons: int) -> dict[int, int]:
    """Return the number of test sequences of each duration. A large network takes long for each of them."""
    return {steps: max(most // 4, min(most, most * MANY // neurons)) for steps, most in TRAJECTORIES.items()}


class Accuracy(NamedTuple):
    """Relative errors on test sequences. They are NaN in channels without an integral.

    Attributes
    ----------
    errors : dict
        The errors by kind of test, duration and channel.
    worst : Tensor (time, channels)
        The largest error of all kinds on sequences of 1, 2, ... steps.
    largest : float
        The largest integral in the tests.
    durations : tuple of int
        For each channel, the longest sequences with errors within the tolerance on every kind of test.
    limits : tuple of str
        For each channel, the kind of test on which this duration is shortest.
    """

    errors: dict[str, dict[int, tuple[float, ...]]]
    worst: Tensor
    largest: float
    durations: tuple[int, ...]
    limits: tuple[str, ...]


def measure_accuracy(
    net: VanillaRNN, task: Integration, absent: Tensor, sequences: list[tuple[str, Tensor]]
) -> Accuracy:
    """Measure the relative errors of a network's outputs.

    Parameters
    ----------
    net : VanillaRNN
        A network with one output for each channel.
    task : Integration
        The integrals that the outputs should be.
    absent : Tensor (channels,)
        The channels without an integral.
    sequences : list of (str, Tensor)
        The kinds of tests and their inputs (batch, time, channels), the longest of each kind last.
    """
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    longest: dict[str, Tensor] = {}  # the error by duration, on the longest sequences of each kind
    largest = 0.0
    for (kind, x), outputs in zip(sequences, net.outputs_of([x for _, x in sequences]), strict=True):
        targets = task.targets(x.double())
        largest = max(largest, float(targets.abs().max()))
        by_duration = error_by_duration(outputs, targets, x).masked_fill(absent, math.nan)
        errors.setdefault(kind, {})[x.shape[1]] = tuple(by_duration[-1].tolist())
        longest[kind] = by_duration
    within = {kind: longest_duration(by_duration, TOLERANCE) for kind, by_duration in longest.items()}
    limits = tuple(min(within, key=lambda kind, c=c: within[kind][c]) for c in range(net.channels))
    durations = tuple(within[kind][c] for c, kind in enumerate(limits))
    return Accuracy(errors, torch.stack(list(longest.values())).amax(0), largest, durations, limits)
