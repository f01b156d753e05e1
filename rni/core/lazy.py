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

import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
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


def lazy_names(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], list[str]]:
    """Let a package offer names that are imported from its modules when they are first used.

    A package that offers what many modules define would otherwise import all of them for the sake of one.

    Parameters
    ----------
    package : str
        The name of the package.
    names : mapping
        The names by the full name of the module that defines them. A module itself is offered under the name ``""``:
        ``{"rni.plots.plot": ("",)}`` offers ``plot``.

    Returns
    -------
    function, list of str
        What the package calls ``__getattr__`` and ``__all__``.
    """
    module_of = {name or module.rpartition(".")[2]: module for module, group in names.items() for name in group}
    modules = {module.rpartition(".")[2] for module, group in names.items() if "" in group}

    def get(name: str) -> Any:
        if name not in module_of:
            similar = get_close_matches(name, module_of, 1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        module = import_module(module_of[name])
        value = module if name in modules else getattr(module, name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return get, sorted(module_of)
