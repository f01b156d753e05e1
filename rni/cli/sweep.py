"""`rni sweep`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rni.cli.files import require_kind
from rni.cli.flags import Scheduler, Store, Workers, require_one_engine, saying_what_is_kept
from rni.core.errors import InputError

Fields = Annotated[list[str] | None, typer.Option(metavar="FIELD=VALUES", help="A field's values; again for others.")]


def sweep(
    base: Annotated[Path, typer.Argument(metavar="BASE.toml", help="A specification, perhaps with a table [sweep].")],
    over: Fields = None,
    zip: Annotated[list[str] | None, typer.Option(metavar="FIELD=VALUES", help="Fields that vary together.")] = None,
    measure: Annotated[list[str] | None, typer.Option(metavar="NAME,...", help="ratio,error,loss,...")] = None,
    kind: Annotated[str | None, typer.Option(help="train or design.")] = None,
    until: Annotated[str | None, typer.Option(metavar="CONDITION", help="'error < 0.01', for A..B:bisect.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of table and page.")] = Path("sweep"),
    x: Annotated[str | None, typer.Option(metavar="FIELD", help="Draw against this field only.")] = None,
    y: Annotated[str | None, typer.Option(metavar="NAME,...", help="Draw these measures only.")] = None,
    by: Annotated[str | None, typer.Option(metavar="FIELD", help="Draw a line for each of its values.")] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    store: Store = None,
    tensorboard: Annotated[Path | None, typer.Option(metavar="DIR", help="Losses for TensorBoard.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="However many runs there are.")] = False,
) -> None:
    """Many runs from one: compute, measure, and show them as a table and in plots.

    VALUES: 100,300,1000; 0..9; 0.5..2.0:linear:4; 1e-3..1e-1:log:5; 1e-3..1e-1:random:20 (or lograndom), drawn
    together; 20..2000:bisect, halved until the condition just holds. Measures: whatever `rni analyze` gives, by name
    (ratio, error, fitted_decays, ...); loss, steps, steps@0.001, seconds, certificate; MODULE:FUNCTION of your own.

    Finished runs are kept: a killed sweep goes on where it was.
    """
    from rni.core.atomic import require_writable_folder
    from rni.pages.template import require_own
    from rni.runs.sweep import MOST, planned

    require_one_engine(workers, scheduler)
    require_kind(base, ("configuration", "text", "empty"), "a configuration, BASE.toml")
    names = ",".join(measure) if measure else None
    raw, plan = planned(
        base,
        over=_fields("--over", over),
        zip=_fields("--zip", zip),
        measure=names,
        kind=kind,
        until=until,
        x=x,
        y=y,
        by=by,
    )
    require_writable_folder(out)
    require_own(out, "index.html", "table.csv", "table.parquet")

    from rni.pages.sweep import write
    from rni.runs.sweeping import carry_out, executor_of
    from rni.runs.tensorboard import TensorBoard

    options = {} if tensorboard is None else {"watching": TensorBoard(tensorboard)}
    most = sys.maxsize if yes else MOST
    with executor_of(workers, scheduler) as executor, saying_what_is_kept(store):
        table = carry_out(plan, raw, executor, store, most=most, **options)
    for note in table.notes:
        print(note)
    print(f"wrote {', '.join(map(str, write(table, plan, out, base.name)))}: {len(table)} runs")
    # those of failed runs first: they decide the exit code, so the user has to see one of them
    failures = [row.failure for row in sorted(table.rows, key=lambda row: not row.failed) if row.failure]
    if failures:
        print(f"rni: {len(failures)} of {len(table)} with a failure, the first: {failures[0]}", file=sys.stderr)
    # a bisection expects failures: a run without a result is one for which the condition does not hold
    failed = plan.bisected is None and any(row.failed for row in table.rows)
    empty = all(value is None for row in table.rows for value in row.values.values())
    if failures and (failed or empty):
        raise typer.Exit(1)


def _fields(flag: str, given: list[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    found: dict[str, str] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or name in found:
            reason = "given twice" if name in found else "no values"
            raise InputError(f"{flag}: {text!r}, {reason}; allowed: FIELD=VALUES, each field once")
        found[name] = values
    return found
