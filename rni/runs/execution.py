"""Carrying out a specification."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rni.core.threads import threads
from rni.designs import design
from rni.networks.network import Network
from rni.runs.specification import Specification, require_specification
from rni.training import Checkpoint, kept_step, train
from rni.training.descent import Callback


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
        net, training = specification.build(), specification.training
        names = ("optimizer", "learning_rate", "schedule", "steps", "stop_loss", "keep", "train")
        options: dict[str, Any] = {name: getattr(training, name) for name in names}
        generator = specification.stream("training")
        losses = train(net, training.loss, generator=generator, callbacks=callbacks, checkpoint=kept, **options)
    return Result(specification, net, losses)


def _design(specification: Specification) -> Network:
    drawn, loss = specification.build(), specification.training.loss
    bounds = getattr(loss, "bounds", None) or None  # of the proxy, for activations that are not homogeneous
    vectors = {"encoders": drawn.encoders, "decoders": drawn.decoders}
    options = {"bounds": bounds, "leak": specification.network.leak, "seed": specification.seed}
    return design(drawn.task, drawn.neurons, drawn.f, **vectors, **options).network
