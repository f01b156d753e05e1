"""Reproduction of a paper: compute the runs, measure and draw the figures, judge the claims and write the report."""

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

import matplotlib
import numpy as np
import scipy
import torch
from matplotlib import rc_context

import rni
from rni.core.atomic import os_error_text, require_writable_folder, write_atomically
from rni.core.errors import InputError
from rni.core.threads import threads
from rni.pages.template import require_own
from rni.papers.figure import Figure, Measured, Paper, Profile, load_paper
from rni.papers.report import Outcome, write_report
from rni.plots.style import Picture, picture
from rni.runs.engine import TRIES, ClusterLost, compute_all, result
from rni.runs.execution import Result
from rni.runs.progress import runs_progress
from rni.runs.run import Run
from rni.runs.store import Store

DRAWING = threading.Lock()  # matplotlib's settings belong to the process, and a worker may have several threads


def reproduce(
    paper: Paper,
    ids: Sequence[str],
    profile: Profile,
    out: Path,
    executor: Executor,
    store: Path | None = None,
) -> tuple[list[Outcome], Path]:
    """Reproduce figures of a paper and write a report.

    A run or a figure that fails is reported with the reason, and the others continue.

    Parameters
    ----------
    paper : Paper
    ids : sequence of str
        The figures. An empty sequence means all of them.
    profile : Profile
    out : Path
        The folder of the report.
    executor : Executor
        Computes the runs and measures the figures.
    store : Path, optional
        The folder of finished runs. The default is in the cache folder of the user.

    Returns
    -------
    outcomes : list of Outcome
        One for each figure.
    page : Path
        The main page of the report.
    """
    started = time.monotonic()
    figures = [paper.figure(id) for id in paper.select(ids)]
    outcomes = [Outcome(figure, list(figure.runs(profile))) for figure in figures]
    needed = [{s.key(): s for s in outcome.specifications} for outcome in outcomes]
    specifications = {key: specification for several in needed for key, specification in several.items()}

    results = Store(store)
    finished = results.finished(specifications)
    require_writable_folder(out)
    require_own(out, "index.html")
    if len(finished) < len(specifications):
        results.require_writable()
    with runs_progress(list(specifications.values()), results.root, executor) as on_event:
        runs = compute_all(specifications.values(), results.root, executor, on_event)
    failed = {key: run.reason for key, run in runs.items() if run.reason is not None}

    # a run that several figures need counts for the first of them
    counted = set(finished)
    for outcome, several in zip(outcomes, needed, strict=True):
        reasons = [failed[key] for key in several if key in failed]
        if reasons:
            outcome.failure = f"{len(reasons)} of {len(outcome.specifications)} runs failed: {reasons[0]}"
        outcome.training = sum(runs[key].processor for key in several.keys() - counted)
        counted |= several.keys()

    measure_all(paper, outcomes, profile, results.root, executor, out)
    write_claims(outcomes, out / "claims.json")
    summary = {
        "profile": profile,
        "minutes": f"{(time.monotonic() - started) / 60:.1f}",
        "runs": len(specifications),
        "computed": len(set(specifications) - finished - set(failed)),
        "circumstances": circumstances(),
    }
    return outcomes, write_report(paper, outcomes, out, summary)


