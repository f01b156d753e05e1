"""Sweeps from Python, and the page of one: its table, to be sorted, and plots of what was measured."""

import base64
import io
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Drawing

from rni import __version__
from rni.core.atomic import require_writable_folder, write_atomically
from rni.pages.template import number, template
from rni.plots.style import CHANNELS, SEQUENTIAL, colours, legend, panels
from rni.runs.run import Run
from rni.runs.sweep import MOST_RUNS, Sweep, planned
from rni.runs.sweeping import carry_out, executor_of
from rni.runs.table import Row, Table

ROWS = 2000  # of the table, in the page
PANELS = 24  # at most
LINES = 8  # in one panel
FAR = 30  # largest over smallest measured value, from which on an axis is logarithmic


class Section(NamedTuple):
    """A measure: panels with what each of them shows."""

    title: str
    panels: list[tuple[str, str]]


def sweep(
    base: "str | Path | Mapping[str, Any] | Run",
    over: Mapping[str, Any] | None = None,
    *,
    zip: Mapping[str, Any] | None = None,
    kind: str | None = None,
    measure: str | Sequence[str] | None = None,
    out: str | Path | None = None,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    by: str | None = None,
    store: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    most: int = MOST_RUNS,
    allow: Collection[str] = (),
) -> Table:
    """Compute and measure a run for each combination of the values in `over`, each a list or a text such as "0..9".

    Parameters
    ----------
    base : path, dict or Run
        A configuration. Arguments of this function replace the fields of its table `sweep`.
    over, zip : dict, optional
        The values of fields. Fields in `over` vary on a grid, those in `zip` vary together.
    kind : str, optional
        "train" or "design".
    measure : str or sequence of str, optional
        The names of measures, see `rni.runs.measures`.
    out : path, optional
        A folder for table.csv and index.html.
    x, y, by : str, optional
        The page draws the measures `y` against the field `x`, with a line for each value of `by`.
    store : path, optional
        The folder of finished runs.
    workers : int, optional
        The number of local processes, by default one for each core. A script needs `if __name__ == "__main__":` for
        them. 0 computes in this process.
    scheduler : str, optional
        The address of a Dask scheduler, which is used instead of local processes.
    most : int
        The largest number of runs.
    allow : collection of str
        The measures `module:function` that may be imported if a configuration file names them.

    Examples
    --------
    >>> base = {"task": {"decays": [0.8]}, "network": {"neurons": 20}, "training": {"loss": "proxy", "steps": 50}}
    >>> table = rni.sweep(base, over={"seed": "0..1"}, measure="loss,steps", workers=0)
    >>> table["seed"], table["steps"]
    ([0, 1], [50, 50])
    """
    raw, plan = planned(base, allow=allow, over=over, zip=zip, kind=kind, measure=measure, x=x, y=y, by=by)
    if out is not None:
        require_writable_folder(Path(out))
    with executor_of(workers, scheduler) as executor:
        table = carry_out(plan, raw, executor, None if store is None else Path(store), most=most)
    if out is not None:
        write(table, plan, Path(out), str(base) if isinstance(base, str | Path) else "a specification")
    return table


def write(table: Table, plan: Sweep, folder: Path, name: str) -> list[Path]:
    """Write the page index.html and table.csv. The page comes first, because it marks the folder as one of rni."""
    sections, left_out = drawn(table, plan)
    failed = sum(row.failure is not None for row in table.rows)
    columns = [name for name in table.columns if name != "failure" or failed]
    page = template("sweep.html").render(
        name=name,
        version=__version__,
        tiles=[(len(table), "runs"), (failed, "of them with a failure")]
        + [(len(_levels(table[field])), f"values of {field}") for field in table.fields],
        notes=table.notes,
        sections=sections,
        left_out=left_out,
        columns=columns,
        numeric=[name for name in columns if _is_numeric(table[name])],
        rows=[_shown(row, columns) for row in table.rows[:ROWS]],
        total=len(table),
    )
    write_atomically(folder / "index.html", page.encode())
    return [*table.write(folder), folder / "index.html"]


