"""Recurrent neural integrators: train, design and dissect RNNs that integrate several signals at once.

The public names are listed in `__init__.pyi`, and imported when they are first used: `import rni` is immediate.
"""

import os
from importlib.metadata import version

import lazy_loader

from rni.memory import keep_freed

# Products that give the same bits wherever their arrays lie in memory; and threads that sleep while they wait for each
# other, since those that spin bring a busy machine to a halt. Both are read when torch is imported.
os.environ.setdefault("MKL_CBWR", "AUTO")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
keep_freed()

__version__ = version("rni")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
