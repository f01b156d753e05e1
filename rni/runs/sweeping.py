"""Carrying out sweeps: runs through the store and the engine, what is measured of them, and the table."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from rni.core.atomic import require_writable_folder
from rni.core.errors import InputError
from rni.runs.condition import Condition
from rni.runs.engine import Here, cluster, compute_all, local
from rni.runs.execution import Result
from rni.runs.measures import Measuring, columns, sources
from rni.runs.progress import runs_progress
from rni.runs.specification import Specification, require_specification
from rni.runs.store import Store
from rni.runs.sweep import MOST, Range, Run, Sweep
from rni.runs.table import Row, Table


def carry_out(
    sweep: Sweep,
    base: Mapping[str, Any],
    executor: Executor,
    store: Path | None = None,
    *,
    most: int = MOST,
    **options: Any,
) -> Table:
    """The table of a sweep; `options` are those of `Measuring`.

    What is in the store is not computed again, and what is kept there of a run not measured again. A run that diverges
    or fails is a row with the reason; so is a measure that fails, and the others are there.
    """
    sources(sweep.measure)
    if (count := sweep.count()) > most:
        raise InputError(f"sweep: {count} runs; allowed: up to {most}, or more with --yes (in Python: most={count})")
    place, measuring = Store(store), Measuring(sweep.measure, **options)
    if sweep.bisected is None:
        rows, notes = rows_of(sweep.runs(base, list(sweep.points())), measuring, executor, place), []
    else:
        rows, notes = _bisect(sweep, base, measuring, executor, place)
    return Table(tuple(sweep.fields), sweep.measure, tuple(rows), tuple(sweep.drawn), tuple(notes))


def rows_of(runs: Sequence[Run], measuring: Measuring, executor: Executor, store: Store) -> list[Row]:
    """Rows of runs, each distinct one once: from what the store keeps, or else computed and measured."""
    wanted = sources(measuring.names)
    by_key = {run.specification.key(): run for run in runs if run.specification is not None}
    rows: dict[str, Row] = {}

    def settle(key: str, values: Mapping[str, Any]) -> None:
        found, reasons = columns(wanted, values)
        rows[key] = Row(by_key[key].fields, by_key[key].specification, found, "; ".join(reasons) or None)

    def fail(key: str, reason: str) -> None:
        rows[key] = Row(by_key[key].fields, by_key[key].specification, {}, reason)

    for key in by_key:
        kept = store.measured(key)
        if "diverged" in kept:
            fail(key, kept["diverged"])
        elif all(source.kept_as in kept for source in wanted.values()) and store.has(key):
            settle(key, kept)
    left = [run.specification for key, run in by_key.items() if key not in rows and run.specification is not None]
    if left:
        require_writable_folder(store.root)
        with runs_progress(left, store.root) as on_event:
            for key, outcome in compute_all(left, store.root, executor, on_event, measuring).items():
                if outcome.reason is None:
                    settle(key, outcome.value)
                else:
                    fail(key, outcome.reason)
    refused = [Row(run.fields, None, {}, " ".join(str(run.failure).split())) for run in runs if not run.specification]
    return [rows[key] for key in by_key] + refused


def run_all(
    specifications: Iterable[Specification],
    *,
    store: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> list[Result]:
    """Compute runs beside each other through the store, and return them in the order given.

    workers: local processes, by default one for each core; 0 is this process. scheduler: the address of a Dask cluster
    instead. Those that fail are named in the error, and all others are in the store by then.

    >>> raw = {"task": {"decays": [0.8]}, "network": {"neurons": 20}, "training": {"loss": "proxy", "steps": 50}}
    >>> results = rni.run_all([rni.Specification.parse(raw | {"seed": seed}) for seed in (0, 1)], workers=0)
    >>> [len(result.losses) for result in results]
    [50, 50]
    """
    given = [specifications] if isinstance(specifications, Specification) else list(specifications)
    for specification in given:
        require_specification(specification)
    place = Store(store)
    with executor_of(workers, scheduler) as executor, runs_progress(given, place.root) as on_event:
        outcomes = compute_all(given, place.root, executor, on_event)
    if failed := [f"{outcome.label}: {outcome.reason}" for outcome in outcomes.values() if not outcome.ok]:
        raise InputError(*failed)
    return [place.compute(specification) for specification in given]


def executor_of(workers: int | None, scheduler: str | None) -> Executor:
    """Local processes, this one, or a cluster."""
    if workers is not None and scheduler is not None:
        raise InputError("scheduler: given with workers; allowed: one of the two")
    return cluster(scheduler) if scheduler else Here() if workers == 0 else local(workers)


class _Halving:
    """Where between the ends of a range a condition begins or ceases to hold."""

    def __init__(self, given: Range):
        self.range, self.held = given, dict[Any, bool]()

    def wanted(self) -> list[Any]:
        """The values to try next: both ends, then what is halfway between those that differ."""
        low, high = self.range.low, self.range.high
        if not self.held:
            return [low, high]
        middle = self.range.middle()
        return [middle] if self.held[low] != self.held[high] and middle not in self.held else []

    def learn(self, value: Any, holds: bool) -> None:
        self.held[value] = holds
        if len(self.held) > 2:
            end = "low" if holds == self.held[self.range.low] else "high"
            self.range = self.range._replace(**{end: value})

    def found(self, name: str, condition: Condition) -> str:
        low, high = self.range.low, self.range.high
        if self.held[low] == self.held[high]:
            return f"{condition} {'holds' if self.held[low] else 'fails'} at both ends, {name} = {low} and {high}"
        best, worst, which = (low, high, "largest") if self.held[low] else (high, low, "smallest")
        return f"{name} = {_brief(best)}: the {which} found with {condition}, which fails at {_brief(worst)}"


def _bisect(
    sweep: Sweep, base: Mapping[str, Any], measuring: Measuring, executor: Executor, store: Store
) -> tuple[list[Row], list[str]]:
    """Halve the range for each combination of the other fields, beside each other; the condition is for all seeds."""
    assert sweep.bisected is not None
    name, whole, condition = sweep.bisected
    groups: dict[str, list[dict[str, Any]]] = {}
    for point in sweep.points():
        groups.setdefault(json.dumps({key: value for key, value in point.items() if key != "seed"}), []).append(point)
    halvings = {group: _Halving(whole) for group in groups}
    rows: dict[tuple[str, Any], list[Row]] = {}
    while tries := [(group, value) for group, halving in halvings.items() for value in halving.wanted()]:
        points = [point | {name: value} for group, value in tries for point in groups[group]]
        made = {json.dumps(row.fields): row for row in rows_of(sweep.runs(base, points), measuring, executor, store)}
        for group, value in tries:
            found = [made[json.dumps(point | {name: value})] for point in groups[group]]
            if found[0].values and condition.name not in found[0].values:
                allowed = ", ".join(found[0].values)
                raise InputError(f"until: {str(condition)!r}, no such measure; allowed: {allowed}")
            halvings[group].learn(value, all(condition.holds(row.values.get(condition.name)) for row in found))
            rows[group, value] = found
    ordered = sorted(rows, key=lambda place: (list(groups).index(place[0]), place[1]))
    notes = [halving.found(name, condition) + _where(group) for group, halving in halvings.items()]
    return [row for place in ordered for row in rows[place]], notes


def _where(group: str) -> str:
    fields = json.loads(group)
    return " (" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items()) + ")" if fields else ""


def _brief(value: float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
