# The public names, for type checkers. A test compares this list with the one in `__init__.py`.

from . import activations, analysis, losses, theory, training, weights
from .analysis import Analysis, FixedPoints, RecordingAnalysis, analyze, fixed_points
from .core.errors import Diverged, InputError
from .designs import Certificate, Design, Polished, certify, design, polish
from .files import NetworkFile, Recording, load, read, save
from .losses import AveragedLoss, BatchLoss, CustomLoss, ProxyLoss, RangeWarning, ReLUProxyLoss
from .networks.network import Network
from .networks.vanilla import VanillaRNN
from .pages import explore
from .pages.sweep import sweep
from .plots import plot
from .runs.execution import run
from .runs.run import DesignRun, TrainRun, parse_run, read_run
from .runs.sweeping import run_all
from .tasks import inputs
from .tasks.integration import Integration
from .training import train, transfer
from .weights import vectors

__version__: str

__all__ = [
    "Analysis",
    "AveragedLoss",
    "BatchLoss",
    "Certificate",
    "CustomLoss",
    "Design",
    "DesignRun",
    "Diverged",
    "FixedPoints",
    "InputError",
    "Integration",
    "Network",
    "NetworkFile",
    "Polished",
    "ProxyLoss",
    "RangeWarning",
    "ReLUProxyLoss",
    "Recording",
    "RecordingAnalysis",
    "TrainRun",
    "VanillaRNN",
    "activations",
    "analysis",
    "analyze",
    "certify",
    "design",
    "explore",
    "fixed_points",
    "inputs",
    "load",
    "losses",
    "parse_run",
    "plot",
    "polish",
    "read",
    "read_run",
    "run",
    "run_all",
    "save",
    "sweep",
    "theory",
    "train",
    "training",
    "transfer",
    "vectors",
    "weights",
]
