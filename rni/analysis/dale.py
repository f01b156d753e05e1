r"""Dale's law (section 5 of the paper): the singular mode that carries the signs, and what sign constraints rule out.

The functions take arrays: left and right singular vectors (neurons, k), singular values (k,), decoders (neurons,
channels), and signs (neurons,), +1 where a neuron excites and -1 where it inhibits.
"""

from typing import NamedTuple

import torch
from scipy.special import beta
from torch import Tensor

from rni.core.errors import InputError


class DaleMode(NamedTuple):
    r"""The singular mode k of which $l_k r_k^\dagger$ has the signs of the columns.

    Attributes
    ----------
    k : int
        The index of the mode.
    one_sign : float
        The fraction of the components of $l_k$ that are positive, with the sign of $l_k$ for which most are.
    agreement : float
        The fraction of the components of $r_k$, with the same sign, that have the sign of their neuron.
    overlaps : Tensor (modes, channels)
        $|l_j \cdot d_c|$ for all modes.

    Examples
    --------
    >>> signs = torch.tensor([1.0, 1.0, -1.0])
    >>> w = torch.ones(3, 3) * signs
    >>> left, values, right = rni.weights.svd(rni.weights.Dale(w, signs))
    >>> mode = rni.analysis.dale_mode(left, right, torch.eye(3)[:, :1], signs)
    >>> mode.k, mode.one_sign, mode.agreement
    (0, 1.0, 1.0)
    """

    k: int
    one_sign: float
    agreement: float
    overlaps: Tensor


def dale_mode(left: Tensor, right: Tensor, decoders: Tensor, signs: Tensor) -> DaleMode:
    r"""Find the mode that agrees best with $\mathrm{sign}\,(l_k r_k^\dagger)_{ij} = s_j$.

    Parameters
    ----------
    left, right : Tensor (neurons, modes)
        Singular vectors of W.
    decoders : Tensor (neurons, channels)
        The decoders $d_c$.
    signs : Tensor (neurons,)
        The signs $s_j$ of the neurons.

    Examples
    --------
    >>> signs = rni.weights.dale_signs(100, 0.25, torch.Generator().manual_seed(0))
    >>> w = rni.weights.random_matrix(100, 0.9, torch.Generator().manual_seed(0), signs)
    >>> left, values, right = rni.weights.svd(rni.weights.Dale(w, signs))
    >>> decoders = rni.vectors.independent(100, 1).decoders
    >>> rni.analysis.dale_mode(left, right, decoders, signs).k  # the largest one
    0
    """
    neurons = len(signs)
    for name, array in (("left", left), ("right", right), ("decoders", decoders)):
        if array.ndim != 2 or len(array) != neurons:
            shape, allowed = tuple(array.shape), f"({neurons}, ...), a row for each sign"
            raise InputError(name, shape, allowed, problem=f"shape {shape}")
    turned = torch.where((left > 0).sum(0) * 2 >= neurons, 1.0, -1.0).to(left)
    one_sign = (left * turned > 0).double().mean(0)
    agreement = (right * turned * signs[:, None].to(right) > 0).double().mean(0)
    k = int((one_sign * agreement).argmax())
    return DaleMode(k, float(one_sign[k]), float(agreement[k]), (left.T @ decoders.to(left)).abs())


def rectified_spectrum(channels: int, count: int) -> Tensor:
    r"""Return the leading singular values, relative to the first, of a Gaussian matrix of rank D with Dale's signs.

    With $A_{ij} = a_i \cdot b_j$, Gaussian in D dimensions, the projection keeps $W_{ij} = s_j \lfloor s_j A_{ij}
    \rfloor_+ = \frac12 (A_{ij} + s_j |A_{ij}|)$. Its singular functions are $|a|$ times spherical harmonics of the
    direction of a: one of degree 0, which is the sign mode, with $\sigma_0 \propto \frac{1}{D-1}$; D of degree 1, the
    half of A that remains, $\frac12 B(\frac32, \frac{D-1}2)$; then $\frac{D(D+1)}2 - 1$ of degree 2,
    $\frac{1}{D-1}\frac{1}{D+1}$. Values of higher degree are returned as zeros.

    Parameters
    ----------
    channels : int
        The rank D.
    count : int
        The number of singular values to return.

    Examples
    --------
    >>> rni.analysis.rectified_spectrum(channels=2, count=5).round(decimals=3).tolist()
    [1.0, 0.785, 0.785, 0.333, 0.333]
    """
    first = 1.0 if channels == 1 else (channels - 1) / 2 * float(beta(1.5, (channels - 1) / 2))
    modes = [1.0, *[first] * channels, *[1 / (channels + 1)] * (channels * (channels + 1) // 2 - 1)]
    return torch.tensor((modes + [0.0] * count)[:count], dtype=torch.float64)


def breaks_dale(weights: Tensor, signs: Tensor) -> int:
    """Return how many weights of W (neurons, neurons) do not have the sign of their column. Under Dale's law this is 0.

    Examples
    --------
    >>> rni.analysis.breaks_dale(torch.tensor([[1.0, -1.0], [-1.0, 0.0]]), torch.tensor([1.0, -1.0]))
    1
    """
    return int((weights * signs.to(weights) < 0).sum())


def obstacle(signs: Tensor) -> str | None:
    r"""Return why neurons of these signs with an activation $f \ge 0$ cannot integrate, or None if nothing forbids it.

    Currents that are linear in the integrals need $W f(WEz) = WE\,\Gamma z$ for z and for -z. If all columns have one
    sign, the left side always has this sign, and the sign of the right side changes with that of z. Only WE = 0
    satisfies both.

    Parameters
    ----------
    signs : Tensor (neurons,)
        1 for neurons that excite and -1 for neurons that inhibit.

    Examples
    --------
    >>> rni.analysis.obstacle(torch.tensor([1.0, -1.0])) is None
    True
    >>> rni.analysis.obstacle(torch.ones(2))[:21]
    'no inhibitory neurons'
    """
    if bool((signs > 0).all()):
        return (
            "no inhibitory neurons: recurrent currents W h are never negative, so that activity of one sign of the "
            "integral can't suppress that of the other, and nothing but an input takes activity away"
        )
    if bool((signs < 0).all()):
        return (
            "no excitatory neurons: recurrent currents W h are never positive, so that a ReLU network falls silent one "
            "step after its last input: nothing is remembered"
        )
    return None
