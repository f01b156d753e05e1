r"""The exact integrator next to a trained network, with the same encoders and decoders and similar currents L = WE.

$W' = L'M'^\dagger$ satisfies the conditions of `rni.designs.relu`. L' is on shared axes and close to L. M' is the
solution of $C^\dagger M' = V$ that is closest to the network's own $M^\dagger = (L^\dagger L)^{-1} L^\dagger W$. This
is a linear problem, because the conditions are linear in M'.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rni.activations import HOMOGENEOUS
from rni.core.errors import InputError
from rni.core.rng import stream
from rni.core.text_result import TextResult, join_numbers
from rni.designs.certificate import MARGIN, Certificate, certify
from rni.designs.currents import least_norm
from rni.designs.relu import currents_on_axes, right_conditions
from rni.networks.accuracy import relative_error
from rni.networks.network import Network, require_network
from rni.tasks.inputs import white_noise
from rni.theory.capacity import least_neurons
from rni.weights import LowRank


@dataclass(frozen=True, repr=False)
class Polished(TextResult):
    r"""An exact integrator, and its distance to the network that it was made from.

    Attributes
    ----------
    network : Network
        The exact integrator.
    distance : float
        $|W' - W| / |W|$, in the Frobenius norm.
    bulk : float
        $|W - LM^\dagger| / |W|$, the part of W that does not contribute to its currents L.
    currents : float
        $|L' - L| / |L|$.
    before, after : tuple of float
        Relative errors over `duration` steps of white noise, (channels,).
    duration : int
        The number of steps of this test.
    norm, moved : float
        The largest singular values of W and of W' - W.

    Examples
    --------
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
        yield f"{net.neurons} neurons, {net.f!r}, decays {join_numbers(net.task.decays)}"
        for name, errors in (("before", self.before), ("after", self.after)):
            yield f"relative error, {self.duration} steps, {name}: {join_numbers(errors, '.1e')}"
        yield f"W moved by {self.distance:.3g} of its norm: bulk {self.bulk:.3g}, currents by {self.currents:.3g}"
        if max(net.task.decays) < 1:
            yield f"for any duration: {self.certificate()}"
            trained = f"no bound, as |W| = {self.norm:.3g}"
            if self.norm < 1:
                trained = f"error below {join_numbers(self.trained_bounds(), '.2g')} for inputs up to 1"
            yield f"for any duration, of the network as it was: {trained}"

    def certificate(self) -> Certificate:
        """Bound the error of the polished network, for sequences of any length."""
        return certify(self.network)

    def trained_bounds(self) -> tuple[float, ...]:
        r"""Bound the error of the network before polishing, for inputs up to 1 and any duration, without rounding.

        The difference between its states and the states $h'$ of the exact network changes in each step to at most $|W|$
        times itself, plus $|W' - W|\,|h' + Ex|$. For $|W| < 1$ (spectral norms) it is therefore at most
        $\epsilon \le |W' - W|\,(|L'||z| + |E||x|) / (1 - |W|)$, and the error of the outputs exceeds that of the exact
        network by at most $|d|\,\epsilon$. For $|W| \ge 1$ and at decay 1 the bound is infinite.
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
        error = self.moved * (largest + driven) / (1 - self.norm)
        exact = left.new_tensor(self.certificate().bounds)
        return tuple((exact + net.decoders.detach().norm(dim=0) * error).tolist())


@torch.no_grad()
def polish(net: Network, duration: int = 400, seed: int = 0) -> Polished:
    r"""Compute the exact ReLU or linear integrator $W' = L'M'^\dagger$ next to a trained network, in float64.

    Parameters
    ----------
    net : Network
        A trained linear or ReLU network.
    duration : int, optional
        The number of steps of the test before and after.
    seed : int, optional
        Seed of the axes and of the inputs of the test.

    Raises
    ------
    InputError
        If the network has another activation, does not transmit all inputs, or if no exact solution was found.

    Examples
    --------
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
        raise InputError("activation", net.f.name, "'linear' or 'relu', which can be exact")

    # L and M of the network itself
    w, e, d = (part.detach().double() for part in (net.recurrent.matrix(), net.encoders, net.decoders))
    task = net.task.without_leak(net.leak)
    decays, gains = w.new_tensor(task.decays), w.new_tensor(task.decays) * w.new_tensor(task.scales)
    left = w @ e
    singular = torch.linalg.svdvals(left)
    if not bool(singular[-1] > 1e-12 * singular[0]):
        problem = "W transmits fewer inputs than the network has channels"
        raise InputError("network", None, "a trained network", problem=problem)
    right = torch.linalg.lstsq(left, w, driver="gelsd").solution.T

    # the closest M' for each candidate L'
    solutions = []
    for new_left, conditions, values in _candidates(net.f.name, left, e, d, decays, gains, seed):
        change = least_norm(conditions, values - conditions.T @ right)
        if change is not None:
            new_right = right + change
            solutions.append((float((new_left @ new_right.T - w).norm()), new_left, new_right))
    if not solutions:
        least = least_neurons(net.channels, net.f.name)
        raise InputError(
            "neurons",
            net.neurons,
            f"more neurons, at least {least}, or decoders whose rows surround 0",
            problem=f"no exact solution found for {net.neurons} of them",
        )
    distance, new_left, new_right = min(solutions, key=lambda solution: solution[0])
    exact = Network(net.task, e, d, LowRank(new_left, new_right), net.f, net.leak)

    x = white_noise(8, duration, net.channels, torch.Generator().manual_seed(seed))
    before, after = (tuple(relative_error(network, x).tolist()) for network in (net, exact))
    bulk, currents = float((w - left @ right.T).norm() / w.norm()), float((new_left - left).norm() / left.norm())
    norm, moved = (float(torch.linalg.matrix_norm(matrix, 2)) for matrix in (w, new_left @ new_right.T - w))
    return Polished(exact, distance / float(w.norm()), bulk, currents, before, after, duration, norm, moved)


def _candidates(
    activation: str, left: Tensor, e: Tensor, d: Tensor, decays: Tensor, gains: Tensor, seed: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    r"""Yield L' close to L, with C and V of the conditions $C^\dagger M' = V$ on its M'."""
    n, channels = left.shape
    if activation == "linear":
        new_left = left + d @ torch.linalg.solve(d.T @ d, torch.diag(gains) - d.T @ left)
        values = torch.cat([torch.diag(decays), torch.eye(channels, dtype=e.dtype)])
        yield new_left, torch.cat([new_left, e], 1), values
        return
    # The conditions of `relu` are those for decoders of length 1 and gains 1.
    sizes = gains / d.norm(dim=0)
    number = 1 if channels == 1 else max(channels, n // (2 * (channels + 1)))
    for unit, own in currents_on_axes(d / d.norm(dim=0), left / sizes, number, stream(seed, "design")):
        yield unit * sizes, *right_conditions(e, 1 / decays, unit * sizes, own)
