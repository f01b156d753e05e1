"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rni.training.descent import Callback

LINE_EVERY = 10.0  # seconds between plain lines


@contextmanager
def training_progress(steps: int) -> "Iterator[Callback]":
    """A callback for training that shows step, loss and time left on standard error."""
    print(f"training for {steps} steps", file=sys.stderr, flush=True)
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
        nonlocal last, first
        first = step if first is None else first
        now = time.monotonic()
        if now - last >= LINE_EVERY and step > first:
            last, left = now, (now - begun) * (steps - step) / (step - first)
            print(f"step {step}/{steps}  loss {loss:.3g}  {left:.0f} s left", file=sys.stderr, flush=True)

    yield line
