# The public names: what `import rni` offers, imported when it is first used.

from . import activation, analysis, inputs, losses, plot, task, theory, training, transfer, vectors, weights
from .analysis import Analysis, FixedPoints, RecordingAnalysis, analyze, fixed_points
from .designs import Certificate, Design, Polished, certify, design, polish
from .errors import Diverged, InputError
from .exchange import NetworkFile, Recording, VanillaRNN, load, read, save
from .losses import AveragedLoss, BatchLoss, OwnLoss, ProxyLoss, RangeWarning, ReLUProxyLoss
from .network import Network
from .pages import explore
from .pages.sweep import sweep
from .runs.execution import run
from .runs.specification import Specification
from .runs.sweeping import run_all
from .task import Integration
from .training import train

__version__: str

__all__ = [
    "Analysis",
    "AveragedLoss",
    "BatchLoss",
    "Certificate",
    "Design",
    "Diverged",
    "FixedPoints",
    "InputError",
    "Integration",
    "Network",
    "NetworkFile",
    "OwnLoss",
    "Polished",
    "ProxyLoss",
    "RangeWarning",
    "ReLUProxyLoss",
    "Recording",
    "RecordingAnalysis",
    "Specification",
    "VanillaRNN",
    "activation",
    "analysis",
    "analyze",
    "certify",
    "design",
    "explore",
    "fixed_points",
    "inputs",
    "load",
    "losses",
    "plot",
    "polish",
    "read",
    "run",
    "run_all",
    "save",
    "sweep",
    "task",
    "theory",
    "train",
    "training",
    "transfer",
    "vectors",
    "weights",
]