def _shown(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    cells = [(row.fields | row.values | {"key": row.key, "failure": row.failure}).get(name) for name in columns]
    return {
        "cells": [(json.dumps(cell) if _is_number(cell) else "", _brief(cell)) for cell in cells],
        "toml": row.specification.to_toml() if row.specification else "",
    }


def drawn(table: Table, plan: Sweep) -> tuple[list[Section], int]:
    """Each measure against each swept field, lines by a second one, and a heat map of two; how many are left out."""
    varying = [name for name in table.fields if len(_levels(table[name])) > 1]
    against = [name for name in varying if name != "seed"] or varying
    measures = [name for name in plan.y or table.measures if _is_numeric(table[name])]
    wanted: list[tuple[str, Any, str | None]] = []  # against a field, or on a map of two
    for measure in measures:
        for x in [plan.x] if plan.x else against:
            by = plan.by or next((name for name in against if name != x and _can_be_lines(table, name)), None)
            wanted.append((measure, x, None if by == x or (x in table.drawn and not plan.by) else by))
        steady = [name for name in against if name not in table.drawn and len(_levels(table[name])) > 1]
        pair = [plan.x, plan.by] if plan.x and plan.by else steady[:2] if not plan.x else []
        if len(pair) == 2:
            wanted.append((measure, tuple(pair), None))
    sections: dict[str, list[tuple[str, str]]] = {}
    for measure, x, by in wanted[:PANELS]:
        panel = _heat_map(table, x[0], x[1], measure) if isinstance(x, tuple) else _lines(table, x, measure, by)
        sections.setdefault(measure, []).append(panel)
    return [Section(name, found) for name, found in sections.items()], len(wanted[PANELS:])


def _lines(table: Table, x: str, y: str, by: str | None) -> tuple[str, str]:
    """Mean over all else and its spread, from smallest to largest; points where x is drawn or not a number."""
    axis = panels(1, width=5.0, height=3.6)[1][0]
    levels, positions = _positions(table[x])
    place = dict(zip(map(_key, levels), positions, strict=True))
    families = _levels(table[by]) if by else [None]
    ordered = len(families) > len(CHANNELS) or (by is not None and len(families) > 2 and _is_numeric(table[by]))
    palette = colours(SEQUENTIAL, len(families)) if ordered else CHANNELS
    for index, (family, colour) in enumerate(zip(families, palette, strict=False)):
        groups: dict[float, list[float]] = {}
        for at, value, member in zip(table[x], table[y], table[by] if by else table[x], strict=True):
            if _is_number(value) and math.isfinite(value) and (by is None or _key(member) == _key(family)):
                groups.setdefault(place[_key(at)], []).append(value)
        at = sorted(groups)
        mean, low, high = (np.array([f(groups[each]) for each in at]) for f in (np.mean, np.min, np.max))
        label = None if by is None else f"{_short(by)} = {_brief(family)}"
        if x in table.drawn:
            axis.plot(at, mean, "o", color=colour, markersize=4, label=label)
        elif not _is_numeric(table[x]):  # nothing lies between two names
            aside = 0.1 * (index - (len(families) - 1) / 2)
            spread = [mean - low, high - mean]
            axis.errorbar([each + aside for each in at], mean, spread, fmt="o", color=colour, capsize=3, label=label)
        else:
            axis.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
            axis.plot(at, mean, "o-", color=colour, markersize=4, label=label)
    axis.set(xlabel=x, ylabel=y)
    _scale(axis, table, x, y, levels, positions)
    if by:
        legend(axis)
    rest = [name for name in table.fields if name not in (x, by) and len(_levels(table[name])) > 1]
    mark = "shaded" if _is_numeric(table[x]) else "bars"
    over = f": mean over {', '.join(rest)}; {mark}, from the smallest to the largest" if rest else ""
    points = " (one point for each run)" if x in table.drawn else over
    return _embedded(axis), f"{y} against {x}{f', by {by}' if by else ''}{points}."


def _heat_map(table: Table, x: str, by: str, y: str) -> tuple[str, str]:
    """The mean for each pair of values."""
    drawing, (axis,) = panels(1, width=5.0, height=3.6)
    columns, rows = _levels(table[x]), _levels(table[by])
    groups: dict[tuple[str, str], list[float]] = {}
    for at, member, value in zip(table[x], table[by], table[y], strict=True):
        if _is_number(value) and math.isfinite(value):
            groups.setdefault((_key(at), _key(member)), []).append(value)
    found = [[np.mean(groups.get((_key(column), _key(row)), [np.nan])) for column in columns] for row in rows]
    means = np.ma.masked_invalid(found)
    norm = LogNorm() if _is_far(means.compressed()) else None
    image = axis.imshow(means, origin="lower", aspect="auto", cmap=SEQUENTIAL, norm=norm)
    axis.set(xlabel=x, ylabel=by, xticks=range(len(columns)), yticks=range(len(rows)))
    axis.set_xticklabels(map(_brief, columns), rotation=30 if len(columns) > LINES else 0)
    axis.set_yticklabels(map(_brief, rows))
    drawing.colorbar(image, label=y)
    return _embedded(axis), f"{y} for each {x} and {by}: mean over all else."


def _scale(axis: Axes, table: Table, x: str, y: str, levels: list[Any], positions: list[float]) -> None:
    values = np.array([value for value in table[y] if _is_number(value) and math.isfinite(value)])
    if _is_far(values):
        axis.set_yscale("log")
    if not _is_numeric(table[x]):
        axis.set_xticks(positions, map(_brief, levels))
    elif _is_logarithmic(positions):
        axis.set_xscale("log")
        if len(levels) <= LINES:
            axis.set_xticks(positions, map(_brief, levels))
            axis.minorticks_off()


def _is_logarithmic(values: Sequence[float]) -> bool:
    """Whether values lie evenly in the logarithm rather than as they are: by where their middle is."""
    low, high, middle = min(values), max(values), float(np.median(values))
    return low > 0 and high >= 10 * low and abs(middle - (low * high) ** 0.5) < abs(middle - (low + high) / 2)


def _is_far(values: np.ndarray) -> bool:
    return len(values) > 1 and float(values.min()) > 0 and float(values.max() / values.min()) > FAR


def _can_be_lines(table: Table, name: str) -> bool:
    return name not in table.drawn and len(_levels(table[name])) <= LINES


def _positions(values: list[Any]) -> tuple[list[Any], list[float]]:
    """Distinct values, and where they are on an axis: numbers where they are, others side by side."""
    levels = _levels(values)
    return levels, levels if _is_numeric(values) else list(range(len(levels)))


def _levels(values: list[Any]) -> list[Any]:
    """Distinct values, numbers by size, others in the order they come."""
    found = list({_key(value): value for value in values}.values())
    return sorted(found) if _is_numeric(found) else found


def _key(value: Any) -> str:
    return json.dumps(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_numeric(values: list[Any]) -> bool:
    """Numbers, as far as there are values, and some that are finite."""
    there = [value for value in values if value is not None]
    return all(map(_is_number, there)) and any(math.isfinite(value) for value in there)


def _brief(value: Any) -> str:
    """As people read it."""
    if isinstance(value, dict) and "name" in value:
        rest = ", ".join(f"{name} {_brief(each)}" for name, each in value.items() if name != "name")
        return f"{value['name']} ({rest})" if rest else value["name"]
    if isinstance(value, list | tuple):
        return " ".join(map(_brief, value))
    return number(value) if isinstance(value, float) else "" if value is None else str(value)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _embedded(axis: Axes) -> str:
    buffer, drawing = io.BytesIO(), axis.figure
    assert isinstance(drawing, Drawing)
    drawing.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
