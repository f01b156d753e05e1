r"""Gradient descent on any loss: $W^{(\tau+1)} = W^{(\tau)} - \eta\,\partial L/\partial W$ (section 2), or Adam."""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, get_args

import torch
from torch import Generator, Tensor, nn

from rni.core.errors import Diverged, InputError, require_is, require_one_of, require_whole
from rni.core.interrupt import held_interrupt
from rni.core.rng import require_generator
from rni.losses import LOSSES, CustomLoss, Loss, Schedule, Trained
from rni.losses.gradient import trained_parameters
from rni.networks.network import Network, require_network
from rni.training.best import Best, Keep
from rni.training.checkpoint import Checkpoint
from rni.training.optimizers import Optimizer, make

Callback = Callable[[int, float, Network], None]
STEPS = 5000

# The learning rate at each fraction of the training, relative to the largest one. The noise of the first, large
# gradients stays in W for good and makes the ratio r larger, while the slow directions at the end need large steps.
# Hence the warm-up.
SCHEDULES: dict[Schedule, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "warmup": lambda done: min(1.0, 0.05 + 2 * done),
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
}
GROWTH = 1e3  # training has diverged if the loss is this many times that of a network whose outputs are 0


@dataclass(frozen=True)
class Plan:
    """The checked options of a training. `rni.train` describes them."""

    loss: Loss
    optimizer: Optimizer
    learning_rate: float
    schedule: Schedule
    steps: int
    parameters: frozenset[str]
    activation_parameters: dict[str, nn.Parameter]
    stop_loss: float
    keep: Keep | None
    generator: Generator
    callbacks: Sequence[Callback]
    checkpoint: Checkpoint | None


def make_plan(
    net: Network,
    loss: Loss | Callable[..., Tensor],
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
) -> Plan:
    """Check the options of a training, and choose those that are left open. See `rni.train`."""
    require_network(net)
    if isinstance(loss, type) or not (isinstance(loss, Loss) or callable(loss)):
        names = ", ".join(cls.__name__ for cls in LOSSES.parts.values())
        raise InputError("loss", loss, f"a loss ({names}), or a function of the network")
    loss = loss if isinstance(loss, Loss) else CustomLoss(loss)
    loss = loss.for_activation(net.f.name)
    loss.check(net)

    optimizer = make(optimizer)
    default_schedule: Schedule = "constant"  # of a learning rate that is given
    if learning_rate is None:
        learning_rate, default_schedule = optimizer.defaults(loss, net)
    schedule = schedule or default_schedule
    if not isinstance(learning_rate, Real | Tensor) or not 0 < learning_rate < math.inf:
        raise InputError("learning_rate", learning_rate, "a number above 0")
    require_whole("steps", steps, 0)
    if not isinstance(stop_loss, Real | Tensor) or not stop_loss >= 0:
        raise InputError("stop_loss", stop_loss, "0 or more")
    require_one_of("schedule", schedule, SCHEDULES)
    if keep is not None:
        require_one_of("keep", keep, get_args(Keep))
    parameters = trained_parameters(net, train)
    if not parameters:
        problem = f"{train!r}, but none of it requires a gradient"
        raise InputError("train", train, "after requires_grad_()", problem=problem)

    require_generator(generator)
    if generator is not None and generator.device.type != "cpu":
        problem = f"on {generator.device}"
        raise InputError("generator", generator, "on cpu, where inputs are drawn for any device", problem=problem)
    require_is("checkpoint", checkpoint, (Checkpoint, type(None)), "rni.training.Checkpoint(Path(...))")
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise InputError("callbacks", callbacks, "a list of functions of (step, loss, network)")
    activation = {name: p for name, p in net.f.named_parameters() if p.requires_grad} if train == "all" else {}
    return Plan(
        loss=loss,
        optimizer=optimizer,
        learning_rate=learning_rate,
        schedule=schedule,
        steps=steps,
        parameters=parameters,
        activation_parameters=activation,
        stop_loss=stop_loss,
        keep=keep,
        generator=generator or Generator(),
        callbacks=callbacks,
        checkpoint=checkpoint,
    )


def descend(net: Network, plan: Plan) -> list[float]:
    """Train the network in place, step by step. This works for any loss, network and optimizer.

    Returns
    -------
    list of float
        The loss before each step.
    """
    loss, optimizer, checkpoint, generator = plan.loss, plan.optimizer, plan.checkpoint, plan.generator
    reference = loss.zero_output_loss()
    limit = GROWTH * max(reference, 1e-30)
    inference = needs_no_autograd(loss, net, optimizer)
    best = Best() if plan.keep else None
    losses = checkpoint.resume(net, optimizer, generator, best) if checkpoint else []
    with held_interrupt(hold=checkpoint is not None) as interrupted:
        for step in range(len(losses), plan.steps):
            inputs = loss.draw(generator, net.dtype)
            with torch.inference_mode() if inference else nullcontext():
                value, gradient = loss.gradient(net, inputs, plan.parameters)
            rate = plan.learning_rate * SCHEDULES[plan.schedule](step / plan.steps)
            if not value < limit:
                if checkpoint and losses:
                    checkpoint.save(net, optimizer, generator, losses, best)
                raise Diverged(step, value, rate, reference, losses)
            losses.append(value)
            for callback in plan.callbacks:
                callback(step, value, net)
            if best:
                best.see(value, net)
            if value < plan.stop_loss:
                break
            if plan.activation_parameters:
                gradient = replace(gradient, activation=_activation_gradient(net, plan, inputs))
            optimizer.step(net, gradient, rate)
            if checkpoint and (checkpoint.due() or interrupted()):
                checkpoint.save(net, optimizer, generator, losses, best)
            if interrupted():
                raise KeyboardInterrupt
    if best and losses:
        best.put_back(net, losses[-1])
    return losses


def needs_no_autograd(loss: Loss, net: Network, optimizer: Optimizer) -> bool:
    """Return whether a training step works under `torch.inference_mode`, which saves a tenth of it at 300 neurons.

    Each class states this of itself by the attribute ``closed_form``. Subclasses do not inherit it, because their
    methods may use automatic differentiation, as may forward hooks.
    """
    parts = (loss, net, net.recurrent, net.f.activation, net.task, optimizer)
    hooked = any(module._forward_hooks for module in net.modules())
    return not hooked and all(vars(type(part)).get("closed_form", False) for part in parts)


def _activation_gradient(net: Network, plan: Plan, inputs: Any) -> dict[str, Tensor]:
    """Return the gradient with respect to the activation's own parameters, by automatic differentiation."""
    names, parameters = plan.activation_parameters.keys(), list(plan.activation_parameters.values())
    with torch.enable_grad():
        slopes = torch.autograd.grad(plan.loss.value(net, inputs), parameters, materialize_grads=True)
    return dict(zip(names, slopes, strict=True))
