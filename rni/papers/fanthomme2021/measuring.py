"""Measurements that several figures share."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rni.analysis import linear_map
from rni.papers import Measured
from rni.theory import Plane
from rni.training.reduced import Descents, descend_together


def stack(several: Sequence[Mapping[str, Any]], prefix: str = "") -> Measured:
    """Stack the measurements of several networks: one array for each key. The prefix is added to the keys."""
    return {f"{prefix}{key}": np.stack([each[key] for each in several]) for key in several[0]}


def farthest(values: np.ndarray, target: float) -> float:
    """Return the value that differs most from the target."""
    return float(values[np.abs(values - target).argmax()])


def linear_part(currents: Tensor, integrals: Tensor) -> float:
    """Return the part of the squared currents that is a linear function of the integrals.

    Parameters
    ----------
    currents : Tensor, shape (samples, neurons)
    integrals : Tensor, shape (samples, channels)
    """
    power = currents.double().square().sum(0)
    explained = linear_map(currents.double(), integrals.double()).explained
    # neurons without any current have no explained part
    return float(1 - ((1 - explained) * power).nansum() / power.sum())


def first_below(curve: np.ndarray, limit: float, window: int = 20) -> float:
    """Return the step from which a loss, averaged over a window, is below its limit. Infinite if it never is."""
    below = np.flatnonzero(np.convolve(curve, np.ones(window) / window, mode="valid") < limit)
    return float(below[0]) if len(below) else float("inf")


def evenly_spread(channels: int) -> Tensor:
    """Return random directions that are spread evenly over the sphere, shape (samples, channels)."""
    gaussian = torch.randn(2**17, channels, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return gaussian / gaussian.norm(dim=1, keepdim=True)


def descend(
    spaces: Sequence[Plane], start: np.ndarray, decay: float, scales: Sequence[float] | np.ndarray, **options: Any
) -> Descents:
    r"""Descend in the planes of encoder and decoder of several networks of one channel.

    Parameters
    ----------
    spaces : sequence of Plane
        One for each network.
    start : array, shape (networks, 2, 2)
        The initial $\omega$.
    decay : float
    scales : sequence of float
        One for each network.
    **options
        Those of `descend_together`.
    """
    encoders, decoders = (np.stack([getattr(s, side).numpy() for s in spaces]) for side in ("encoder", "decoder"))
    return descend_together(start, encoders, decoders, decay, np.asarray(scales), **options)
