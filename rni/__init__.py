"""Recurrent neural integrators: train, design and dissect RNNs that integrate several signals at once.

The public names are listed in `__init__.pyi`, and imported when they are first used: `import rni` is immediate.
"""

import os
from importlib.metadata import version
from typing import Any

import lazy_loader

from rni.errors import nearest
from rni.memory import keep_freed

# Products that give the same bits wherever their arrays lie in memory; and threads that sleep while they wait for each
# other, since those that spin bring a busy machine to a halt. Both are read when torch is imported.
os.environ.setdefault("MKL_CBWR", "AUTO")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
keep_freed()

__version__ = version("rni")
_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__ or name.startswith("_"):
        return _lazy(name)
    raise AttributeError(f"rni has no {name}{nearest(name, __all__)}")
