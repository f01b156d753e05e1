"""Losses of runs as they fall, for TensorBoard, where it is installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rni.core.errors import InputError
from rni.runs.specification import Specification
from rni.training.descent import Callback

POINTS = 1000  # of a curve


class TensorBoard:
    """A folder of logs: one below it for each run, named by its key. Goes to workers as it is."""

    def __init__(self, folder: Path):
        self.folder = Path(folder).absolute()
        try:
            import torch.utils.tensorboard  # noqa: F401
        except ImportError:
            raise InputError("tensorboard: not installed; allowed: pip install tensorboard, or without it") from None

    @contextmanager
    def __call__(self, specification: Specification) -> Iterator[Callback]:
        from torch.utils.tensorboard import SummaryWriter

        every = max(1, specification.training.steps // POINTS)
        with SummaryWriter(str(self.folder / specification.key()[:12])) as writer:
            writer.add_text("specification", f"```\n{specification.to_toml()}```")

            def log(step: int, loss: float, net: object) -> None:
                if step % every == 0:
                    writer.add_scalar("loss", loss, step)

            yield log
