"""Compute runs: train or design a network as a run says."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rni.activations import draw
from rni.core.rng import stream
from rni.core.threads import threads
from rni.designs import Design, design
from rni.networks.network import Network
from rni.runs.run import DesignRun, Run, TrainRun, require_run
from rni.training import Checkpoint, kept_step, train

if TYPE_CHECKING:
    from rni.training.descent import Callback


@dataclass(frozen=True)
class Result:
    """The network of a run.

    Attributes
    ----------
    specification : TrainRun or DesignRun
        The run.
    network : Network
        The network after the run.
    losses : list of float
        The loss before each step of a training. A design has none.
    """

    specification: Run
    network: Network
    losses: list[float]

    @property
    def step(self) -> int:
        """The number of steps after which the training had this network: all, or those before the lowest loss."""
        run = self.specification
        keeps_best = isinstance(run, TrainRun) and run.training.keep is not None
        return kept_step(self.losses) if keeps_best else len(self.losses)


def run(specification: Run, *, callbacks: "Sequence[Callback]" = (), checkpoint: Path | None = None) -> Result:
    """Compute a run.

    Parameters
    ----------
    specification : TrainRun or DesignRun
        The run.
    callbacks : sequence of callable
        They are called at each step of a training, see `rni.train`.
    checkpoint : Path, optional
        The file from which a training resumes if it exists, and in which it saves its state now and then. The file is
        not removed at the end: remove it when the result is saved, so that no work is lost in between.

    Examples
    --------
    >>> raw = {"task": {"decays": [0.9]}, "network": {"neurons": 30}, "training": {"steps": 100}}
    >>> result = rni.run(rni.parse_run(raw))
    >>> len(result.losses), result.losses[-1] < result.losses[0]
    (100, True)
    """
    require_run(specification)
    if isinstance(specification, DesignRun):
        return Result(specification, design_network(specification).network, [])
    specification.require_memory()
    training = specification.training
    with threads(training.threads):
        net = specification.build()
        losses = train(
            net,
            training.loss,
            learning_rate=training.learning_rate,
            steps=training.steps,
            optimizer=training.optimizer,
            generator=stream(specification.seed, "training"),
            train=training.train,
            schedule=training.schedule,
            stop_loss=training.stop_loss,
            keep=training.keep,
            callbacks=callbacks,
            checkpoint=Checkpoint(checkpoint, specification.key()) if checkpoint else None,
        )
    return Result(specification, net, losses)


def design_network(run: DesignRun) -> Design:
    """Compute the design of a run, with its errors."""
    encoders, decoders = run.network.vectors.draw(run.network.neurons, run.task.channels, stream(run.seed, "vectors"))
    activation = draw(run.network.activation, run.network.neurons, lambda purpose: stream(run.seed, purpose))
    return design(
        run.task,
        run.network.neurons,
        activation,
        encoders=encoders,
        decoders=decoders,
        bounds=run.bounds or None,
        leak=run.network.leak,
        seed=run.seed,
    )
