r"""The batch loss (section 2): the squared error of the outputs on a batch of input sequences."""

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Generator, Tensor

from rni import memory
from rni.errors import require_whole
from rni.inputs import correlated_noise, white_noise
from rni.losses.averaged import AveragedLoss, SequenceLoss, SequencePart
from rni.losses.base import LOSSES, Loss
from rni.losses.gradient import Gradient, Trained, require_inputs, require_task, trained_parts
from rni.network import Network
from rni.task import Integration
from rni.theory.moments import full_covariance

BATCH = 32


@dataclass(frozen=True)
class BatchLoss(SequenceLoss):
    r"""$L = \big\langle \sum_{c=1}^D \sum_{t=0}^{T-1} (y_{c,t} - \bar y_{c,t})^2 \big\rangle_X$.

    The paper's normalisation: summed over time and channels, averaged over the batch. (The mean over time as well,
    divided by $s^2 T^2$, as in the authors' code, is this loss divided by $s^2 T^3$.) Inputs are white noise, or
    Gaussian of the given covariance, drawn anew for each step; a batch covers the space of the sequences evenly.

    >>> task = rni.Integration(0.9)
    >>> net = rni.design(task, neurons=40).network
    >>> loss = rni.BatchLoss(task, duration=5, batch=16)
    >>> loss.draw().shape, loss(net).item() < 1e-12, round(loss.silent(), 3)
    (torch.Size([16, 5, 1]), True, 9.478)
    """

    task: Integration
    duration: int = 3
    batch: int = BATCH
    covariance: Tensor | None = None

    def __post_init__(self):
        require_whole("duration", self.duration, 1)
        require_whole("batch", self.batch, 1)
        if self.covariance is not None:
            full_covariance(self.duration, self.task.channels, self.covariance)

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
        """Fresh inputs, (batch, duration, channels)."""
        if self.covariance is None:
            return white_noise(self.batch, self.duration, self.task.channels, generator, dtype=dtype, even=True)
        return correlated_noise(self.batch, self.task.channels, self.covariance, generator, dtype=dtype, even=True)

    def silent(self) -> float:
        """The loss of a network without output: what any training starts from, and must not grow far beyond."""
        return AveragedLoss(self.task, self.duration, self.covariance).silent()

    def value(self, net: Network, inputs: Tensor) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        require_task(net, self.task)
        require_inputs(inputs, net, "sequence", "time")
        return (net.outputs(inputs) - self.task.targets(inputs)).square().sum() / len(inputs)

    @torch.no_grad()
    def gradient(self, net: Network, inputs: Tensor, train: Trained = "recurrent") -> tuple[float, Gradient]:
        r"""The loss and its gradient, by back-propagation through time on whole matrices.

        $\delta_t = f'(\nu_t) \odot (\frac{2}{B} d\,(y_t - \bar y_t) + W^\dagger \delta_{t+1})$ and
        $\partial L / \partial W = \sum_t \delta_t\,(h_{t-1} + x_t e)^\dagger$. At t = 0 the state is 0, so that both
        the forward product and the gradient have rank D there.
        """
        parts = trained_parts(net, train)
        require_task(net, self.task)
        require_inputs(inputs, net, "sequence", "time")
        batch, duration, channels = inputs.shape
        encoders, decoders, w, f = net.encoders, net.decoders, net.recurrent, net.f
        x, targets = inputs.unbind(1), self.task.targets(inputs).unbind(1)
        # One row for each time and sequence: t = 1, ..., T - 1, and t = 0 last, where D rows will be enough. So time t
        # is block t - 1, for t = 0 as well.
        rows, terms = duration * batch, (duration - 1) * batch + channels
        fed = encoders.new_empty(terms, net.neurons)  # h_{t-1} + x_t e
        nu, into = encoders.new_empty(rows, net.neurons).split(batch), fed.split(batch)
        states = list(nu)
        torch.mm(x[0], w(encoders.T), out=nu[-1])
        states[-1] = f(nu[-1])
        for t in range(1, duration):
            torch.addmm(states[t - 2], x[t], encoders.T, out=into[t - 1])
            w(into[t - 1], out=nu[t - 1])
            states[t - 1] = f(nu[t - 1])
        fed[-channels:] = encoders.T
        pairs = zip([*targets[1:], targets[0]], states, strict=True)
        residuals = torch.cat([torch.addmm(target, h, decoders, beta=-1) for target, h in pairs])
        loss = float(residuals.square().sum()) / batch
        decoder_gradient = torch.cat(states).T @ residuals * (2 / batch) if "decoders" in parts else None
        if parts <= {"decoders"}:
            return loss, Gradient(fed[:0], fed[:0], decoder_gradient)

        errors = encoders.new_empty(max(rows, terms), net.neurons)
        delta = errors[:rows].split(batch)
        torch.mm(residuals, decoders.T * (2 / batch), out=errors[:rows])
        for t in range(duration - 1, 0, -1):
            delta[t - 1].mul_(f.derivative(nu[t - 1]))
            w.pull_back(delta[t - 1], onto=delta[t - 2])
        delta[-1].mul_(f.derivative(nu[-1]))
        first = x[0].T @ delta[-1]
        encoder_gradient = None
        if "encoders" in parts:
            driven = sum((x[t].T @ delta[t - 1] for t in range(1, duration)), first)
            encoder_gradient = w.pull_back(driven).T
        errors[terms - channels : terms] = first  # in the place of t = 0
        kept = terms if "recurrent" in parts else 0
        return loss, Gradient(errors[:kept], fed[:kept], decoder_gradient, encoder_gradient)


@LOSSES.add("batch")
class Batch(SequencePart):
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = BATCH

    def make(self, task: Integration, covariance: Tensor | None) -> Loss:
        return BatchLoss(task, self.duration, self.batch, covariance)

    def rows(self, task: Integration, activation: str) -> int:
        return self.batch * self.duration

    def require_memory(self, task: Integration, neurons: int, size: int) -> None:
        super().require_memory(task, neurons, size)
        each = 3 * self.duration * size * neurons  # states, currents and their gradients
        memory.require(
            self.batch * each, f"training.loss.batch: {self.batch}", f"up to {int(memory.available() / each)}"
        )
