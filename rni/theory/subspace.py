r"""The subspace that descent from W = 0 never leaves (section 3, "Special case of null-weight initialization").

Every gradient is a sum of $D_m (\cdot) E_k^\dagger$ with both families in the span of encoders and decoders, so $W =
\sum_{ab} \omega_{ab}\, \bar v_a \bar v_b^\dagger$ for good: a network of n neurons is one of 2 D neurons, whose
encoders and decoders are the components of the original ones. Loss, gradient and Hessian in $\omega$ are those of the
reduced problem.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rni.theory._arrays import columns, square, vector_pair
from rni.theory.averaged import LinearProblem


def null_basis(encoders: Any, decoders: Any) -> Tensor:
    r"""$\bar v_a = \sum_b (\Sigma^{-1/2})_{ab}\, v_b$, $\Sigma_{ab} = v_a \cdot v_b$, $v = (d_1, \dots, e_1, \dots)$.

    (neurons, 2 channels), orthonormal columns. The decoders come first: the paper's closed forms need that order.
    Fewer columns, (neurons, rank), when the vectors depend on each other, e.g. for e = d.

    >>> basis = rni.theory.null_basis(*rni.vectors.independent(50, 2, torch.Generator().manual_seed(0)))
    >>> basis.shape, torch.allclose(basis.T @ basis, torch.eye(4).double())
    (torch.Size([50, 4]), True)
    """
    encoders, decoders = vector_pair(encoders, decoders)
    vectors = torch.cat([decoders, encoders], dim=1)
    # V Sigma^{-1/2} is the polar factor of V; the SVD of V has it without squaring V's condition number.
    left, values, right = torch.linalg.svd(vectors, full_matrices=False)
    kept = values > values[0] * max(vectors.shape) * torch.finfo(torch.float64).eps
    if kept.all() and vectors.shape[0] >= vectors.shape[1]:
        return left @ right
    return left[:, kept]


def to_omega(recurrent: Any, basis: Any) -> Tensor:
    r"""$\omega_{ab} = \bar v_a^\dagger W \bar v_b$: (rank, rank); what W has outside the subspace is dropped.

    >>> e, d = rni.vectors.orthonormal(50, 1, torch.Generator().manual_seed(0))
    >>> rni.theory.to_omega(0.9 * d @ e.T, rni.theory.null_basis(e, d)).round(decimals=6).abs().tolist()
    [[0.0, 0.9], [0.0, 0.0]]
    """
    basis = columns(basis, "basis")
    return basis.T @ square(recurrent, neurons=len(basis)) @ basis


def to_weights(omega: Any, basis: Any) -> Tensor:
    r"""$W = \sum_{ab} \omega_{ab}\, \bar v_a \bar v_b^\dagger$: (neurons, neurons).

    >>> basis = rni.theory.null_basis(*rni.vectors.independent(50, 1, torch.Generator().manual_seed(0)))
    >>> w = rni.theory.to_weights(torch.eye(2), basis)
    >>> w.shape, torch.allclose(rni.theory.to_omega(w, basis), torch.eye(2).double())
    (torch.Size([50, 50]), True)
    """
    basis = columns(basis, "basis")
    return basis @ square(omega, "omega", basis.shape[1]) @ basis.T


def reduced_problem(problem: LinearProblem, basis: Any) -> LinearProblem:
    r"""$\mu_q = (\sqrt\Sigma\, \omega^q \sqrt\Sigma)_{dc}$: the same problem for `rank` neurons, in $\omega$.

    >>> e, d = rni.vectors.independent(50, 1, torch.Generator().manual_seed(0))
    >>> problem = rni.theory.linear_problem(e, d, decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.reduced_problem(problem, rni.theory.null_basis(e, d)).neurons
    2
    """
    basis = columns(basis, "basis", problem.neurons)
    return replace(problem, encoders=basis.T @ problem.encoders, decoders=basis.T @ problem.decoders)
