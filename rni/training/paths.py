"""`rni.train`, which trains a network by the fastest way to the same steps."""

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from rni.losses import AveragedLoss, Loss, ReLUProxyLoss, Schedule, Trained
from rni.losses.gradient import RECURRENT
from rni.networks.network import Network
from rni.training.best import Keep
from rni.training.checkpoint import Checkpoint
from rni.training.descent import STEPS, Callback, Plan, descend, make_plan, needs_no_autograd
from rni.training.optimizers import GradientDescent, Optimizer
from rni.training.reduced import descend_in_span
from rni.training.two_points import descend_on_two_points
from rni.weights import Dense, LowRank

LARGEST_SPAN = 10_000  # neurons; the currents of more neurons change sign at nearly every step

logger = logging.getLogger(__name__)


def train(
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
) -> list[float]:
    """Train a network in place.

    Plain gradient descent of W takes the same steps in fewer dimensions where that is possible: for a linear network
    on the averaged loss from W = 0, whose weights become `LowRank`, and for a ReLU network of one channel on the proxy
    loss. The logger ``rni.training`` tells which way is taken.

    Parameters
    ----------
    net : Network
        The network. Parameters that do not require a gradient stay as they are.
    loss : Loss or callable
        The loss, or a function of the network that returns a scalar which torch can differentiate.
    learning_rate : float, optional
        The largest learning rate. The default is that of the optimizer for this loss and network. A function as a loss
        has none.
    steps : int
        The number of training steps.
    optimizer : {"sgd", "adam"}, an optimizer of `rni.training`, or an optimizer of torch (class or instance)
        The default is "sgd", which is plain gradient descent.
    generator : torch.Generator, optional
        The random numbers of the inputs, which are drawn on the CPU, in the precision of the network.
    train : {"recurrent", "recurrent+decoders", "decoders", "all"}
        The trained parameters. "all" includes the encoders and the activation's own parameters.
    schedule : {"constant", "warmup", "cosine"}, optional
        The schedule of the learning rate. The default is "constant" if a learning rate is given, or else that of the
        optimizer for this loss.
    stop_loss : float
        Training stops when the loss falls below this value.
    keep : {"best"}, optional
        By default, the network is that of the last step. With "best" it is a copy whose loss was at most four thirds
        of the lowest one, unless the last loss is lower: see `rni.training.kept_step`.
    callbacks : sequence of callable
        Functions of (step, loss, network), which are called before each step is made.
    checkpoint : Checkpoint, optional
        A killed training with a checkpoint resumes from it, with the same result bit for bit. An interrupted or
        diverged one saves itself first.

    Returns
    -------
    list of float
        The loss before each step.

    Raises
    ------
    Diverged
        If the loss is not finite, or a thousand times that of a network whose outputs are 0.

    Examples
    --------
    >>> task = rni.Integration(0.9)
    >>> vectors = rni.vectors.independent(40, 1, torch.Generator().manual_seed(0))
    >>> net = rni.Network(task, *vectors, torch.zeros(40, 40))
    >>> losses = rni.train(net, rni.BatchLoss(task, duration=3), steps=500)
    >>> losses[-1] < 1e-2 * losses[0]
    True
    """
    plan = make_plan(
        net,
        loss,
        learning_rate=learning_rate,
        steps=steps,
        optimizer=optimizer,
        generator=generator,
        train=train,
        schedule=schedule,
        stop_loss=stop_loss,
        keep=keep,
        callbacks=callbacks,
        checkpoint=checkpoint,
    )
    method = choose_method(net, plan)
    logger.info("training by %s: %s", method.__name__, _describe(net, plan))
    return method(net, plan)


def choose_method(net: Network, plan: Plan) -> Callable[[Network, Plan], list[float]]:
    """Return the fastest of the functions that take the steps of `descend` for this network and plan."""
    plain = type(plan.optimizer) is GradientDescent and plan.parameters == RECURRENT and plan.keep is None
    if not plain or plan.activation_parameters or not needs_no_autograd(plan.loss, net, plan.optimizer):
        return descend
    weights = net.recurrent
    zero = type(weights) is Dense and not weights.value.any()
    # W of a linear network stays in the span of its vectors
    if type(plan.loss) is AveragedLoss and zero:
        return descend_in_span
    on_cpu = net.encoders.device.type == "cpu" and net.dtype in (torch.float32, torch.float64)
    if (
        type(plan.loss) is ReLUProxyLoss
        and on_cpu
        and net.neurons <= LARGEST_SPAN
        and (zero or type(weights) is LowRank)
    ):
        return descend_on_two_points
    return descend


def _describe(net: Network, plan: Plan) -> str:
    form = "closed-form gradient" if type(plan.loss).gradient is not Loss.gradient else "automatic differentiation"
    return f"{type(plan.loss).__name__} with {form}, {net.neurons} neurons, {type(net.recurrent).__name__} weights"
