"""Recurrent neural integrators: train, design and dissect RNNs that integrate several signals at once.

The names below are imported when they are first used, so that `import rni` is immediate and torch waits.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Products that give the same bits wherever their arrays lie in memory; and threads that sleep while they wait for each
# other, since those that spin bring a busy machine to a halt. Both are read when torch is imported.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rni import activation, analysis, losses, task, theory, training, transfer, vectors, weights
    from rni.analysis import Analysis, analyze
    from rni.certificate import Certificate, certify
    from rni.designing import Design, Polished, design, polish
    from rni.errors import Diverged, InputError
    from rni.files import load, save
    from rni.losses import AveragedLoss, BatchLoss, ProxyLoss, ReLUProxyLoss
    from rni.network import Network
    from rni.pages import explore
    from rni.rnn import RNN, Recording
    from rni.runs.execution import run
    from rni.runs.specification import Specification
    from rni.task import Integration
    from rni.training import train

_PUBLIC = {
    "Integration": "rni.task",
    "Network": "rni.network",
    "BatchLoss": "rni.losses",
    "AveragedLoss": "rni.losses",
    "ProxyLoss": "rni.losses",
    "ReLUProxyLoss": "rni.losses",
    "train": "rni.training",
    "design": "rni.designing",
    "Design": "rni.designing",
    "polish": "rni.designing",
    "Polished": "rni.designing",
    "certify": "rni.certificate",
    "Certificate": "rni.certificate",
    "analyze": "rni.analysis",
    "Analysis": "rni.analysis",
    "explore": "rni.pages",
    "RNN": "rni.rnn",
    "Recording": "rni.rnn",
    "Specification": "rni.runs.specification",
    "run": "rni.runs.execution",
    "save": "rni.files",
    "load": "rni.files",
    "InputError": "rni.errors",
    "Diverged": "rni.errors",
}

_MODULES = ("activation", "analysis", "losses", "task", "theory", "training", "transfer", "vectors", "weights")

__all__ = [
    "Integration",
    "Network",
    "BatchLoss",
    "AveragedLoss",
    "ProxyLoss",
    "ReLUProxyLoss",
    "train",
    "design",
    "Design",
    "polish",
    "Polished",
    "certify",
    "Certificate",
    "analyze",
    "Analysis",
    "explore",
    "RNN",
    "Recording",
    "Specification",
    "run",
    "save",
    "load",
    "InputError",
    "Diverged",
    "activation",
    "analysis",
    "losses",
    "task",
    "theory",
    "training",
    "transfer",
    "vectors",
    "weights",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _MODULES:
        return import_module(f"rni.{name}")
    raise AttributeError(f"module 'rni' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
