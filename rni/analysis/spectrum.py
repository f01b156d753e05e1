r"""Singular values and vectors of W, $W = \sum_k \sigma_k\, l_k r_k^\dagger$, in whatever form it comes."""

from typing import NamedTuple

import torch
from torch import Tensor

from rni.weights import Weights


class SVD(NamedTuple):
    r"""left (neurons, k), values (k,) descending, right (neurons, k): W = left @ diag(values) @ right.T."""

    left: Tensor
    values: Tensor
    right: Tensor


@torch.no_grad()
def svd(weights: Weights) -> SVD:
    """All of the singular values and vectors; of a factored W by QR of its factors, without forming W."""
    factors = weights.factors()
    if factors is None:
        left, values, right = torch.linalg.svd(weights.matrix(), full_matrices=False)
        return SVD(left, values, right.T)
    (q, r), (p, s) = (torch.linalg.qr(factor) for factor in factors)
    left, values, right = torch.linalg.svd(r @ s.T)
    return SVD(q @ left, values, p @ right.T)
