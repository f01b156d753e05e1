r"""Two cases in which descent from W = 0 is solved exactly (appendix "Two special cases of null initialization")."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from rni.core.errors import InputError, require_whole


class OneStepDescent(NamedTuple):
    r"""Descent with sequences of one step (T = 1): $W = w\, d e^\dagger$ at all times, for any learning rate.

    Parameters
    ----------
    encoder_norm, decoder_norm : float
        $|e|$ and $|d|$, above 0.
    overlap : float
        $d \cdot e$.
    decay, scale : float
        $\gamma$ and s.

    Examples
    --------
    >>> descent = rni.theory.OneStepDescent(encoder_norm=1, decoder_norm=1, overlap=0.2, decay=0.9, scale=1)
    >>> descent.trajectory(learning_rate=0.25, steps=3).round(4).tolist(), descent.fixed_point
    ([0.0, 0.45, 0.675, 0.7875], 0.9)
    """

    encoder_norm: float
    decoder_norm: float
    overlap: float
    decay: float
    scale: float

    @property
    def fixed_point(self) -> float:
        r"""The limit $w^* = \frac{s\gamma}{|e|^2 |d|^2}$."""
        return self.scale * self.decay / self._gain

    @property
    def stability_limit(self) -> float:
        r"""The learning rate $|e|^{-2} |d|^{-2}$. Descent converges if and only if $\eta$ is below it."""
        return 1 / self._gain

    @property
    def final_decay(self) -> float:
        r"""The decay $\frac{\gamma s\, e\cdot d}{|e|^2 |d|^2}$ of the trained network, which the vectors determine."""
        return self.fixed_point * self.overlap

    def trajectory(self, learning_rate: float, steps: int) -> np.ndarray:
        r"""Compute $w^{(\tau)} = \frac{s\gamma}{|e|^2|d|^2} \left[1 - (1 - 2\eta |e|^2|d|^2)^\tau\right]$: (steps +
        1,).
        """
        return self.fixed_point * (1 - (1 - 2 * learning_rate * self._gain) ** np.arange(steps + 1))

    @property
    def _gain(self) -> float:
        for field in ("encoder_norm", "decoder_norm"):
            _require_positive(field, getattr(self, field))
        return self.encoder_norm**2 * self.decoder_norm**2


class SameVectorsDescent(NamedTuple):
    r"""Descent with encoder = decoder and white noise: $W = w\, e e^\dagger$ at all times, with
    $\Delta w = -\eta P(w)$.

    Descent can reach a generalizing integrator only at the scale $|e|^2$.

    Parameters
    ----------
    norm : float
        $|e|$, above 0.
    decay, scale : float
        $\gamma$ and s.
    duration : int
        T.

    Examples
    --------
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
        require_whole("duration", self.duration, 1)
        coefficients = np.zeros(2 * self.duration)
        for k in range(1, self.duration + 1):
            weight = 2 * k * (self.duration + 1 - k)
            coefficients[2 * k - 1] += weight * self.norm ** (4 * k)
            coefficients[k - 1] -= weight * self.scale * self.decay**k * self.norm ** (2 * k - 2)
        return Polynomial(coefficients)

    @property
    def roots(self) -> np.ndarray:
        r"""The real roots of P, which are the fixed points of descent. For $s = |e|^2$ the only one is
        $\gamma / |e|^2$.
        """
        _require_positive("norm", self.norm)
        # In units of w |e|^2 the coefficients remain of order 1, and the companion matrix is well conditioned.
        unit = SameVectorsDescent(1.0, self.decay, self.scale / self.norm**2, self.duration)
        roots = unit.polynomial.roots()
        return np.sort(roots[np.abs(roots.imag) < 1e-7].real) / self.norm**2

    @property
    def stability_limit(self) -> float:
        r"""The learning rate $2 / P'(w^*)$. $w^*$ is the smallest positive root, which descent from 0 reaches first."""
        positive = self.roots[self.roots > 0]
        if not positive.size:
            raise InputError(
                "decay", self.decay, "a decay and a scale that are positive", problem=f"{self.decay}, {self.scale}"
            )
        nearest = positive[0]
        return 2 / self.polynomial.deriv()(nearest)


def _require_positive(field: str, value: float) -> None:
    if not value > 0:
        raise InputError(field, value, "a positive number")
