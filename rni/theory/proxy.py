r"""The Hessian of the exact ReLU proxy loss at any W, for one channel (appendix "Single-channel ReLU proxy loss").

Let $u_z = R(zWe) - z\gamma e$ and $v_z = W u_z$, and let $\mathcal{H}_z$ be the Heaviside function of $zWe$, for
$z = \pm1$. Along a direction V the gradient changes by

$\nabla^2 L\,[V] = \sum_z 2\,\dot v_z u_z^\dagger + 2\,v_z \dot h_z^\dagger + 2z\,\mathcal{H}_z \odot
\big((d \cdot \dot h_z)\,d + V^\dagger v_z + W^\dagger \dot v_z\big)\,e^\dagger$,
$\quad \dot h_z = z\,\mathcal{H}_z \odot Ve$, $\quad \dot v_z = V u_z + W \dot h_z$.

This is a matrix of rank 5. Every eigenvector of an eigenvalue other than 0 therefore has the form
$V = A\,(e, u_+, u_-)^\dagger + (v_+, v_-)\,B^\dagger$, and the spectrum is that of a matrix of size 5n instead of
$n^2$. The formula holds where no component of We is 0, because the loss has kinks there. The scale s moves the minimum
and does not appear in the Hessian.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor

from rni.core.arrays import as_columns, as_matrix, require_shape

SIGNS = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)  # z, in rows


@dataclass(frozen=True)
class ProxyHessian:
    r"""The Hessian $\nabla^2 L$ at W, by its products with vectors. Build it with `proxy_hessian`.

    Attributes
    ----------
    left, right : Tensor
        W = left @ right.T, (neurons, rank) each, or W = left (neurons, neurons) if right is None.
    encoder, decoder : Tensor
        e and d, (neurons,).
    steps, offsets, residuals : Tensor
        $\mathcal{H}_z$, $u_z$ and $v_z$, (2, neurons), with one row for each z.

    Examples
    --------
    >>> net = rni.design(rni.Integration(0.9), neurons=40).network
    >>> hessian = rni.theory.proxy_hessian(net.recurrent, net.encoders, net.decoders, decay=0.9)
    >>> hessian.neurons, 0 < hessian.stability_limit() < 1
    (40, True)
    """

    left: Tensor
    right: Tensor | None
    encoder: Tensor
    decoder: Tensor
    steps: Tensor
    offsets: Tensor
    residuals: Tensor

    @property
    def neurons(self) -> int:
        return len(self.encoder)

    def product(self, direction: Any) -> Tensor:
        r"""Compute the Hessian-vector product $\nabla^2 L\,[V]$, (neurons, neurons), for V (neurons, neurons)."""
        direction = as_matrix("direction", direction, self.neurons)
        left, right = self._change(self._readers() @ direction.T, self.residuals @ direction)
        return left.T @ right

    def dense(self) -> Tensor:
        r"""Compute $\partial^2 L / \partial W_{ij} \partial W_{kl}$, (n, n, n, n): the five lines of the paper,
        corrected.
        """
        identity = torch.eye(self.neurons, dtype=torch.float64)
        w = _product(self.left, self.right, identity).T
        e, d, steps, u, v = self.encoder, self.decoder, self.steps, self.offsets, self.residuals
        read = torch.outer(d, d) + w.T @ w
        hessian = torch.einsum("j,l,ik,zi,zk->ijkl", e, e, read, steps, steps)
        hessian += torch.einsum("ik,zj,zl->ijkl", identity, u, u)
        crossed = torch.einsum("jk,zi,l,zk,z->ijkl", identity, v, e, steps, SIGNS[:, 0])
        crossed += torch.einsum("ik,zj,l,zk,z->ijkl", w, u, e, steps, SIGNS[:, 0])
        return 2 * (hessian + crossed + crossed.permute(2, 3, 0, 1))

    def largest_eigenvalue(self) -> float:
        r"""Compute $\lambda_{max}$ by Lanczos iterations on the 5n numbers (A, B) of $V = A P^\dagger + Q B^\dagger$.

        P (neurons, 3) and Q (neurons, 2) have orthonormal columns that span $(e, u_+, u_-)$ and $(v_+, v_-)$, and
        $P^\dagger B = 0$.
        """
        if self.neurons <= 5:  # the whole matrix is not larger
            return float(torch.linalg.eigvalsh(self.dense().reshape(self.neurons**2, -1))[-1])
        readers = self._readers()
        p, _ = torch.linalg.qr(readers.T)
        q, _ = torch.linalg.qr(self.residuals.T)
        forward, backward = readers @ p, self.residuals @ q

        def apply(numbers: np.ndarray) -> np.ndarray:
            a, b = torch.from_numpy(numbers).reshape(5, -1).split((3, 2))
            b = b - (b @ p) @ p.T
            left, right = self._change(forward @ a, self.residuals @ a.T @ p.T + backward @ b)
            change = (right @ p).T @ left, (left @ q).T @ right
            return torch.cat([change[0], change[1] - (change[1] @ p) @ p.T]).reshape(-1).numpy()

        start = np.random.default_rng(0).standard_normal(5 * self.neurons)
        operator = LinearOperator((start.size, start.size), matvec=apply, dtype=np.float64)  # pyright: ignore
        return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])

    def stability_limit(self) -> float:
        r"""Compute $2 / \lambda_{max}$. Descent at a larger learning rate leaves this minimum."""
        return 2 / self.largest_eigenvalue()

    def _readers(self) -> Tensor:
        r"""Return $e, u_+, u_-$ as rows."""
        return torch.cat([self.encoder[None], self.offsets])

    def _change(self, forward: Tensor, backward: Tensor) -> tuple[Tensor, Tensor]:
        r"""Compute the factors of $\nabla^2 L\,[V]$ = left.T @ right, (5, neurons), from $Ve, Vu_\pm$ and
        $V^\dagger v_\pm$.

        `forward` holds $Ve, Vu_\pm$ and `backward` holds $V^\dagger v_\pm$, as rows.
        """
        h = SIGNS * self.steps * forward[0]
        v = forward[1:] + _product(self.left, self.right, h)
        transposed = v @ self.left if self.right is None else (v @ self.left) @ self.right.T  # W' v
        slopes = (h @ self.decoder)[:, None] * self.decoder + backward + transposed
        first = (SIGNS * self.steps * slopes).sum(0, keepdim=True)
        return 2 * torch.cat([v, self.residuals, first]), torch.cat([self.offsets, h, self.encoder[None]])


@torch.no_grad()
def proxy_hessian(recurrent: Any, encoder: Any, decoder: Any, decay: float) -> ProxyHessian:
    r"""Prepare the Hessian $\nabla^2 L$ of the exact ReLU proxy loss at W, in float64.

    Parameters
    ----------
    recurrent : Weights or array
        W, (neurons, neurons), or the `recurrent` of a network in any form. Factors of W are used as such.
    encoder, decoder : array
        e and d, (neurons,) or (neurons, 1).
    decay : float
        $\gamma$.

    Examples
    --------
    >>> net = rni.design(rni.Integration(0.9), neurons=40).network
    >>> hessian = rni.theory.proxy_hessian(net.recurrent, net.encoders, net.decoders, decay=0.9)
    >>> hessian.product(torch.zeros(40, 40)).abs().max().item()
    0.0
    """
    factors = recurrent.factors() if hasattr(recurrent, "factors") else None
    if factors is None:
        matrix = recurrent.matrix() if hasattr(recurrent, "matrix") else recurrent
        left, right = as_matrix("recurrent", matrix).detach(), None
    else:
        left, right = (factor.detach().double() for factor in factors)
    e, d = as_columns("encoder", encoder).detach(), as_columns("decoder", decoder).detach()
    require_shape("encoder", e, len(left), 1)
    require_shape("decoder", d, len(left), 1)
    e, d = e[:, 0], d[:, 0]

    currents = SIGNS * _product(left, right, e[None])
    offsets = currents.relu() - SIGNS * decay * e
    steps = torch.heaviside(currents, torch.tensor(0.5, dtype=torch.float64))
    return ProxyHessian(left, right, e, d, steps, offsets, _product(left, right, offsets))


def _product(left: Tensor, right: Tensor | None, rows: Tensor) -> Tensor:
    r"""Compute $W h$ for each row h."""
    return rows @ left.T if right is None else (rows @ right) @ left.T
