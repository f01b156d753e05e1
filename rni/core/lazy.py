"""Modules that are imported when they are first used.

Importing torch takes more than a second, and configurations, help texts and lists do not need it. A module that only
uses torch inside of its functions imports it as follows:

    if TYPE_CHECKING:
        import torch
    else:
        from rni.core.lazy import torch

`importlib.util.LazyLoader` is not an alternative, because it fails in Python 3.11 when several threads use the module
for the first time.
"""

from importlib import import_module
from typing import Any


class LazyModule:
    """A module that is imported when one of its attributes is first used."""

    def __init__(self, name: str):
        self._name, self._module = name, None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)  # waits while another thread imports the module
        return getattr(self._module, attribute)


torch = LazyModule("torch")
