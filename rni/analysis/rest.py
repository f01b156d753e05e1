"""Where a network comes to rest without inputs."""

import torch
from torch import Tensor

from rni.networks.vanilla import VanillaRNN

LONGEST = 2000  # largest number of steps until a network is at rest: the duration of the longest tests
SETTLED = 0.01  # largest part of the way that is left after half of these steps


@torch.no_grad()
def from_rest(net: VanillaRNN) -> VanillaRNN:
    """Return the network with the state at which it rests as its initial state.

    A leaky network with biases takes many steps to get to rest, and in these steps its outputs do not depend on its
    inputs alone. The network is returned as it is if it does not come to rest, and if it starts at rest, because it
    has no initial state and no leak or no biases.
    """
    leaky = bool((torch.as_tensor(net.leak) < 1).any())  # one leak, or one for each neuron
    if net.initial is None and not (leaky and bool(net.bias.any())):
        return net
    state, steps = follow(net, LONGEST)
    halfway, _ = follow(net, steps // 2 + 1)
    way, left = float((net.start(1) - state).norm()), float((halfway - state).norm())
    if not (way > 1e-6 * float(state.norm()) and left <= SETTLED * way):
        return net
    note = "tested from where it rests without inputs, to which it goes from its initial state"
    return net.replace(initial=state[0], notes=(*net.notes, note))


def follow(net: VanillaRNN, most: int) -> tuple[Tensor, int]:
    """Follow a network without inputs until its state stays the same, for at most `most` steps.

    Returns
    -------
    tuple of Tensor (1, neurons), int
        The last state and the number of steps.
    """
    state = net.start(1)
    for step in range(1, most + 1):
        state, before = net.step(state), state
        if torch.equal(state, before):
            return state, step
    return state, most
