"""Sweeps: many specifications from one, by lists and ranges of its fields.

    100,300,1000            a list; values that contain commas are written in brackets: [0.9],[0.9,0.8]
    0..9                    whole numbers
    0.5..2.0:linear:4       evenly spaced values, including both ends
    1e-3..1e-1:log:5        values that are evenly spaced in the logarithm
    1e-3..1e-1:random:20    uniformly drawn values, or :lograndom:20 in the logarithm

Fields vary on a grid. The exceptions are zipped fields and drawn fields, which vary together.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from rni.activations import HOMOGENEOUS
from rni.core.errors import InputError, describe_value
from rni.core.registry import part
from rni.core.toml import parse_toml, read_toml
from rni.runs.run import Run, full_name, override, parse_run, references

ITEM = re.compile(r"""(?:[^,\[\]{}"']|\[(?:[^\[\]]|\[[^\]]*\])*\]|\{[^}]*\}|"[^"]*"|'[^']*')+""")
SPACINGS = ("linear", "log", "random", "lograndom")
MOST_RUNS = 20_000  # with more of them, a sweep has to be confirmed
MOST_POINTS = 1_000_000  # of one range
OF_DESIGN = ("neurons", "activation", "vectors", "leak")  # the fields of the network on which a design depends


class Range(NamedTuple):
    """Values from `low` to `high`, both included. They are whole numbers if both ends are."""

    low: float
    high: float
    spacing: str
    size: int

    @property
    def is_random(self) -> bool:
        return self.spacing.endswith("random")

    def points(self, name: str) -> list[Any]:
        """Return the values. Random ones depend only on the name of the field, so that more of them start the same."""
        if self.spacing == "linear":
            points = np.linspace(self.low, self.high, self.size)
        elif self.spacing == "log":
            points = np.geomspace(self.low, self.high, self.size)
        else:
            drawn = np.random.default_rng(list(name.encode())).random(self.size)
            is_uniform = self.spacing == "random"
            points = (
                self.low + (self.high - self.low) * drawn if is_uniform else self.low * (self.high / self.low) ** drawn
            )
        is_whole = isinstance(self.low, int) and isinstance(self.high, int)
        values = np.rint(points).astype(int).tolist() if is_whole else points.tolist()
        return values if self.is_random else list(dict.fromkeys(values))


Values = list[Any] | Range


class Axis(NamedTuple):
    """Fields that vary together, and their values: a tuple for each point."""

    fields: tuple[str, ...]
    points: Sequence[tuple[Any, ...]]


class SweptRun(NamedTuple):
    """The swept fields of a run, and the run or the reason why there is none."""

    fields: dict[str, Any]
    specification: Run | None
    failure: str | None = None


def _by_full_name(raw: Any) -> Any:
    """Parse values, and replace the names of fields by their full names."""
    if not isinstance(raw, Mapping):
        return raw
    named: dict[str, Values] = {}
    for name, given in raw.items():
        full = full_name(str(name))
        if full in named:
            raise InputError(full, given, "each field once")
        named[full] = given if isinstance(given, Range) else parse_values(full, given)
    return named


def _full_name(raw: Any) -> Any:
    return full_name(raw) if isinstance(raw, str) else raw


def _split(raw: Any) -> Any:
    if isinstance(raw, str):
        return tuple(name.strip() for name in raw.split(","))
    return tuple(raw) if isinstance(raw, list) else raw


FieldName = Annotated[str | None, BeforeValidator(_full_name)]
FieldValues = Annotated[dict[str, Any], BeforeValidator(_by_full_name)]
Names = Annotated[tuple[str, ...], BeforeValidator(_split)]


@part
class Sweep:
    """What varies, and what is measured of each run.

    Parameters
    ----------
    over, zip : dict
        The values of fields, as lists or as texts (see the module). Fields in `over` vary on a grid, those in `zip`
        vary together.
    kind : str
        "train" or "design".
    measure : tuple of str
        The measures, see `rni.runs.measures`.
    x, y, by : str, tuple of str, str
        The page draws the measures `y` against the field `x`, with a line for each value of the field `by`. By default
        it draws all of them.
    """

    over: FieldValues = Field(default_factory=dict)
    zip: FieldValues = Field(default_factory=dict)
    kind: Literal["train", "design"] = "train"
    measure: Names = ("error", "ratio")
    x: FieldName = None
    y: Names = ()
    by: FieldName = None

    @model_validator(mode="after")
    def _check(self) -> "Sweep":
        for name in self.zip:
            if name in self.over:
                raise InputError(f"zip.{name}", name, "each field once", problem="also in over")
        lengths = {name: len(_points(name, values)) for name, values in self.zip.items()}
        if len(set(lengths.values())) > 1:
            raise InputError("zip", lengths, "as many values of each field")
        drawn = {name: self.over[name].size for name in self.drawn}
        if len(set(drawn.values())) > 1:
            raise InputError("over", drawn, "as many random values of each field, which are drawn together")
        if self.kind == "design":
            for name in self.fields:
                section, *rest = full_name(name).split(".")
                if (section == "network" and rest[0] not in OF_DESIGN) or (
                    section == "training" and name != "training.bounds"
                ):
                    allowed = f"seed, task, bounds, {', '.join(OF_DESIGN)}"
                    raise InputError(name, None, allowed, problem="without effect on a design")
        for axis, name in (("x", self.x), ("by", self.by)):
            if name is not None and name not in self.fields:
                raise InputError(axis, name, f"a swept field: {', '.join(self.fields)}")
        for name in self.y:
            if not any(name == measure or name.startswith(f"{measure}.") for measure in self.measure):
                raise InputError("y", name, f"a measure of this sweep: {', '.join(self.measure)}")
        return self

    @property
    def fields(self) -> list[str]:
        """The full names of the swept fields."""
        return [*self.over, *self.zip]

    @property
    def drawn(self) -> list[str]:
        """The fields with random values."""
        return [name for name, values in self.over.items() if isinstance(values, Range) and values.is_random]

    def axes(self) -> list[Axis]:
        """Return what varies independently. The last axis changes fastest."""
        drawn = self.drawn
        axes = [
            Axis((name,), [(value,) for value in _points(name, values)])
            for name, values in self.over.items()
            if name not in drawn
        ]
        for group in ({name: self.over[name] for name in drawn}, self.zip):
            if group:
                columns = [_points(name, values) for name, values in group.items()]
                axes.append(Axis(tuple(group), list(zip(*columns, strict=True))))
        return axes

    def count(self) -> int:
        """Return the number of runs."""
        return math.prod(len(axis.points) for axis in self.axes())

    def points(self) -> Iterator[dict[str, Any]]:
        """Yield the values of the swept fields of each run."""
        axes = self.axes()
        names = [name for axis in axes for name in axis.fields]
        for chosen in product(*(axis.points for axis in axes)):
            yield dict(zip(names, (value for point in chosen for value in point), strict=True))

    def runs(self, base: Mapping[str, Any], points: Sequence[dict[str, Any]]) -> list[SweptRun]:
        """Return a run for each point.

        An impossible combination of values is a run with a reason. A value that occurs in no possible run raises an
        InputError, and so does an invalid base.
        """
        runs, errors = [], {}
        for index, point in enumerate(points):
            raw = override(dict(base), point)
            try:
                specification = parse_run(_designed(raw, point) if self.kind == "design" else raw)
                runs.append(SweptRun(point, specification))
            except InputError as error:
                errors[index] = error
                runs.append(SweptRun(point, None, str(error)))
        if errors:
            possible = {json.dumps(pair) for run in runs if run.specification for pair in run.fields.items()}
            for index, error in errors.items():
                point = points[index]
                if not point or not possible.issuperset(map(json.dumps, point.items())):
                    raise error
        return runs


def planned(
    base: str | Path | Mapping[str, Any] | Run, *, allow: Collection[str] = (), **given: Any
) -> tuple[dict[str, Any], Sweep]:
    """Return the plain data of the base without its table `sweep`, and the sweep: that table, replaced by `given`.

    If the base is a file, its parts and measures `module:name` must be in `allow`, because they run code.
    """
    if isinstance(base, Run):
        raw = base.to_dict()
    elif isinstance(base, Mapping):
        raw = dict(base)
    else:
        raw = read_toml(base)
    table = raw.pop("sweep", {})
    if not isinstance(table, dict):
        raise InputError("sweep", table, "a table")
    given = {name: value for name, value in given.items() if value is not None}
    for name in {"over", "zip"} & given.keys() & table.keys():
        given[name] = _by_full_name(table[name]) | _by_full_name(given[name])
    sweep = Sweep(**table | given)
    if isinstance(base, str | Path):
        for name in references([raw, () if "measure" in given else sweep.measure]):
            if name not in allow:
                raise InputError(str(base), name, f"after --allow {name}, because it runs code of that module")
    return raw, sweep


def parse_values(name: str, given: Any) -> Values:
    """Return a list of values, or a range if a text describes one. A single value becomes a list."""
    if not isinstance(given, str):
        values = list(given) if isinstance(given, list | tuple | range | np.ndarray) else [given]
        values = [each.tolist() if isinstance(each, np.generic | np.ndarray) else each for each in values]
    elif ".." in given:
        return _range(name, given)
    else:
        values = [_value(item.strip()) for item in ITEM.findall(given)]
    if not values:
        raise InputError(name, given, "at least one value")
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError):
        raise InputError(name, given, "finite numbers, texts, lists and tables of them") from None
    return values


def _value(text: str) -> Any:
    """Read a value of a flag: TOML, or a number such as .5, or else text."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):  # not TOML, or nested too deeply
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _range(name: str, text: str) -> Range:
    ends, _, rest = text.partition(":")
    spacing, _, number = rest.partition(":")
    low, high = (_value(end.strip()) for end in ends.split("..", 1))
    allowed = "FROM..TO, or FROM..TO:linear:COUNT, with log, random or lograndom for linear"
    are_numbers = all(isinstance(end, int | float) and math.isfinite(end) for end in (low, high))
    if not are_numbers or (rest and (spacing not in SPACINGS or not number.isdigit())):
        raise InputError(name, text, allowed)
    if low > high or (low == high and rest):
        raise InputError(name, text, f"a range that is not empty: {allowed}")
    if spacing.startswith("log") and low <= 0:
        raise InputError(name, text, "ends above 0 in a logarithmic range")
    if not rest and not (isinstance(low, int) and isinstance(high, int)):
        raise InputError(name, text, "whole numbers, or FROM..TO:linear:COUNT")
    size = int(number) if rest else high - low + 1
    if not 1 <= size <= MOST_POINTS:
        raise InputError(name, text, f"from 1 to {MOST_POINTS} values")
    return Range(low, high, spacing or "linear", size)


def _points(name: str, values: Values) -> list[Any]:
    return values.points(name) if isinstance(values, Range) else values


def _designed(raw: dict[str, Any], point: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a design for that of a training, without the fields on which it does not depend."""
    network, training = (raw.get(name, {}) for name in ("network", "training"))
    if not isinstance(network, dict) or not isinstance(training, dict):
        raise InputError("network, training", [network, training], "tables")
    activation = network.get("activation", "relu")
    name = activation.get("name") if isinstance(activation, dict) else activation
    is_bounded = name not in HOMOGENEOUS and network.get("leak", 1) == 1
    if not is_bounded and "training.bounds" in point:
        raise InputError("training.bounds", training["bounds"], f"none in a design of {describe_value(name)}")
    design = {"kind": "design", "seed": raw.get("seed", 0), "task": raw.get("task", {})}
    design["network"] = {field: network[field] for field in OF_DESIGN if field in network}
    if is_bounded and training.get("bounds"):
        design["bounds"] = training["bounds"]
    return design
