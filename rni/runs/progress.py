"""Progress of long work on standard error: a bar on a terminal, plain lines elsewhere. Nothing depends on it."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rni.runs.store import Store

if TYPE_CHECKING:
    from rni.runs.engine import RunOutcome, Step
    from rni.runs.run import Run
    from rni.training.descent import Callback

LINE_EVERY = 10.0  # seconds between plain lines
LISTED = 200  # with more runs, finished runs get no line each


@contextmanager
def training_progress(steps: int) -> "Iterator[Callback]":
    """Yield a callback for training that shows step, loss and the time that is left."""
    _print_line(f"training for {steps} steps")
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        text = TextColumn("step {task.completed}/{task.total}  loss {task.fields[loss]:.3g}")
        with Progress(BarColumn(), text, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
            bar = progress.add_task("training", total=steps, loss=float("nan"))
            yield lambda step, loss, net: progress.update(bar, completed=step + 1, loss=loss)
        return

    started = last = time.monotonic()
    first: int | None = None  # a training that resumes from a checkpoint does not start at 0

    def line(step: int, loss: float, net: object) -> None:
        nonlocal started, last, first
        now = time.monotonic()
        if first is None:
            first, started, last = step, now, now
            _print_line(f"step {step}/{steps}  loss {loss:.3g}")
        elif now - last >= LINE_EVERY:
            last, left = now, (now - started) * (steps - step) / (step - first)
            _print_line(f"step {step}/{steps}  loss {loss:.3g}  {left:.0f} s left")

    yield line


def _print_line(line: str) -> None:
    with suppress(OSError):  # a full disk must not end a run because the log is on it
        print(line, file=sys.stderr, flush=True)


@contextmanager
def runs_progress(
    specifications: "Sequence[Run]", root: Path, executor: Executor | None = None
) -> "Iterator[Callable[[RunOutcome], None]]":
    """Yield a function for `compute_all` that counts outcomes, and show how far the runs are.

    The steps of running trainings are shown if the executor knows them.
    """
    progress = RunsProgress(specifications, root, executor)
    checkpoints = sum(progress.store.path(key).parent.with_suffix(".checkpoint").exists() for key in progress.left)
    resumed = f", {checkpoints} with a checkpoint" if checkpoints else ""
    _print_line(f"{progress.total} runs, {len(progress.stored)} of them in the store{resumed}")
    with _live(progress) if sys.stderr.isatty() else _lines(progress):
        yield progress.settle


class RunsProgress:
    """How many runs are settled, and how much of the work is done."""

    def __init__(self, specifications: "Sequence[Run]", root: Path, executor: Executor | None = None):
        costs = {specification.key(): specification.cost() for specification in specifications}
        self.store, self.executor = Store(root), executor
        self.total, self.done, self.started = len(costs), 0, time.monotonic()
        self.stored = self.store.finished(costs)
        self.left = {key: cost for key, cost in costs.items() if key not in self.stored}
        self.work = sum(self.left.values()) or 1.0
        self.print_line: Callable[[str], None] = _print_line

    def settle(self, outcome: "RunOutcome") -> None:
        """Count a run, and print a line about it unless it was in the store."""
        self.done += 1
        self.left.pop(outcome.key, None)
        if not outcome.ok:
            self.print_line(f"{self.done}/{self.total}  FAILED  {outcome.label}: {outcome.reason}")
        elif outcome.key not in self.stored and self.total <= LISTED:
            self.print_line(f"{self.done}/{self.total}  {outcome.label}  {outcome.seconds:.1f} s")

    def running(self) -> "list[Step]":
        """Return the steps that running trainings have reached."""
        steps = list(getattr(self.executor, "steps", {}).values())
        return [step for step in steps if step.key in self.left]

    def fraction(self) -> float:
        """Return the part of the work that is done, by the costs of runs and their steps."""
        left = sum(self.left.copy().values())
        left -= sum(self.left.get(step.key, 0.0) * step.step / max(step.steps, 1) for step in self.running())
        return 1 - left / self.work

    def time_left(self) -> str:
        """Return an estimate of the time left, or an empty text if nothing is done yet."""
        fraction = self.fraction()
        if not 0 < fraction < 1:
            return ""
        minutes, seconds = divmod(round((time.monotonic() - self.started) * (1 - fraction) / fraction), 60)
        return f"about {minutes} min {seconds:02} s left" if minutes else f"about {seconds} s left"


@contextmanager
def _lines(progress: RunsProgress) -> Iterator[None]:
    """Print a line for each outcome, and one when there was none for a while."""
    last, is_over = time.monotonic(), threading.Event()

    def print_line(line: str) -> None:
        nonlocal last
        last = time.monotonic()
        _print_line(line)

    def watch() -> None:
        while not is_over.wait(min(1.0, LINE_EVERY)):
            if time.monotonic() - last >= LINE_EVERY:
                print_line(f"{progress.done}/{progress.total}  {progress.time_left()}".rstrip())

    progress.print_line = print_line
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _live(progress: RunsProgress) -> Iterator[None]:
    """Show a bar for all runs and a line for each worker at the foot of a terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(get_renderable=lambda: _picture(progress), console=console, refresh_per_second=2, transient=True):
        progress.print_line = lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)
        yield


def _picture(progress: RunsProgress) -> Any:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    overall, workers = Table.grid(padding=(0, 2)), Table.grid(padding=(0, 2))
    bar = ProgressBar(total=1.0, completed=progress.fraction(), width=40)
    overall.add_row(f"runs {progress.done}/{progress.total}", bar, progress.time_left())
    for step in progress.running():
        workers.add_row("", Text(step.label), f"step {step.step}/{step.steps}", f"loss {step.loss:.3g}")
    return Group(overall, workers)
