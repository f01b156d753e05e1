r"""A network without inputs in the coordinates of its currents, and the states that it visits in them.

With $W = L R^\dagger$ and currents $\nu = L\kappa + b$, both forms of a leaky network, the rate form
$h \leftarrow (1-\alpha)h + \alpha f(Wh + b)$ and the current form
$\nu \leftarrow (1-\alpha)\nu + \alpha(W f(\nu) + b)$, follow the same map,

$$\kappa \leftarrow (1-\alpha)\kappa + \alpha R^\dagger f(L\kappa + b) .$$

The map is exact and has as many dimensions K as W has ranks. In the rate form $\kappa = R^\dagger h$. In the current
form the map holds on the states $L\kappa + b$, which all other states approach as $(1-\alpha)^t$. The other
eigenvalues of the network's step are $1-\alpha$.

Times are compared with $1/\alpha$, the time in which a neuron on its own forgets.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from rni.activations.module import ActivationModule
from rni.core.memory import in_groups
from rni.networks.vanilla import VanillaRNN
from rni.tasks.inputs import bursts, white_noise
from rni.weights import SVD, svd

SKETCH = 64  # largest rank that is looked for in a full matrix
ROUNDING = 8  # a factorisation of the weights may leave out this many units of their precision

STARTS, DURATION = 64, 100  # number of sequences that lead to the visited states, and their steps at least
SOON = 10  # times 1 / leak: what is gone by then was forgotten
LASTING = 50  # times 1 / leak: what lasts longer is slow
LONGEST = 5000  # largest number of steps without inputs
GROWTH = 1e3  # a state that gets so many times farther than the visited ones runs away
HELD = 2**21  # numbers in a batch of states


@dataclass(frozen=True, eq=False)
class Latent:
    r"""The map $F(\kappa) = \kappa + \alpha (R^\dagger f(L\kappa + b) - \kappa)$ on rows (batch, K), in float64.

    Attributes
    ----------
    left, right : Tensor (neurons, K) or None
        L and R. None stands for the identity.
    bias : Tensor (neurons,)
        b, with the constant input if there is one.
    f : Activation
        f.
    leak : Tensor (K,)
        $\alpha$ of each coordinate.

    Examples
    --------
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
        """The number K of coordinates."""
        return len(self.leak)

    @property
    def own_time(self) -> float:
        r"""The steps $1/\alpha$ in which the slowest neuron forgets on its own."""
        return float(1 / self.leak.min())

    def currents(self, kappa: Tensor) -> Tensor:
        r"""Return $L\kappa + b$, (..., neurons)."""
        return (kappa if self.left is None else kappa @ self.left.T) + self.bias

    def project(self, activity: Tensor) -> Tensor:
        r"""Return $R^\dagger h$, (..., K), of activity h (..., neurons)."""
        return activity if self.right is None else activity @ self.right

    def pull(self, kappa: Tensor) -> Tensor:
        r"""Return $R^\dagger f(L\kappa + b) - \kappa$. It is 0 at a fixed point, and a step adds $\alpha$ times it."""
        groups = in_groups(kappa, len(self.bias))
        return torch.cat([self.project(self.f(self.currents(rows))) for rows in groups]) - kappa

    def slopes(self, kappa: Tensor) -> Tensor:
        r"""Return $f'(L\kappa + b)$, (..., neurons)."""
        return self.f.derivative(self.currents(kappa))

    def along(self, slopes: Tensor, moves: Tensor) -> Tensor:
        r"""Return $(R^\dagger f' L - 1)\,\delta$, the derivative of the pull in the directions $\delta$ (..., K)."""
        return self.project(slopes * (moves if self.left is None else moves @ self.left.T)) - moves

    def against(self, slopes: Tensor, rows: Tensor) -> Tensor:
        r"""Return $(R^\dagger f' L - 1)^\dagger\,\delta$, the transpose of `along`."""
        lifted = slopes * (rows if self.right is None else rows @ self.right.T)
        return (lifted if self.left is None else lifted @ self.left) - rows

    def matrices(self, slopes: Tensor) -> Tensor:
        r"""Return $R^\dagger f' L$, (batch, K, K), from slopes (batch, neurons)."""
        if self.left is None:
            assert self.right is not None
            return self.right.T * slopes[:, None]
        if self.right is None:
            return slopes[:, :, None] * self.left
        return torch.stack([(self.right.T * row) @ self.left for row in slopes])


