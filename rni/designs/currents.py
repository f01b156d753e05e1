r"""The currents $L$ to aim at, before the activation has its say, and least-norm solutions: what keeps |W| small."""

import torch
from torch import Generator, Tensor

TOLERANCE = 1e-10  # of the sizes that a condition is made of


def preferred_currents(encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator) -> Tensor:
    r"""$l_c = d_c + \nu_c \hat n_c / p_c$ with the $\nu_c$ of least $|W|$, for vectors of length 1: (neurons, D).

    The strengths p (D,) are those of `exact.py`. $\hat n$ is the direction of the part of the encoder across the
    decoder, or a drawn one if there is none. In the plane of both, $e = o\,d + q\,\hat n$, the vector m of least norm
    with $m \cdot e = 1$ and $m \cdot l = 1/p$ gives $|W|^2 = |l|^2 |m|^2 p^2 \propto
    (p^2 + \nu^2) \big((\nu - q)^2 + (o - p)^2\big) / (o\nu - qp)^2$. For o = 0 the best is $\nu = 1/2$ from p = 1/2
    on, and then, with k the mean slope of f, $|W| = \frac{\gamma}{k}(p + \frac1{4p})$; below, $\frac{\gamma}{k}$, the
    paper's lower bound.
    """
    columns = []
    for e, d, p in zip(encoders.T, decoders.T, strengths.tolist(), strict=True):
        across = e - d * (d @ e)
        if across.norm() < 1e-6:
            across = torch.randn(len(d), generator=generator, dtype=d.dtype)
            across = across - d * (d @ across)
        across = across / across.norm().clamp(min=torch.finfo(d.dtype).tiny)
        o, q = float(d @ e), float(across @ e)
        magnitudes = abs(p) * torch.logspace(-1, 4, 2000, dtype=d.dtype)  # never 0: other channels overlap too
        nu = torch.cat([magnitudes, -magnitudes])
        squared_norm = (p**2 + nu**2) * ((nu - q) ** 2 + (o - p) ** 2) / (o * nu - q * p) ** 2
        best = nu[squared_norm.nan_to_num(nan=float("inf")).argmin()]
        columns.append(d + best / p * across)
    return torch.stack(columns, dim=1)


def least_norm(constraints: Tensor, values: Tensor) -> Tensor | None:
    r"""The M (neurons, D) of least norm with $C^\dagger M = V$, for C (neurons, k) and V (k, D); None if there is none.

    Each condition counts by its own size: $|c_k \cdot m - v_k|$ is rounding beside $|c_k| |m|$.
    """
    sizes = constraints.norm(dim=0).clamp(min=torch.finfo(constraints.dtype).tiny)
    c, v = constraints / sizes, values / sizes[:, None]
    left, singular, right = torch.linalg.svd(c, full_matrices=False)
    kept = singular > 1e-12 * singular[0]
    m = left[:, kept] @ ((right[kept] @ v) / singular[kept, None])
    return m if bool(((c.T @ m - v).abs() <= TOLERANCE * m.norm(dim=0)).all()) else None
