r"""Plain descent on the exact ReLU proxy loss (section 4.2), where each step is a few products with vectors.

$W = A^\dagger B$ with few rows in A and B. A step adds $\kappa_z$ and $\lfloor z\nu\rfloor_+ - z\gamma e$ to them, for
z = 1 and z = -1, and changes the row of A that belongs to e. These are the steps of `ReLUProxyLoss` on `LowRank`
weights, in NumPy and in place, where a small product costs several times less than in torch.
"""

from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from rni.errors import InputError
from rni.losses import Gradient, ReLUProxyLoss, Trained
from rni.losses.gradient import require_task
from rni.network import Network
from rni.training.descent import train
from rni.training.optimizers import GradientDescent
from rni.weights import LowRank

Z = {np.dtype(dtype): np.array([[1], [-1]], dtype) for dtype in (np.float32, np.float64)}


def train_two_points(net: Network, loss: ReLUProxyLoss, **options: Any) -> list[float]:
    """Train a network of `LowRank` weights in place, and return the losses, as `train` does with these options."""
    if not isinstance(net.recurrent, LowRank) or net.f.name != "relu" or net.encoders.device.type != "cpu":
        found = f"{type(net.recurrent).__name__}, {net.f.name!r}, on {net.encoders.device}"
        raise InputError(f"network: {found}; allowed: LowRank and 'relu', on cpu, for descent on two points")
    require_task(net, loss.task)
    return train(net, _TwoPoints(loss.task), optimizer=_InPlace(), train="recurrent", **options)


def two_points(
    a: np.ndarray, b: np.ndarray, e: np.ndarray, d: np.ndarray, decay: float, scale: float
) -> tuple[float, np.ndarray, np.ndarray]:
    r"""The loss and $\partial L/\partial W$ = left.T @ right for $W = A^\dagger B$; see `proxy_gradient`.

    A, B (rank, neurons); e, d (neurons,); left, right (3, neurons), the last row of right is e.
    """
    z, decayed = Z[e.dtype], Z[e.dtype] * e.dtype.type(decay)
    nu = (b @ e) @ a  # W e
    h = np.maximum(z * nu, 0)
    output = h @ d - scale * decayed[:, 0]
    current = (h @ b.T) @ a - decayed * nu
    errors = output[:, None] * d + (current @ a.T) @ b
    first = np.heaviside(nu, 0.5) * (errors[0] + errors[1]) - errors[1]  # f'(-x) = 1 - f'(x)
    left, right = np.empty((2, 3, len(e)), e.dtype)
    left[:2], left[2], right[:2], right[2] = 2 * current, 2 * first, h - decayed * e, e
    return float(output @ output + np.vdot(current, current)), left, right


class _TwoPoints(ReLUProxyLoss):
    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Any:
        """Nothing: z is always 1 and -1."""

    def gradient(self, net: Network, inputs: Any, train: Trained = "recurrent") -> tuple[float, Gradient]:
        assert isinstance(net.recurrent, LowRank)
        a, b = map(_rows, net.recurrent.factors())
        (e,), (d,) = map(_rows, (net.encoders, net.decoders))
        loss, left, right = two_points(a, b, e, d, self.task.decays[0], self.task.scales[0])
        return loss, Gradient(torch.from_numpy(left), torch.from_numpy(right))


class _InPlace(GradientDescent):
    """A and B with room for more rows, and the encoder as the first row of B."""

    a = b = np.empty((0, 0))
    address = None  # of A in memory: W has other factors after a compression, or from a checkpoint

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        weights, left, right = net.recurrent, gradient.left.numpy(), gradient.right.numpy()
        assert isinstance(weights, LowRank)
        if weights.left.data_ptr() != self.address:
            self._read(weights, right[2])
        rows = weights.left.shape[1]
        new = slice(rows, rows + 2)
        np.multiply(left[:2], -learning_rate, out=self.a[new])
        self.b[new] = right[:2]
        self.a[0] -= learning_rate * left[2]
        self._write(weights, rows + 2)
        if rows + 2 > weights.room:
            weights.compress_()

    def _read(self, weights: LowRank, encoder: np.ndarray) -> None:
        left, right = _rows(weights.left), _rows(weights.right)
        first = 0 if len(right) and np.array_equal(right[0], encoder) else 1
        rows = first + len(left)
        self.a, self.b = np.empty((2, max(weights.room, rows) + 2, len(encoder)), encoder.dtype)
        self.a[0], self.b[0] = 0, encoder
        self.a[first:rows], self.b[first:rows] = left, right
        self._write(weights, rows)
        self.address = weights.left.data_ptr()

    def _write(self, weights: LowRank, rows: int) -> None:
        for factor, values in ((weights.left, self.a), (weights.right, self.b)):
            factor.data = torch.from_numpy(values[:rows]).T


def _rows(columns: Tensor) -> np.ndarray:
    return columns.detach().numpy().T
