"""Where a network comes to rest without inputs."""

from dataclasses import replace

import torch
from torch import Tensor

from rni.networks.vanilla import VanillaRNN

LONGEST = 2000  # steps within which it should: those of the longest test
SETTLED = 0.01  # of the way is left after half of them


@torch.no_grad()
def from_rest(net: VanillaRNN) -> VanillaRNN:
    """The network started where it rests, if it comes to rest; else, and without leak or initial state, as it is.

    A leaky network with biases takes many steps to get there, in which its outputs are not those of its inputs.
    """
    leaky = bool((torch.as_tensor(net.leak) < 1).any())  # one leak, or one for each neuron
    if net.initial is None and not (leaky and bool(net.bias.any())):
        return net
    state, steps = _followed(net, LONGEST)
    halfway, _ = _followed(net, steps // 2 + 1)
    way, left = (float((each - state).norm()) for each in (net.start(1), halfway))
    if not (way > 1e-6 * float(state.norm()) and left <= SETTLED * way):
        return net
    note = "tested from where it rests without inputs, to which it goes from its initial state"
    return replace(net, initial=state[0], notes=(*net.notes, note))


def _followed(net: VanillaRNN, most: int) -> tuple[Tensor, int]:
    """The state (1, neurons) after `most` steps without inputs, or where it stays the same; and how many it took."""
    state = net.start(1)
    for step in range(1, most + 1):
        state, before = net.step(state), state
        if torch.equal(state, before):
            return state, step
    return state, most
