"""Recurrent neural integrators: train, design and dissect RNNs that integrate several signals at once.

The public names are imported when they are first used, so that `import rni` takes milliseconds. The file `__init__.pyi`
lists the same names for type checkers.
"""

import os
from importlib import import_module
from importlib.metadata import version
from typing import Any

from rni.core.errors import did_you_mean
from rni.core.memory import keep_freed

# MKL_CBWR: matrix products give the same bits wherever their arrays lie in memory. OMP_WAIT_POLICY: threads sleep while
# they wait for each other, because threads that spin bring a busy machine to a halt. Both are read when torch is
# imported.
os.environ.setdefault("MKL_CBWR", "AUTO")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
keep_freed()

__version__ = version("rni")

_MODULES = {
    "activations": "rni.activations",
    "analysis": "rni.analysis",
    "inputs": "rni.tasks.inputs",
    "losses": "rni.losses",
    "plot": "rni.plots.plot",
    "theory": "rni.theory",
    "training": "rni.training",
    "transfer": "rni.training.transfer",
    "vectors": "rni.weights.vectors",
    "weights": "rni.weights",
}
_NAMES = {
    "rni.analysis": ("Analysis", "FixedPoints", "RecordingAnalysis", "analyze", "fixed_points"),
    "rni.core.errors": ("Diverged", "InputError"),
    "rni.designs": ("Certificate", "Design", "Polished", "certify", "design", "polish"),
    "rni.files": ("NetworkFile", "Recording", "load", "read", "save"),
    "rni.losses": ("AveragedLoss", "BatchLoss", "CustomLoss", "ProxyLoss", "RangeWarning", "ReLUProxyLoss"),
    "rni.networks.network": ("Network",),
    "rni.networks.vanilla": ("VanillaRNN",),
    "rni.pages": ("explore",),
    "rni.pages.sweep": ("sweep",),
    "rni.runs.execution": ("run",),
    "rni.runs.specification": ("Specification",),
    "rni.runs.sweeping": ("run_all",),
    "rni.tasks.integration": ("Integration",),
    "rni.training": ("train",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_MODULES, *_MODULE_OF])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'rni' has no attribute {name!r}")
    else:
        raise AttributeError(f"rni has no {name}{did_you_mean(name, __all__)}")
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
