"""The recurrent matrix W in its forms, which are torch modules, and the configuration of each form.

>>> list(rni.weights.WEIGHTS.parts)
['dense', 'dale', 'lowrank']
"""

from typing import TYPE_CHECKING, Any

from rni.core.lazy import LazyModule
from rni.weights.configuration import WEIGHTS, DaleWeights, DenseWeights, LowRankWeights, WeightsConfiguration

if TYPE_CHECKING:
    from rni.weights.base import Weights
    from rni.weights.dale import Dale, dale_signs
    from rni.weights.dense import Dense, random_matrix
    from rni.weights.lowrank import LowRank
    from rni.weights.spectrum import SVD, svd
    from rni.weights.tensors import from_tensors, names

_LAZY = {
    "base": ("Weights",),
    "dale": ("Dale", "dale_signs"),
    "dense": ("Dense", "random_matrix"),
    "lowrank": ("LowRank",),
    "spectrum": ("SVD", "svd"),
    "tensors": ("from_tensors", "names"),
}
_MODULE_OF = {name: LazyModule(f"rni.weights.{module}") for module, names in _LAZY.items() for name in names}

__all__ = [
    "SVD",
    "WEIGHTS",
    "Dale",
    "DaleWeights",
    "Dense",
    "DenseWeights",
    "LowRank",
    "LowRankWeights",
    "Weights",
    "WeightsConfiguration",
    "dale_signs",
    "from_tensors",
    "names",
    "random_matrix",
    "svd",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:  # these load torch
        return getattr(_MODULE_OF[name], name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
