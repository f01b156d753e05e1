r"""How well a network integrates: relative errors, by duration and by channel."""

import math

import torch
from torch import Tensor

from rni.networks.network import Network


@torch.no_grad()
def relative_error(net: Network, inputs: Tensor) -> Tensor:
    r"""$\sqrt{\langle (y - \bar y)^2 \rangle / \langle \bar y^2 \rangle}$ by channel: (channels,).

    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> x = rni.inputs.white_noise(8, 200, 2).double()
    >>> bool(rni.analysis.relative_error(net, x).max() < 1e-9)
    True
    """
    outputs, targets = net.outputs(inputs), net.task.targets(inputs.double())
    return error_by_duration(outputs, targets, inputs)[-1]


def error_by_duration(outputs: Tensor, targets: Tensor, inputs: Tensor | None = None) -> Tensor:
    r"""$\sqrt{\sum_{t<T}\langle (y_t - \bar y_t)^2\rangle / \sum_{t<T} \langle \bar y_t^2\rangle}$, (time, channels).

    Row T - 1 is the relative error on sequences of T steps; infinite where the outputs are no longer finite. Targets
    that are 0 throughout, with a decay or a scale of 0, have no size: there it is relative to the inputs, if given.

    >>> outputs, targets = torch.tensor([[[1.0], [1.5]]]), torch.tensor([[[1.0], [1.0]]])
    >>> rni.analysis.error_by_duration(outputs, targets).round(decimals=3).tolist()
    [[0.0], [0.354]]
    """
    sizes = targets if inputs is None else torch.where(targets.any(0).any(0), targets, inputs.double())
    error, size = ((v.double().square().sum(0).cumsum(0)) for v in (outputs.double() - targets, sizes))
    return torch.where(error == 0, 0.0, error / size).sqrt().nan_to_num(nan=math.inf, posinf=math.inf)


def longest_duration(errors: Tensor, allowed: float) -> tuple[int, ...]:
    """The longest T with a relative error of at most `allowed` on sequences of T steps, by channel; 0 for none.

    >>> rni.analysis.longest_duration(torch.tensor([[0.01], [0.05], [0.2]]), allowed=0.1)
    (2,)
    """
    steps = torch.arange(1, len(errors) + 1)[:, None]
    return tuple((steps * (errors <= allowed)).amax(0).tolist())
