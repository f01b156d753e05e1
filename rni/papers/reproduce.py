"""From specifications to figures, claims and report."""

import importlib
import io
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context

from rni.core.atomic import os_error_text, require_writable_folder, write_atomically
from rni.core.errors import InputError
from rni.core.threads import threads
from rni.pages.template import require_own
from rni.papers.fanthomme2021 import figures
from rni.papers.figure import Figure, Measured, Profile
from rni.papers.listing import chosen_ids, titles
from rni.papers.outcome import Outcome
from rni.papers.report import write_report
from rni.plots.style import Picture, picture
from rni.runs.engine import TRIES, ClusterLost, compute_all, result
from rni.runs.execution import Result
from rni.runs.progress import runs_progress
from rni.runs.specification import Specification
from rni.runs.store import Store

DRAWING = threading.Lock()  # Matplotlib's settings are those of the process, and a worker may have several threads


def all_figures() -> dict[str, Figure]:
    """Every figure and table by id, in the paper's order."""
    return {name: figure(name) for name in titles()}


def figure(name: str) -> Figure:
    """The figure of that id; no other is imported."""
    return importlib.import_module(f"{figures.__name__}.{name}").FIGURE


def chosen_figures(ids: Sequence[str]) -> list[Figure]:
    """The figures of the given ids, or all of them."""
    chosen = chosen_ids(ids)
    return [figure(name) for name in titles() if not chosen or name in chosen]


@dataclass(frozen=True)
class StoredRuns:
    """Finished runs, read from the store when they are asked for."""

    store: Store

    def __getitem__(self, specification: Specification) -> Result:
        result = self.store.get(specification)
        if result is None:
            raise InputError(f"run {specification.key()[:8]}: not finished; allowed: a finished one")
        return result


def reproduce(
    chosen: Sequence[Figure], profile: Profile, out: Path, executor: Executor, store: Path | None = None
) -> tuple[list[Outcome], Path]:
    """Compute the runs of the chosen figures, measure, judge, draw and report into the folder `out`.

    A run or a figure that fails is reported with its reason, and the others go on.
    """

    begun = time.monotonic()
    root = Store(store).root
    specifications = {s.key(): s for figure in chosen for s in figure.runs(profile)}
    finished = Store(root).finished(specifications)
    require_writable_folder(out)
    require_own(out, "index.html")
    if len(finished) < len(specifications):
        Store(root).require_writable()
    with runs_progress(list(specifications.values()), root, executor) as on_event:
        runs = compute_all(specifications.values(), root, executor, on_event)
    failed = {key: run.reason for key, run in runs.items() if run.reason is not None}
    outcomes = measure_all(chosen, profile, root, executor, failed, out)
    shared: set[str] = set()
    for outcome in outcomes:
        own = {specification.key() for specification in outcome.specifications} - shared - finished
        outcome.training = sum(runs[key].processor for key in own)
        shared |= own
    write_claims(outcomes, out / "claims.json")
    summary = {
        "profile": profile,
        "minutes": f"{(time.monotonic() - begun) / 60:.1f}",
        "runs": len(specifications),
        "computed": len(set(specifications) - finished - set(failed)),
        "circumstances": circumstances(),
    }
    return outcomes, write_report(outcomes, out, summary)


class Drawn(NamedTuple):
    """A figure's PNG and SVG, and how it stands on a page."""

    picture: Picture
    files: dict[str, bytes]


def measure(name: str, profile: Profile, store: Path) -> tuple[Measured, Drawn | str, float]:
    """A figure's measurements, its drawing or why there is none, and the seconds of processor time that measuring took:
    what a worker does."""
    begun = time.process_time()
    with threads(1):  # the same bits anywhere
        measured = figure(name).measure(StoredRuns(Store(store)), profile)
    seconds = time.process_time() - begun
    try:
        return measured, draw(figure(name), measured), seconds
    except Exception as error:  # the measurements are worth more
        return measured, _in_words(error), seconds


