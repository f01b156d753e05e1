"""Carrying out a specification."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rni.losses import AveragedLoss, ReLUProxyLoss
from rni.network import Network
from rni.runs.specification import Specification
from rni.training import Checkpoint, train_reduced, train_two_points
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
    """Build and train; with a checkpoint file, go on from it where there is one.

    The file stays: whoever keeps the result removes it then, so that a kill in between costs little.
    """
    training = specification.training
    specification.require_memory()
    net, loss = specification.build(), specification.loss()
    kept = Checkpoint(checkpoint, specification.key()) if checkpoint else None
    options: dict[str, Any] = training.model_dump(include={"learning_rate", "schedule", "steps", "stop_loss"})
    options |= {"callbacks": callbacks, "checkpoint": kept}
    plain = training.optimizer == "sgd" and training.train == "recurrent"
    form = specification.network.weights.name
    if isinstance(loss, AveragedLoss) and plain and form == "dense" and specification.network.initial_radius == 0:
        losses = train_reduced(net, loss, **options)  # a linear network's W stays in the span of its vectors
    elif isinstance(loss, ReLUProxyLoss) and plain and form == "lowrank":
        losses = train_two_points(net, loss, **options)
    else:
        optimizer, generator = OPTIMIZERS[training.optimizer](), specification.stream("training")
        losses = descend(net, loss, optimizer=optimizer, generator=generator, train=training.train, **options)
    return Result(specification, net, losses)
