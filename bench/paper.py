"""The whole reproduction from an empty store, and where its time goes."""

import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.measuring import AUTHORS_STEPS, Lines, Ratio, alone
from bench.training import plain_step
from rni.papers.fanthomme2021 import PAPER
from rni.papers.figure import PROFILES
from rni.papers.reproduce import reproduce
from rni.runs.engine import local


def by_figure() -> Lines:
    begun, used = time.monotonic(), processor()
    with tempfile.TemporaryDirectory() as store, local() as executor:
        outcomes, page = reproduce(PAPER, [], PROFILES["paper"], Path("report"), executor, Path(store))
    minutes, used = (time.monotonic() - begun) / 60, processor() - used
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
    yield f"\nFrom the start to {page}: {minutes:.1f} minutes, {used:.0f} s of processor time."
    plain = alone(plain_step)[0] * AUTHORS_STEPS / 1e3
    yield f"One training the plain way, at the authors' settings, would take {plain:.0f} s of it."
    yield Ratio("the whole paper / one training the plain way", used / plain)


def processor() -> float:
    """Seconds of this process and of those that it has seen end."""
    return sum(os.times()[:4])


def tables() -> dict[str, Lines]:
    return {"Time and claims by figure": by_figure()}


TITLE = "The whole paper"
ABOUT = """`rni reproduce --profile paper` from an empty store, both protocols of Table 1: 1000 neurons. Seconds of
processor time; runs that several figures share count for the first of them. Other machines, and how it was before:
below."""