def draw(figure: Figure, measured: Measured) -> Drawn:
    """The drawing as PNG and SVG."""
    files = {kind: io.BytesIO() for kind in ("png", "svg")}
    with (
        DRAWING,
        rc_context({"svg.hashsalt": figure.id}),  # the same names within the file each time
        rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}),
    ):
        drawing = figure.draw(measured)
        seen = picture(drawing)
        drawing.set_layout_engine(None)  # found by now; any engine, "none" too, would draw everything once more a file
        drawing.savefig(files["png"], format="png", metadata={"Software": None})
        drawing.savefig(files["svg"], format="svg", metadata={"Date": None})
    return Drawn(seen, {kind: file.getvalue() for kind, file in files.items()})


def judge(outcome: Outcome) -> None:
    """Claims from measurements."""
    outcome.claims = list(outcome.figure.claims(outcome.measured))


def measure_all(
    chosen: Sequence[Figure],
    profile: Profile,
    store: Path,
    executor: Executor,
    failed_runs: Mapping[str, str],
    out: Path,
) -> list[Outcome]:
    """Measure each figure whose runs are finished, beside each other, and draw it; a failure is the figure's own.

    First those that compute much themselves, as all do that need no runs, then those of most networks: the longest
    should not be alone in the end. When a worker dies, those that are left are measured again, finally one at a time.
    """
    outcomes = [Outcome(figure, list(figure.runs(profile))) for figure in chosen]
    for outcome in outcomes:
        reasons = [failed_runs[s.key()] for s in outcome.specifications if s.key() in failed_runs]
        if reasons:
            outcome.failure = f"{len(reasons)} of {len(outcome.specifications)} runs failed: {reasons[0]}"
    left = sorted((o for o in outcomes if not o.failure), key=_soon)
    for _ in range(TRIES):
        left = _measure_together(left, profile, store, executor, out)
    for outcome in left:
        if _measure_together([outcome], profile, store, executor, out):
            outcome.failure = "the worker process died, with this figure alone: killed, or out of memory"
    return outcomes


def _soon(outcome: Outcome) -> tuple[bool, int]:
    runs = len(outcome.specifications)
    return bool(runs) and not outcome.figure.computes, -runs


def _measure_together(
    outcomes: Sequence[Outcome], profile: Profile, store: Path, executor: Executor, out: Path
) -> list[Outcome]:
    """Measure, draw and judge as far as no worker dies; what is left."""
    waiting = {executor.submit(measure, outcome.figure.id, profile, store): outcome for outcome in outcomes}
    left = []
    for future in as_completed(waiting):
        outcome = waiting[future]
        try:
            outcome.measured, drawn, outcome.seconds = result(future)
            judge(outcome)
            if isinstance(drawn, str):
                outcome.failure = drawn
            else:
                write_figure(outcome, drawn, out)
        except BrokenExecutor:
            left.append(outcome)
            continue
        except ClusterLost:
            raise
        except OSError as error:
            outcome.failure = os_error_text(error)
        except Exception as error:  # a figure that fails is a red line in the report, not the end of the others
            outcome.failure = _in_words(error)
        with suppress(OSError):  # what is measured is worth more than to say so
            print(f"{outcome.figure.id}: {outcome.failure or f'measured in {outcome.seconds:.1f} s'}", file=sys.stderr)
    return left


def _in_words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def write_figure(outcome: Outcome, drawn: Drawn, folder: Path) -> None:
    """The drawing as PNG and SVG and its numbers as NPZ, each written whole."""
    outcome.picture = drawn.picture
    numbers = io.BytesIO()
    np.savez_compressed(numbers, **dict[str, Any](outcome.measured))
    for kind, content in (drawn.files | {"npz": numbers.getvalue()}).items():
        write_atomically(folder / f"{outcome.figure.id}.{kind}", content)


def write_claims(outcomes: Sequence[Outcome], path: Path) -> None:
    """claims.json: the list of claims, each with the fields of `Claim` and its verdict."""
    entries = [claim.to_dict() for outcome in outcomes for claim in outcome.claims]
    write_atomically(path, (json.dumps(entries, indent=2, allow_nan=True) + "\n").encode())


def circumstances() -> dict[str, str]:
    """Where and with what a reproduction was made."""
    import matplotlib
    import scipy
    import torch

    import rni

    return {
        "rni": rni.__version__,
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "Matplotlib": matplotlib.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
