"""`rni reproduce`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rni.cli.flags import Scheduler, Store, Workers, require_one_engine, saying_what_is_kept
from rni.core.atomic import require_writable_folder
from rni.core.errors import InputError, did_you_mean


def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID ...]", help="fig5 table1 ...; default: all.")] = None,
    profile: Annotated[
        str, typer.Option(help="quick, paper (1000 neurons), or full (and all seeds: hours).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("report"),
    workers: Workers = None,
    scheduler: Scheduler = None,
    store: Store = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the figures and stop.")] = False,
) -> None:
    """Reproduce the paper: runs, figures, a verdict on every claim, and a report.

    Finished runs are kept: a killed reproduction goes on where it was.
    """
    from rni.papers.listing import chosen_ids, titles

    if list_:
        for name, title in titles().items():
            print(f"{name:<8} {title}")
        return
    from rni.papers.profile import PROFILES

    chosen_ids(ids or [])  # refused before torch is imported, as all of these are
    if profile not in PROFILES:
        raise InputError(f"--profile: {profile!r}; allowed: {', '.join(PROFILES)}{did_you_mean(profile, PROFILES)}")
    require_one_engine(workers, scheduler)
    require_writable_folder(out)

    from rni.runs.engine import cluster, local

    with cluster(scheduler) if scheduler else local(workers).start() as executor, saying_what_is_kept(store):
        from rni.papers.claims import tally
        from rni.papers.reproduce import chosen_figures, reproduce

        outcomes, page = reproduce(chosen_figures(ids or []), PROFILES[profile], out, executor, store)
    for outcome in outcomes:
        for claim in outcome.claims:
            untested = f": {claim.reason}" if claim.measured is None and claim.reason else ""
            print(f"{claim.verdict:<27} {claim.id}{untested}")
        if outcome.failure:
            print(f"{'failed':<27} {outcome.figure.id}: {outcome.failure}")
    for claim in (claim for outcome in outcomes for claim in outcome.claims if claim.verdict == "not reproduced"):
        print(f"{claim.verdict}: {claim.id}, {claim.where}: {claim.statement}")
        print(f"    expected: {claim.expected}; measured: {_measured(claim.measured)}")
    for origin, counts in tally(claim for outcome in outcomes for claim in outcome.claims).items():
        whose = {"paper": "the paper's", "ours": "ours"}[origin]
        print(f"claims, {whose}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    print(f"wrote {page}")
    if failed := sum(bool(outcome.failure) for outcome in outcomes):
        print(f"rni: {failed} of {len(outcomes)} failed; the same command tries those again", file=sys.stderr)
        raise typer.Exit(1)


def _measured(value: float | dict[str, float] | None) -> str:
    named = value.items() if isinstance(value, dict) else [("", value)]
    return ", ".join(f"{name} {number:.4g}".lstrip() for name, number in named)
