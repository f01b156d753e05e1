r"""How well a network integrates."""

import torch
from torch import Tensor

from rni.network import Network


@torch.no_grad()
def relative_error(net: Network, inputs: Tensor) -> Tensor:
    r"""$\sqrt{\langle (y - \bar y)^2 \rangle / \langle \bar y^2 \rangle}$ by channel: (channels,)."""
    targets = net.task.targets(inputs.double())
    error = net.outputs(inputs.to(net.encoders)).double() - targets
    return (error.square().sum((0, 1)) / targets.square().sum((0, 1))).sqrt()
