"""Sweeps are carried out here: runs are computed, or read from the store, and measured, and a table is made."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rni.core.errors import InputError
from rni.runs.engine import Here, cluster, compute_all, local
from rni.runs.measures import Measuring, columns, sources
from rni.runs.numerics import differences
from rni.runs.progress import runs_progress
from rni.runs.run import Run, require_run
from rni.runs.store import Store
from rni.runs.sweep import MOST_RUNS, Sweep, SweptRun
from rni.runs.table import Row, Table

if TYPE_CHECKING:
    from rni.runs.execution import Result


def carry_out(
    sweep: Sweep, base: Mapping[str, Any], executor: Executor, store: Path | None = None, *, most: int = MOST_RUNS
) -> Table:
    """Return the table of a sweep.

    Finished runs are not computed again, and stored measures are not measured again. A run that diverges or fails is a
    row with the reason. A measure that fails is empty in its row.
    """
    sources(sweep.measure)
    if (count := sweep.count()) > most:
        raise InputError("sweep", count, f"up to {most} runs, or more with --yes (in Python: most={count})")
    place = Store(store)
    rows = _rows(sweep.runs(base, list(sweep.points())), Measuring(sweep.measure), executor, place)
    finished = place.finished(row.key for row in rows if row.key)
    note = differences(place.origins(finished))
    return Table(tuple(sweep.fields), sweep.measure, tuple(rows), tuple(sweep.drawn), (note,) if note else ())


def _rows(runs: Sequence[SweptRun], measuring: Measuring, executor: Executor, store: Store) -> list[Row]:
    """Return a row for each distinct run, from what the store has or else computed and measured."""
    wanted = sources(measuring.names)
    by_key = {run.specification.key(): run for run in runs if run.specification is not None}
    finished = store.finished(by_key)
    rows: dict[str, Row] = {}

    def settle(key: str, values: Mapping[str, Any]) -> None:
        found, reasons = columns(wanted, values)
        rows[key] = Row(by_key[key].fields, by_key[key].specification, found, "; ".join(reasons) or None)

    def fail(key: str, reason: str) -> None:
        rows[key] = Row(by_key[key].fields, by_key[key].specification, {}, reason)

    for key in by_key:
        values = store.measured(key)
        if "diverged" in values:
            fail(key, values["diverged"])
        elif key in finished and all(source.kept_as in values for source in wanted.values()):
            settle(key, values)

    left = [run.specification for key, run in by_key.items() if key not in rows and run.specification is not None]
    if left:
        store.require_writable()
        with runs_progress(left, store.root, executor) as on_event:
            for key, outcome in compute_all(left, store.root, executor, on_event, measuring).items():
                if outcome.reason is None:
                    settle(key, outcome.value)
                else:
                    fail(key, outcome.reason)
    impossible = [
        Row(run.fields, None, {}, " ".join(str(run.failure).split())) for run in runs if not run.specification
    ]
    return [rows[key] for key in by_key] + impossible


def run_all(
    specifications: Iterable[Run],
    *,
    store: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> "list[Result]":
    """Compute runs in parallel through the store.

    Parameters
    ----------
    specifications : iterable of Run
        The runs.
    store : Path, optional
        The folder of finished runs, by default in the user's cache folder.
    workers : int, optional
        The number of local processes, by default one for each core; 0 computes in this process.
    scheduler : str, optional
        The address of a Dask scheduler, which is used instead of local processes.

    Returns
    -------
    list of Result
        The results in the order of `specifications`.

    Raises
    ------
    InputError
        If a run fails. The error names the failed runs. All others are in the store by then.

    Examples
    --------
    >>> raw = {"task": {"decays": [0.8]}, "network": {"neurons": 20}, "training": {"loss": "proxy", "steps": 50}}
    >>> results = rni.run_all([rni.parse_run(raw | {"seed": seed}) for seed in (0, 1)], workers=0)
    >>> [len(result.losses) for result in results]
    [50, 50]
    """
    given = [specifications] if isinstance(specifications, Run) else list(specifications)
    for specification in given:
        require_run(specification)
    place = Store(store)
    with (
        executor_of(workers, scheduler) as executor,
        runs_progress(given, place.root, executor) as on_event,
    ):
        outcomes = compute_all(given, place.root, executor, on_event)
    if failed := [f"{outcome.label}: {outcome.reason}" for outcome in outcomes.values() if not outcome.ok]:
        problem = f"{len(failed)} of {len(outcomes)} failed: {'; '.join(failed)}"
        raise InputError("runs", failed, "runs that can be computed", problem=problem)
    return [place.compute(specification) for specification in given]


def executor_of(workers: int | None, scheduler: str | None) -> Executor:
    """Return an executor of local processes, of this process (0 workers), or of a cluster."""
    if workers is not None and scheduler is not None:
        raise InputError("scheduler", scheduler, "one of the two", problem="given with workers")
    if scheduler:
        return cluster(scheduler)
    return Here() if workers == 0 else local(workers)
