r"""Singular values and vectors of W, $W = \sum_k \sigma_k\, l_k r_k^\dagger$, in whatever form it comes."""

from typing import NamedTuple

import torch
from torch import Tensor

from rni.weights.base import Weights


class SVD(NamedTuple):
    r"""left (neurons, k), values (k,) descending, right (neurons, k): W = left @ diag(values) @ right.T.

    >>> left, values, right = rni.weights.svd(rni.weights.Dense(torch.eye(3).double()))
    >>> torch.allclose(left @ torch.diag(values) @ right.T, torch.eye(3).double())
    True
    """

    left: Tensor
    values: Tensor
    right: Tensor


@torch.no_grad()
def svd(weights: Weights, count: int | None = None) -> SVD:
    """The `count` largest singular values and their vectors, or all; of a factored W without forming W.

    A factored W needs no more than QR of its factors, a few vectors of another one no more than products with it.

    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> rni.weights.svd(net.recurrent).values.shape  # W has rank 2, and is never formed
    torch.Size([2])
    """
    factors = weights.factors()
    if count is not None:
        all_or_few = _iterated(weights, count) if factors is None and 4 * count < weights.neurons else svd(weights)
        return SVD(*(part[..., :count] for part in all_or_few))
    if factors is None:
        left, values, right = torch.linalg.svd(weights.matrix(), full_matrices=False)
        return SVD(left, values, right.T)
    (q, r), (p, s) = (torch.linalg.qr(factor) for factor in factors)
    left, values, right = torch.linalg.svd(r @ s.T)
    return SVD(q @ left, values, p @ right.T)


def _iterated(weights: Weights, count: int, tolerance: float = 1e-5, most: int = 200) -> SVD:
    r"""Subspace iteration, $v \leftarrow W^\dagger W v$ made orthonormal, until $W^\dagger l_k = \sigma_k r_k$.

    More vectors than `count` take part, which makes up for values that are close to each other.
    """
    w = weights.matrix()
    start = torch.randn(len(w), min(2 * count + 8, len(w)), generator=torch.Generator().manual_seed(0))
    v = torch.linalg.qr(start.to(w)).Q
    while True:
        left, values, turned = torch.linalg.svd(w @ v, full_matrices=False)
        right, image = v @ turned.T, w.T @ left
        most -= 1
        if most == 0 or (image - right * values)[:, :count].norm() <= tolerance * values[0]:
            return SVD(left, values, right)
        v = torch.linalg.qr(image).Q
