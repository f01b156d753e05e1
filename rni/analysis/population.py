r"""Populations of a network with one channel: neurons of positive and of negative integrals (section 4.1 of the paper).

The functions take arrays, from a network or from a recording: activity (samples, neurons) and integral (samples,).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from rni.core.arrays import require_finite, require_shape
from rni.core.errors import InputError

NAMES = ("+", "-", "shared", "null")


class PopulationVectors(NamedTuple):
    r"""Activity of the neurons per unit of positive and of negative integral.

    $h = \lfloor y\rfloor_+ L_+ + \lfloor -y\rfloor_+ L_-$ with `positive` $L_+$ and `negative` $L_-$, each (neurons,).

    Examples
    --------
    >>> vectors = rni.analysis.PopulationVectors(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    >>> rni.analysis.populations(vectors).tolist()
    [0, 1]
    """

    positive: Tensor
    negative: Tensor


def population_vectors(activity: Tensor, integral: Tensor) -> PopulationVectors:
    r"""Fit $L_\pm = \sum_t \lfloor \pm y_t\rfloor_+ h_t / \sum_t \lfloor \pm y_t\rfloor_+^2$ by regression through 0.

    Parameters
    ----------
    activity : Tensor (samples, neurons)
        The activity $h_t$.
    integral : Tensor (samples,)
        The integral $y_t$, of both signs.

    Examples
    --------
    >>> y = torch.tensor([1.0, 2.0, -1.0])
    >>> h = torch.stack([y.clamp(min=0), (-y).clamp(min=0)], dim=1)  # a neuron for each sign
    >>> rni.analysis.population_vectors(h, y).negative.tolist()
    [0.0, 1.0]
    """
    require_shape("activity", activity, "samples", "neurons")
    require_shape("integral", integral, len(activity))
    require_finite("activity", activity)
    require_finite("integral", integral)
    positive, negative = integral.clamp(min=0), (-integral).clamp(min=0)
    if not bool(positive.any()) or not bool(negative.any()):
        raise InputError("integral", None, "samples of both signs", problem="samples of one sign only")
    return PopulationVectors(positive @ activity / (positive @ positive), negative @ activity / (negative @ negative))


def populations(vectors: PopulationVectors, threshold: float | None = None) -> Tensor:
    r"""Assign each neuron to a population: 0 (+), 1 (-), 2 (shared) or 3 (null), (neurons,).

    A neuron belongs to a side if its coefficient on this side is above the threshold.

    Parameters
    ----------
    vectors : PopulationVectors
        The coefficients.
    threshold : float, optional
        The threshold. By default it is 1e-3 for 1000 neurons and proportional to the size $n^{-1/2}$ of coefficients.

    Examples
    --------
    >>> vectors = rni.analysis.PopulationVectors(torch.tensor([1.0, 0.0, 0.5, 0.0]), torch.tensor([0.0, 1.0, 0.5, 0.0]))
    >>> rni.analysis.populations(vectors).tolist()
    [0, 1, 2, 3]
    """
    least = 1e-3 * (1000 / len(vectors.positive)) ** 0.5 if threshold is None else threshold
    positive, negative = vectors.positive > least, vectors.negative > least
    return torch.where(positive, torch.where(negative, 2, 0), torch.where(negative, 1, 3))
