r"""How many integrals n neurons can hold exactly: docs/capacity.md has the proofs.

ReLU, from rest: $D^\dagger f(WEx) = S\Gamma x$ for all x, the first step alone, asks for D axes $u_g$ with groups of
neurons $(WE)_j = \pm\rho_j u_g$, $\rho_j > 0$, $\sum_{j \in g} \rho_j d_j = 0$. Decoder rows in general position need
D + 1 neurons for that; decoders of one's own choice need two.
"""

from collections.abc import Callable
from math import comb

import numpy as np

from rni.core.errors import InputError

LEAST: dict[tuple[str, str], Callable[[int], int]] = {
    ("relu", "given"): lambda channels: max(channels * (channels + 1), 3 * channels),
    ("relu", "free"): lambda channels: 2 * channels,
    ("linear", "given"): lambda channels: 2 * channels,
    ("linear", "free"): lambda channels: channels,
}


def least_neurons(channels: int, activation: str = "relu", decoders: str = "given") -> int:
    r"""Below that many neurons no network integrates D channels exactly.

    given: encoders and decoders in general position, D (D + 1) neurons for ReLU (3 for D = 1, as W has $m \cdot e = 1$
    to meet as well) and 2D for linear ones; free: encoders given, decoders as one likes, 2D and D neurons.

    >>> rni.theory.least_neurons(5), rni.theory.least_neurons(5, decoders="free")
    (30, 10)
    >>> rni.theory.least_neurons(5, "linear")
    10
    """
    _check("channels", channels)
    return _rule(activation, decoders)(channels)


def largest_channels(neurons: int, activation: str = "relu", decoders: str = "given") -> int:
    """The most channels that n neurons can integrate exactly, 0 if not even one.

    >>> rni.theory.largest_channels(1000), rni.theory.largest_channels(1000, "linear")
    (31, 500)
    """
    _check("neurons", neurons)
    least = _rule(activation, decoders)
    channels = int(neurons**0.5) if least(neurons) > 3 * neurons else neurons
    while channels and least(channels) > neurons:
        channels -= 1
    return channels


def wendel(points: int, dimensions: int) -> float:
    r"""$1 - 2^{-(m-1)} \sum_{k<D} \binom{m-1}{k}$: 0 is in the hull of m random points of $\mathbb{R}^D$ (Wendel 1962).

    For any distribution that is symmetric about 0 and has no mass in hyperplanes through it.

    >>> rni.theory.wendel(points=3, dimensions=2), rni.theory.wendel(points=4, dimensions=2)
    (0.25, 0.5)
    """
    _check("points", points)
    _check("dimensions", dimensions)
    return float(1 - sum(comb(points - 1, k) for k in range(dimensions)) / 2 ** (points - 1))


def untuned_error(channels: int, neurons: int) -> float:
    r"""$\sqrt{(D + 2) / n}$: relative error of the outputs with currents along the decoders, $l_j = 2 S\Gamma d_j$.

    $d_c \cdot f(Lz) - s_c\gamma_c z_c = s\gamma \sum_j d_{jc} |d_j \cdot z|$ for equal $s\gamma$, and with
    $d_{jc} \sim N(0, 1/n)$ that has the variance $s^2\gamma^2 (|z|^2 + 2 z_c^2) / n$.

    >>> rni.theory.untuned_error(channels=2, neurons=400)
    0.1
    """
    _check("channels", channels)
    _check("neurons", neurons)
    return ((channels + 2) / neurons) ** 0.5


def sides(decoders: np.ndarray, directions: np.ndarray) -> int:
    r"""The least number of rows with $d_j \cdot h > 0$ over the directions h (k, D) and their opposites.

    An exact ReLU network has at least D, in all directions: each of its D groups points to all sides. That is the
    depth of 0 among the rows, which few neurons can miss although they are D (D + 1).
    """
    products = np.asarray(decoders) @ np.asarray(directions).T
    return int(min((products > 0).sum(0).min(), (products < 0).sum(0).min()))


def _rule(activation: str, decoders: str) -> Callable[[int], int]:
    if (activation, decoders) not in LEAST:
        raise InputError(
            f"activation, decoders: {activation!r}, {decoders!r}; allowed: 'relu' or 'linear', 'given' or 'free'"
        )
    return LEAST[activation, decoders]


def _check(name: str, value: int) -> None:
    if type(value) is not int or value < 1:
        raise InputError(f"{name}: {value!r}; allowed: a whole number, 1 or more")