@torch.no_grad()
def latent(net: VanillaRNN, constant: Tensor | None = None) -> Latent:
    r"""Reduce a network without inputs, or with a constant input, to the coordinates of its currents.

    There are fewer coordinates than neurons if the rank of W is below half the number of neurons. For a full matrix
    it must also be at most 64. If neurons differ in their leak, each group of neurons with one leak has latent
    coordinates of its own.

    Parameters
    ----------
    net : VanillaRNN
        The network.
    constant : Tensor (channels,), optional
        An input x that stays on. It adds $U x$ to the bias.

    Examples
    --------
    >>> rni.analysis.latent(rni.VanillaRNN.of(rni.design(rni.Integration([0.95, 0.9]), neurons=40).network)).dimension
    2
    """
    w, f = copy.deepcopy(net.recurrent).double(), copy.deepcopy(net.f).double()
    bias = net.bias.double()
    if constant is not None:
        bias = bias + net.input_weights.double() @ constant.double()
    leak = torch.as_tensor(net.leak, dtype=torch.float64).detach()
    leaks, group = leak.expand(net.neurons).unique(return_inverse=True)

    # Singular vectors of W. A full matrix of small rank is found by its products with a few random vectors.
    given, rounding = w.factors(), ROUNDING * torch.finfo(net.dtype).eps
    modes = None
    if given is not None and given[0].shape[1]:
        modes = svd(w)
    elif given is None:
        matrix = w.matrix().detach()
        generator = Generator().manual_seed(0)
        probes = torch.randn(len(matrix), min(SKETCH, len(matrix)), generator=generator, dtype=matrix.dtype)
        q = torch.linalg.qr(matrix @ probes).Q
        inside = q.T @ matrix
        if (matrix - q @ inside).norm() <= rounding * matrix.norm():
            left, values, right = torch.linalg.svd(inside, full_matrices=False)
            modes = SVD(q @ left, values, right.T)

    # W = L R' with orthonormal columns of L, so that the coordinates have the size of the currents, |kappa| = |nu - b|.
    factors = None
    if given is not None and not given[0].shape[1]:
        factors = given[0].new_zeros(net.neurons, 1), given[1].new_zeros(net.neurons, 1)
    if modes is not None:
        kept = modes.values > rounding * modes.values[0]
        kept[0] = True  # W = 0 has one coordinate, which is always 0
        if 2 * int(kept.sum()) < net.neurons:
            factors = modes.left[:, kept], modes.right[:, kept] * modes.values[kept]
    if factors is None or len(leaks) * factors[0].shape[1] >= net.neurons:
        # Each neuron is a coordinate.
        matrix = w.matrix().detach()
        left, right = (None, matrix.T) if net.form == "current" and len(leaks) > 1 else (matrix, None)
        return Latent(left, right, bias, f, leak.expand(net.neurons))

    # A copy of the coordinates for each leak. In the rate form only the neurons with this leak drive the copy, in the
    # current form only they read it.
    left, right = factors
    member = torch.nn.functional.one_hot(group).double()  # (neurons, leaks)
    split, shared = (right, left) if net.form == "rate" else (left, right)
    split = (member[:, :, None] * split[:, None]).flatten(1)
    shared = shared.repeat(1, len(leaks))
    left, right = (shared, split) if net.form == "rate" else (split, shared)
    return Latent(left, right, bias, f, leaks.repeat_interleave(factors[0].shape[1]))


@torch.no_grad()
def visited(net: VanillaRNN, reduced: Latent, inputs: Tensor | None = None, seed: int = 0) -> Tensor:
    """Return latent coordinates (starts, K) of states that inputs lead the network to.

    The order is: the initial state, the states at the end of each sequence, states on the way, and states between
    these if they are few. States that are not finite are left out.

    Parameters
    ----------
    net : VanillaRNN
        The network, with its process noise.
    reduced : Latent
        The same network in latent coordinates.
    inputs : Tensor (batch, time, channels), optional
        The inputs. By default they are white noise and bursts.
    seed : int
        The seed of these.
    """
    if inputs is None:
        steps = min(max(DURATION, round(LASTING * reduced.own_time)), 10 * DURATION)
        batch, generator = max(8, min(STARTS, HELD // net.neurons) // 2), Generator().manual_seed(seed)
        inputs = torch.cat([make(batch, steps, net.channels, generator) for make in (white_noise, bursts)])
    inputs = inputs[:STARTS]
    on_the_way = {round(part * (inputs.shape[1] - 1)) for part in (0.02, 0.1, 0.3)}

    # The coordinates step by step. The states of a factored network are never all held in memory.
    spanned = None if reduced.right is None else net.spanned(inputs, reduced.right.to(net.dtype))
    if spanned is None:
        walk = (reduced.project(h.double()) for _, h in net.steps(inputs))
    else:
        walk = (kappa.double() for _, kappa in spanned[1])
    start = last = reduced.project(net.rate(net.start(1)).double())
    passed = []
    for t, last in enumerate(walk):
        if t in on_the_way:
            passed.append(last)

    states = torch.cat([start, last, *passed])
    finite = states[states.square().sum(1).isfinite()]
    if not len(finite):
        return torch.zeros(1, reduced.dimension, dtype=torch.float64)
    pairs = torch.randint(len(finite), (2, max(STARTS - len(finite), 0)), generator=Generator().manual_seed(seed))
    return torch.cat([finite, finite[pairs].mean(0)])


def marks(reduced: Latent) -> list[int]:
    """Return the steps of 0, 10, 25 and 50 times 1 / leak, at most `LONGEST`."""
    return [min(round(times * reduced.own_time), LONGEST) for times in (0, SOON, LASTING / 2, LASTING)]


def settle(reduced: Latent, kappa: Tensor, stops: list[int]) -> Tensor:
    """Follow states (states, K) without inputs.

    Parameters
    ----------
    stops : list of int
        Numbers of steps, in ascending order.

    Returns
    -------
    Tensor (stops, bounded states, K)
        The states after so many steps, without the states that run away.
    """
    path = []
    for before, stop in zip([0, *stops], stops, strict=False):
        for _ in range(stop - before):
            kappa = kappa + reduced.leak * reduced.pull(kappa)
        path.append(kappa)
    states = torch.stack(path)
    return states[:, states.norm(dim=2).amax(0) <= GROWTH * float(states[0].norm(dim=1).max())]


def spread(states: Tensor) -> float:
    """Return the root mean square distance of states (states, K) from their mean, and 0 if there is no state."""
    return float((states - states.mean(0)).square().sum(1).mean().sqrt()) if len(states) else 0.0
