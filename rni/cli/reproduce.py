"""The command `rni reproduce`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rni.cli.flags import Scheduler, Store, Workers, require_one_engine, saying_what_is_kept
from rni.core.atomic import require_writable_folder
from rni.core.errors import InputError, nearest


def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID ...]", help="fig5 table1 ...; default: all.")] = None,
    profile: Annotated[
        str, typer.Option(help="quick, paper (1000 neurons), or full (and all seeds: hours).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("report"),
    workers: Workers = None,
    scheduler: Scheduler = None,
    store: Store = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures and exit.")] = False,
    paper: Annotated[
        str, typer.Option(metavar="MODULE", help="The package of another paper.")
    ] = "rni.papers.fanthomme2021",
) -> None:
    """Reproduce the paper: runs, figures, a verdict on every claim, and a report.

    Finished runs are kept: an interrupted reproduction resumes where it stopped.
    """
    from rni.papers.figure import PROFILES, load_paper

    guest = load_paper(paper)
    if list_:
        for id, title in guest.titles().items():
            print(f"{id:<8} {title}")
        return

    # all arguments are checked before torch is imported
    chosen = guest.select([id for text in ids or [] for id in text.replace(",", " ").split()])
    if profile not in PROFILES:
        raise InputError("--profile", profile, ", ".join(PROFILES), hint=nearest(profile, PROFILES))
    require_one_engine(workers, scheduler)
    require_writable_folder(out)

    from rni.runs.engine import cluster, local

    with cluster(scheduler) if scheduler else local(workers).start() as executor, saying_what_is_kept(store):
        from rni.papers.claims import tally
        from rni.papers.reproduce import reproduce

        outcomes, page = reproduce(guest, chosen, PROFILES[profile], out, executor, store)

    claims = [claim for outcome in outcomes for claim in outcome.claims]
    for outcome in outcomes:
        for claim in outcome.claims:
            untested = f": {claim.reason}" if claim.measured is None and claim.reason else ""
            print(f"{claim.verdict:<27} {claim.id}{untested}")
        if outcome.failure:
            print(f"{'failed':<27} {outcome.figure.id}: {outcome.failure}")
    for claim in claims:
        if claim.verdict == "not reproduced":
            values = claim.measured.items() if isinstance(claim.measured, dict) else [("", claim.measured)]
            measured = ", ".join(f"{name} {value:.4g}".lstrip() for name, value in values)
            print(f"{claim.verdict}: {claim.id}, {claim.where}: {claim.statement}")
            print(f"    expected: {claim.expected}; measured: {measured}")
    for origin, counts in tally(claims).items():
        whose = {"paper": "the paper's", "ours": "ours"}[origin]
        print(f"claims, {whose}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    print(f"wrote {page}")

    if failed := sum(bool(outcome.failure) for outcome in outcomes):
        print(f"rni: {failed} of {len(outcomes)} failed; the same command tries those again", file=sys.stderr)
        raise typer.Exit(1)
