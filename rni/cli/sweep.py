"""`rni sweep`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rni.cli.files import require_kind
from rni.cli.flags import Scheduler, Store, Workers, require_one_engine, saying_what_is_kept
from rni.core.errors import InputError

Fields = Annotated[
    list[str] | None, typer.Option(metavar="FIELD=VALUES", help="The values of a field. May be repeated.")
]


def sweep(
    base: Annotated[Path, typer.Argument(metavar="BASE.toml", help="A configuration, perhaps with a table [sweep].")],
    over: Fields = None,
    zip: Annotated[list[str] | None, typer.Option(metavar="FIELD=VALUES", help="Fields that vary together.")] = None,
    measure: Annotated[list[str] | None, typer.Option(metavar="NAME,...", help="ratio,error,loss,...")] = None,
    kind: Annotated[str | None, typer.Option(help="train or design.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the table and the page.")] = Path("sweep"),
    x: Annotated[str | None, typer.Option(metavar="FIELD", help="Draw against this field only.")] = None,
    y: Annotated[str | None, typer.Option(metavar="NAME,...", help="Draw these measures only.")] = None,
    by: Annotated[str | None, typer.Option(metavar="FIELD", help="Draw a line for each of its values.")] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    store: Store = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:FUNCTION", help="A measure in BASE.toml that may run its code.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask about the number of runs.")] = False,
) -> None:
    """Compute and measure many runs, and show them as a table and in plots.

    VALUES: 100,300,1000; 0..9; 0.5..2.0:linear:4; 1e-3..1e-1:log:5; 1e-3..1e-1:random:20 (or lograndom), drawn
    together. Measures: all fields of `rni analyze`, by name (ratio, error, fitted_decays, ...); loss, steps,
    steps@0.001, seconds, certificate; MODULE:FUNCTION of your own.

    Finished runs are stored: a killed sweep resumes. The exit code is 1 if a run failed.
    """
    from rni.core.atomic import require_writable_folder
    from rni.pages.template import require_own
    from rni.runs.sweep import MOST_RUNS, planned

    require_one_engine(workers, scheduler)
    require_kind(base, ("configuration", "text", "empty"), "a configuration, BASE.toml")
    names = ",".join(measure) if measure else None
    fields = {"over": _fields("--over", over), "zip": _fields("--zip", zip)}
    raw, plan = planned(base, allow=allow or (), **fields, measure=names, kind=kind, x=x, y=y, by=by)
    require_writable_folder(out)
    require_own(out, "index.html", "table.csv")

    from rni.pages.sweep import write
    from rni.runs.sweeping import carry_out, executor_of

    most = sys.maxsize if yes else MOST_RUNS
    with executor_of(workers, scheduler) as executor, saying_what_is_kept(store):
        table = carry_out(plan, raw, executor, store, most=most)
    for note in table.notes:
        print(f"rni: {note}", file=sys.stderr)
    print(f"wrote {', '.join(map(str, write(table, plan, out, base.name)))}: {len(table)} runs")

    # Failed runs come first in the message, because they decide the exit code.
    failures = [row.failure for row in sorted(table.rows, key=lambda row: not row.failed) if row.failure]
    if failures:
        print(f"rni: {len(failures)} of {len(table)} with a failure, the first: {failures[0]}", file=sys.stderr)
    is_empty = all(value is None for row in table.rows for value in row.values.values())
    if any(row.failed for row in table.rows) or (failures and is_empty):
        raise typer.Exit(1)


def _fields(flag: str, given: list[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    values_of: dict[str, str] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or name in values_of:
            problem = f"{text!r}, {'given twice' if name in values_of else 'without values'}"
            raise InputError(flag, text, "FIELD=VALUES, each field once", problem=problem)
        values_of[name] = values
    return values_of
