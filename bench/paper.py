"""The whole reproduction from an empty store, and where its time goes."""

import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.measuring import Lines
from rni.paper.figure import PROFILES
from rni.paper.reproduce import all_figures, reproduce
from rni.runs.engine import local


def by_figure() -> Lines:
    chosen, begun = list(all_figures().values()), time.monotonic()
    with tempfile.TemporaryDirectory() as store, local() as executor:
        outcomes, page = reproduce(chosen, PROFILES["paper"], Path("report"), executor, Path(store))
    minutes = (time.monotonic() - begun) / 60
    yield "| figure | runs | training, s | measuring, s | claims reproduced | not reproduced |"
    yield "|---|---|---|---|---|---|"
    for outcome in outcomes:
        claims = outcome.claims
        failed = ", ".join(c.id.partition(".")[2] for c in claims if c.verdict == "not reproduced")
        counts = f"{sum(c.verdict == 'reproduced' for c in claims)} | {outcome.failure or failed}"
        row = f"{len(outcome.specifications)} | {outcome.training:.0f} | {outcome.seconds:.0f} | {counts}"
        yield f"| {outcome.figure.id} | {row} |"
    training, seconds = sum(o.training for o in outcomes), sum(o.seconds for o in outcomes)
    runs = len({s.key() for o in outcomes for s in o.specifications})
    verdicts = Counter(claim.verdict for o in outcomes for claim in o.claims)
    counts = f"{verdicts['reproduced']} | {verdicts['not reproduced']}"
    yield f"| all | {runs} | {training:.0f} | {seconds:.0f} | {counts} |"
    yield f"\nFrom the start to {page}: {minutes:.1f} minutes."


def tables() -> dict[str, Lines]:
    return {"Time and claims by figure": by_figure()}


TITLE = "The whole paper"
ABOUT = """`rni reproduce --profile paper` from an empty store: 1000 neurons. Seconds of processor time; runs
that several figures share count for the first of them."""
