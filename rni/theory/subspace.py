r"""The subspace that descent from W = 0 never leaves (section 3, "Special case of null-weight initialization").

Every gradient is a sum of $D_m (\cdot) E_k^\dagger$, and both families lie in the span of the encoders and decoders.
Therefore W remains $\sum_{ab} \omega_{ab}\, \bar v_a \bar v_b^\dagger$, and a network of n neurons is equivalent to one
of 2 D neurons, whose encoders and decoders are the components of the original ones. Loss, gradient and Hessian in
$\omega$ are those of this reduced problem.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rni.core.arrays import as_columns, as_matrix, as_vector_pair
from rni.theory.averaged import LinearProblem


def null_basis(encoders: Any, decoders: Any) -> Tensor:
    r"""Compute $\bar v_a = \sum_b (\Sigma^{-1/2})_{ab}\, v_b$, $\Sigma_{ab} = v_a \cdot v_b$,
    $v = (d_1, \dots, e_1, \dots)$.

    The decoders come first, because the closed forms of the paper need this order.

    Parameters
    ----------
    encoders, decoders : array
        (neurons, channels).

    Returns
    -------
    Tensor
        Orthonormal columns, (neurons, 2 channels). If the vectors depend on each other, for example for e = d, there
        are fewer columns, (neurons, rank).

    Examples
    --------
    >>> basis = rni.theory.null_basis(*rni.vectors.independent(50, 2, torch.Generator().manual_seed(0)))
    >>> basis.shape, torch.allclose(basis.T @ basis, torch.eye(4).double())
    (torch.Size([50, 4]), True)
    """
    encoders, decoders = as_vector_pair(encoders, decoders)
    vectors = torch.cat([decoders, encoders], dim=1)
    # V Sigma^{-1/2} is the polar factor of V; the SVD of V has it without squaring V's condition number.
    left, values, right = torch.linalg.svd(vectors, full_matrices=False)
    nonzero = values > values[0] * max(vectors.shape) * torch.finfo(torch.float64).eps
    if nonzero.all() and vectors.shape[0] >= vectors.shape[1]:
        return left @ right
    return left[:, nonzero]


def to_omega(recurrent: Any, basis: Any) -> Tensor:
    r"""Compute $\omega_{ab} = \bar v_a^\dagger W \bar v_b$. The part of W outside of the subspace is dropped.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    basis : array
        (neurons, rank), from `null_basis`.

    Returns
    -------
    Tensor
        (rank, rank).

    Examples
    --------
    >>> e, d = rni.vectors.orthonormal(50, 1, torch.Generator().manual_seed(0))
    >>> rni.theory.to_omega(0.9 * d @ e.T, rni.theory.null_basis(e, d)).round(decimals=6).abs().tolist()
    [[0.0, 0.9], [0.0, 0.0]]
    """
    basis = as_columns("basis", basis)
    return basis.T @ as_matrix("recurrent", recurrent, len(basis)) @ basis


def to_weights(omega: Any, basis: Any) -> Tensor:
    r"""Compute $W = \sum_{ab} \omega_{ab}\, \bar v_a \bar v_b^\dagger$.

    Parameters
    ----------
    omega : array
        (rank, rank).
    basis : array
        (neurons, rank), from `null_basis`.

    Returns
    -------
    Tensor
        (neurons, neurons).

    Examples
    --------
    >>> basis = rni.theory.null_basis(*rni.vectors.independent(50, 1, torch.Generator().manual_seed(0)))
    >>> w = rni.theory.to_weights(torch.eye(2), basis)
    >>> w.shape, torch.allclose(rni.theory.to_omega(w, basis), torch.eye(2).double())
    (torch.Size([50, 50]), True)
    """
    basis = as_columns("basis", basis)
    return basis @ as_matrix("omega", omega, basis.shape[1]) @ basis.T


def reduced_problem(problem: LinearProblem, basis: Any) -> LinearProblem:
    r"""Reduce a problem to its subspace: $\mu_q = (\sqrt\Sigma\, \omega^q \sqrt\Sigma)_{dc}$.

    Parameters
    ----------
    problem : LinearProblem
        The problem of n neurons.
    basis : array
        (neurons, rank), from `null_basis`.

    Returns
    -------
    LinearProblem
        The same problem for `rank` neurons, whose recurrent weights are $\omega$.

    Examples
    --------
    >>> e, d = rni.vectors.independent(50, 1, torch.Generator().manual_seed(0))
    >>> problem = rni.theory.linear_problem(e, d, decays=0.9, scales=1.0, duration=3)
    >>> rni.theory.reduced_problem(problem, rni.theory.null_basis(e, d)).neurons
    2
    """
    basis = as_columns("basis", basis, problem.neurons)
    return replace(problem, encoders=basis.T @ problem.encoders, decoders=basis.T @ problem.decoders)
