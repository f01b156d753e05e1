r"""States that a network visits, in latent coordinates: at the end of its inputs, and later, without any.

Times are compared with the own time $1/\alpha$ of the neurons, in which one of them on its own forgets.
"""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from rni.analysis.latents import Latent
from rni.networks.vanilla import VanillaRNN
from rni.tasks.inputs import bursts, white_noise

STARTS, DURATION = 64, 100  # sequences, and their steps at least
SOON = 10  # own times: what is gone by then was forgotten
LASTING = 50  # own times: what lasts longer is slow
LONGEST = 5000  # steps that a network is left alone for
GROWTH = 1e3  # times the visited range: what goes further runs away
HELD = 2**21  # numbers in a batch of states


@torch.no_grad()
def visited(net: VanillaRNN, reduced: Latent, inputs: Tensor | None = None, seed: int = 0) -> Tensor:
    """Latent coordinates (starts, K) at which white noise, bursts, or `inputs` leave the network, finite ones only.

    First where it starts; then at the end of each sequence; then on the way; then between these, if they are few.
    """
    if inputs is None:
        steps = min(max(DURATION, round(LASTING * reduced.own_time)), 10 * DURATION)
        batch, generator = max(8, min(STARTS, HELD // net.neurons) // 2), Generator().manual_seed(seed)
        inputs = torch.cat([make(batch, steps, net.channels, generator) for make in (white_noise, bursts)])
    taken = {round(part * (inputs.shape[1] - 1)) for part in (0.02, 0.1, 0.3)}
    walk = enumerate(_walked(net, reduced, inputs[:STARTS]))
    kept, last = [], reduced.of(net.rate(net.start(1)).double())
    kept.append(last)
    for t, last in walk:
        if t in taken:
            kept.append(last)
    states = torch.cat([kept[0], last, *kept[1:]])
    finite = states[states.square().sum(1).isfinite()]
    if not len(finite):
        return torch.zeros(1, reduced.dimension, dtype=torch.float64)
    pairs = torch.randint(len(finite), (2, max(STARTS - len(finite), 0)), generator=Generator().manual_seed(seed))
    return torch.cat([finite, finite[pairs].mean(0)])


def _walked(net: VanillaRNN, reduced: Latent, inputs: Tensor) -> Iterator[Tensor]:
    """Latent coordinates (batch, K) step by step; of factored networks without all of their states at once."""
    spanned = None if reduced.right is None else net.spanned(inputs, reduced.right.to(net.dtype))
    if spanned is None:
        return (reduced.of(h.double()) for _, h in net.steps(inputs))
    return (kappa.double() for _, kappa in spanned[1])


def settle(reduced: Latent, kappa: Tensor) -> Tensor:
    """(4, states, K): the first 64 of the states (states, K) after 0, 10, 25 and 50 own times without inputs."""
    kappa = kappa[:STARTS]
    marks = [min(round(times * reduced.own_time), LONGEST) for times in (0, SOON, LASTING / 2, LASTING)]
    path = []
    for before, mark in zip([0, *marks], marks, strict=False):
        for _ in range(mark - before):
            kappa = reduced.step(kappa)
        path.append(kappa)
    return torch.stack(path)


def bounded(path: Tensor) -> Tensor:
    """Those of the states (4, states, K) that do not run away."""
    return path[:, path.norm(dim=2).amax(0) <= GROWTH * float(path[0].norm(dim=1).max())]


def spread(states: Tensor) -> float:
    """Root mean square distance from the mean, of (states, K); 0 of none."""
    return float((states - states.mean(0)).square().sum(1).mean().sqrt()) if len(states) else 0.0
