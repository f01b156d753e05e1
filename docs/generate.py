"""Pages that are written from the package itself when the site is built: commands, fields, errata, figures."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from architecture import import_graph, imports_between_packages
from pydantic.fields import FieldInfo

from rni.activations import ACTIVATIONS
from rni.cli import app
from rni.core.registry import Registry
from rni.losses import LOSSES
from rni.papers.fanthomme2021 import PAPER
from rni.runs.run import TrainRun
from rni.weights import WEIGHTS
from rni.weights.vectors import VECTORS

FAMILIES: dict[str, Registry] = {
    "network.activation": ACTIVATIONS,
    "network.vectors": VECTORS,
    "network.weights": WEIGHTS,
    "training.loss": LOSSES,
}
HERE = Path(__file__).parent


def write_all(folder: Path) -> None:
    """Only what has changed, so that the rest is not built again."""
    folder.mkdir(exist_ok=True)
    pages = {"commands": commands(), "fields": fields(), "errata": errata(), "figures": figures()}
    (HERE / "imports.svg").write_text(import_graph(imports_between_packages()), encoding="utf-8")
    pages["measured"] = (HERE.parent / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def commands() -> str:
    """Help of every command, from its parser."""
    root: Any = typer.main.get_command(app)
    parts = ["# Command line\n", "What `rni COMMAND --help` says, of every command."]
    for name, command in _walk("rni", root):
        context = typer.Context(command, info_name=name, terminal_width=100, max_content_width=100)
        parts.append(f"## {name}\n\n```text\n{command.get_help(context).strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for part, each in getattr(command, "commands", {}).items():
        yield from _walk(f"{name} {part}", each)


def fields() -> str:
    """Every field of a specification with its range and default, from the models."""
    parts = [
        "# Every field of a configuration",
        "Written from the models that check a configuration; [Configuration](../configuration.md) explains them.",
    ]
    for name, field in _fields(TrainRun).items():
        known = _fields(field.annotation)
        parts += [f"## {name}", _table(known, f"{name}.")] if known else [_table({name: field})]
    for place, family in FAMILIES.items():
        parts.append(f"## Choices for {place}")
        for name, part in family.parts.items():
            known = {field: info for field, info in _fields(part).items() if field != "task"}
            parts += [f"### {place} = {name}", _table(known) if known else "It has no fields."]
    return "\n\n".join(parts) + "\n"


def _fields(cls: Any) -> dict[str, FieldInfo]:
    """Return the fields of a part, of either kind. Other types have none."""
    known = getattr(cls, "__pydantic_fields__", {}) if isinstance(cls, type) else {}
    return {name: field for name, field in known.items() if field.init is not False}


def _table(known: dict[str, FieldInfo], prefix: str = "") -> str:
    rows = ["| field | allowed | default |", "|---|---|---|"]
    for name, field in known.items():
        family = FAMILIES.get(prefix + name)
        allowed = ", ".join(f"`{each}`" for each in family.parts) if family else _allowed(field)
        rows.append(f"| `{name}` | {allowed} | {_default(field)} |")
    return "\n".join(rows)


def _allowed(field: FieldInfo) -> str:
    ranges = _ranges(field.metadata)
    kinds = [_kind(kind) for kind in _options(field.annotation)]
    return " ".join([" or ".join(dict.fromkeys(kinds)), *ranges])


def _options(annotation: Any) -> list[Any]:
    """The alternatives of a union, in the order that they are written."""
    if (
        get_origin(annotation) in (Literal, tuple, Callable)
        or not get_args(annotation)
        or hasattr(annotation, "__metadata__")
    ):
        return [annotation]
    return [each for each in get_args(annotation) if each is not type(None)]


def _kind(kind: Any) -> str:
    if hasattr(kind, "__metadata__"):
        return " ".join([_kind(kind.__origin__), *_ranges(kind.__metadata__)])
    if get_origin(kind) is Literal:
        return ", ".join(f"`{each}`" for each in get_args(kind))
    if get_origin(kind) is Callable:
        return "`module:function`"
    if kind is Any:  # an array, which is stored as a tuple of rows
        return "a matrix"
    if get_origin(kind) is tuple:
        return "a list of numbers"
    if known := _fields(kind):
        return "a table of " + " and ".join(f"`{name}`" for name in known)
    return {int: "a whole number", float: "a number", bool: "`true`, `false`"}.get(kind, str(kind))


def _ranges(metadata: Any) -> list[str]:
    words = {"ge": "from {}", "gt": "above {}", "le": "up to {}", "lt": "below {}"}
    words |= {"min_length": "at least {} of them", "max_length": "at most {} of them"}
    parts = [part for each in metadata for part in getattr(each, "metadata", [each])]
    return [text.format(getattr(part, key)) for part in parts for key, text in words.items() if hasattr(part, key)]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "none: it must be given"
    if field.default is None or field.default == () or field.default_factory is not None:
        return "left open"
    return f"`{getattr(field.default, 'name', field.default)}`"


def errata() -> str:
    """What does not hold as printed, and what does."""
    parts = [
        "# Errata of the paper",
        "Formulas and statements that do not hold as printed. Each has a test of its name that shows the corrected "
        "form holding and the printed one failing; in Python, `rni.papers.fanthomme2021.errata.ERRATA`.",
    ]
    for each in PAPER.errata:
        place = f"## {each.id.replace('_', ' ').capitalize()}\n\n*{each.where}*"
        lines = [f"Printed\n: {each.printed}", f"Holds\n: {each.corrected}", f"Evidence\n: {each.evidence}"]
        parts += [place, *lines]
    return "\n\n".join(parts) + "\n"


def figures() -> str:
    """Every figure: picture, caption, and the line that makes it."""
    parts = [
        "# The paper's figures, and ours",
        "Each line makes the figure as PNG, SVG and data, with a verdict on its claims, in `report/`; with `--profile "
        "paper` of 1000 neurons, as the pictures here are, which `make gallery` makes.",
    ]
    for figure in map(PAPER.figure, PAPER.titles()):
        source = figure.measure.__module__
        shown = f"![{figure.title}](../gallery/{figure.id}.webp)"
        code = f"```console\n$ rni reproduce {figure.id}\n```"
        parts += [f"## {figure.id}: {figure.title}", shown, _display(figure.caption), code, f"Source: `{source}`."]
    return "\n\n".join(parts) + "\n"


def _display(text: str) -> str:
    """Captions are of Markdown but for asterisks and brackets outside of formulas."""
    parts = re.split(r"(\$[^$]+\$)", text)
    return "".join(part if part.startswith("$") else part.replace("*", r"\*").replace("[", r"\[") for part in parts)
