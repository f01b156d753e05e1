"""Carrying out a specification."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rni.network import Network
from rni.runs.specification import Specification
from rni.training import Checkpoint
from rni.training import train as descend
from rni.training.descent import Callback
from rni.training.optimizers import OPTIMIZERS


@dataclass(frozen=True)
class Result:
    """A trained network and the loss at every step."""

    specification: Specification
    network: Network
    losses: list[float]


def run(specification: Specification, *, callbacks: Sequence[Callback] = (), checkpoint: Path | None = None) -> Result:
    """Build and train; with a checkpoint file, go on from it where there is one and remove it at the end."""
    training = specification.training
    net = specification.build()
    kept = Checkpoint(checkpoint, specification.key()) if checkpoint else None
    assert training.learning_rate is not None and training.schedule is not None  # validation filled them in
    losses = descend(
        net,
        specification.loss(),
        learning_rate=training.learning_rate,
        steps=training.steps,
        optimizer=OPTIMIZERS[training.optimizer](),
        generator=specification.stream("training"),
        train=training.train,
        schedule=training.schedule,
        stop_loss=training.stop_loss,
        callbacks=callbacks,
        checkpoint=kept,
    )
    if kept:
        kept.remove()
    return Result(specification, net, losses)
