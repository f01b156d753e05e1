r"""Activations :math:`f`, applied to the current of each neuron: :math:`h = f(\nu)`.

>>> list(rni.activations.ACTIVATIONS.parts)
['linear', 'relu', 'sigmoid', 'tanh', 'softplus', 'rectified_power']
>>> f = rni.activations.make("softplus", slope=10)
>>> f.name, round(f(torch.tensor(0.0)).item(), 4)
('softplus', 0.0693)
"""

from typing import TYPE_CHECKING, Any

from rni.activations.activations import HOMOGENEOUS as HOMOGENEOUS
from rni.activations.activations import Linear, RectifiedPower, ReLU, Sigmoid, Softplus, Tanh
from rni.activations.base import ACTIVATIONS, Activation, Elementwise, Normal
from rni.activations.base import Mirror as Mirror
from rni.core.lazy import LazyModule

if TYPE_CHECKING:
    from rni.activations.module import ActivationModule, draw, make

_module = LazyModule("rni.activations.module")  # it loads torch

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "ActivationModule",
    "Elementwise",
    "Linear",
    "Normal",
    "ReLU",
    "RectifiedPower",
    "Sigmoid",
    "Softplus",
    "Tanh",
    "draw",
    "make",
]


def __getattr__(name: str) -> Any:
    if name in ("ActivationModule", "draw", "make"):
        return getattr(_module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
