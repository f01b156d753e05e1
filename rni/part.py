"""Parts: what a run is specified by. A part knows its fields, their ranges and defaults, and how it is built.

A family holds the parts that can take each other's place: losses, activations, weights, vectors. One of them is chosen
by its name, `"proxy"`, or by a table with its fields, `{ name = "proxy", points = 64 }`. A new one is a class, and a
line that adds it to its family.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError
from pydantic_core import ErrorDetails

from rni.errors import InputError

Numbers = Annotated[tuple[float, ...], Strict(False)]
Positive = Annotated[float, Field(gt=0)]
LONGEST = 80  # characters of a value in a message


class Part(BaseModel):
    """Plain data: checked when it is made, by one line for each field that is wrong, and the same ever after."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def __init__(self, **fields: Any):
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InputError("\n".join(_lines(type(self), error))) from None

    @classmethod
    def fields(cls) -> list[str]:
        return list(cls.model_fields)


P = TypeVar("P", bound=Part)


class Family(Generic[P]):
    """Parts by name. A part's name is the default of its field `name`."""

    def __init__(self):
        self.parts: dict[str, type[P]] = {}

    def add(self, part: type[P]) -> type[P]:
        """Register a part; a decorator."""
        self.parts[part.model_fields["name"].default] = part
        return part

    def choose(self, raw: Any) -> P:
        """The part of that name, or of that table."""
        if isinstance(raw, Part):
            return raw  # pyright: ignore[reportReturnType]
        table = {"name": raw} if isinstance(raw, str) else raw
        allowed = ", ".join(self.parts)
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise InputError(f": {shown(raw)}; allowed: a name, or a table with one, of {allowed}")
        if table["name"] not in self.parts:
            raise InputError(f": {shown(table['name'])}; allowed: {allowed}")
        return self.parts[table["name"]](**table)


def require(condition: bool, field: str, value: Any, allowed: str) -> None:
    """Refuse a value in the words of an error message."""
    if not condition:
        raise InputError(f"{field}: {shown(value)}; allowed: {allowed}")


def shown(value: Any) -> str:
    """A value as it stands in a message: in one line, and short."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _lines(model: type[Part], error: ValidationError) -> Iterator[str]:
    """`field: value; allowed: ...`, one for each field; where a field may be of several kinds, they are joined."""
    found: dict[str, list[str]] = {}
    for each in error.errors():
        for problem, allowed in _problems(model, each):
            found.setdefault(problem, []).append(allowed)
    for problem, alternatives in found.items():
        yield f"{problem}; allowed: {' or '.join(dict.fromkeys(alternatives))}"


def _problems(model: type[Part], error: ErrorDetails) -> Iterator[tuple[str, str]]:
    # pydantic also names the alternatives of a union on the way ("float"); a user knows only fields and places in lists
    field, *rest = error["loc"] or ("",)
    where = ".".join(
        [str(field) if str(field).isidentifier() else shown(field), *(str(k) for k in rest if isinstance(k, int))]
    )
    match error["type"]:
        case "missing":
            yield f"{where}: missing", "a value, it has no default"
        case "extra_forbidden":
            yield f"{where}: no such field", ", ".join(model.model_fields)
        case "value_error":  # of a part within this one, or of a check that concerns several fields
            for line in str(error.get("ctx", {})["error"]).splitlines():
                text, _, allowed = line.partition("; allowed: ")
                yield f"{where if field else ''}{'' if text.startswith(':') or not field else '.'}{text}", allowed
        case "model_type" | "model_attributes_type":
            yield f"{where}: {shown(error['input'])}", "a table"
        case "tuple_type":
            yield f"{where}: {shown(error['input'])}", "a list of numbers"
        case _:
            yield (
                f"{where}: {shown(error['input'])}",
                error["msg"].removeprefix("Input should be ").removeprefix("a valid "),
            )
