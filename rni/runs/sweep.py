"""Sweeps: many specifications from one, by lists and ranges of its fields.

    100,300,1000            a list; what has commas itself stands in brackets: [0.9],[0.9,0.8]
    0..9                    whole numbers
    0.5..2.0:linear:4       evenly spaced, both ends included
    1e-3..1e-1:log:5        evenly spaced in the logarithm
    1e-3..1e-1:random:20    drawn evenly, or :lograndom:20 in the logarithm
    20..2000:bisect         halved until a condition just holds

Fields vary on a grid, but for those that are zipped, and those that are drawn, which vary together.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import BeforeValidator, Field, Strict, model_validator

from rni.activations import HOMOGENEOUS
from rni.core.errors import InputError
from rni.core.parts import Part, require, shown
from rni.runs.condition import Condition, conditions, value
from rni.runs.specification import Specification, override, place, read_toml

ITEM = re.compile(r"""(?:[^,\[\]{}"']|\[(?:[^\[\]]|\[[^\]]*\])*\]|\{[^}]*\}|"[^"]*"|'[^']*')+""")
SPACINGS = ("linear", "log", "random", "lograndom", "bisect")
MOST = 20_000  # runs that are begun without asking
LONGEST = 1_000_000  # points of one range
PRECISION = 0.01  # to which a bisection finds what is not a whole number
OF_DESIGN = ("neurons", "activation", "vectors", "leak")  # what of a network its design depends on


class Range(NamedTuple):
    """From `low` to `high`, both included; whole numbers where both of them are."""

    low: float
    high: float
    spacing: str
    size: int

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def points(self, name: str) -> list[Any]:
        """Its values. Random ones hang on the field's name alone: if more are drawn, the first are the same."""
        drawn = np.random.default_rng(list(name.encode())).random(self.size)
        found = {
            "linear": lambda: np.linspace(self.low, self.high, self.size),
            "log": lambda: np.geomspace(self.low, self.high, self.size),
            "random": lambda: self.low + (self.high - self.low) * drawn,
            "lograndom": lambda: self.low * (self.high / self.low) ** drawn,
        }[self.spacing]()
        values = np.rint(found).astype(int).tolist() if self.whole else found.tolist()
        return values if _is(self, "random") else list(dict.fromkeys(values))  # those that are drawn keep their number

    def middle(self) -> Any:
        """Halfway, in the logarithm where the ends are far apart; an end where nothing is left between them."""
        geometric = self.low > 0 and self.high / self.low > 4
        found = math.sqrt(self.low * self.high) if geometric else (self.low + self.high) / 2
        if self.whole:
            return math.floor(found)
        return found if self.high - self.low > PRECISION * abs(found) else self.low


Values = list[Any] | Range


class Axis(NamedTuple):
    """Fields that vary together, and their values: a tuple for each point."""

    fields: tuple[str, ...]
    points: Sequence[tuple[Any, ...]]


class Run(NamedTuple):
    """The swept fields of a run, and its specification or the reason why there is none."""

    fields: dict[str, Any]
    specification: Specification | None
    failure: str | None = None


def _named(raw: Any) -> Any:
    """Values by the full names of their fields."""
    if not isinstance(raw, dict):
        return raw
    named = {}
    for name, given in raw.items():
        full = ".".join(place(str(name)))
        require(full not in named, full, given, "each field once")
        named[full] = given if isinstance(given, Range) else parse_values(full, given)
    return named


def _full(raw: Any) -> Any:
    return ".".join(place(raw)) if isinstance(raw, str) else raw


def _apart(raw: Any) -> Any:
    return [name.strip() for name in raw.split(",")] if isinstance(raw, str) else raw


Swept = Annotated[str | None, BeforeValidator(_full)]
Varied = Annotated[dict[str, Any], BeforeValidator(_named)]
Names = Annotated[tuple[str, ...], Strict(False), BeforeValidator(_apart)]


class Sweep(Part):
    """What varies, by field: a list, or text as above; and what is measured of each run, see `rni.runs.measures`.

    kind: "train" or "design". until: a condition on a measure, for the field whose range ends in `:bisect`. x, y, by:
    what the page draws, measures y against a field x, lines by another; by default all of them.
    """

    over: Varied = Field(default_factory=dict)
    zip: Varied = Field(default_factory=dict)
    kind: Literal["train", "design"] = "train"
    measure: Names = ("error", "ratio")
    until: str | None = None
    x: Swept = None
    y: Names = ()
    by: Swept = None

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        for name, values in self.zip.items():
            require(name not in self.over, f"zip.{name}", "also in over", "each field once")
            require(not _is(values, "bisect"), f"zip.{name}", "bisect", "lists and ranges")
        lengths = {name: len(_points(name, values)) for name, values in self.zip.items()}
        require(len(set(lengths.values())) <= 1, "zip", lengths, "as many values of each field")
        drawn = {name: values.size for name, values in self.over.items() if _is(values, "random")}
        require(len(set(drawn.values())) <= 1, "over", drawn, "as many random values of each field, drawn together")
        bisected = [name for name, values in self.over.items() if _is(values, "bisect")]
        require(len(bisected) == (self.until is not None), "until", self.until, "with one field, FROM..TO:bisect")
        if self.until is not None:
            found = conditions(self.until)
            single = len(found) == 1 and isinstance(found[0].value, int | float)
            require(single, "until", self.until, "MEASURE < NUMBER, or with >, <=, >=")
        if self.kind == "design":
            for name in self.fields:
                of_design = place(name)[0] != "network" or place(name)[1] in OF_DESIGN
                of_design &= place(name)[0] != "training" or name == "training.bounds"
                require(of_design, name, "no effect on a design", "seed, task, bounds, " + ", ".join(OF_DESIGN))
        for axis, name in (("x", self.x), ("by", self.by)):
            require(name is None or name in self.fields, axis, name, f"a swept field: {', '.join(self.fields)}")
        for name in self.y:
            measured = any(name == each or name.startswith(f"{each}.") for each in self.measure)
            require(measured, "y", name, f"of what is measured: {', '.join(self.measure)}")
        return self

    @property
    def fields(self) -> list[str]:
        """The swept fields, by their full names."""
        return [*self.over, *self.zip]

    @property
    def drawn(self) -> list[str]:
        """Fields whose values are random."""
        return [name for name, values in self.over.items() if _is(values, "random")]

    @property
    def bisected(self) -> tuple[str, Range, Condition] | None:
        """The field that is halved until a condition just holds, where there is one."""
        for name, values in self.over.items():
            if _is(values, "bisect"):
                return name, values, conditions(self.until or "")[0]
        return None

    def axes(self) -> list[Axis]:
        """What varies independently; the last changes fastest."""
        free = [name for name, values in self.over.items() if not (_is(values, "random") or _is(values, "bisect"))]
        axes = [Axis((name,), [(value,) for value in _points(name, self.over[name])]) for name in free]
        for group in ({name: self.over[name] for name in self.drawn}, self.zip):
            columns = [_points(name, values) for name, values in group.items()]
            axes += [Axis(tuple(group), list(zip(*columns, strict=True)))] if group else []
        return axes

    def count(self) -> int:
        """How many runs there are; in a bisection, how many at a time."""
        return math.prod(len(axis.points) for axis in self.axes())

    def points(self) -> Iterator[dict[str, Any]]:
        """The values of the swept fields, run by run."""
        axes = self.axes()
        names = [name for axis in axes for name in axis.fields]
        for chosen in product(*(axis.points for axis in axes)):
            yield dict(zip(names, (value for point in chosen for value in point), strict=True))

    def runs(self, base: Mapping[str, Any], points: Sequence[dict[str, Any]]) -> list[Run]:
        """A run for each point. A combination that can't be is a run with its reason; a value that none can have, and
        what is wrong in the base, are refused."""
        runs = [self._run(base, point) for point in points]
        allowed = {json.dumps(pair) for run in runs if not run.failure for pair in run.fields.items()}
        for run in runs:
            if run.failure and not (run.fields and allowed.issuperset(map(json.dumps, run.fields.items()))):
                raise InputError(*run.failure.splitlines())
        return runs

    def _run(self, base: Mapping[str, Any], point: dict[str, Any]) -> Run:
        raw = override(dict(base), point)
        try:
            return Run(point, Specification.parse(_designed(raw, point) if self.kind == "design" else raw))
        except InputError as error:
            return Run(point, None, str(error))


def planned(base: str | Path | Mapping[str, Any] | Specification, **given: Any) -> tuple[dict[str, Any], Sweep]:
    """Plain data of the base without its table `sweep`, and the sweep: that table, but for what is given."""
    if isinstance(base, Specification):
        raw = base.to_dict()
    else:
        raw = dict(base) if isinstance(base, Mapping) else read_toml(base)
    table = raw.pop("sweep", {})
    require(isinstance(table, dict), "sweep", table, "a table")
    given = {name: value for name, value in given.items() if value is not None}
    for name in {"over", "zip"} & given.keys() & table.keys():
        given[name] = _named(table[name]) | _named(given[name])
    return raw, Sweep(**table | given)


def parse_values(name: str, given: Any) -> Values:
    """A list as it is; a text as the module describes; a single value as a list of one."""
    if not isinstance(given, str):
        values = list(given) if isinstance(given, list | tuple | range | np.ndarray) else [given]
        values = [each.tolist() if isinstance(each, np.generic | np.ndarray) else each for each in values]
    elif ".." in given:
        return _range(name, given)
    else:
        values = [value(item.strip()) for item in ITEM.findall(given)]
    require(bool(values), name, given, "at least one value")
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {shown(given)}; allowed: finite numbers, texts, lists and tables of them") from None
    return values


def _range(name: str, text: str) -> Range:
    ends, _, rest = text.partition(":")
    spacing, _, number = rest.partition(":")
    low, high = (value(end.strip()) for end in ends.split("..", 1))
    allowed = "FROM..TO, FROM..TO:linear:COUNT, with log, random or lograndom for linear, or FROM..TO:bisect"
    numbers = all(isinstance(end, int | float) and math.isfinite(end) for end in (low, high))
    counted = spacing in SPACINGS and spacing != "bisect"
    require(numbers and (number.isdigit() if counted else not number), name, text, allowed)
    require(counted or spacing in ("", "bisect"), name, text, allowed)
    require(low < high or (low == high and not rest), name, text, f"a range that is not empty: {allowed}")
    require(not spacing.startswith("log") or low > 0, name, text, "ends above 0 in a logarithmic range")
    size = int(number or 2)
    if not rest:
        require(isinstance(low, int) and isinstance(high, int), name, text, "whole numbers, or FROM..TO:linear:COUNT")
        spacing, size = "linear", high - low + 1
    require(1 <= size <= LONGEST, name, text, f"from 1 to {LONGEST} values")
    return Range(low, high, spacing, size)


def _points(name: str, values: Values) -> list[Any]:
    return values.points(name) if isinstance(values, Range) else values


def _is(values: Values, spacing: str) -> bool:
    return isinstance(values, Range) and values.spacing.endswith(spacing)


def _designed(raw: dict[str, Any], point: dict[str, Any]) -> dict[str, Any]:
    """The specification of a design, from that of a training: without what it does not depend on.

    The proxy loss knows the range of integrals, where the design has one.
    """
    network, training = (raw.get(name, {}) for name in ("network", "training"))
    if not isinstance(network, dict) or not isinstance(training, dict):
        raise InputError(f"network, training: {shown([network, training])}; allowed: tables")
    activation = network.get("activation", "relu")
    name = activation.get("name") if isinstance(activation, dict) else activation
    own = {field: network[field] for field in OF_DESIGN if field in network}
    bounded = name not in HOMOGENEOUS and network.get("leak", 1) == 1
    proxy = {"loss": "proxy", "bounds": training.get("bounds", [])} if bounded else {}
    if not bounded and "training.bounds" in point:
        raise InputError(f"training.bounds: {shown(training['bounds'])}; allowed: none in a design of {shown(name)}")
    return raw | {
        "kind": "design",
        "network": own | {"weights": "lowrank", "precision": "float64"},
        "training": {"steps": 0} | proxy,
    }
