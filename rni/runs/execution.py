"""Carrying out a specification."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rni.core.threads import threads
from rni.designs import design
from rni.losses import AveragedLoss, Loss, ReLUProxyLoss
from rni.networks.network import Network
from rni.runs.specification import Specification, require_specification
from rni.training import Checkpoint, kept_step, train_reduced, train_two_points
from rni.training import train as descend
from rni.training.descent import Callback
from rni.training.optimizers import OPTIMIZERS

SPANNED = 10_000  # neurons; currents of more of them change sign at nearly every step


@dataclass(frozen=True)
class Result:
    """A trained network and the loss at every step; a designed one has none."""

    specification: Specification
    network: Network
    losses: list[float]

    @property
    def step(self) -> int:
        """After how many steps the network was what it is: all, or those before the lowest loss."""
        return kept_step(self.losses) if self.specification.training.keep else len(self.losses)


def run(specification: Specification, *, callbacks: Sequence[Callback] = (), checkpoint: Path | None = None) -> Result:
    """Build and train, or design; with a checkpoint file, go on from it where there is one.

    The file stays: whoever keeps the result removes it then, so that a kill in between costs little.

    >>> raw = {"task": {"decays": [0.9]}, "network": {"neurons": 30}, "training": {"steps": 100}}
    >>> result = rni.run(rni.Specification.parse(raw))
    >>> len(result.losses), result.losses[-1] < result.losses[0]
    (100, True)
    """
    require_specification(specification)
    specification.require_memory()
    if specification.kind == "design":
        return Result(specification, _design(specification), [])
    kept = Checkpoint(checkpoint, specification.key()) if checkpoint else None
    with threads(specification.training.threads):
        net, loss = specification.build(), specification.loss()
        losses = _train(specification, net, loss, callbacks=callbacks, checkpoint=kept)
    return Result(specification, net, losses)


def _design(specification: Specification) -> Network:
    drawn, loss = specification.build(), specification.training.loss
    bounds = getattr(loss, "bounds", None) or None  # of the proxy, for activations that are not homogeneous
    vectors = {"encoders": drawn.encoders, "decoders": drawn.decoders}
    options = {"bounds": bounds, "leak": specification.network.leak, "seed": specification.seed}
    return design(drawn.task, drawn.neurons, drawn.f, **vectors, **options).network


def _train(specification: Specification, net: Network, loss: Loss, **options: Any) -> list[float]:
    """By the fastest way to the same steps."""
    training, form = specification.training, specification.network.weights.name
    options |= {name: getattr(training, name) for name in ("learning_rate", "schedule", "steps", "stop_loss")}
    plain = training.optimizer == "sgd" and training.train == "recurrent" and training.keep is None
    if isinstance(loss, AveragedLoss) and plain and form == "dense" and specification.network.initial_radius == 0:
        return train_reduced(net, loss, **options)  # a linear network's W stays in the span of its vectors
    spanned = form == "lowrank" or (form == "dense" and specification.network.initial_radius == 0)
    if isinstance(loss, ReLUProxyLoss) and plain and spanned and net.neurons <= SPANNED:
        return train_two_points(net, loss, **options)
    optimizer, generator = OPTIMIZERS[training.optimizer](), specification.stream("training")
    return descend(
        net, loss, optimizer=optimizer, generator=generator, train=training.train, keep=training.keep, **options
    )
