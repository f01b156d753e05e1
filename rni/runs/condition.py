"""Conditions that users write: `network.neurons == 1000 and seed < 3`. They are read, never executed."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rni.core.errors import InputError
from rni.core.toml import parse_toml

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
PART = re.compile(r"\s*([^\s<>=!]+)\s*(<=|>=|==|!=|<|>)\s*(.+?)\s*")


class Condition(NamedTuple):
    """name, comparison, value."""

    name: str
    comparison: str
    value: Any

    def holds(self, found: Any) -> bool:
        """Of a value; what can't be compared, or is not there, fails it."""
        if isinstance(found, Mapping) and isinstance(self.value, str):  # { name = "relu" } is "relu"
            found = found.get("name")
        try:
            return found is not None and bool(COMPARISONS[self.comparison](found, self.value))
        except TypeError:
            return False

    def __str__(self) -> str:
        return f"{self.name} {self.comparison} {self.value}"


def conditions(text: str) -> list[Condition]:
    """Those that must hold together, joined by `and`."""
    found = []
    for part in re.split(r"\s+and\s+", text.strip()):
        matched = PART.fullmatch(part)
        if not matched:
            raise InputError(f"condition: {part!r}; allowed: NAME COMPARISON VALUE, e.g. network.neurons >= 100")
        found.append(Condition(matched[1], matched[2], value(matched[3])))
    return found


def value(text: str) -> Any:
    """What a flag says: TOML, or a number as people write it (.5), or else text."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):  # what is no TOML, or nests too deeply for it
        pass
    try:
        return float(text)
    except ValueError:
        return text
