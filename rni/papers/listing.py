"""Which figures there are, from their source alone: what they compute with takes seconds to import."""

import ast
import pkgutil
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from rni.core.errors import InputError, did_you_mean
from rni.papers.fanthomme2021 import figures


def titles() -> dict[str, str]:
    """The title of every figure and table by id, in the paper's order: one module each, of that name."""
    modules = [module.name for module in pkgutil.iter_modules(figures.__path__)]
    named = {name: _named(files(figures).joinpath(f"{name}.py").read_text(encoding="utf-8")) for name in modules}
    return {name: named[name]["title"] for name in sorted(modules, key=lambda name: named[name]["order"])}


def chosen_ids(given: Iterable[str]) -> list[str]:
    """Of words and lists such as fig1,fig2; what is no figure's id is refused."""
    known, ids = titles(), [name for text in given for name in text.replace(",", " ").split()]
    for name in ids:
        if name not in known:
            raise InputError(f"{name}: no such figure; allowed: {', '.join(known)}{did_you_mean(name, known)}")
    return ids


def _named(source: str) -> dict[str, Any]:
    """Plain values among the keywords of `FIGURE = Figure(id=..., order=..., title=...)`."""
    assigned: Any = ast.parse(source[source.index("\nFIGURE = Figure(") :]).body[0]
    return {each.arg: each.value.value for each in assigned.value.keywords if isinstance(each.value, ast.Constant)}
