r"""Two cases in which descent from W = 0 is solved exactly (appendix "Two special cases of null initialization")."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from rni.core.errors import InputError
from rni.theory._arrays import whole


class OneStepDescent(NamedTuple):
    r"""Sequences of one step (T = 1): $W = w\, d e^\dagger$ throughout. Exact for any learning rate.

    >>> descent = rni.theory.OneStepDescent(encoder_norm=1, decoder_norm=1, overlap=0.2, decay=0.9, scale=1)
    >>> descent.trajectory(learning_rate=0.25, steps=3).round(4).tolist(), descent.fixed_point
    ([0.0, 0.45, 0.675, 0.7875], 0.9)
    """

    encoder_norm: float
    decoder_norm: float
    overlap: float  # d . e
    decay: float
    scale: float

    @property
    def fixed_point(self) -> float:
        r"""$w^* = \frac{s\gamma}{|e|^2 |d|^2}$."""
        return self.scale * self.decay / self._gain

    @property
    def stability_limit(self) -> float:
        r"""Descent converges if and only if $\eta < |e|^{-2} |d|^{-2}$."""
        return 1 / self._gain

    @property
    def final_decay(self) -> float:
        r"""$\frac{\gamma s\, e\cdot d}{|e|^2 |d|^2}$: the scale is learned, the decay is the vectors' own."""
        return self.fixed_point * self.overlap

    def trajectory(self, learning_rate: float, steps: int) -> np.ndarray:
        r"""$w^{(\tau)} = \frac{s\gamma}{|e|^2|d|^2} \left[1 - (1 - 2\eta |e|^2|d|^2)^\tau\right]$: (steps + 1,)."""
        return self.fixed_point * (1 - (1 - 2 * learning_rate * self._gain) ** np.arange(steps + 1))

    @property
    def _gain(self) -> float:
        if not (self.encoder_norm > 0 and self.decoder_norm > 0):
            raise InputError(f"norms: {self.encoder_norm}, {self.decoder_norm}; allowed: positive numbers")
        return self.encoder_norm**2 * self.decoder_norm**2


class SameVectorsDescent(NamedTuple):
    r"""Encoder = decoder, white noise, any T: $W = w\, e e^\dagger$ throughout and $\Delta w = -\eta P(w)$.

    A generalizing integrator can be reached at the scale $|e|^2$ only.

    >>> descent = rni.theory.SameVectorsDescent(norm=1, decay=0.9, scale=1, duration=3)
    >>> descent.roots.round(6).tolist(), round(float(descent.stability_limit), 4)
    ([0.9], 0.065)
    """

    norm: float
    decay: float
    scale: float
    duration: int

    @property
    def polynomial(self) -> Polynomial:
        r"""$P(w) = 2 \sum_{k=1}^{T} k (T + 1 - k) \left(w^k |e|^{2k+2} - s\gamma^k\right) w^{k-1} |e|^{2k-2}$."""
        coefficients = np.zeros(2 * whole(self.duration, "duration"))
        for k in range(1, self.duration + 1):
            weight = 2 * k * (self.duration + 1 - k)
            coefficients[2 * k - 1] += weight * self.norm ** (4 * k)
            coefficients[k - 1] -= weight * self.scale * self.decay**k * self.norm ** (2 * k - 2)
        return Polynomial(coefficients)

    @property
    def roots(self) -> np.ndarray:
        r"""Real roots of P, the fixed points of descent; $\gamma / |e|^2$ alone when $s = |e|^2$."""
        # in w |e|^2 the coefficients stay of order 1 and the companion matrix well conditioned
        if not self.norm > 0:
            raise InputError(f"norm: {self.norm}; allowed: a positive number")
        unit = SameVectorsDescent(1.0, self.decay, self.scale / self.norm**2, self.duration)
        roots = unit.polynomial.roots()
        return np.sort(roots[np.abs(roots.imag) < 1e-7].real) / self.norm**2

    @property
    def stability_limit(self) -> float:
        r"""$\eta < 2 / P'(w^*)$, with $w^*$ the smallest positive root, which descent from 0 meets first."""
        positive = self.roots[self.roots > 0]
        if not positive.size:
            raise InputError(
                f"decay, scale: {self.decay}, {self.scale}; allowed: positive ones, which descent moves to"
            )
        nearest = positive[0]
        return 2 / self.polynomial.deriv()(nearest)
