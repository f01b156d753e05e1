"""Outputs that are right but for a constant, an order or a sign."""

import math
from dataclasses import replace

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from rni.exchange.vanilla import VanillaRNN

SETTLED = 10  # time constants of a neuron after which a constant is constant


def offset_at_rest(net: VanillaRNN, steps: int) -> Tensor:
    """The outputs (outputs,) without inputs, where they stay the same to 10 %; 0 where they drift: that is an error."""
    settled = math.ceil(SETTLED / float(torch.as_tensor(net.leak).min()))
    y = replace(net, noise=0.0).outputs(net.input_weights.new_zeros(1, steps + settled, net.channels))[0, settled:]
    offset = y.mean(0)
    return torch.where((y - offset).abs().amax(0) <= 0.1 * offset.abs(), offset, 0.0)


def matching(outputs: Tensor, integrals: Tensor) -> tuple[Tensor, Tensor]:
    """Which output (channels,) goes best with each channel's integral, and its sign, by correlation.

    outputs, integrals: (samples, channels).
    """
    y, z = (values.double() - values.double().mean(0) for values in (outputs, integrals))
    correlation = ((y / y.norm(dim=0)).T @ (z / z.norm(dim=0))).nan_to_num()
    channels, order = linear_sum_assignment(-correlation.abs().T.numpy())
    return torch.from_numpy(order), torch.where(correlation[order, channels] < 0, -1.0, 1.0).double()
