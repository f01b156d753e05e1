"""What training minimises."""

from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from rni.losses.averaged import AveragedLoss as AveragedLoss
from rni.losses.batch import BatchLoss as BatchLoss
from rni.losses.gradient import Gradient as Gradient
from rni.losses.gradient import Trained as Trained
from rni.losses.proxy import ProxyLoss as ProxyLoss
from rni.losses.proxy import RangeWarning as RangeWarning
from rni.losses.proxy import ReLUProxyLoss as ReLUProxyLoss
from rni.network import Network


class Loss(Protocol):
    """A loss draws its inputs, gives its value to automatic differentiation, and its gradient by a fast path."""

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Any: ...

    def silent(self) -> float: ...

    def value(self, net: Network, inputs: Any) -> Tensor: ...

    def gradient(self, net: Network, inputs: Any, train: Trained = "recurrent") -> tuple[float, Gradient]: ...
