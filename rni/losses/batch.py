r"""The batch loss (section 2): the squared error of the outputs on a batch of input sequences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np
import torch
from pydantic import Field
from torch import Generator, Tensor

from rni.core import memory
from rni.core.errors import InputError, found, require_one_of, require_whole
from rni.losses.averaged import AveragedLoss, SequenceLoss, SequencePart
from rni.losses.base import LOSSES, Loss, Sampling
from rni.losses.gradient import Gradient, Trained, own_inputs, require_takes, require_task, trained_parts
from rni.networks.network import Network
from rni.tasks.inputs import correlated_noise, white_noise
from rni.tasks.integration import Integration, require_integration, targets_at_once
from rni.theory.moments import full_covariance

BATCH = 32


@dataclass(frozen=True)
class BatchLoss(SequenceLoss):
    r"""$L = \big\langle \sum_{c=1}^D \sum_{t=0}^{T-1} (y_{c,t} - \bar y_{c,t})^2 \big\rangle_X$.

    The paper's normalisation: summed over time and channels, averaged over the batch. (The mean over time as well,
    divided by $s^2 T^2$, as in the authors' code, is this loss divided by $s^2 T^3$.) Inputs are white noise, or
    Gaussian of the given covariance, drawn anew for each step; a batch covers the space of the sequences evenly, unless
    its sampling is "independent". Or what inputs(batch, duration, channels, generator) gives, as those of `rni.inputs`
    do: (batch, duration, channels).

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
    inputs: Callable[[int, int, int, Generator | None], Tensor] | None = None
    sampling: Sampling = "even"

    def __post_init__(self):
        require_integration(self.task)
        require_whole("duration", self.duration, 1)
        require_whole("batch", self.batch, 1)
        require_one_of("sampling", self.sampling, get_args(Sampling))
        if self.inputs is not None:
            require_takes("inputs", self.inputs, "batch", "duration", "channels", "generator")
        if self.covariance is not None:
            full_covariance(self.duration, self.task.channels, self.covariance)
            if self.inputs is not None:
                raise InputError("inputs, covariance: both given; allowed: one of them")

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
        """Fresh inputs, (batch, duration, channels)."""
        if self.inputs is not None:
            given = self.inputs(self.batch, self.duration, self.task.channels, generator)
            try:
                drawn = torch.as_tensor(given)
            except (TypeError, ValueError, RuntimeError):
                raise InputError(f"inputs: {found(given)}; allowed: a function whose value is a tensor") from None
            if drawn.shape != (shape := (self.batch, self.duration, self.task.channels)):
                raise InputError(f"inputs: shape {tuple(drawn.shape)}; allowed: {shape}, (batch, duration, channels)")
            if not bool(drawn.isfinite().all()):
                raise InputError("inputs: NaN or infinite values; allowed: a function whose values are finite")
            return drawn.to(dtype)
        even = self.sampling == "even"
        if self.covariance is None:
            return white_noise(self.batch, self.duration, self.task.channels, generator, dtype=dtype, even=even)
        return correlated_noise(self.batch, self.task.channels, self.covariance, generator, dtype=dtype, even=even)

    def silent(self) -> float:
        """The loss of a network without output: what any training starts from, and must not grow far beyond."""
        if self.inputs is not None:
            targets = self.task.targets(self.draw(Generator().manual_seed(0), torch.float64))
            return float(targets.square().sum()) / self.batch
        return AveragedLoss(self.task, self.duration, self.covariance).silent()

    def rate(self) -> float:
        """That for white noise; less where targets are larger."""
        white = AveragedLoss(self.task, self.duration).silent()
        return super().rate() if self.inputs is None else super().rate() * min(1.0, white / max(self.silent(), 1e-30))

    def value(self, net: Network, inputs: Tensor | np.ndarray) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        require_task(net, self.task, leaky=True)
        inputs = own_inputs(inputs, net, "sequence", "time")
        return (net.outputs(inputs) - self.task.targets(inputs)).square().sum() / len(inputs)

    @torch.no_grad()
    def gradient(
        self, net: Network, inputs: Tensor | np.ndarray, train: Trained = "recurrent"
    ) -> tuple[float, Gradient]:
        r"""The loss and its gradient, by back-propagation through time on whole matrices.

        $\delta_t = f'(\nu_t) \odot (\frac{2}{B} d\,(y_t - \bar y_t) + W^\dagger \delta_{t+1})$ and
        $\partial L / \partial W = \sum_t \delta_t\,(h_{t-1} + x_t e)^\dagger$. At t = 0 the state is 0, so that both
        the forward product and the gradient have rank D there. With a leak, errors pass from state to state too:
        $\epsilon_t = \frac{2}{B} d\,(y_t - \bar y_t) + W^\dagger\delta_{t+1} + (1-\alpha)\,\epsilon_{t+1}$ and
        $\delta_t = \alpha f'(\nu_t) \odot \epsilon_t$.
        """
        parts = trained_parts(net, train)
        require_task(net, self.task, leaky=True)
        inputs = own_inputs(inputs, net, "sequence", "time")
        batch, duration, channels = inputs.shape
        encoders, w, f, leak = net.encoders, net.recurrent, net.f, net.leak
        x, targets = inputs.unbind(1), targets_at_once(self.task, inputs).transpose(0, 1)
        # rows of the gradient's factors, in the order of time: at t = 0, where W(x e) = x (W e), D are enough
        rows = [channels] + [batch] * (duration - 1)
        right = encoders.new_empty(sum(rows), net.neurons)
        fed = right.split(rows)  # e, then h_{t-1} + x_t e
        # vectors as rows, because products with a few columns take several times as long
        e, d = fed[0].copy_(encoders.T), net.decoders.T.contiguous()
        nu, h = encoders.new_empty(2, duration, batch, net.neurons)
        active = h if leak == 1 else torch.empty_like(h)  # f(nu)
        torch.mm(x[0], w(e), out=nu[0])
        for t in range(duration):
            if t:
                w(torch.addmm(h[t - 1], x[t], e, out=fed[t]), out=nu[t])
            active[t] = f(nu[t])
            if leak != 1:
                h[t] = net.leaked(h[t - 1] if t else None, active[t])
        residuals = h @ d.T - targets
        loss = float(residuals.square().sum()) / batch
        residuals *= 2 / batch
        decoder_gradient = h.flatten(0, 1).T @ residuals.flatten(0, 1) if "decoders" in parts else None
        if parts <= {"decoders"}:
            return loss, Gradient(right[:0], right[:0], decoder_gradient)

        left, errors = torch.empty_like(right), (residuals @ d).unbind()
        delta, slopes = left.split(rows), f.derivative_at(nu, active).expand_as(nu)
        for t in range(duration - 1, 0, -1):
            torch.mul(errors[t], slopes[t], out=delta[t])
            if leak != 1:
                delta[t].mul_(leak)
                errors[t - 1].add_(errors[t], alpha=1 - leak)
            w.pull_back(delta[t], onto=errors[t - 1])
        torch.mm(x[0].T, errors[0] * slopes[0] * leak, out=delta[0])
        encoder_gradient = None
        if "encoders" in parts:
            encoder_gradient = w.pull_back(sum((x[t].T @ delta[t] for t in range(1, duration)), delta[0])).T
        kept = len(left) if "recurrent" in parts else 0
        return loss, Gradient(left[:kept], right[:kept], decoder_gradient, encoder_gradient)


@LOSSES.add("batch")
class Batch(SequencePart):
    leaky = True
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = BATCH
    sampling: Sampling | None = None

    def make(self, task: Integration, covariance: Tensor | None) -> Loss:
        return BatchLoss(task, self.duration, self.batch, covariance, sampling=self.sampling or "even")

    def rows(self, task: Integration, activation: str) -> int:
        return self.batch * self.duration

    def require_memory(self, task: Integration, neurons: int, size: int) -> None:
        super().require_memory(task, neurons, size)
        each = 6 * self.duration * size * neurons  # states, currents, slopes, their gradients and the factors of W's
        what = f"training.loss.batch: {self.batch}"
        memory.require(self.batch * each, what, lambda free: f"up to {int(free / each)}")
