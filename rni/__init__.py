"""Recurrent neural integrators: train, design and dissect RNNs that integrate several signals at once.

The public names are imported when they are first used, so that `import rni` takes milliseconds. The file `__init__.pyi`
lists the same names for type checkers.
"""

import os
from importlib.metadata import version

from rni.core.lazy import lazy_names
from rni.core.memory import keep_freed

# MKL_CBWR: matrix products give the same bits wherever their arrays lie in memory. OMP_WAIT_POLICY: threads sleep while
# they wait for each other, because threads that spin bring a busy machine to a halt. Both are read when torch is
# imported.
os.environ.setdefault("MKL_CBWR", "AUTO")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
keep_freed()

__version__ = version("rni")

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "rni.activations": ("",),
        "rni.analysis": ("", "Analysis", "FixedPoints", "RecordingAnalysis", "analyze", "fixed_points"),
        "rni.core.errors": ("Diverged", "InputError"),
        "rni.designs": ("Certificate", "Design", "Polished", "certify", "design", "polish"),
        "rni.files": ("NetworkFile", "Recording", "load", "read", "save"),
        "rni.losses": ("", "AveragedLoss", "BatchLoss", "CustomLoss", "ProxyLoss", "RangeWarning", "ReLUProxyLoss"),
        "rni.networks.network": ("Network",),
        "rni.networks.vanilla": ("VanillaRNN",),
        "rni.pages": ("explore",),
        "rni.pages.sweep": ("sweep",),
        "rni.plots.plot": ("",),
        "rni.runs.execution": ("run",),
        "rni.runs.run": ("DesignRun", "TrainRun", "parse_run", "read_run"),
        "rni.runs.sweeping": ("run_all",),
        "rni.tasks.inputs": ("",),
        "rni.tasks.integration": ("Integration",),
        "rni.theory": ("",),
        "rni.training": ("", "train"),
        "rni.training.transfer": ("",),
        "rni.weights": ("",),
        "rni.weights.vectors": ("",),
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
