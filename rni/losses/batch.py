r"""The batch loss (section 2): the squared error of the outputs on a batch of input sequences."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rni.core import memory
from rni.core.errors import InputError
from rni.core.registry import part
from rni.losses.averaged import AveragedLoss, Correlation, Covariance, Duration, SequenceLoss
from rni.losses.base import LOSSES, Sampling, TaskField, check_arguments, check_shape, function_field
from rni.losses.gradient import RECURRENT, Gradient, without_autograd
from rni.tasks.integration import Integration, targets_at_once

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Generator, Tensor

    from rni.networks.network import Network
    from rni.tasks import inputs as signals
else:
    from rni.core.lazy import LazyModule, torch

    signals = LazyModule("rni.tasks.inputs")


@LOSSES.register("batch")
@part
class BatchLoss(SequenceLoss):
    r"""The squared error of the outputs, summed over time and channels and averaged over a batch of sequences.

    .. math:: L = \Big\langle \sum_{c=1}^D \sum_{t=0}^{T-1} (y_{c,t} - \bar y_{c,t})^2 \Big\rangle

    This is the paper's normalisation. The authors' code also averages over time and divides by $s^2 T^2$, which is this
    loss divided by $s^2 T^3$.

    Parameters
    ----------
    task : Task
        The task.
    duration : int
        The length T of the sequences.
    batch : int
        The number of sequences per training step.
    covariance : matrix, optional
        The covariance of Gaussian inputs, (T, T) if channels are independent and have the same covariance, or
        (T, channels, T, channels). The default is white noise of variance 1.
    correlation : sequence of float, optional
        The correlation of the inputs at lags 0 to T - 1, in place of a covariance.
    inputs : callable, optional
        A function of (batch, duration, channels, generator) that returns inputs of the shape
        (batch, duration, channels), as those of `rni.inputs` do. In a configuration it is a reference
        ``module:function``.
    sampling : {"even", "independent"}
        Whether the sequences of a batch are quasi-random, which leaves less noise, or independent.

    Examples
    --------
    >>> task = rni.Integration(0.9)
    >>> net = rni.design(task, neurons=40).network
    >>> loss = rni.BatchLoss(task, duration=5, batch=16)
    >>> loss.draw().shape, loss(net).item() < 1e-12, round(loss.zero_output_loss(), 3)
    (torch.Size([16, 5, 1]), True, 9.478)
    """

    task: Annotated[Integration, *TaskField]
    duration: Duration = 3
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 32
    covariance: Covariance = None
    correlation: Correlation = ()
    inputs: Annotated[Callable[..., Any] | None, *function_field("inputs")] = None
    sampling: Sampling = "even"

    accepts_leak = True
    closed_form = True

    def __post_init__(self):
        super().__post_init__()
        if self.inputs is not None:
            check_arguments("inputs", self.inputs, "batch", "duration", "channels", "generator")
            if self.covariance or self.correlation:
                raise InputError(
                    "inputs", self.inputs, "none with a covariance or correlation", problem="given as well"
                )

    @cached_property
    def _noise_covariance(self) -> "Tensor | None":
        with torch.inference_mode(mode=False):  # the cache may be filled under inference_mode
            return self.input_covariance

    def draw(self, generator: "Generator | None" = None, dtype: "torch.dtype | None" = None) -> "Tensor":
        """Draw inputs of the shape (batch, duration, channels)."""
        dtype, shape = dtype or torch.float32, (self.batch, self.duration, self.task.channels)
        if self.inputs is not None:
            return self._draw_custom(generator, shape).to(dtype)
        even, covariance = self.sampling == "even", self._noise_covariance
        if covariance is None:
            return signals.white_noise(*shape, generator, dtype=dtype, even=even)
        return signals.correlated_noise(self.batch, shape[2], covariance, generator, dtype=dtype, even=even)

    def _draw_custom(self, generator: "Generator | None", shape: tuple[int, int, int]) -> "Tensor":
        assert self.inputs is not None
        values = self.inputs(*shape, generator)
        try:
            drawn = torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError):
            raise InputError("inputs", values, "a function that returns a tensor") from None
        if drawn.shape != shape:
            problem = f"shape {tuple(drawn.shape)}"
            raise InputError("inputs", values, f"{shape}, (batch, duration, channels)", problem=problem)
        if not bool(drawn.isfinite().all()):
            raise InputError("inputs", values, "a function whose values are finite", problem="NaN or infinite values")
        return drawn

    def zero_output_loss(self) -> float:
        if self.inputs is not None:
            targets = self.task.targets(self.draw(torch.Generator().manual_seed(0), torch.float64))
            return float(targets.square().sum()) / self.batch
        averaged = AveragedLoss(self.task, self.duration, self.covariance, self.correlation)
        return averaged.zero_output_loss()

    def default_learning_rate(self) -> float:
        """Return the rate for white noise, or less if the function `inputs` leads to larger targets."""
        rate = super().default_learning_rate()
        if self.inputs is None:
            return rate
        white = AveragedLoss(self.task, self.duration).zero_output_loss()
        return rate * min(1.0, white / max(self.zero_output_loss(), 1e-30))

    def check_inputs(self, net: "Network", inputs: "Tensor | np.ndarray") -> "Tensor":
        return check_shape(net, inputs, "sequence", "time")

    def value(self, net: "Network", inputs: "Tensor") -> "Tensor":
        inputs = inputs.to(net.encoders)
        return (net.outputs(inputs) - self.task.targets(inputs)).square().sum() / len(inputs)

    @without_autograd
    def gradient(
        self, net: "Network", inputs: "Tensor", parameters: frozenset[str] = RECURRENT
    ) -> tuple[float, Gradient]:
        r"""Return the loss and its gradient by back-propagation through time on whole matrices.

        $\delta_t = f'(\nu_t) \odot (\frac{2}{B} d\,(y_t - \bar y_t) + W^\dagger \delta_{t+1})$ and
        $\partial L / \partial W = \sum_t \delta_t\,(h_{t-1} + x_t e)^\dagger$, with B sequences in the batch. At t = 0
        the state is 0, so that both the forward product and the gradient have rank D there. With a leak, errors also
        pass from state to state:
        $\epsilon_t = \frac{2}{B} d\,(y_t - \bar y_t) + W^\dagger\delta_{t+1} + (1-\alpha)\,\epsilon_{t+1}$ and
        $\delta_t = \alpha f'(\nu_t) \odot \epsilon_t$.
        """
        inputs = inputs.to(net.encoders)
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

        # forward in time
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
        decoder_gradient = h.flatten(0, 1).T @ residuals.flatten(0, 1) if "decoders" in parameters else None
        if parameters <= {"decoders"}:
            return loss, Gradient(right[:0], right[:0], decoder_gradient)

        # backward in time
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
        if "encoders" in parameters:
            encoder_gradient = w.pull_back(sum((x[t].T @ delta[t] for t in range(1, duration)), delta[0])).T
        count = len(left) if "recurrent" in parameters else 0
        return loss, Gradient(left[:count], right[:count], decoder_gradient, encoder_gradient)

    @property
    def cost(self) -> int:
        return self.batch * self.duration

    def require_memory(self, neurons: int, itemsize: int) -> None:
        super().require_memory(neurons, itemsize)
        # states, currents and slopes, their gradients, and the factors of the gradient of W
        sequence = 6 * self.duration * itemsize * neurons
        field = f"training.loss.batch: {self.batch}"
        memory.require(self.batch * sequence, field, lambda free: f"up to {int(free / sequence)}")
