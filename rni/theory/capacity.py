r"""Capacity: how many channels n neurons can integrate exactly. The proofs are in docs/capacity.md.

In a ReLU network that starts from rest, the first step alone requires $D^\dagger f(WEx) = S\Gamma x$ for all x. This
requires D axes $u_g$, each with a group of neurons for which $(WE)_j = \pm\rho_j u_g$, $\rho_j > 0$ and
$\sum_{j \in g} \rho_j d_j = 0$. If the rows of the decoders are in general position, such a group has at least D + 1
neurons. If the decoders may be chosen, it has at least two.
"""

from math import comb

import numpy as np

from rni.core.errors import require_one_of, require_whole


def least_neurons(channels: int, activation: str = "relu", decoders: str = "given") -> int:
    r"""Compute the number of neurons below which no network integrates D channels exactly.

    | activation | decoders given | decoders free |
    |---|---|---|
    | relu | $D (D + 1)$, and 3 for D = 1 | $2D$ |
    | linear | $2D$ | $D$ |

    One ReLU channel needs a third neuron because W also has to satisfy $m \cdot e = 1$.

    Parameters
    ----------
    channels : int
        D.
    activation : {"relu", "linear"}
        The activation of the network.
    decoders : {"given", "free"}
        "given": encoders and decoders are given, in general position. "free": the encoders are given, and the decoders
        may be chosen.

    Examples
    --------
    >>> rni.theory.least_neurons(5), rni.theory.least_neurons(5, decoders="free")
    (30, 10)
    >>> rni.theory.least_neurons(5, "linear")
    10
    """
    require_whole("channels", channels, 1)
    require_one_of("activation", activation, ("relu", "linear"))
    require_one_of("decoders", decoders, ("given", "free"))
    if activation == "linear":
        return 2 * channels if decoders == "given" else channels
    return max(channels * (channels + 1), 3) if decoders == "given" else 2 * channels


def largest_channels(neurons: int, activation: str = "relu", decoders: str = "given") -> int:
    """Compute the largest number of channels that n neurons can integrate exactly. It is 0 if they cannot hold one.

    Parameters
    ----------
    neurons : int
        n.
    activation, decoders : str
        As in `least_neurons`.

    Examples
    --------
    >>> rni.theory.largest_channels(1000), rni.theory.largest_channels(1000, "linear")
    (31, 500)
    """
    require_whole("neurons", neurons, 1)
    # least_neurons grows as D^2 for the ReLU with given decoders and as D otherwise
    quadratic = activation == "relu" and decoders == "given"
    channels = int(neurons**0.5) if quadratic else neurons
    while channels and least_neurons(channels, activation, decoders) > neurons:
        channels -= 1
    return channels


def wendel(points: int, dimensions: int) -> float:
    r"""Compute the probability $1 - 2^{-(m-1)} \sum_{k<D} \binom{m-1}{k}$ that the hull of m random points contains 0.

    The formula (Wendel 1962) holds for every distribution on $\mathbb{R}^D$ that is symmetric about 0 and gives no mass
    to hyperplanes through 0.

    Parameters
    ----------
    points : int
        m.
    dimensions : int
        D.

    Examples
    --------
    >>> rni.theory.wendel(points=3, dimensions=2), rni.theory.wendel(points=4, dimensions=2)
    (0.25, 0.5)
    """
    require_whole("points", points, 1)
    require_whole("dimensions", dimensions, 1)
    return float(1 - sum(comb(points - 1, k) for k in range(dimensions)) / 2 ** (points - 1))


def untuned_error(channels: int, neurons: int) -> float:
    r"""Compute $\sqrt{(D + 2) / n}$, the relative error of the outputs with the currents $l_j = 2 S\Gamma d_j$.

    For equal $s\gamma$ the error is $d_c \cdot f(Lz) - s_c\gamma_c z_c = s\gamma \sum_j d_{jc} |d_j \cdot z|$. With
    $d_{jc} \sim N(0, 1/n)$ its variance is $s^2\gamma^2 (|z|^2 + 2 z_c^2) / n$.

    Parameters
    ----------
    channels : int
        D.
    neurons : int
        n.

    Examples
    --------
    >>> rni.theory.untuned_error(channels=2, neurons=400)
    0.1
    """
    require_whole("channels", channels, 1)
    require_whole("neurons", neurons, 1)
    return ((channels + 2) / neurons) ** 0.5


def sides(decoders: np.ndarray, directions: np.ndarray) -> int:
    r"""Compute the least number of decoder rows with $d_j \cdot h > 0$, over the directions h and their opposites.

    An exact ReLU network has at least D such rows for every direction, because the rows of each of its D groups
    surround 0. Over all directions this number is the depth of 0 among the rows.

    Parameters
    ----------
    decoders : array
        (neurons, channels).
    directions : array
        (directions, channels).
    """
    products = np.asarray(decoders) @ np.asarray(directions).T
    return int(min((products > 0).sum(0).min(), (products < 0).sum(0).min()))
