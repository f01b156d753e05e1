r"""Selectivity (section 5 of the paper): which combination of the integrals a neuron codes.

The activity of neuron i is $h_i = f(s_i \cdot \bar y)$ with its selectivity vector $s_i$.
The functions take arrays: vectors $s_i$ (neurons, channels), activity (samples, neurons), integrals (samples,
channels). From recorded currents, `linear_map(currents, integrals).matrix` gives the vectors without any network.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rni.core.arrays import require_finite, require_independent_columns, require_shape
from rni.core.errors import InputError


def selectivity_vectors(matrix: Tensor, directions: Tensor) -> Tensor:
    r"""Return $s_{i,c} = \sum_{c'} R_{c',c}\, l_{c',i}$, (neurons, channels).

    Parameters
    ----------
    matrix : Tensor (D, channels)
        The map R from the integrals to the coordinates of the currents.
    directions : Tensor (neurons, D)
        The directions l of these coordinates.

    Examples
    --------
    >>> rni.analysis.selectivity_vectors(torch.eye(2), torch.tensor([[1.0, 0.0], [0.5, 0.75]])).tolist()
    [[1.0, 0.0], [0.5, 0.75]]
    """
    require_shape("matrix", matrix, "D", "channels")
    require_shape("directions", directions, "neurons", len(matrix))
    return directions @ matrix


def rectified_selectivity(activity: Tensor, integrals: Tensor, iterations: int = 50) -> Tensor:
    r"""Fit $s_i = \arg\min_s \sum_t (h_{i,t} - \lfloor s \cdot \bar y_t \rfloor_+)^2$ to recorded, rectified activity.

    The method is regression through 0 on the samples in which neuron i is active, then on those in which its fit says
    that it is active, until these samples stay the same. Without noise the first regression is exact. Noise on the
    activity averages out, whereas choosing samples by the noisy activity would bias s.

    Parameters
    ----------
    activity : Tensor (samples, neurons)
        The activity $h_i$, which is never negative.
    integrals : Tensor (samples, channels)
        The integrals $\bar y$.
    iterations : int
        The largest number of regressions.

    Returns
    -------
    Tensor (neurons, channels)
        The vectors $s_i$. They are 0 for neurons that are never active.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> y, s = torch.randn(500, 2, generator=generator), torch.randn(10, 2, generator=generator)
    >>> found = rni.analysis.rectified_selectivity((y @ s.T).clamp(min=0), y)
    >>> torch.allclose(found, s, atol=1e-4)
    True
    """
    require_shape("integrals", integrals, "samples", "channels")
    require_shape("activity", activity, len(integrals), "neurons")
    require_finite("integrals", integrals)
    require_finite("activity", activity)
    require_independent_columns("integrals", integrals)
    channels = integrals.shape[1]
    products = (integrals[:, :, None] * integrals[:, None, :]).flatten(1)

    active, vectors = activity > 0, activity.new_zeros(activity.shape[1], channels)
    for _ in range(iterations + 1):
        # the normal equations of each neuron, on its own samples
        used = active.to(activity)
        gram = (used.T @ products).view(-1, channels, channels)
        moments = (used * activity).T @ integrals
        vectors = (torch.linalg.pinv(gram, hermitian=True) @ moments[..., None])[..., 0]
        before, active = active, integrals @ vectors.T > 0
        if torch.equal(before, active):
            break
    return vectors


def angles(vectors: Tensor) -> Tensor:
    r"""Return the angles $\theta_i \in [0, 2\pi)$ of the selectivity vectors of two channels, (neurons,).

    Examples
    --------
    >>> rni.analysis.angles(torch.tensor([[1.0, 0.0], [0.0, -1.0]]).double()).round(decimals=3).tolist()
    [0.0, 4.712]
    """
    require_shape("vectors", vectors, "neurons", 2)
    return torch.atan2(vectors[:, 1], vectors[:, 0]) % (2 * torch.pi)


class Harmonics(NamedTuple):
    r"""Circular harmonics $\rho_k e^{i\phi_k} = \langle e^{ik\theta} \rangle$ of angles.

    Angles that prefer k evenly spaced directions have them at $(\phi_k + 2\pi j) / k$.

    Attributes
    ----------
    lengths, phases : Tensor (orders,)
        $\rho_k$ and $\phi_k$.
    p_values : Tensor (orders,)
        The p-values of Rayleigh's test under uniform angles.

    Examples
    --------
    >>> four = torch.arange(400) * torch.pi / 2  # along the axes
    >>> rni.analysis.harmonics(four.double()).lengths.round(decimals=3).abs().tolist()
    [0.0, 0.0, 0.0, 1.0]
    """

    lengths: Tensor
    phases: Tensor
    p_values: Tensor


def harmonics(angles: Tensor, orders: Sequence[int] = (1, 2, 3, 4)) -> Harmonics:
    r"""Compute harmonics of angles, with Rayleigh's test for each order.

    $p = \exp[\sqrt{1 + 4n + 4n^2(1 - \rho_k^2)} - (1 + 2n)]$ (Wilkie 1983) for n independent angles.

    Parameters
    ----------
    angles : Tensor (samples,)
        The angles $\theta$.
    orders : sequence of int
        The orders k.

    Examples
    --------
    >>> even = 2 * torch.pi * torch.rand(500, generator=torch.Generator().manual_seed(0))
    >>> bool((rni.analysis.harmonics(even).p_values > 0.01).all())
    True
    """
    if angles.ndim != 1 or not len(angles):
        shape = tuple(angles.shape)
        raise InputError("angles", shape, "(samples,), with one sample or more", problem=f"shape {shape}")
    require_finite("angles", angles)
    multiples = torch.tensor(orders)[:, None] * angles.double()
    mean = torch.complex(multiples.cos().mean(1), multiples.sin().mean(1))
    n = len(angles)
    exponents = (1 + 4 * n + 4 * n**2 * (1 - mean.abs().square())).clamp(min=0).sqrt() - (1 + 2 * n)
    return Harmonics(mean.abs(), mean.angle(), exponents.exp())
