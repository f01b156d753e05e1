r"""Up to which learning rate does descent from W = 0 settle? Measured, in the plane of one encoder and one decoder.

The curvature at the minimum says at which rates descent stays there. On its way, and at the minimum that it comes to,
the curvature may be larger: no closed form tells, a run does.
"""

from typing import NamedTuple

import numpy as np

from rni.theory.manifolds import Plane
from rni.training.reduced import descend_together

STEPS = 3000


class Settling(NamedTuple):
    """rate: descent settles at this one and at every smaller one tried, 0 if at none. refused: the next one, where it
    does not; None if `rate` was the largest. loss: what is left at `rate`, of the loss at W = 0, after `STEPS`."""

    rate: float
    refused: float | None
    loss: float


def settling_rate(space: Plane, decay: float, scale: float, duration: int, rates: np.ndarray) -> Settling:
    """Of the given rates in rising order. Descent settles if the loss never rises in the last tenth of its steps."""
    encoders, decoders = (np.tile(vector.numpy(), (len(rates), 1)) for vector in (space.encoder, space.decoder))
    start, scales = np.zeros((len(rates), 2, 2)), np.full(len(rates), scale)
    with np.errstate(all="ignore"):  # what diverges does not settle
        losses = descend_together(
            start, encoders, decoders, decay, scales, duration=duration, learning_rate=rates, steps=STEPS
        ).losses
        losses = losses / losses[0]
        rises = np.diff(losses[-STEPS // 10 :], axis=0).max(0)
    settled = (rises <= 1e-15) & (losses[-1] < 1)
    number = len(rates) if settled.all() else int(settled.argmin())
    refused = None if settled.all() else float(rates[number])
    if not number:
        return Settling(0.0, refused, 1.0)
    return Settling(float(rates[number - 1]), refused, float(losses[-1, number - 1]))
