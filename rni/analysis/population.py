r"""Populations of a single-channel network: which neurons carry positive and which negative integrals (section 4.1).

Functions on arrays: activity (samples, neurons) and integral (samples,), from a network or from a recording.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from rni.analysis.samples import require_finite
from rni.core.errors import InputError

NAMES = ("+", "-", "shared", "null")


class PopulationVectors(NamedTuple):
    r"""$h = \lfloor y\rfloor_+ L_+ + \lfloor -y\rfloor_+ L_-$: positive and negative, each (neurons,).

    >>> vectors = rni.analysis.PopulationVectors(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    >>> rni.analysis.populations(vectors).tolist()
    [0, 1]
    """

    positive: Tensor
    negative: Tensor


def population_vectors(activity: Tensor, integral: Tensor) -> PopulationVectors:
    r"""$L_\pm = \sum_t \lfloor \pm y_t\rfloor_+ h_t / \sum_t \lfloor \pm y_t\rfloor_+^2$, by regression through 0.

    >>> y = torch.tensor([1.0, 2.0, -1.0])
    >>> h = torch.stack([y.clamp(min=0), (-y).clamp(min=0)], dim=1)  # a neuron for each sign
    >>> rni.analysis.population_vectors(h, y).negative.tolist()
    [0.0, 1.0]
    """
    if activity.ndim != 2 or integral.shape != activity.shape[:1]:
        raise InputError(
            f"activity, integral: shapes {tuple(activity.shape)}, {tuple(integral.shape)}; "
            "allowed: (samples, neurons) and (samples,)"
        )
    require_finite(activity=activity, integral=integral)
    sides = [(sign * integral).clamp(min=0) for sign in (1, -1)]
    if any(not bool(side.any()) for side in sides):
        raise InputError("integral: of one sign; allowed: samples of both signs")
    return PopulationVectors(*(side @ activity / (side @ side) for side in sides))


def populations(vectors: PopulationVectors, threshold: float | None = None) -> Tensor:
    """(neurons,) of 0 (+), 1 (-), 2 (shared) or 3 (null): on which sides a neuron's coefficient is above the threshold.

    Default: 1e-3 for 1000 neurons, in proportion to the size $n^{-1/2}$ of the coefficients.

    >>> vectors = rni.analysis.PopulationVectors(torch.tensor([1.0, 0.0, 0.5, 0.0]), torch.tensor([0.0, 1.0, 0.5, 0.0]))
    >>> rni.analysis.populations(vectors).tolist()
    [0, 1, 2, 3]
    """
    least = 1e-3 * (1000 / len(vectors.positive)) ** 0.5 if threshold is None else threshold
    positive, negative = (vector > least for vector in vectors)
    return torch.where(positive, torch.where(negative, 2, 0), torch.where(negative, 1, 3))
