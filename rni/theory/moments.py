r"""Moments of a linear network, and the statistics of its inputs (section 3 and the first two appendices of the paper).

The functions of `rni.theory` use these arrays:

- recurrent weights W, (neurons, neurons);
- encoders E and decoders D, (neurons, channels);
- moments, (duration, channels, channels), where the index 0 stands for q = 1.
"""

from typing import Any

import torch
from torch import Tensor

from rni.core.arrays import as_real_tensor
from rni.core.errors import InputError, require_whole


def krylov(recurrent: Tensor, vectors: Tensor, duration: int) -> Tensor:
    r"""Compute $V_m = W^m V$ for $m = 0, \dots, T$: (duration + 1, neurons, channels)."""
    blocks = [vectors]
    for _ in range(duration):
        blocks.append(recurrent @ blocks[-1])
    return torch.stack(blocks)


def moments(recurrent: Tensor, encoders: Tensor, decoders: Tensor, duration: int) -> Tensor:
    r"""Compute the moments $\mu_q = D^\dagger W^q E$ for $q = 1, \dots, T$.

    Parameters
    ----------
    recurrent : Tensor
        W, (neurons, neurons).
    encoders, decoders : Tensor
        E and D, (neurons, channels).
    duration : int
        T.

    Returns
    -------
    Tensor
        (duration, channels, channels). The entry (c, c') belongs to the decoder of channel c and the encoder of c'.
    """
    return decoders.T @ krylov(recurrent, encoders, duration)[1:]


def target_moments(decays: Tensor, scales: Tensor, duration: int) -> Tensor:
    r"""Compute the moments $S\Gamma^q$ of an integrator: $s_c\,\gamma_c^q$ on the diagonal and 0 between channels.

    Parameters
    ----------
    decays, scales : Tensor
        $\gamma$ and s, (channels,).
    duration : int
        T.

    Returns
    -------
    Tensor
        (duration, channels, channels).
    """
    powers = torch.arange(1, duration + 1, dtype=decays.dtype)[:, None]
    return torch.diag_embed(scales * decays**powers)


def input_correlation(duration: int, channels: int, covariance: Any = None) -> Tensor:
    r"""Compute $\chi_{qp} = \sum_{t} \langle x_{t-q}\, x_{t-p} \rangle\, 1_{q \le t} 1_{p \le t}$.

    White noise has $\chi_{qp} = (T - q)\,\delta_{qp}$, where q starts from 0.

    Parameters
    ----------
    duration : int
        T, the number of time steps of the inputs.
    channels : int
        Number of channels.
    covariance : array, optional
        Covariance of the inputs. (T, T) is the covariance of each channel, and the channels are independent.
        (T, channels, T, channels) is the covariance of all inputs. The default is white noise of variance 1.

    Returns
    -------
    Tensor
        (T, channels, T, channels).

    Raises
    ------
    InputError
        If the covariance has another shape, is not symmetric or has a negative eigenvalue.
    """
    full = full_covariance(duration, channels, covariance)
    chi = torch.zeros_like(full)
    for t in range(duration):
        past = full[: t + 1, :, : t + 1, :].flip(0, 2)
        chi[: t + 1, :, : t + 1, :] += past
    return chi


def full_covariance(duration: int, channels: int, covariance: Any = None) -> Tensor:
    """Convert a covariance, as `input_correlation` accepts it, to that of all inputs: (T, channels, T, channels)."""
    require_whole("duration", duration, 1)
    identity = torch.eye(duration, dtype=torch.float64)
    covariance = identity if covariance is None else as_real_tensor("covariance", covariance).double()
    given, shape = tuple(covariance.shape), (duration, channels, duration, channels)
    if given == shape:
        full = covariance
    elif given == (duration, duration):
        full = torch.einsum("qp,ab->qapb", covariance, torch.eye(channels, dtype=torch.float64))
    else:
        raise InputError("covariance", given, f"({duration}, {duration}) or {shape}", problem=f"shape {given}")

    flat = full.reshape(duration * channels, -1)
    asymmetry = (flat - flat.T).abs().max()
    symmetric = bool(asymmetry <= 1e-8 * flat.abs().max())  # False for NaN
    if not symmetric or torch.linalg.eigvalsh(flat).min() < -1e-10 * flat.diagonal().sum():
        raise InputError(
            "covariance",
            None,
            "a symmetric matrix without negative eigenvalues",
            problem="negative eigenvalues" if symmetric else "not symmetric",
        )
    return full
