r"""Moments of a linear network and the input statistics that weigh them (section 3 and the first two appendices).

Arrays, here and in the rest of the theory: recurrent weights W (neurons, neurons), encoders and decoders
(neurons, channels), moments (duration, channels, channels) with index 0 for q = 1.
"""

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import matrix, whole


def krylov(recurrent: Tensor, vectors: Tensor, duration: int) -> Tensor:
    r"""$V_m = W^m V$ for $m = 0, \dots, T$: (duration + 1, neurons, channels)."""
    blocks = [vectors]
    for _ in range(duration):
        blocks.append(recurrent @ blocks[-1])
    return torch.stack(blocks)


def moments(recurrent: Tensor, encoders: Tensor, decoders: Tensor, duration: int) -> Tensor:
    r"""$\mu_q = d^\dagger W^q e$ for $q = 1, \dots, T$: (T, channels, channels), entry (c, c') for d_c, e_c'."""
    return decoders.T @ krylov(recurrent, encoders, duration)[1:]


def target_moments(decays: Tensor, scales: Tensor, duration: int) -> Tensor:
    r"""$s_c\,\gamma_c^q$ on the diagonal, 0 between channels: (duration, channels, channels)."""
    powers = torch.arange(1, duration + 1, dtype=decays.dtype)[:, None]
    return torch.diag_embed(scales * decays**powers)


def input_correlation(duration: int, channels: int, covariance: Tensor | None = None) -> Tensor:
    r"""$\chi_{qp} = \sum_{t} \langle x_{t-q}\, x_{t-p} \rangle\, 1_{q \le t} 1_{p \le t}$: (T, channels, T, channels).

    `covariance` of the inputs: None for white noise of variance 1; (T, T) for channels that are independent and alike;
    (T, channels, T, channels) for anything else. White noise gives $\chi_{qp} = (T - q)\,\delta_{qp}$, q from 0.
    """
    full = full_covariance(duration, channels, covariance)
    chi = torch.zeros_like(full)
    for t in range(duration):
        past = full[: t + 1, :, : t + 1, :].flip(0, 2)
        chi[: t + 1, :, : t + 1, :] += past
    return chi


def full_covariance(duration: int, channels: int, covariance: Tensor | None = None) -> Tensor:
    """The covariance of all inputs, (T, channels, T, channels), from any of the forms `input_correlation` takes."""
    duration = whole(duration, "duration")
    covariance = torch.eye(duration, dtype=torch.float64) if covariance is None else matrix(covariance, "covariance")
    shape = (duration, channels, duration, channels)
    if covariance.shape == shape:
        full = covariance
    elif covariance.shape == (duration, duration):
        full = torch.einsum("qp,ab->qapb", covariance, torch.eye(channels, dtype=torch.float64))
    else:
        raise InputError(
            f"covariance: shape {tuple(covariance.shape)}; allowed: ({duration}, {duration}) or {shape}, "
            f"for duration {duration} and {channels} channels"
        )
    flat = full.reshape(duration * channels, -1)
    lopsided = not (flat - flat.T).abs().max() <= 1e-8 * flat.abs().max()  # NaN is, too
    if lopsided or torch.linalg.eigvalsh(flat).min() < -1e-10 * flat.diagonal().sum():
        raise InputError("covariance: not symmetric, or with negative eigenvalues; allowed: that of any signals")
    return full
