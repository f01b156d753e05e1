r"""A network without inputs in the coordinates of its currents, $\nu = L\kappa + b$ with $W = L R^\dagger$.

Both forms of a leaky network, rate $h \leftarrow (1-\alpha)h + \alpha f(Wh + b)$ and current
$\nu \leftarrow (1-\alpha)\nu + \alpha(W f(\nu) + b)$, then follow the same map,

$$\kappa \leftarrow (1-\alpha)\kappa + \alpha R^\dagger f(L\kappa + b) ,$$

exactly, in as many dimensions K as W has ranks: $\kappa = R^\dagger h$ in the rate form; in the current form on the
states $L\kappa + b$, which all others approach as $(1-\alpha)^t$. The other eigenvalues of its step are $1-\alpha$.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rni.activations.module import ActivationModule, make
from rni.core.memory import in_groups
from rni.networks.vanilla import VanillaRNN
from rni.weights import SVD, Weights, svd

SKETCH = 64  # the largest rank that is looked for in a full matrix
ROUNDING = 8  # times the precision of the weights: what a factorisation of them may leave out


@dataclass(frozen=True, eq=False)
class Latent:
    r"""$F(\kappa) = \kappa + \alpha (R^\dagger f(L\kappa + b) - \kappa)$ on rows $\kappa$ of (batch, K), float64.

    left L and right R, (neurons, K), are None for the identity. bias b (neurons,). leak $\alpha$, () or (K,).

    >>> rni.analysis.latent(rni.VanillaRNN.of(rni.design(rni.Integration(0.95), neurons=40, leak=0.2).network)).own_time
    5.0
    """

    left: Tensor | None
    right: Tensor | None
    bias: Tensor
    f: ActivationModule
    leak: Tensor

    @property
    def dimension(self) -> int:
        return len(self.bias) if self.left is None or self.right is None else self.left.shape[1]

    @property
    def own_time(self) -> float:
        r"""$1/\alpha$, the steps in which a neuron on its own forgets."""
        return float(1 / self.leak.max())

    def currents(self, kappa: Tensor) -> Tensor:
        r"""$L\kappa + b$, (..., neurons)."""
        return (kappa if self.left is None else kappa @ self.left.T) + self.bias

    def of(self, activity: Tensor) -> Tensor:
        r"""$R^\dagger h$, (..., K)."""
        return activity if self.right is None else activity @ self.right

    def pull(self, kappa: Tensor) -> Tensor:
        r"""$R^\dagger f(L\kappa + b) - \kappa$, 0 at a fixed point for any leak; a step moves by $\alpha$ of it."""
        groups = in_groups(kappa, len(self.bias))
        return torch.cat([self.of(self.f(self.currents(rows))) for rows in groups]) - kappa

    def step(self, kappa: Tensor) -> Tensor:
        r"""$F(\kappa)$."""
        return kappa + self.leak * self.pull(kappa)

    def slopes(self, kappa: Tensor) -> Tensor:
        r"""$f'(L\kappa + b)$, (..., neurons)."""
        return self.f.derivative(self.currents(kappa))

    def along(self, slopes: Tensor, moves: Tensor) -> Tensor:
        r"""$(R^\dagger f' L - 1)\,\delta$, how the pull changes along rows $\delta$."""
        return self.of(slopes * (moves if self.left is None else moves @ self.left.T)) - moves

    def against(self, slopes: Tensor, rows: Tensor) -> Tensor:
        r"""$(R^\dagger f' L - 1)^\dagger\,\delta$, the transpose of `along`."""
        lifted = slopes * (rows if self.right is None else rows @ self.right.T)
        return (lifted if self.left is None else lifted @ self.left) - rows

    def matrices(self, slopes: Tensor) -> Tensor:
        r"""$R^\dagger f' L$, (batch, K, K) from slopes (batch, neurons)."""
        if self.left is None:
            assert self.right is not None
            return self.right.T * slopes[:, None]
        if self.right is None:
            return slopes[:, :, None] * self.left
        return torch.stack([(self.right.T * row) @ self.left for row in slopes])

    def jacobian(self, slopes: Tensor) -> Tensor:
        r"""$1 - \alpha + \alpha R^\dagger f' L$ of a step, (batch, K, K) from slopes (batch, neurons)."""
        leak = self.leak.expand(self.dimension)
        return torch.diag(1 - leak) + leak[:, None] * self.matrices(slopes)


@torch.no_grad()
def latent(net: VanillaRNN, constant: Tensor | None = None) -> Latent:
    r"""The network without inputs, or with a `constant` one (channels,), which adds $U x$ to b.

    Where neurons differ in their leak, each group of one leak has latent coordinates of its own.

    >>> rni.analysis.latent(rni.VanillaRNN.of(rni.design(rni.Integration([0.95, 0.9]), neurons=40).network)).dimension
    2
    """
    given, net = net.dtype, net.double()
    w, bias = net.recurrent, net.bias if constant is None else net.bias + net.input_weights @ constant.double()
    f, leak = make(net.f).double(), torch.as_tensor(net.leak, dtype=torch.float64).detach()
    groups, member = leak.expand(net.neurons).unique(return_inverse=True)
    found = factors(w, ROUNDING * torch.finfo(given).eps)
    if found is not None and len(groups) * found[0].shape[1] < net.neurons:
        left, right = found
        own = torch.nn.functional.one_hot(member).double()  # (neurons, groups)
        apart, shared = (right, left) if net.form == "rate" else (left, right)
        apart = (own[:, :, None] * apart[:, None]).flatten(1)
        shared = shared.repeat(1, len(groups))
        left, right = (shared, apart) if net.form == "rate" else (apart, shared)
        return Latent(left, right, bias, f, groups.repeat_interleave(found[0].shape[1]))
    matrix = w.matrix().detach()
    left, right = (None, matrix.T) if net.form == "current" and len(groups) > 1 else (matrix, None)
    return Latent(left, right, bias, f, leak.expand(net.neurons) if len(groups) > 1 else groups[0])


@torch.no_grad()
def factors(w: Weights, rounding: float) -> tuple[Tensor, Tensor] | None:
    r"""L with orthonormal columns and R, (neurons, K), $W = L R^\dagger$ up to rounding; None where K is large.

    With such an L the coordinates have the size of the currents, $|\kappa| = |\nu - b|$.
    """
    given = w.factors()
    if given is not None and not given[0].shape[1]:
        return given[0].new_zeros(w.neurons, 1), given[1].new_zeros(w.neurons, 1)
    parts = svd(w) if given is not None else _sketched(w.matrix().detach(), rounding)
    if parts is None:
        return None
    kept = parts.values > rounding * parts.values[0]
    kept[0] = True  # W = 0 has one coordinate, which is always 0
    left, values, right = parts.left[:, kept], parts.values[kept], parts.right[:, kept]
    return (left, right * values) if 2 * len(values) < w.neurons else None


def _sketched(w: Tensor, rounding: float) -> SVD | None:
    """The SVD of a full matrix of small rank, from its products with a few random vectors."""
    probes = torch.randn(len(w), min(SKETCH, len(w)), generator=torch.Generator().manual_seed(0), dtype=w.dtype)
    q = torch.linalg.qr(w @ probes).Q
    inside = q.T @ w
    if (w - q @ inside).norm() > rounding * w.norm():
        return None
    left, values, right = torch.linalg.svd(inside, full_matrices=False)
    return SVD(q @ left, values, right.T)
