r"""The exact integrator next to a trained network: its own encoders and decoders, currents near to its own L = WE.

$W' = L'M'^\dagger$ meets the conditions of `relu.py`. L' is on shared axes, near to L; M' is the nearest to the
network's own $M^\dagger = (L^\dagger L)^{-1} L^\dagger W$ with $C^\dagger M' = V$, as the conditions are linear in M'.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rni.activations import HOMOGENEOUS
from rni.core.described import Described, numbers
from rni.core.errors import InputError
from rni.core.rng import stream
from rni.designs.certificate import MARGIN, Certificate, certify
from rni.designs.currents import least_norm
from rni.designs.relu import currents_on_axes, right_conditions
from rni.networks.accuracy import relative_error
from rni.networks.network import Network, require_network
from rni.tasks.inputs import white_noise
from rni.theory.capacity import least_neurons
from rni.weights import LowRank


@dataclass(frozen=True, repr=False)
class Polished(Described):
    r"""An exact integrator and how far it is from the network that it was made of.

    distance: $|W' - W| / |W|$ (Frobenius); of it, bulk: the part of W that has nothing to do with its currents L,
    $|W - LM^\dagger| / |W|$, and currents: $|L' - L| / |L|$. before, after: relative errors by channel over `duration`
    steps of white noise. norm, moved: largest singular values of W and of W' - W.

    >>> net = rni.design(rni.Integration(0.9), neurons=40).network
    >>> rni.polish(net).distance < 1e-9  # it was exact before
    True
    """

    network: Network
    distance: float
    bulk: float
    currents: float
    before: tuple[float, ...]
    after: tuple[float, ...]
    duration: int
    norm: float
    moved: float

    def lines(self) -> Iterator[str]:
        net = self.network
        yield f"{net.neurons} neurons, {net.f!r}, decays {numbers(net.task.decays)}"
        for name, errors in (("before", self.before), ("after", self.after)):
            yield f"relative error, {self.duration} steps, {name}: {'  '.join(f'{error:.1e}' for error in errors)}"
        yield f"W moved by {self.distance:.3g} of its norm: bulk {self.bulk:.3g}, currents by {self.currents:.3g}"
        if max(net.task.decays) < 1:
            yield f"for any duration: {self.certificate()}"
            bounds = "  ".join(f"{bound:.2g}" for bound in self.trained_bounds())
            known = (
                f"error below {bounds} for inputs up to 1" if self.norm < 1 else f"no bound, as |W| = {self.norm:.3g}"
            )
            yield f"for any duration, of the network as it was: {known}"

    def certificate(self) -> Certificate:
        """The bound on the error of the polished network, for sequences of any length."""
        return certify(self.network)

    def trained_bounds(self) -> tuple[float, ...]:
        r"""On the error of the network as it was, for inputs up to 1 and any duration, up to rounding; or infinite.

        Its states are off those $h'$ of the exact one by $|W|$ times what they were, and $|W' - W|\,|h' + Ex|$:
        $\epsilon \le |W' - W|\,(|L'||z| + |E||x|) / (1 - |W|)$ at most, if $|W| < 1$ (spectral norms), and outputs by
        $|d|\,\epsilon$ more than those of the exact one.
        """
        net = self.network
        if self.norm >= 1 or max(net.task.decays) == 1:
            return (torch.inf,) * net.channels
        factors = net.recurrent.factors()
        assert factors is not None
        left = (factors[0] @ (factors[1].T @ net.encoders)).detach()
        decays = left.new_tensor(net.task.without_leak(net.leak).decays)
        largest = torch.linalg.matrix_norm(left, 2) * MARGIN * (1 / (1 - decays)).norm()
        driven = torch.linalg.matrix_norm(net.encoders.detach(), 2) * net.channels**0.5
        off = self.moved * (largest + driven) / (1 - self.norm)
        exact = left.new_tensor(self.certificate().bounds)
        return tuple((exact + net.decoders.detach().norm(dim=0) * off).tolist())


@torch.no_grad()
def polish(net: Network, duration: int = 400, seed: int = 0) -> Polished:
    """The exact ReLU or linear integrator next to a trained one, in float64, with W of rank D.

    >>> task = rni.Integration(0.9)
    >>> vectors = rni.vectors.independent(60, 1, torch.Generator().manual_seed(0))
    >>> net = rni.Network(task, *vectors, torch.zeros(60, 60).double())
    >>> losses = rni.train(net, rni.ReLUProxyLoss(task), steps=200)
    >>> polished = rni.polish(net)
    >>> polished.before[0] > 1e-4, polished.after[0] < 1e-9
    (True, True)
    """
    require_network(net)
    if net.f.name not in HOMOGENEOUS:
        raise InputError(f"activation: {net.f.name!r}; allowed: 'linear' or 'relu', which can be exact")
    w, e, d = (part.detach().double() for part in (net.recurrent.matrix(), net.encoders, net.decoders))
    task = net.task.without_leak(net.leak)
    decays, gains = w.new_tensor(task.decays), w.new_tensor(task.decays) * w.new_tensor(task.scales)
    left = w @ e
    if not bool(torch.linalg.svdvals(left)[-1] > 1e-12 * torch.linalg.svdvals(left)[0]):
        raise InputError("network: W transmits fewer inputs than it has channels; allowed: a trained one")
    right = torch.linalg.lstsq(left, w, driver="gelsd").solution.T
    found = []
    for near, conditions, values in _candidates(net.f.name, left, e, d, decays, gains, seed):
        change = least_norm(conditions, values - conditions.T @ right)
        if change is not None:
            found.append((float((near @ (right + change).T - w).norm()), near, right + change))
    if not found:
        raise InputError(
            f"neurons: no exact solution found for {net.neurons} of them; allowed: more, at least "
            f"{least_neurons(net.channels, net.f.name)}, or decoders whose rows point to all sides"
        )
    distance, near, moved = min(found, key=lambda pair: pair[0])
    exact = Network(net.task, e, d, LowRank(near, moved), net.f, net.leak)
    x = white_noise(8, duration, net.channels, torch.Generator().manual_seed(seed))
    before, after = (tuple(relative_error(each, x).tolist()) for each in (net, exact))
    bulk, currents = float((w - left @ right.T).norm() / w.norm()), float((near - left).norm() / left.norm())
    norms = (float(torch.linalg.matrix_norm(part, 2)) for part in (w, near @ moved.T - w))
    return Polished(exact, distance / float(w.norm()), bulk, currents, before, after, duration, *norms)


def _candidates(
    activation: str, left: Tensor, e: Tensor, d: Tensor, decays: Tensor, gains: Tensor, seed: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    r"""L', and C and V for the M' that goes with it."""
    n, channels = left.shape
    if activation == "linear":
        near = left + d @ torch.linalg.solve(d.T @ d, torch.diag(gains) - d.T @ left)
        yield near, torch.cat([near, e], 1), torch.cat([torch.diag(decays), torch.eye(channels, dtype=e.dtype)])
        return
    # the conditions of `exact.py`: D'f(Lz) = z for decoders of length 1
    sizes = gains / d.norm(dim=0)
    number = 1 if channels == 1 else max(channels, n // (2 * (channels + 1)))
    for unit, own in currents_on_axes(d / d.norm(dim=0), left / sizes, number, stream(seed, "design")):
        yield unit * sizes, *right_conditions(e, 1 / decays, unit * sizes, own)
