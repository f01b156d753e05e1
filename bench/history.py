"""What was measured before: a line of JSON for each run of the benchmark, and how its ratios went since.

Machines differ and are shared, so that seconds are not kept: only ratios of what was measured in the same run.
"""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measuring import load, machine

HISTORY = Path(__file__).parent / "history.jsonl"
SHOWN = 24  # of the last values
BARS = "▁▂▃▄▅▆▇█"
TITLE = "History"
ABOUT = """Ratios of each run of the benchmark, from `bench/history.jsonl`: of two things measured in the same run, so
that they can be compared between machines. A bar is between the smallest and the largest of the last ones."""


def append(ratios: dict[str, float]) -> None:
    """A line for this run."""
    entry = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": machine(),
        "load": load(),
        "ratios": ratios,
    }
    with HISTORY.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def section() -> str:
    """The trend of each ratio, as a section of the page; nothing where there is none."""
    lines = HISTORY.read_text(encoding="utf-8").splitlines() if HISTORY.exists() else []
    runs: list[dict[str, Any]] = [json.loads(line) for line in lines]
    names = dict.fromkeys(name for run in runs for name in run["ratios"])
    rows = [_row(name, [run for run in runs if name in run["ratios"]]) for name in names]
    head = ["| ratio | runs | first | last | at commit | trend |", "|---|---|---|---|---|---|"]
    return "\n".join([f"## {TITLE}\n\n{ABOUT}\n", *head, *rows]) + "\n" if rows else ""


def sparkline(values: list[float]) -> str:
    """A bar for each value, from the smallest to the largest of them."""
    least, most = min(values), max(values)
    part = [(value - least) / (most - least) if most > least else 0.5 for value in values]
    return "".join(BARS[round(each * (len(BARS) - 1))] for each in part)


def _row(name: str, runs: list[dict[str, Any]]) -> str:
    values = [run["ratios"][name] for run in runs]
    ends = f"{values[0]:.3g} | {values[-1]:.3g} | {runs[-1]['commit']}"
    return f"| {name} | {len(runs)} | {ends} | {sparkline(values[-SHOWN:])} |"


def _commit() -> str:
    """As git tells it, with a plus where files differ from it."""
    told = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        return subprocess.run(
            told, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
