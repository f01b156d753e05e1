r"""Linear networks of any size, trained in the span of their encoders and decoders (section 3, null initialisation).

Started there, descent on the averaged loss never leaves $W = \sum_{ab} \omega_{ab}\, \bar v_a \bar v_b^\dagger$ (see
`rni.theory.subspace`), and $\omega$, (2D, 2D), follows the same descent for a network of 2D neurons: exact for plain
gradient descent on W, whatever the inputs' correlation and the schedule. Adam's element-wise steps leave the span.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.networks.network import Network
from rni.theory.subspace import null_basis
from rni.training.descent import Plan, descend
from rni.weights import LowRank


class Reduction(NamedTuple):
    r"""The network of $\omega$, with encoders $\bar v^\dagger E$ and decoders $\bar v^\dagger D$, and the basis.

    basis: (neurons, rank), orthonormal columns $\bar v_a$; rank is 2D, or less where the vectors depend on each other.
    """

    network: Network
    basis: Tensor

    @torch.no_grad()
    def weights(self) -> LowRank:
        r"""$W = (\bar v\, \omega)\, \bar v^\dagger$ for the neurons of the original network."""
        return LowRank(self.basis @ self.network.recurrent.matrix(), self.basis)


@torch.no_grad()
def reduced(net: Network) -> Reduction:
    r"""$\omega = \bar v^\dagger W \bar v$: the small network that behaves and learns as the given linear one.

    Refuses a network that is not linear and a W with a part outside the span of encoders and decoders.
    """
    if net.f.name != "linear":
        raise InputError(f"activation: {net.f.name!r}; allowed: 'linear'")
    if net.leak != 1:
        raise InputError(f"leak: {net.leak:g}; allowed: 1")
    basis = null_basis(net.encoders.detach(), net.decoders.detach())
    inside = basis.to(net.dtype)
    w = net.recurrent.matrix()
    omega = inside.T @ w @ inside
    outside = float((w - inside @ omega @ inside.T).norm()) if bool(w.any()) else 0.0
    if outside > net.neurons * torch.finfo(net.dtype).eps * float(w.norm()):
        raise InputError(
            f"recurrent: {outside / float(w.norm()):.2g} of it is outside the span of encoders and decoders; "
            "allowed: 0, or a W inside"
        )
    encoders, decoders = (basis.T @ vectors.double() for vectors in (net.encoders, net.decoders))
    return Reduction(Network(net.task, encoders, decoders, omega, net.f), inside)


def descend_in_span(net: Network, plan: Plan) -> list[float]:
    r"""Train a linear network on the averaged loss, in the span of its vectors.

    .. math:: \omega^{(\tau+1)} = \omega^{(\tau)} - \eta\,\partial L/\partial\omega

    The steps are those of `descend`, at a cost that does not depend on the number of neurons. The weights of the
    network become `LowRank`, of rank 2D. Callbacks receive the whole network; a checkpoint contains the small one.

    Returns
    -------
    list of float
        The loss before each step.
    """
    reduction = reduced(net)
    weights = net.recurrent = reduction.weights()

    @torch.no_grad()
    def expand() -> None:
        torch.mm(reduction.basis, reduction.network.recurrent.matrix(), out=weights.left)

    def report(step: int, value: float, _: Network) -> None:
        expand()
        for callback in plan.callbacks:
            callback(step, value, net)

    try:
        return descend(reduction.network, replace(plan, callbacks=[report] if plan.callbacks else []))
    finally:
        expand()


class Descents(NamedTuple):
    r"""What many single-channel descents did: losses (steps, networks), measured before each step, and the final
    $\omega$ (networks, rank, rank)."""

    losses: np.ndarray
    omega: np.ndarray


def descend_together(
    omega: np.ndarray,
    encoders: np.ndarray,
    decoders: np.ndarray,
    decay: float,
    scales: np.ndarray,
    *,
    duration: int,
    learning_rate: np.ndarray | float,
    steps: int,
) -> Descents:
    r"""$\Delta\omega = -2\eta \sum_{p=1}^T (T+1-p)(\mu_p - s\gamma^p)
    \sum_{m=0}^{p-1} (\omega^{\dagger m} d)(\omega^{p-1-m} e)^\dagger$, for many networks at once.

    One channel each, white-noise inputs. omega (networks, rank, rank), encoders and decoders (networks, rank), scales
    (networks,), learning_rate one for all or (networks,). The steps are those of `descend_in_span`, at the cost of one
    network.
    """
    omega = np.array(omega, dtype=float)
    powers = np.arange(1, duration + 1)
    targets = np.asarray(scales)[:, None] * decay**powers
    weights = (duration + 1 - powers).astype(float)
    rates = 2 * np.broadcast_to(learning_rate, len(omega))[:, None] * weights
    # entry (m, k) of the Hankel matrix is the slope of the loss in the moment m + k + 1, and 0 beyond T
    place = np.add.outer(np.arange(duration), np.arange(duration))
    slopes = np.zeros((len(omega), 2 * duration - 1))
    images = np.empty((duration + 1, *encoders.shape, 1))
    pulled = np.empty((duration, *decoders.shape, 1))
    images[0, ..., 0], pulled[0, ..., 0] = encoders, decoders
    transposed = omega.swapaxes(1, 2)
    losses = np.empty((steps, len(omega)))
    for step in range(steps):
        for m in range(duration):
            np.matmul(omega, images[m], out=images[m + 1])
        for m in range(duration - 1):
            np.matmul(transposed, pulled[m], out=pulled[m + 1])
        residual = np.matmul(pulled[0].swapaxes(1, 2), images[1:]).reshape(duration, -1).T - targets
        losses[step] = (residual * residual) @ weights
        slopes[:, :duration] = rates * residual
        left, right = (blocks[:duration, ..., 0].transpose(1, 0, 2) for blocks in (pulled, images))
        omega -= left.swapaxes(1, 2) @ slopes[:, place] @ right
    return Descents(losses, omega)
