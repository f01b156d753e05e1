"""Which module imports which: `python -m tests.imports [FOLDER]` prints it for a checkout, this one by default.

A line is a package, or a module that stands alone: its modules and lines of code, and how many imports it has of each
other one.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[1]


class Import(NamedTuple):
    """Of a module of ours, within a function or not."""

    module: str
    inside: bool


def modules(root: Path = HERE) -> dict[str, Path]:
    """Where each module is, by its name without `rni.`; the package itself has none."""
    package = root / "rni"
    parts = {path: path.relative_to(package).with_suffix("").parts for path in package.rglob("*.py")}
    names = {".".join(p[:-1] if p[-1] == "__init__" else p): path for path, p in parts.items()}
    return {name: path for name, path in names.items() if name}


def imports(tree: ast.AST, known: dict[str, Path], inside: bool = False) -> Iterator[Import]:
    """Everything of ours that is imported, but for the sake of types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rni":
            for alias in node.names:
                full = f"{node.module}.{alias.name}".removeprefix("rni.")
                found = full if full in known else (node.module or "").removeprefix("rni").removeprefix(".")
                yield Import(found, inside)
        yield from imports(node, known, inside or isinstance(node, ast.FunctionDef))


def edges(known: dict[str, Path]) -> dict[str, set[Import]]:
    """The imports of each module."""
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in known.items()}
    return {name: {found for found in imports(tree, known) if found.module} for name, tree in trees.items()}


def main(root: Path) -> None:
    known = modules(root)
    homes: dict[str, list[str]] = defaultdict(list)
    for name in sorted(known):
        homes[name.split(".")[0]].append(name)
    graph = edges(known)
    for home, names in homes.items():
        lines = sum(len(known[name].read_text(encoding="utf-8").splitlines()) for name in names)
        counts = Counter(found.module.split(".")[0] for name in names for found in graph[name])
        others = ", ".join(f"{other} {count}" for other, count in sorted(counts.items()) if other != home)
        print(f"{home:11}{len(names):4} modules{lines:6} lines  imports {others or 'none'}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:] or [HERE]))
