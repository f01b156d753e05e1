"""Parts: what a run is specified by. A part knows its fields, their ranges and defaults, and how it is built.

A family holds the parts that can take each other's place: losses, activations, weights, vectors. One of them is chosen
by its name, `"proxy"`, or by a table with its fields, `{ name = "proxy", points = 64 }`. A new one is a class, and a
line that adds it to its family.
"""

import reprlib
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, computed_field
from pydantic_core import ErrorDetails

from rni.core.errors import InputError, did_you_mean, in_words

Numbers = Annotated[tuple[float, ...], Strict(False)]
Positive = Annotated[float, Field(gt=0)]
MOST = 20  # lines of what is wrong

_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 20
_brief.maxstring = _brief.maxother = 80


class Part(BaseModel):
    """Plain data: checked when it is made, with a line for each field that is wrong, and the same ever after."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def __init__(self, /, *unnamed: Any, **fields: Any):
        if unnamed:
            known = ", ".join(f"{name}=..." for name in type(self).model_fields)
            raise InputError(f"{type(self).__name__}: {shown(unnamed[0])}; allowed: fields by name, {known}")
        try:
            super().__init__(**fields)
        except ValidationError as error:
            lines = list(_lines(type(self), error))
            more = [f"and {len(lines) - MOST} fields more; allowed: see above"] if len(lines) > MOST else []
            raise InputError(*lines[:MOST], *more) from None


class Choice(Part):
    """A part that is chosen by its name."""

    known_as: ClassVar[str]

    @computed_field
    @property
    def name(self) -> str:
        """Which of its family it is."""
        return self.known_as


C = TypeVar("C", bound=Choice)
P = TypeVar("P", bound=Choice)


class Family(Generic[C]):
    """Parts that can take each other's place, by name."""

    def __init__(self):
        self.parts: dict[str, type[C]] = {}

    def add(self, name: str) -> Callable[[type[P]], type[P]]:
        """Register a part under its name; a decorator."""
        parts: dict[str, Any] = self.parts  # no type says that P is one of C, and the class has to keep its own

        def registered(part: type[P]) -> type[P]:
            part.known_as = name
            parts[name] = part
            return part

        return registered

    def choose(self, raw: Any) -> C:
        """The part of that name, or of that table."""
        if isinstance(raw, tuple(self.parts.values())):
            return raw
        table = {"name": raw} if isinstance(raw, str) else raw
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise InputError(f": {shown(raw)}; allowed: a name, or a table with one, of {', '.join(self.parts)}")
        if table["name"] not in self.parts:
            likely = did_you_mean(table["name"], self.parts)
            raise InputError(f": {shown(table['name'])}; allowed: {', '.join(self.parts)}{likely}")
        return self.parts[table["name"]](**{field: value for field, value in table.items() if field != "name"})


def require(condition: bool, field: str, value: Any, allowed: str) -> None:
    """Refuse a value in the words of an error message."""
    if not condition:
        raise InputError(f"{field}: {shown(value)}; allowed: {allowed}")


def shown(value: Any) -> str:
    """A value as Python writes it, as far as 80 characters go: a file may nest it deeply, or hold enormous numbers."""
    value = list(value) if isinstance(value, tuple) else value
    try:
        text = _brief.repr(value)
    except ValueError:  # Python writes no whole numbers of more than 4300 digits
        text = "a huge number"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _lines(model: type[Part], error: ValidationError) -> Iterator[str]:
    """`field: value; allowed: ...` for each field; where a field may be of several kinds, they are joined."""
    found: dict[str, list[str]] = {}
    for each in error.errors():
        for problem, allowed in _problems(model, each):
            found.setdefault(problem, []).append(allowed)
    for problem, alternatives in found.items():
        yield f"{problem}; allowed: {' or '.join(dict.fromkeys(alternatives))}"


def _problems(model: type[Part], error: ErrorDetails) -> Iterator[tuple[str, str]]:
    where, value = _place(error), shown(error["input"])
    match error["type"]:
        case "missing":
            yield f"{where}: missing", "a value, it has no default"
        case "extra_forbidden":
            yield f"{where}: no such field", ", ".join(model.model_fields) + did_you_mean(where, model.model_fields)
        case "value_error":  # of a part within this one, or of a check that concerns several fields
            cause = error.get("ctx", {})["error"]
            if isinstance(cause, InputError) and cause.field:
                problem, _, allowed = str(cause.within(where) if where else cause).partition("; allowed: ")
                yield problem, allowed
                return
            for line in str(cause).splitlines():
                problem, _, allowed = line.partition("; allowed: ")
                yield f"{where}{'' if not where or problem.startswith(':') else '.'}{problem}", allowed
        case "default_factory_not_called":
            return  # it waits for a field that is wrong itself
        case "model_type" | "model_attributes_type":
            yield f"{where}: {value}", "a table"
        case "tuple_type":
            yield f"{where}: {value}", "a list of numbers"
        case "too_short" if error["input"]:
            return  # of wrong values, which have their own lines
        case "too_short":
            yield f"{where}: {value}", f"at least {error.get('ctx', {})['min_length']}"
        case "too_long":
            yield f"{where}: {value}", f"at most {error.get('ctx', {})['max_length']}"
        case _:
            yield f"{where}: {value}", in_words(error["msg"])


def _place(error: ErrorDetails) -> str:
    # pydantic also names the alternatives of a union on the way ("float"); a user knows fields, and places in lists
    field, *rest = error["loc"] or ("",)
    name = str(field) if str(field).isidentifier() or not field else shown(field)
    return ".".join([name, *(str(index) for index in rest if isinstance(index, int))])