def measure_all(
    paper: Paper, outcomes: Sequence[Outcome], profile: Profile, store: Path, executor: Executor, out: Path
) -> None:
    """Measure, judge and draw the figures that have not failed, in parallel.

    If a worker dies, the remaining figures are measured again, and finally one at a time.
    """

    def order(outcome: Outcome) -> tuple[bool, int]:
        """Start the longest measurements first, so that no long one runs alone at the end."""
        runs = len(outcome.specifications)
        return bool(runs) and not outcome.figure.computes, -runs

    def measure_together(waiting: Sequence[Outcome]) -> list[Outcome]:
        """Return the figures that were not measured because a worker died."""
        futures = {executor.submit(measure, paper.module, o.figure.id, profile, store): o for o in waiting}
        remaining = []
        for future in as_completed(futures):
            outcome = futures[future]
            try:
                outcome.measured, drawn, outcome.seconds = result(future)
                outcome.claims = list(outcome.figure.claims(outcome.measured))
                if isinstance(drawn, str):
                    outcome.failure = drawn
                else:
                    write_figure(outcome, drawn, out)
            except BrokenExecutor:
                remaining.append(outcome)
                continue
            except ClusterLost:
                raise
            except OSError as error:
                outcome.failure = os_error_text(error)
            except Exception as error:  # the report shows the error, and the other figures continue
                outcome.failure = _error_line(error)
            with suppress(OSError):  # a closed terminal must not end the reproduction
                message = outcome.failure or f"measured in {outcome.seconds:.1f} s"
                print(f"{outcome.figure.id}: {message}", file=sys.stderr)
        return remaining

    remaining = sorted((outcome for outcome in outcomes if not outcome.failure), key=order)
    for _ in range(TRIES):
        remaining = measure_together(remaining)
    for outcome in remaining:
        if measure_together([outcome]):
            outcome.failure = "the worker process died, with this figure alone: killed, or out of memory"


@dataclass(frozen=True)
class StoredResults:
    """Results of finished runs, read from the store when they are needed."""

    store: Store

    def __getitem__(self, specification: Run) -> Result:
        result = self.store.get(specification)
        if result is None:
            raise InputError("run", specification.key()[:8], "a finished run", problem="not in the store")
        return result


class Drawn(NamedTuple):
    """The PNG and the SVG of a figure, and the description of the drawing for the page."""

    picture: Picture
    files: dict[str, bytes]


def measure(module: str, id: str, profile: Profile, store: Path) -> tuple[Measured, Drawn | str, float]:
    """Measure and draw one figure, in a worker process.

    Returns
    -------
    measured : dict
    drawn : Drawn or str
        The drawing, or the error with which drawing failed: the measurements are used all the same.
    seconds : float
        The processor time of measuring.
    """
    figure = load_paper(module).figure(id)
    started = time.process_time()
    with threads(1):  # the number of threads affects rounding
        measured = figure.measure(StoredResults(Store(store)), profile)
    seconds = time.process_time() - started
    try:
        return measured, draw(figure, measured), seconds
    except Exception as error:
        return measured, _error_line(error), seconds


def draw(figure: Figure, measured: Measured) -> Drawn:
    """Draw a figure as PNG and SVG. The same measurements give the same bytes."""
    files = {file_type: io.BytesIO() for file_type in ("png", "svg")}
    with (
        DRAWING,
        rc_context({"svg.hashsalt": figure.id}),  # otherwise the names within the SVG are random
        rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}),
    ):
        drawing = figure.draw(measured)
        description = picture(drawing)
        drawing.set_layout_engine(None)  # `picture` has computed the layout; each file would compute it again
        drawing.savefig(files["png"], format="png", metadata={"Software": None})
        drawing.savefig(files["svg"], format="svg", metadata={"Date": None})
    return Drawn(description, {file_type: file.getvalue() for file_type, file in files.items()})


def write_figure(outcome: Outcome, drawn: Drawn, folder: Path) -> None:
    """Write the drawing as PNG and SVG, and its numbers as NPZ."""
    outcome.picture = drawn.picture
    numbers = io.BytesIO()
    np.savez_compressed(numbers, **dict[str, Any](outcome.measured))
    for file_type, content in (drawn.files | {"npz": numbers.getvalue()}).items():
        write_atomically(folder / f"{outcome.figure.id}.{file_type}", content)


def write_claims(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write claims.json: the list of claims, each with the fields of `Claim` and its verdict."""
    entries = [claim.to_dict() for outcome in outcomes for claim in outcome.claims]
    write_atomically(path, (json.dumps(entries, indent=2, allow_nan=True) + "\n").encode())


def circumstances() -> Mapping[str, str]:
    """Return the versions of the software and the kind of machine."""
    return {
        "rni": rni.__version__,
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "Matplotlib": matplotlib.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _error_line(error: Exception) -> str:
    """Return the name and the message of an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
