r"""The currents $L$ that give the smallest weights, and least-norm solutions of linear conditions."""

import torch
from torch import Generator, Tensor

TOLERANCE = 1e-10  # of linear conditions, relative to the sizes of their terms


def preferred_currents(encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator) -> Tensor:
    r"""Compute $l_c = d_c + \nu_c \hat n_c / p_c$ with the $\nu_c$ of least $|W|$, for encoders and decoders of length
    1.

    $\hat n$ is the direction of the part of the encoder that is orthogonal to the decoder. If there is no such part,
    the direction is drawn. In the plane of both vectors, $e = o\,d + q\,\hat n$. The vector m of least norm with
    $m \cdot e = 1$ and $m \cdot l = 1/p$ gives
    $|W|^2 = |l|^2 |m|^2 p^2 \propto (p^2 + \nu^2) \big((\nu - q)^2 + (o - p)^2\big) / (o\nu - qp)^2$.

    For o = 0 and $p \ge 1/2$ the minimum is at $\nu = 1/2$, where $|W| = \frac{\gamma}{k}(p + \frac1{4p})$ with the
    mean slope k of f. Below p = 1/2 the minimum is the lower bound of the paper, $\frac{\gamma}{k}$.

    Parameters
    ----------
    encoders, decoders : Tensor
        (neurons, channels), with columns of length 1.
    strengths : Tensor
        $p = s / (|d||e|)$, (channels,), with the lengths of the vectors before their normalisation.
    generator : torch.Generator
        Draws directions where the encoder is parallel to the decoder.

    Returns
    -------
    Tensor
        (neurons, channels).
    """
    columns = []
    for e, d, p in zip(encoders.T, decoders.T, strengths.tolist(), strict=True):
        # the direction n
        across = e - d * (d @ e)
        if across.norm() < 1e-6:
            across = torch.randn(len(d), generator=generator, dtype=d.dtype)
            across = across - d * (d @ across)
        across = across / across.norm().clamp(min=torch.finfo(d.dtype).tiny)

        # the best nu on a grid; nu is never 0, because channels overlap with each other as well
        o, q = float(d @ e), float(across @ e)
        magnitudes = abs(p) * torch.logspace(-1, 4, 2000, dtype=d.dtype)
        nu = torch.cat([magnitudes, -magnitudes])
        squared_norm = (p**2 + nu**2) * ((nu - q) ** 2 + (o - p) ** 2) / (o * nu - q * p) ** 2
        best = nu[squared_norm.nan_to_num(nan=float("inf")).argmin()]
        columns.append(d + best / p * across)
    return torch.stack(columns, dim=1)


def least_norm(constraints: Tensor, values: Tensor) -> Tensor | None:
    r"""Compute the M of least norm with $C^\dagger M = V$.

    Each condition counts relative to its own size, because $|c_k \cdot m - v_k|$ is rounding if it is small compared
    with $|c_k| |m|$.

    Parameters
    ----------
    constraints : Tensor
        C, (neurons, conditions).
    values : Tensor
        V, (conditions, channels).

    Returns
    -------
    Tensor or None
        M, (neurons, channels), or None if the conditions contradict each other.
    """
    sizes = constraints.norm(dim=0).clamp(min=torch.finfo(constraints.dtype).tiny)
    c, v = constraints / sizes, values / sizes[:, None]
    left, singular, right = torch.linalg.svd(c, full_matrices=False)
    nonzero = singular > 1e-12 * singular[0]
    m = left[:, nonzero] @ ((right[nonzero] @ v) / singular[nonzero, None])
    return m if bool(((c.T @ m - v).abs() <= TOLERANCE * m.norm(dim=0)).all()) else None
