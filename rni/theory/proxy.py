r"""The Hessian of the exact ReLU proxy loss at any W, for one channel (appendix "Single-channel ReLU proxy loss").

With $u_z = R(zWe) - z\gamma e$, its image $v_z = W u_z$ and $\mathcal{H}_z$ the Heaviside function of $zWe$, for
$z = \pm1$, the gradient moves along a direction V by

$\nabla^2 L\,[V] = \sum_z 2\,\dot v_z u_z^\dagger + 2\,v_z \dot h_z^\dagger + 2z\,\mathcal{H}_z \odot
\big((d \cdot \dot h_z)\,d + V^\dagger v_z + W^\dagger \dot v_z\big)\,e^\dagger$,
$\quad \dot h_z = z\,\mathcal{H}_z \odot Ve$, $\quad \dot v_z = V u_z + W \dot h_z$:

a matrix of rank 5. So every eigenvector of an eigenvalue other than 0 is of the form
$V = A\,(e, u_+, u_-)^\dagger + (v_+, v_-)\,B^\dagger$, and the spectrum is that of a matrix of size 5n, not $n^2$.
It holds away from kinks, where no component of We is 0. The scale s moves the minimum and is not in the Hessian.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import columns, square

SIGNS = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)  # z, one a row


@dataclass(frozen=True)
class ProxyHessian:
    r"""$\nabla^2 L$ at W: what its products are made of. Build it with `proxy_hessian`.

    W = left @ right.T, or left where right is None; encoder, decoder (neurons,); steps $\mathcal{H}_z$, offsets $u_z$
    and residuals $v_z$ (2, neurons), one row for each z.

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
        r"""$\nabla^2 L\,[V]$, (neurons, neurons) as V: the Hessian-vector product."""
        direction = square(direction, "direction", self.neurons)
        left, right = self._change(self._readers() @ direction.T, self.residuals @ direction)
        return left.T @ right

    def dense(self) -> Tensor:
        r"""$\partial^2 L / \partial W_{ij} \partial W_{kl}$, (n, n, n, n): the paper's five lines as corrected."""
        identity, w = (
            torch.eye(self.neurons, dtype=torch.float64),
            self._times(torch.eye(self.neurons, dtype=torch.float64)).T,
        )
        e, d, steps, u, v = self.encoder, self.decoder, self.steps, self.offsets, self.residuals
        read = torch.outer(d, d) + w.T @ w
        hessian = torch.einsum("j,l,ik,zi,zk->ijkl", e, e, read, steps, steps)
        hessian += torch.einsum("ik,zj,zl->ijkl", identity, u, u)
        crossed = torch.einsum("jk,zi,l,zk,z->ijkl", identity, v, e, steps, SIGNS[:, 0])
        crossed += torch.einsum("ik,zj,l,zk,z->ijkl", w, u, e, steps, SIGNS[:, 0])
        return 2 * (hessian + crossed + crossed.permute(2, 3, 0, 1))

    def largest_eigenvalue(self) -> float:
        r"""$\lambda_{max}$ by Lanczos, on (A, B) with $V = A P^\dagger + Q B^\dagger$: 5n numbers.

        P (neurons, 3) and Q (neurons, 2) are orthonormal and span $(e, u_+, u_-)$ and $(v_+, v_-)$; $P^\dagger B = 0$.
        """
        if self.neurons <= 5:  # the whole matrix is no larger
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
        r"""$2 / \lambda_{max}$: descent at a larger learning rate leaves this minimum."""
        return 2 / self.largest_eigenvalue()

    def _readers(self) -> Tensor:
        r"""$e, u_+, u_-$ as rows."""
        return torch.cat([self.encoder[None], self.offsets])

    def _times(self, rows: Tensor) -> Tensor:
        return _product(self.left, self.right, rows)

    def _change(self, forward: Tensor, backward: Tensor) -> tuple[Tensor, Tensor]:
        r"""$\nabla^2 L\,[V]$ = left.T @ right, both (5, neurons), from $Ve, Vu_\pm$ and $V^\dagger v_\pm$ as rows."""
        h = SIGNS * self.steps * forward[0]
        v = forward[1:] + self._times(h)
        slopes = (h @ self.decoder)[:, None] * self.decoder + backward + _pull_back(self.left, self.right, v)
        first = (SIGNS * self.steps * slopes).sum(0, keepdim=True)
        return 2 * torch.cat([v, self.residuals, first]), torch.cat([self.offsets, h, self.encoder[None]])


@torch.no_grad()
def proxy_hessian(recurrent: Any, encoder: Any, decoder: Any, decay: float) -> ProxyHessian:
    r"""$\nabla^2 L$ of the exact ReLU proxy loss at W, (neurons, neurons) or a network's `recurrent` in any form.

    encoder, decoder: (neurons,) or (neurons, 1). All in double precision.

    >>> net = rni.design(rni.Integration(0.9), neurons=40).network
    >>> hessian = rni.theory.proxy_hessian(net.recurrent, net.encoders, net.decoders, decay=0.9)
    >>> hessian.product(torch.zeros(40, 40)).abs().max().item()
    0.0
    """
    left, right = _parts(recurrent)
    e, d = (columns(v, name).detach().reshape(-1) for v, name in ((encoder, "encoder"), (decoder, "decoder")))
    if not len(e) == len(d) == len(left):
        raise InputError(f"encoder, decoder: {len(e)}, {len(d)} numbers; allowed: {len(left)}, one channel")
    currents = SIGNS * _product(left, right, e[None])
    offsets = currents.relu() - SIGNS * decay * e
    steps = torch.heaviside(currents, torch.tensor(0.5, dtype=torch.float64))
    return ProxyHessian(left, right, e, d, steps, offsets, _product(left, right, offsets))


def _parts(recurrent: Any) -> tuple[Tensor, Tensor | None]:
    """W's factors where it is given in factored form, else W and None."""
    factors = recurrent.factors() if hasattr(recurrent, "factors") else None
    if factors is None:
        return square(recurrent.matrix() if hasattr(recurrent, "matrix") else recurrent).detach(), None
    left, right = (factor.detach().double() for factor in factors)
    return left, right


def _product(left: Tensor, right: Tensor | None, rows: Tensor) -> Tensor:
    r"""$W h$ for each row h."""
    return rows @ left.T if right is None else (rows @ right) @ left.T


def _pull_back(left: Tensor, right: Tensor | None, rows: Tensor) -> Tensor:
    r"""$W^\dagger \delta$ for each row $\delta$."""
    return rows @ left if right is None else (rows @ left) @ right.T
