r"""Selectivity (section 5): which combination $s_i$ of the integrals a neuron codes, $h_i = f(s_i \cdot \bar y)$.

Functions on arrays: vectors $s_i$ (neurons, channels), activity (samples, neurons), integrals (samples, channels).
From recorded currents, `linear_map(currents, integrals).matrix` gives the vectors without any network.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rni.analysis.samples import require_integrals
from rni.core.errors import InputError


def selectivity_vectors(matrix: Tensor, directions: Tensor) -> Tensor:
    r"""$s_{i,c} = \sum_{c'} R_{c',c}\, l_{c',i}$ from R (D, channels) and the directions l (neurons, D).

    >>> rni.analysis.selectivity_vectors(torch.eye(2), torch.tensor([[1.0, 0.0], [0.5, 0.75]])).tolist()
    [[1.0, 0.0], [0.5, 0.75]]
    """
    if matrix.ndim != 2 or directions.ndim != 2 or directions.shape[1] != len(matrix):
        raise InputError(
            f"matrix, directions: shapes {tuple(matrix.shape)}, {tuple(directions.shape)}; "
            "allowed: (D, channels) and (neurons, D)"
        )
    return directions @ matrix


def rectified_selectivity(activity: Tensor, integrals: Tensor, iterations: int = 50) -> Tensor:
    r"""$s_i = \arg\min_s \sum_t (h_{i,t} - \lfloor s \cdot \bar y_t \rfloor_+)^2$ from recorded, rectified activity.

    Regression through 0 on the samples where neuron i is active, then on those where its fit says that it is, until
    they stay the same: exact at once without noise, and noise on the activity then averages out, where choosing
    samples by the noisy activity itself would bias s. Neurons that are never active have s = 0.

    >>> generator = torch.Generator().manual_seed(0)
    >>> y, s = torch.randn(500, 2, generator=generator), torch.randn(10, 2, generator=generator)
    >>> found = rni.analysis.rectified_selectivity((y @ s.T).clamp(min=0), y)
    >>> torch.allclose(found, s, atol=1e-4)
    True
    """
    require_integrals(integrals, activity=activity)
    active = activity > 0
    vectors = _fit(activity, integrals, active)
    for _ in range(iterations):
        before, active = active, integrals @ vectors.T > 0
        if torch.equal(before, active):
            break
        vectors = _fit(activity, integrals, active)
    return vectors


def _fit(activity: Tensor, integrals: Tensor, active: Tensor) -> Tensor:
    used, channels = active.to(activity), integrals.shape[1]
    products = (integrals[:, :, None] * integrals[:, None, :]).flatten(1)
    gram = (used.T @ products).view(-1, channels, channels)
    moments = (used * activity).T @ integrals
    return (torch.linalg.pinv(gram, hermitian=True) @ moments[..., None])[..., 0]


def angles(vectors: Tensor) -> Tensor:
    r"""$\theta_i \in [0, 2\pi)$ of the vectors $s_i$ of two channels: (neurons,).

    >>> rni.analysis.angles(torch.tensor([[1.0, 0.0], [0.0, -1.0]]).double()).round(decimals=3).tolist()
    [0.0, 4.712]
    """
    if vectors.ndim != 2 or vectors.shape[1] != 2:
        raise InputError(f"vectors: shape {tuple(vectors.shape)}; allowed: (neurons, 2), for two channels")
    return torch.atan2(vectors[:, 1], vectors[:, 0]) % (2 * torch.pi)


class Mixing(NamedTuple):
    r"""Index of each neuron (neurons,), not a number where $s_i = 0$, and the mean with weights $|s_i|^2$.

    >>> rni.analysis.mixing(torch.tensor([[1.0, 0.0], [1.0, 1.0]])).neurons.tolist()
    [0.0, 1.0]
    """

    neurons: Tensor
    mean: Tensor


def mixing(vectors: Tensor) -> Mixing:
    r"""$m_i = \frac{1}{D-1} \left[\frac{(\sum_c s_{i,c}^2)^2}{\sum_c s_{i,c}^4} - 1\right]$, from 0 to 1.

    0 is pure selectivity, 1 all channels alike: the participation ratio of the squared components, which is a number
    of channels from 1 to D. Directions spread evenly over the circle (D = 2) have mean $\sqrt 2 - 1$. Where the
    integrals have different sizes, scale the components by them first.

    >>> pure, even = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, -1.0]])
    >>> rni.analysis.mixing(pure).mean.item(), rni.analysis.mixing(even).mean.item()
    (0.0, 1.0)
    """
    if vectors.ndim != 2 or vectors.shape[1] < 2:
        raise InputError(f"vectors: shape {tuple(vectors.shape)}; allowed: (neurons, channels), two channels or more")
    squares = vectors.square()
    weights = squares.sum(1)
    index = (weights.square() / squares.square().sum(1) - 1) / (vectors.shape[1] - 1)
    return Mixing(index, (weights * index).nansum() / weights.sum())


class Harmonics(NamedTuple):
    r"""$\rho_k e^{i\phi_k} = \langle e^{ik\theta} \rangle$ and its p-value under uniform angles; each (orders,).

    Angles that prefer k evenly spaced directions have them at $(\phi_k + 2\pi j) / k$.

    >>> four = torch.arange(400) * torch.pi / 2  # along the axes
    >>> rni.analysis.harmonics(four.double()).lengths.round(decimals=3).abs().tolist()
    [0.0, 0.0, 0.0, 1.0]
    """

    lengths: Tensor
    phases: Tensor
    p_values: Tensor


def harmonics(angles: Tensor, orders: Sequence[int] = (1, 2, 3, 4)) -> Harmonics:
    r"""The harmonics of angles (samples,) with Rayleigh's test for each of them.

    $p = \exp[\sqrt{1 + 4n + 4n^2(1 - \rho_k^2)} - (1 + 2n)]$ (Wilkie 1983), for n independent angles.

    >>> even = 2 * torch.pi * torch.rand(500, generator=torch.Generator().manual_seed(0))
    >>> bool((rni.analysis.harmonics(even).p_values > 0.01).all())
    True
    """
    if angles.ndim != 1 or not len(angles) or not bool(torch.isfinite(angles).all()):
        raise InputError(f"angles: shape {tuple(angles.shape)}; allowed: (samples,), one or more, all finite")
    multiples = torch.tensor(orders)[:, None] * angles.double()
    mean = torch.complex(multiples.cos().mean(1), multiples.sin().mean(1))
    n = len(angles)
    exponents = (1 + 4 * n + 4 * n**2 * (1 - mean.abs().square())).clamp(min=0).sqrt() - (1 + 2 * n)
    return Harmonics(mean.abs(), mean.angle(), exponents.exp())
