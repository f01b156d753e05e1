"""Progress of long work: a bar on a terminal, plain lines elsewhere.

Workers, wherever they are, say what they do in small files beside the runs: ROOT/status/HOST-PID-THREAD.json.
"""

import json
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rni.core.atomic import SILENT, alive, me, remove_left_over, write_atomically
from rni.core.errors import InputError
from rni.runs.store import Store

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from rni.runs.engine import RunOutcome
    from rni.runs.specification import Specification
    from rni.training.descent import Callback

LINE_EVERY = 10.0  # seconds between plain lines
REPORT_EVERY = 0.5  # seconds between reports of a worker
MARKER_LIFETIME = 7 * 24 * 3600.0  # seconds; a marker of another machine is written once, at the start of its command
POINTS = 64  # at most, of the curve of losses that a worker reports
EACH = 200  # runs of which each is worth a line when it is done
BARS = "▁▂▃▄▅▆▇█"


@contextmanager
def training_progress(steps: int) -> "Iterator[Callback]":
    """A callback for training that shows step, loss and time left on standard error."""
    _say(f"training for {steps} steps")
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        text = TextColumn("step {task.completed}/{task.total}  loss {task.fields[loss]:.3g}")
        with Progress(BarColumn(), text, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
            bar = progress.add_task("training", total=steps, loss=float("nan"))
            yield lambda step, loss, net: progress.update(bar, completed=step + 1, loss=loss)
        return

    begun = last = time.monotonic()
    first: int | None = None

    def line(step: int, loss: float, net: object) -> None:
        nonlocal begun, last, first
        first = step if first is None else first
        now = time.monotonic()
        if step == first:  # it may have taken a while: what follows is quick, or each step is slow
            last = begun = now
            _say(f"step {step}/{steps}  loss {loss:.3g}")
        elif now - last >= LINE_EVERY:
            last, left = now, (now - begun) * (steps - step) / (step - first)
            _say(f"step {step}/{steps}  loss {loss:.3g}  {left:.0f} s left")

    yield line


def _say(line: str) -> None:
    with suppress(OSError):  # a run is worth more than its progress: the log may be on a disk that is full
        print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Status:
    """What a worker does at the moment."""

    key: str
    label: str
    step: int
    steps: int
    loss: float | None
    curve: Sequence[float] = ()
    path: Path = field(default=Path(), compare=False)

    @property
    def worker(self) -> str:
        return self.path.stem.rpartition("-")[0]


@contextmanager
def reported(root: Path, key: str, label: str, steps: int) -> Iterator[Callable[[int, float, object], None]]:
    """A callback for training in a worker, by which `statuses` elsewhere know what it does."""
    path = root / "status" / f"{me()}.json"
    last, curve, every = time.monotonic(), list[float](), 1

    def write(step: int, loss: float | None) -> None:
        with suppress(OSError):  # a run is worth more than its progress
            path.parent.mkdir(parents=True, exist_ok=True)
            status = asdict(Status(key, label, step, steps, loss, curve))
            del status["path"]
            part = path.with_suffix(".part")
            part.write_text(json.dumps(status), encoding="utf-8")
            part.replace(path)

    def report(step: int, loss: float, net: object) -> None:
        nonlocal last, curve, every
        if step % every == 0:
            curve.append(loss)
        if len(curve) > POINTS:
            curve, every = curve[::2], 2 * every
        if time.monotonic() - last >= REPORT_EVERY:
            last = time.monotonic()
            write(step, loss)

    write(0, None)
    try:
        yield report
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def signed(root: Path) -> Iterator[str]:
    """A file by which workers know the store of who asks them; no name where it can't be written."""
    sign = root / "status" / f"{me()}.sign"
    try:
        write_atomically(sign, b"")
    except OSError:  # a store to read from only
        yield ""
        return
    try:
        yield sign.name
    finally:
        with suppress(OSError):
            sign.unlink(missing_ok=True)


def require_sign(root: Path, sign: str) -> None:
    """Refuse, before the work, to compute for somebody who would never see the result."""
    # listing sees at once what another machine wrote over NFS
    if sign and not ((root / "status").is_dir() and sign in os.listdir(root / "status")):
        host = platform.node()
        raise InputError(f"{root}: on {host} it is another folder; allowed: a folder that all workers share")


def statuses(root: Path) -> list[Status]:
    """What the workers do, and did when they died, as long as nobody has removed that."""
    found = []
    for path in sorted((root / "status").glob("*.json")):
        with suppress(OSError, ValueError, TypeError):  # gone, or not one of ours
            found.append(Status(**json.loads(path.read_text(encoding="utf-8")), path=path))
    return found


def remove_stale(root: Path) -> None:
    """Remove the files of dead processes from the folder `status`.

    Whether a process of another machine lives can only be judged by the age of its file. A worker rewrites the file
    that reports its step, so that one is old after a minute. The marker of a command is never rewritten.
    """
    remove_left_over(root / "status")
    for path in (root / "status").glob("*"):
        with suppress(OSError):  # another user's, or gone
            # without its marker, a command on another machine loses all its remaining runs
            if not alive(path.stem, path, MARKER_LIFETIME if path.suffix == ".sign" else SILENT):
                path.unlink(missing_ok=True)


@contextmanager
def runs_progress(specifications: "Sequence[Specification]", root: Path) -> "Iterator[Callable[[RunOutcome], None]]":
    """What `compute_all` calls with each outcome; shows on standard error how far the runs are until it is left."""
    progress = RunsProgress(specifications, root)
    begun = sum(Store(root).path(key).with_suffix(".checkpoint").exists() for key in progress.costs)
    _say(f"{progress.total} runs, {len(progress.stored)} of them in the store" + (f", {begun} begun" if begun else ""))
    with _live(progress) if sys.stderr.isatty() else _lines(progress):
        yield progress.settle


class RunsProgress:
    """How far a number of runs is: those settled, and those that the workers report."""

    def __init__(self, specifications: "Sequence[Specification]", root: Path):
        costs = {specification.key(): specification.cost() for specification in specifications}
        self.root, self.total, self.done, self.begun = root, len(costs), 0, time.monotonic()
        store = Store(root)
        self.stored = {key for key in costs if store.has(key)}
        self.costs = {key: value for key, value in costs.items() if key not in self.stored}
        self.open = dict(self.costs)
        self.say: Callable[[str], None] = _say

    def settle(self, outcome: "RunOutcome") -> None:
        """Count a run, and say so in a line unless it was in the store."""
        self.done += 1
        self.open.pop(outcome.key, None)
        if not outcome.ok:
            self.say(f"{self.done}/{self.total}  FAILED  {outcome.label}: {outcome.reason}")
        elif outcome.key not in self.stored and self.total <= EACH:
            self.say(f"{self.done}/{self.total}  {outcome.label}  {outcome.seconds:.1f} s")

    def running(self) -> list[Status]:
        """What live workers do for us."""
        return [
            status for status in statuses(self.root) if status.key in self.open and alive(status.path.stem, status.path)
        ]

    def fraction(self, running: list[Status]) -> float:
        """Of the work that was not in the store, how much is done."""
        left = sum(self.open.values()) - sum(self.open.get(s.key, 0) * s.step / max(s.steps, 1) for s in running)
        return 1 - left / (sum(self.costs.values()) or 1.0)

    def left(self, fraction: float) -> str:
        """The time left, once there is something to judge it by."""
        if not 0 < fraction < 1:
            return ""
        seconds = round((time.monotonic() - self.begun) * (1 - fraction) / fraction)
        minutes, seconds = divmod(seconds, 60)
        return f"about {minutes} min {seconds:02} s left" if minutes else f"about {seconds} s left"


@contextmanager
def _lines(progress: RunsProgress) -> Iterator[None]:
    """A line at each outcome, and one when nothing was said for a while."""
    last, over = time.monotonic(), threading.Event()

    def say(line: str) -> None:
        nonlocal last
        last = time.monotonic()
        _say(line)

    def watch() -> None:
        while not over.wait(min(1.0, LINE_EVERY)):
            if time.monotonic() - last >= LINE_EVERY:
                running = progress.running()
                left = progress.left(progress.fraction(running))
                say(f"{progress.done}/{progress.total}  {len(running)} running  {left}".rstrip())

    progress.say = say
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _live(progress: RunsProgress) -> Iterator[None]:
    """A bar for all and a line for each worker, at the foot of a terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(get_renderable=lambda: _picture(progress), console=console, refresh_per_second=2, transient=True):
        progress.say = lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)
        yield


def _picture(progress: RunsProgress) -> "Group":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    running = progress.running()
    fraction = progress.fraction(running)
    overall = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=1.0, completed=fraction, width=40)
    overall.add_row(f"runs {progress.done}/{progress.total}", bar, progress.left(fraction))
    return Group(overall, _workers(running))


def _workers(running: list[Status]) -> "Table":
    """A line for each: what it does, how far it is, and its losses up to now."""
    from rich.table import Table

    workers = Table.grid(padding=(0, 2))
    for status in running:
        loss = "" if status.loss is None else f"loss {status.loss:.3g}"
        step = f"step {status.step}/{status.steps}"
        workers.add_row(f"  {status.worker}", status.label, step, loss, sparkline(status.curve))
    return workers


def sparkline(losses: Sequence[float], width: int = 24) -> str:
    """A curve in a line of text, in the logarithm."""
    found = [math.log(loss) for loss in losses if 0 < loss < math.inf]
    if len(found) < 2:
        return ""
    shown = [found[k * (len(found) - 1) // (width - 1)] for k in range(width)] if len(found) > width else found
    low, span = min(shown), max(shown) - min(shown) or 1.0
    return "".join(BARS[round((len(BARS) - 1) * (value - low) / span)] for value in shown)


def watch(root: Path) -> None:
    """What the workers of a store do: on a terminal until Ctrl-C, elsewhere at this moment."""
    from rich.console import Console, Group
    from rich.live import Live

    def picture() -> "Group":
        running = [status for status in statuses(root) if alive(status.path.stem, status.path)]
        return Group(f"{len(running)} running in {root}", _workers(running))

    console = Console()
    if not console.is_terminal:
        console.print(picture(), soft_wrap=True)
        return
    with suppress(KeyboardInterrupt), Live(get_renderable=picture, console=console, refresh_per_second=2):
        threading.Event().wait()
