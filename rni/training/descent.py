r"""Descent on any loss: $W^{(\tau+1)} = W^{(\tau)} - \eta\,\partial L/\partial W$ (section 2), or Adam."""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Real
from typing import Any, get_args

import torch
from torch import Generator, Tensor

from rni.activations import Activation
from rni.core.errors import Diverged, InputError, found, require_is, require_one_of, require_whole
from rni.core.interrupt import held_interrupt
from rni.core.rng import require_generator
from rni.losses import Gradient, Loss, OwnLoss, Schedule, Trained
from rni.losses.gradient import trained_parts
from rni.networks.network import Network, require_network
from rni.training.best import Best, Keep
from rni.training.checkpoint import Checkpoint
from rni.training.optimizers import Optimizer, Torch, make

Callback = Callable[[int, float, Network], None]
STEPS = 5000

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
    loss: Loss | Callable[[Network], Tensor],
    *,
    learning_rate: float | None = None,
    steps: int = STEPS,
    optimizer: Optimizer | torch.optim.Optimizer | type[torch.optim.Optimizer] | str | None = None,
    generator: Generator | None = None,
    train: Trained = "recurrent",
    schedule: Schedule | None = None,
    stop_loss: float = 0.0,
    keep: Keep | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> list[float]:
    """Train the network in place; return the loss at every step, measured before the step.

    Trains W, W and decoders, decoders alone, or all: encoders too, and the activation's own parameters. What does not
    require a gradient is left as it is. `optimizer` is one, or "sgd", the default, or "adam", or torch's: an instance
    made for what is trained, or a class. Learning rate and schedule are chosen for the loss where they are left open:
    see `rate_and_schedule`. Inputs are drawn on the CPU, and cast to the precision and the device of the network.

    A plain function of the network, a scalar that torch can differentiate, is a loss too, with a learning rate given.

    Stops after `steps`, or when the loss falls below `stop_loss`. The network is then that of the last step, or with
    `keep="best"`, unless the last loss is lower, a copy whose loss, on its own inputs, was at most four thirds of the
    lowest: see `kept_step`. Raises
    `Diverged` when the loss is not finite or a thousand times that of a silent network. Each callback gets
    (step, loss, network) before the step is made. With a checkpoint, a killed training goes on where it was, to the
    same bits; an interrupted or diverged one saves itself first.

    >>> task = rni.Integration(0.9)
    >>> vectors = rni.vectors.independent(40, 1, torch.Generator().manual_seed(0))
    >>> net = rni.Network(task, *vectors, torch.zeros(40, 40))
    >>> losses = rni.train(net, rni.BatchLoss(task, duration=3), steps=500)
    >>> losses[-1] < 1e-2 * losses[0]
    True
    """
    require_network(net)
    require_generator(generator)
    require_is("checkpoint", checkpoint, (Checkpoint, type(None)), "rni.training.Checkpoint(Path(...))")
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise InputError(f"callbacks: {callbacks!r}; allowed: a list of functions of (step, loss, network)")
    optimizer, loss = make(optimizer), _loss(loss)
    learning_rate, schedule = rate_and_schedule(net, optimizer, loss, learning_rate, schedule)
    check_options(net, learning_rate, steps, train, schedule, stop_loss)
    if keep is not None:
        require_one_of("keep", keep, get_args(Keep))
    generator = generator or Generator()
    if generator.device.type != "cpu":
        raise InputError(f"generator: on {generator.device}; allowed: on cpu, where inputs are drawn for any device")
    limit, closed = GROWTH * max(loss.silent(), 1e-30), _closed(loss, net, optimizer)
    best = Best() if keep else None
    losses = checkpoint.resume(net, optimizer, generator, best) if checkpoint else []
    with held_interrupt(hold=checkpoint is not None) as interrupted:
        for step in range(len(losses), steps):
            value, gradient = _gradient(loss, net, loss.draw(generator, net.dtype), train, closed)
            rate = learning_rate * SCHEDULES[schedule](step / steps)
            if not value < limit:
                if checkpoint and losses:
                    checkpoint.save(net, optimizer, generator, losses, best)
                raise Diverged(step, value, rate, loss.silent(), losses)
            losses.append(value)
            for callback in callbacks:
                callback(step, value, net)
            if best:
                best.see(value, net)
            if value < stop_loss:
                break
            optimizer.step(net, gradient, rate)
            if checkpoint and (checkpoint.due() or interrupted()):
                checkpoint.save(net, optimizer, generator, losses, best)
            if interrupted():
                raise KeyboardInterrupt
    if best and losses:
        best.put_back(net, losses[-1])
    return losses


def _loss(loss: Loss | Callable[[Network], Tensor]) -> Loss:
    if isinstance(loss, type) or not callable(loss):  # a Loss is callable, too
        raise InputError(f"loss: {found(loss)}; allowed: a loss of rni.losses, or a function of the network")
    return loss if isinstance(loss, Loss) else OwnLoss(loss)


def rate_and_schedule(
    net: Network, optimizer: Optimizer, loss: Loss, learning_rate: float | None, schedule: Schedule | None
) -> tuple[float, Schedule]:
    """As given, or the optimizer's own for this network; a rate that is given is constant unless told otherwise."""
    if learning_rate is not None:
        return learning_rate, schedule or "constant"
    own_rate, own_schedule = optimizer.defaults(loss, net)
    return own_rate, schedule or own_schedule


def check_options(
    net: Network, learning_rate: float, steps: int, train: Trained, schedule: Schedule, stop_loss: float
) -> None:
    """Refuse what no training can be made of."""
    if not isinstance(learning_rate, Real | Tensor) or not 0 < learning_rate < math.inf:
        raise InputError(f"learning_rate: {learning_rate!r}; allowed: a number above 0")
    if not isinstance(stop_loss, Real | Tensor) or not stop_loss >= 0:
        raise InputError(f"stop_loss: {stop_loss!r}; allowed: 0 or more")
    require_whole("steps", steps, 0)
    require_one_of("schedule", schedule, SCHEDULES)
    if not trained_parts(net, train):
        raise InputError(f"train: {train!r}, but none of it requires a gradient; allowed: after requires_grad_()")


def _closed(loss: Loss, net: Network, optimizer: Optimizer) -> bool:
    """Whether nothing of a step needs automatic differentiation, whose accounts cost a tenth of a step of 300 neurons:
    no part of a user's own, who may differentiate or change what he is given, and no function without a derivative."""
    parts = (loss, net, net.recurrent, net.f.activation, net.task, optimizer)
    own = all(type(part).__module__.partition(".")[0] == "rni" for part in parts)
    free = not isinstance(loss, OwnLoss) and not isinstance(optimizer, Torch)
    hooked = any(module._forward_hooks for module in net.modules())
    return own and free and not hooked and type(net.f.activation).derivative is not Activation.derivative


def _gradient(loss: Loss, net: Network, inputs: Any, train: Trained, closed: bool) -> tuple[float, Gradient]:
    """The loss and its gradient; for parameters of the activation's own by automatic differentiation."""
    with torch.inference_mode() if closed else nullcontext():
        value, gradient = loss.gradient(net, inputs, train)
    own = {name: p for name, p in net.f.named_parameters() if p.requires_grad} if train == "all" else {}
    if not own:
        return value, gradient
    with torch.enable_grad():
        slopes = torch.autograd.grad(loss.value(net, inputs), list(own.values()), materialize_grads=True)
    return value, replace(gradient, activation=dict(zip(own, slopes, strict=True)))
