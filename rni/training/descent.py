r"""Descent on any loss: $W^{(\tau+1)} = W^{(\tau)} - \eta\,\partial L/\partial W$ (section 2), or Adam."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from torch import Generator

from rni.errors import Diverged, InputError
from rni.losses import Loss, Trained
from rni.network import Network
from rni.training.checkpoint import Checkpoint, held_interrupt
from rni.training.optimizers import GradientDescent, Optimizer

Callback = Callable[[int, float, Network], None]
Schedule = Literal["constant", "warmup", "cosine"]

# Fraction of the learning rate by fraction of the training done. Noise in the first, large gradients stays in W for
# good (it makes the ratio r), while the slow directions at the end want large steps: hence the warm-up.
SCHEDULES: dict[Schedule, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "warmup": lambda done: min(1.0, 0.05 + 2 * done),
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
}
GROWTH = 1e3  # a loss this many times a silent network's has no way back


def train(
    net: Network,
    loss: Loss,
    *,
    learning_rate: float,
    steps: int,
    optimizer: Optimizer | None = None,
    generator: Generator | None = None,
    train: Trained = "recurrent",
    schedule: Schedule = "constant",
    stop_loss: float = 0.0,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> list[float]:
    """Train the network in place; return the loss at every step, measured before the step.

    Stops after `steps`, or when the loss falls below `stop_loss`. Raises `Diverged` when the loss is not finite or a
    thousand times that of a silent network. Each callback gets (step, loss, network) before the step is made. With a
    checkpoint, a killed training goes on where it was, to the same bits; an interrupted or diverged one
    saves itself first.
    """
    optimizer = optimizer or GradientDescent()
    generator = generator or Generator()
    if net.active is not None:
        raise InputError("network: has silenced neurons; allowed: a whole network for training")
    limit = GROWTH * max(loss.silent(), 1e-30)
    losses = checkpoint.resume(net, optimizer, generator) if checkpoint else []
    with held_interrupt(hold=checkpoint is not None) as interrupted:
        for step in range(len(losses), steps):
            value, gradient = loss.gradient(net, loss.draw(generator, net.dtype), train)
            rate = learning_rate * SCHEDULES[schedule](step / steps)
            if not value < limit:
                if checkpoint:
                    checkpoint.save(net, optimizer, generator, losses)
                raise Diverged(step, value, rate, loss.silent(), losses)
            losses.append(value)
            for callback in callbacks:
                callback(step, value, net)
            if value < stop_loss:
                break
            optimizer.step(net, gradient, rate)
            if checkpoint and (checkpoint.due() or interrupted()):
                checkpoint.save(net, optimizer, generator, losses)
            if interrupted():
                raise KeyboardInterrupt
    return losses
