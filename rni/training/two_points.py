r"""Plain descent on the exact ReLU proxy loss (section 4.2), where each step is a few products with vectors.

$W = A^\dagger B$ with few rows in A and B. A step adds $\kappa_z$ and $\lfloor z\nu\rfloor_+ - z\gamma e$ to them, for
z = 1 and z = -1, and changes the row of A that belongs to e. These are the steps of `ReLUProxyLoss` on `LowRank`
weights, in NumPy, where a small product costs several times less than in torch.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from rni.errors import InputError
from rni.losses import Gradient, Loss, ReLUProxyLoss, Schedule, Trained
from rni.network import Network
from rni.training.checkpoint import Checkpoint
from rni.training.descent import STEPS, Callback, train
from rni.weights import LowRank


def train_two_points(
    net: Network,
    loss: ReLUProxyLoss,
    *,
    learning_rate: float | None = None,
    steps: int = STEPS,
    schedule: Schedule | None = None,
    stop_loss: float = 0.0,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> list[float]:
    """Train a network of `LowRank` weights in place, and return the losses, as `train` does.

    >>> task = rni.Integration(0.9)
    >>> vectors = rni.vectors.independent(200, 1, torch.Generator().manual_seed(0))
    >>> empty = torch.zeros(200, 0).double()
    >>> net = rni.Network(task, *vectors, rni.weights.LowRank(empty, empty), "relu")
    >>> losses = rni.training.train_two_points(net, rni.ReLUProxyLoss(task), steps=500)
    >>> losses[-1] < 1e-2 * losses[0]
    True
    """
    both = _TwoPoints(net, loss)
    return train(
        net,
        both,
        optimizer=both,
        learning_rate=learning_rate,
        steps=steps,
        schedule=schedule,
        stop_loss=stop_loss,
        callbacks=callbacks,
        checkpoint=checkpoint,
    )


class _TwoPoints(Loss):
    """The loss and the optimizer, which share A and B."""

    def __init__(self, net: Network, loss: ReLUProxyLoss):
        if not isinstance(net.recurrent, LowRank) or net.f.name != "relu":
            found = f"{type(net.recurrent).__name__}, {net.f.name!r}"
            raise InputError(f"weights, activation: {found}; allowed: LowRank and 'relu' for descent on two points")
        self.loss = loss
        self.weights = net.recurrent
        self.encoder, self.decoder = (vectors.detach()[:, 0].numpy() for vectors in (net.encoders, net.decoders))
        self.z = np.array([[1], [-1]], self.encoder.dtype)
        self.decayed = self.z * self.encoder.dtype.type(loss.task.decays[0])
        self.rows = 0  # of A and B that are in use; none until they are read from the network
        self.a, self.b = np.empty((2, self.weights.room + 2, net.neurons), self.encoder.dtype)
        left, right = torch.empty(2, 3, net.neurons, dtype=net.dtype)
        self.terms = Gradient(left, right)
        self.terms.right[2] = net.encoders.detach()[:, 0]

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Any:
        """Nothing: z is always 1 and -1."""

    def silent(self) -> float:
        return self.loss.silent()

    def value(self, net: Network, inputs: Any) -> Tensor:
        return self.loss.value(net, self.loss.draw(dtype=net.dtype))

    def defaults(self, loss: Loss) -> tuple[float, Schedule]:
        return self.loss.rate(), self.loss.schedule

    def gradient(self, net: Network, inputs: Any, train: Trained = "recurrent") -> tuple[float, Gradient]:
        """See `proxy_gradient`; the last of the three terms is the encoder's."""
        if not self.rows:
            self._read()
        a, b, e, d = self.a[: self.rows], self.b[: self.rows], self.encoder, self.decoder
        nu = (b @ e) @ a  # W e
        h = np.maximum(self.z * nu, 0)
        output = h @ d - self.loss.task.scales[0] * self.decayed[:, 0]
        current = (h @ b.T) @ a - self.decayed * nu
        errors = output[:, None] * d + (current @ a.T) @ b
        active = np.heaviside(nu, 0.5)
        left, right = (factor.numpy() for factor in (self.terms.left, self.terms.right))
        np.multiply(current, 2, out=left[:2])
        np.multiply(active * (errors[0] + errors[1]) - errors[1], 2, out=left[2])
        np.subtract(h, self.decayed * e, out=right[:2])
        return float(output @ output + np.vdot(current, current)), self.terms

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        r"""$W \leftarrow W - \eta\,\partial L/\partial W$."""
        left, right, new = gradient.left.numpy(), gradient.right.numpy(), slice(self.rows, self.rows + 2)
        self.a[new], self.b[new] = -learning_rate * left[:2], right[:2]
        self.a[0] -= learning_rate * left[2]
        self.rows += 2
        self._write()
        if self.rows + 2 > len(self.a):
            self.weights.compress_()
            self._read()

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.rows = 0

    def _read(self) -> None:
        """A and B from the network, with the encoder as the first row of B."""
        left, right = (factor.detach().T.numpy() for factor in (self.weights.left, self.weights.right))
        first = 0 if len(right) and np.array_equal(right[0], self.encoder) else 1
        self.rows = first + len(left)
        if self.rows + 2 > len(self.a):
            self.a, self.b = np.empty((2, 2 * self.rows + 2, len(self.encoder)), self.encoder.dtype)
        self.a[0], self.b[0] = 0, self.encoder
        self.a[first : self.rows], self.b[first : self.rows] = left, right
        self._write()

    def _write(self) -> None:
        for factor, rows in ((self.weights.left, self.a), (self.weights.right, self.b)):
            factor.data = torch.from_numpy(rows[: self.rows]).T
