"""Validation errors in a user's words: `Specification.field: value; allowed: ...`, one line for each field."""

import reprlib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

MOST = 20  # lines

_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 20
_brief.maxstring = _brief.maxother = 80


def explain(error: ValidationError) -> list[str]:
    """One line for each field that is wrong; where a field may be of several kinds, they are joined."""
    lines: dict[str, list[str]] = {}
    for each in error.errors():
        problem, allowed = _problem(each)
        lines.setdefault(problem, []).append(allowed)
    found = [f"{problem}; allowed: {' or '.join(dict.fromkeys(alts))}" for problem, alts in lines.items()]
    more = [f"and {len(found) - MOST} fields more; allowed: see above"] if len(found) > MOST else []
    return found[:MOST] + more


def shown(value: Any) -> str:
    """A value as Python writes it, as far as 80 characters go: a file may nest it deeply, or hold enormous numbers."""
    try:
        text = _brief.repr(value)
    except ValueError:  # Python writes no whole numbers of more than 4300 digits
        text = "a huge number"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _problem(error: ErrorDetails) -> tuple[str, str]:
    where = ".".join(["Specification", *_path(error)])
    problem = f"{where}: {shown(error['input'])}"
    context = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return f"{where}: missing", "a value, it has no default"
        case "extra_forbidden":
            return f"{where}: no such field", ", ".join(_siblings(error))
        case "value_error":
            text, _, allowed = str(context["error"]).partition("; allowed: ")
            return f"{where}.{text}", allowed
        case "union_tag_invalid":
            name = error["input"].get("name") if isinstance(error["input"], dict) else error["input"]
            return f"{where}: {shown(name)}", context["expected_tags"]
        case "union_tag_not_found":
            return problem, "a name, or a table with one"
        case "model_type" | "model_attributes_type":
            return problem, "a table"
        case "tuple_type":
            return problem, "a list of numbers"
        case _:
            return problem, error["msg"].removeprefix("Input should be ").removeprefix("a valid ")


def _path(error: ErrorDetails) -> list[str]:
    # pydantic also names the alternatives of a union on the way ("sigmoid", "float"); a user knows only the fields
    known = {name for model in _models(BaseModel) for name in model.model_fields}
    unknown_field = error["loc"][-1:] if error["type"] == "extra_forbidden" else ()
    path = [str(part) for part in error["loc"] if isinstance(part, int) or part in known or part in unknown_field]
    return [part if part.isalnum() or part.isidentifier() else repr(part) for part in path]


def _siblings(error: ErrorDetails) -> list[str]:
    owner = error["loc"][-2] if len(error["loc"]) > 1 else "specification"
    for model in _models(BaseModel):
        name = model.model_fields.get("name")
        if model.__name__.lower().removesuffix("part") == owner or (name is not None and name.default == owner):
            return list(model.model_fields)
    return []


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("rni."):
            yield model
            yield from _models(model)
