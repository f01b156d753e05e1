"""How the neurons of a network, or of a recording, code the integrals."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from rni.analysis.manifold import Principal, linear_map
from rni.analysis.population import NAMES, population_vectors, populations
from rni.core.errors import InputError


@dataclass(frozen=True)
class Coding:
    """How neurons code the integrals. All fields are empty if there are no integrals.

    Attributes
    ----------
    linearity, populations, mixing
        As in `Analysis`.
    data : dict
        "selectivity" (neurons, channels); "coordinates" and "predicted" (samples, channels), the currents along their
        principal directions and the part of them that is linear in the integrals; for populations also "vectors"
        (2, neurons) and "populations" (neurons,).
    notes : tuple of str
        What was left out, and why.
    """

    linearity: float = math.nan
    populations: dict[str, float] | None = None
    mixing: float | None = None
    data: dict[str, Tensor] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def coding(currents: Tensor, activity: Tensor, integrals: Tensor, components: Principal) -> Coding:
    """Measure how currents and activity depend on the integrals.

    Parameters
    ----------
    currents, activity : Tensor (trials, time, neurons)
        Currents and activity of the neurons.
    integrals : Tensor (trials, time, channels)
        The integrals of the same trials.
    components : Principal
        The principal components of the currents.
    """
    nu, h, y = (values.flatten(0, 1) for values in (currents, activity, integrals))
    channels, spread = y.shape[1], y.std(0)
    if not bool(spread.all()):
        return Coding()

    # The linear map from the integrals to the currents, both about their means.
    nu_centred, y_centred = nu - nu.mean(0), y - y.mean(0)
    line, variance = linear_map(nu_centred, y_centred), nu_centred.square().sum(0)
    linearity = float((line.explained * variance).nansum() / variance.sum())
    selectivity = line.matrix * spread
    data = {
        "selectivity": selectivity,
        "coordinates": components.coordinates(nu, channels),
        "predicted": y_centred @ line.matrix.T @ components.directions[:, :channels],
    }
    if channels > 1:
        return Coding(linearity, mixing=float(mixing(selectivity).mean), data=data)

    # Populations of one channel, which need activity that is never negative and an integral of both signs.
    if not bool((h >= 0).all()):
        return Coding(linearity, data=data)
    if bool((y >= 0).all()) or bool((y <= 0).all()):
        return Coding(linearity, data=data, notes=("populations: left out, the integral has one sign only",))
    vectors = population_vectors(h, y[:, 0])
    both = torch.stack(vectors)
    # the paper's threshold of 1e-3 for 1000 neurons, relative to the size of the coefficients
    members = populations(vectors, 1000**-0.5 * float(both.square().mean().sqrt()))
    parts = {name: float((members == k).double().mean()) for k, name in enumerate(NAMES)}
    return Coding(linearity, parts, data=data | {"vectors": both, "populations": members})


class Mixing(NamedTuple):
    r"""The mixing index of each neuron and its mean.

    Attributes
    ----------
    neurons : Tensor (neurons,)
        The index of each neuron. It is NaN where $s_i = 0$.
    mean : Tensor ()
        The mean over neurons with weights $|s_i|^2$.

    Examples
    --------
    >>> rni.analysis.mixing(torch.tensor([[1.0, 0.0], [1.0, 1.0]])).neurons.tolist()
    [0.0, 1.0]
    """

    neurons: Tensor
    mean: Tensor


def mixing(vectors: Tensor) -> Mixing:
    r"""Measure how evenly neurons code several channels.

    $m_i = \frac{1}{D-1} \left[\frac{(\sum_c s_{i,c}^2)^2}{\sum_c s_{i,c}^4} - 1\right]$, from 0 (one channel) to 1 (all
    channels alike). The fraction is the participation ratio of the squared components, a number of channels from 1 to
    D. Directions that are spread evenly over the circle (D = 2) have the mean $\sqrt 2 - 1$. If the integrals differ in
    size, scale the components by their sizes first.

    Parameters
    ----------
    vectors : Tensor (neurons, channels)
        The selectivity vectors $s_i$, of two channels or more.

    Examples
    --------
    >>> pure, even = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, -1.0]])
    >>> rni.analysis.mixing(pure).mean.item(), rni.analysis.mixing(even).mean.item()
    (0.0, 1.0)
    """
    if vectors.ndim != 2 or vectors.shape[1] < 2:
        shape = tuple(vectors.shape)
        allowed = "(neurons, channels), with two channels or more"
        raise InputError("vectors", shape, allowed, problem=f"shape {shape}")
    squares = vectors.square()
    weights = squares.sum(1)
    index = (weights.square() / squares.square().sum(1) - 1) / (vectors.shape[1] - 1)
    return Mixing(index, (weights * index).nansum() / weights.sum())
