"""HTML pages that open from disk and need no other files.

The public names are imported when they are first used, so that a page imports only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rni.pages.analysis import write_page as write_page
    from rni.pages.explorer import explore as explore
    from rni.pages.explorer import page as page
    from rni.pages.snapshots import Snapshots as Snapshots

_MODULE_OF = {
    "Snapshots": "rni.pages.snapshots",
    "explore": "rni.pages.explorer",
    "page": "rni.pages.explorer",
    "write_page": "rni.pages.analysis",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rni.pages' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
