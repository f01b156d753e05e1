r"""The currents $L$ to aim at, before the activation has its say, and least-norm solutions: what keeps |W| small."""

import torch
from torch import Generator, Tensor

from rni.task import Integration


def preferred_currents(
    task: Integration, encoders: Tensor, decoders: Tensor, slope: float, generator: Generator
) -> Tensor:
    r"""$l_c = \frac{\gamma_c}{k}\,(s_c d_c / |d_c|^2 + \nu_c \hat n_c)$ with the $\nu_c$ of least $|W|$: (neurons, D).

    k is the mean slope of f: 1 for linear units, 1/2 for ReLU, half of which are silent. $\hat n$ is the direction of
    the part of the encoder across the decoder, or a drawn one if there is none. In the plane of both,
    $e = o\,\hat d + q\,\hat n$ and $p = s/|d|$, the vector m of least norm with $m \cdot e = 1$ and
    $m \cdot l = \gamma/k$ gives $|W|^2 = |l|^2 |m|^2 \propto
    (p^2 + \nu^2) \big((\nu - q)^2 + (o - p)^2\big) / (o\nu - qp)^2$. For |e| = |d| = 1 and o = 0 the best is
    $\nu = 1/2$ from s = 1/2 on, and then $|W| = \frac{\gamma}{k}(s + \frac1{4s})$; below, $\frac{\gamma}{k}$, the
    paper's lower bound.
    """
    columns = []
    for c, (decay, scale) in enumerate(zip(task.decays, task.scales, strict=True)):
        e, d = encoders[:, c], decoders[:, c]
        along = d / d.norm()
        across = e - along * (along @ e)
        if across.norm() < 1e-6 * e.norm():
            across = torch.randn(len(d), generator=generator, dtype=d.dtype)
            across = across - along * (along @ across)
        across = across / across.norm()
        o, q, p = float(along @ e), float(across @ e), scale / float(d.norm())
        magnitudes = abs(p) * torch.logspace(-1, 4, 2000, dtype=d.dtype)  # never 0: other channels overlap too
        nu = torch.cat([magnitudes, -magnitudes])
        squared_norm = (p**2 + nu**2) * ((nu - q) ** 2 + (o - p) ** 2) / (o * nu - q * p) ** 2
        best = nu[squared_norm.nan_to_num(nan=float("inf")).argmin()]
        columns.append(decay / slope * (p * along + best * across))
    return torch.stack(columns, dim=1)


def least_norm(constraints: Tensor, values: Tensor) -> Tensor:
    r"""The M (neurons, D) of least norm with $C^\dagger M = V$, for C (neurons, k) and V (k, D)."""
    left, singular, right = torch.linalg.svd(constraints, full_matrices=False)
    kept = singular > 1e-12 * singular[0]
    return left[:, kept] @ ((right[kept] @ values) / singular[kept, None])
