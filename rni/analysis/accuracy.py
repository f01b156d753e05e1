r"""How well a network integrates."""

import torch
from torch import Tensor

from rni.analysis.recording import error_by_duration
from rni.network import Network


@torch.no_grad()
def relative_error(net: Network, inputs: Tensor) -> Tensor:
    r"""$\sqrt{\langle (y - \bar y)^2 \rangle / \langle \bar y^2 \rangle}$ by channel: (channels,)."""
    outputs, targets = net.outputs(inputs.to(net.encoders)), net.task.targets(inputs.double())
    return error_by_duration(outputs, targets, inputs)[-1]
