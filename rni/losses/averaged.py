r"""The fully averaged loss of a linear network (section 3, first appendix), which needs no batch and has no noise."""

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from rni.core import memory
from rni.core.errors import InputError
from rni.core.registry import Numbers, part
from rni.losses.base import LOSSES, Loss, TaskField, largest_scale
from rni.losses.gradient import RECURRENT, Gradient, without_autograd
from rni.tasks.integration import Integration

if TYPE_CHECKING:
    import torch
    from scipy import linalg
    from torch import Generator, Tensor

    from rni.networks.network import Network
    from rni.theory import moments
else:
    from rni.core.lazy import LazyModule, torch

    linalg, moments = LazyModule("scipy.linalg"), LazyModule("rni.theory.moments")


def _as_matrix(values: Any) -> Any:
    """Convert an array to a tuple of its rows. A row of (time, channels, time, channels) is one time and channel."""
    if hasattr(values, "tolist"):
        if values.ndim == 4:
            values = values.reshape(values.shape[0] * values.shape[1], -1)
        values = values.tolist()
    return tuple(map(tuple, values)) if isinstance(values, list | tuple) else values


Duration = Annotated[int, Field(ge=1, le=10_000)]
Correlation = Annotated[Numbers, Field(max_length=1000)]
Covariance = Annotated[Any, BeforeValidator(_as_matrix)]  # an array or nested sequences, stored as a tuple of rows


class SequenceLoss(Loss):
    r"""Base class of the losses of sequences of T inputs.

    Their default learning rate is $\frac{2}{s^2 T^3} \min(1, 5/T)$, which plain gradient descent reaches by a warm-up.
    For T up to 5 it is four times the authors' constant rate in the paper's normalisation. It leads to flatter current
    manifolds and to the same integrals at the same cost. For larger T it is smaller, because small batches would make
    it unstable.
    """

    task: Integration
    duration: int
    correlation: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...] | None
    default_schedule = "warmup"

    def __post_init__(self):
        if self.correlation:
            if self.covariance is not None:
                raise InputError("covariance", self.covariance, "none with a correlation", problem="given as well")
            if len(self.correlation) != self.duration:
                raise InputError("correlation", self.correlation, f"{self.duration} numbers, one for each lag")
            smallest = linalg.eigvalsh(linalg.toeplitz(self.correlation))[0]
            if not smallest >= -1e-10 * abs(self.correlation[0]):
                raise InputError("correlation", self.correlation, "a correlation without negative eigenvalues")
        if self.covariance is not None:
            moments.full_covariance(self.duration, self.task.channels, self.input_covariance)

    @property
    def input_covariance(self) -> "Tensor | None":
        """The covariance of the inputs as `rni.theory.input_correlation` takes it, or None for white noise."""
        if self.correlation:
            return torch.tensor(linalg.toeplitz(self.correlation))
        if self.covariance is None:
            return None
        try:
            covariance = torch.tensor(self.covariance, dtype=torch.float64)
        except (TypeError, ValueError):
            raise InputError("covariance", self.covariance, "numbers, in rows of one length") from None
        duration, channels = self.duration, self.task.channels
        if covariance.shape == (duration * channels, duration * channels):
            return covariance.reshape(duration, channels, duration, channels) if channels > 1 else covariance
        return covariance

    def default_learning_rate(self) -> float:
        return 2 / (largest_scale(self.task) ** 2 * self.duration**3) * min(1, 5 / self.duration)

    def require_memory(self, neurons: int, itemsize: int) -> None:
        lags = max(len(self.correlation), len(self.covariance or ()) // self.task.channels)
        pairs = 16 * (self.task.channels * lags) ** 2  # covariance and correlation, in float64
        memory.require(pairs, f"training.loss.correlation: {lags} lags", "fewer, or fewer channels")


@LOSSES.register("averaged")
@part
class AveragedLoss(SequenceLoss):
    r"""The squared error of a linear network, averaged over all inputs.

    .. math:: L(W) = \sum_{q,p=1}^T \chi_{qp} (\mu_q - s\gamma^q)(\mu_p - s\gamma^p)

    With several channels $\mu_q$ and $s\gamma^q$ are D x D matrices, and the sum also runs over the channels of the
    outputs and over the pairs of channels of the inputs.

    Parameters
    ----------
    task : Task
        The task.
    duration : int
        The length T of the sequences.
    covariance : matrix, optional
        The covariance of the inputs, (T, T) if channels are independent and have the same covariance, or
        (T, channels, T, channels). The default is white noise of variance 1.
    correlation : sequence of float, optional
        The correlation of the inputs at lags 0 to T - 1, in place of a covariance.

    Examples
    --------
    >>> task = rni.Integration(0.9)
    >>> net = rni.design(task, neurons=40, activation="linear").network
    >>> loss = rni.AveragedLoss(task, duration=5)
    >>> loss(net).item() < 1e-12, loss.draw() is None
    (True, True)
    """

    task: Annotated[Integration, *TaskField]
    duration: Duration = 3
    covariance: Covariance = None
    correlation: Correlation = ()

    noisy = False
    closed_form = True

    @cached_property
    def chi(self) -> "Tensor | None":
        r"""$\chi_{qp}$, of shape (T, channels, T, channels), or None for white noise; see `weigh`."""
        covariance = self.input_covariance
        if covariance is None:
            return None
        with torch.inference_mode(mode=False):  # the cache may be filled under inference_mode
            return moments.input_correlation(self.duration, self.task.channels, covariance)

    @cached_property
    def target_moments(self) -> "Tensor":
        r"""$s\gamma^q$, of shape (T, channels, channels)."""
        with torch.inference_mode(mode=False):  # the cache may be filled under inference_mode
            decays, scales = self._decays_and_scales()
            return moments.target_moments(decays, scales, self.duration)

    def _decays_and_scales(self) -> "tuple[Tensor, ...]":
        return torch.tensor([self.task.decays, self.task.scales], dtype=torch.float64).unbind()

    def weigh(self, residual: "Tensor") -> "Tensor":
        r"""Return $\sum_q \chi_{qp}\,(\mu_q - s\gamma^q)$, of shape (T, channels, channels)."""
        if self.chi is None:
            # white noise: \chi_{qp} is T + 1 - q on the diagonal
            return torch.arange(self.duration, 0, -1).to(residual)[:, None, None] * residual
        return torch.einsum("qapb,qca->pcb", self.chi.to(residual), residual)

    def draw(self, generator: "Generator | None" = None, dtype: "torch.dtype | None" = None) -> None:
        """Draw nothing, because the average over the inputs is exact."""

    def zero_output_loss(self) -> float:
        r"""Return $\sum_c \sum_{q=1}^T (T + 1 - q)\,s_c^2\gamma_c^{2q}$, or the like for correlated inputs."""
        if self.chi is None:
            decays, scales = self._decays_and_scales()
            q = torch.arange(1, self.duration + 1)[:, None]
            return float(((self.duration + 1 - q) * (scales * decays**q).square()).sum())
        return float((self.target_moments * self.weigh(self.target_moments)).sum())

    def value(self, net: "Network", inputs: None = None) -> "Tensor":
        mu = moments.moments(net.recurrent.matrix(), net.encoders, net.decoders, self.duration)
        residual = mu - self.target_moments.to(mu)
        return (residual * self.weigh(residual)).sum()

    @without_autograd
    def gradient(
        self, net: "Network", inputs: None = None, parameters: frozenset[str] = RECURRENT
    ) -> tuple[float, Gradient]:
        r"""Return the loss and its gradient from 2T products of W with D vectors.

        $\delta_p = 2 d\,A_p + W^\dagger \delta_{p+1}$ with $A_p = \sum_q \chi_{qp} (\mu_q - s\gamma^q)$, and
        $\partial L/\partial W = \sum_{p=1}^T \delta_p\,(W^{p-1} e)^\dagger$, whose rank is at most T D.
        """
        w, decoders = net.recurrent, net.decoders
        images: list[Tensor] = [net.encoders.T]  # W^p E, as rows
        for _ in range(self.duration):
            images.append(w(images[-1]))
        residual = torch.stack([(image @ decoders).T for image in images[1:]]) - self.target_moments.to(net.encoders)
        weighed = self.weigh(residual)
        loss = float((residual * weighed).sum())

        slopes = 2 * weighed.mT  # 2 A_p', (duration, channels of the inputs, of the outputs)
        decoder_gradient = torch.cat(images[1:]).T @ slopes.flatten(0, 1) if "decoders" in parameters else None
        if parameters <= {"decoders"}:
            return loss, Gradient(images[0][:0], images[0][:0], decoder_gradient)
        errors = slopes @ decoders.T
        for p in range(self.duration - 1, 0, -1):
            w.pull_back(errors[p], onto=errors[p - 1])
        encoder_gradient = w.pull_back(errors[0]).T if "encoders" in parameters else None
        left, right = errors.flatten(0, 1), torch.cat(images[:-1])
        rows = len(left) if "recurrent" in parameters else 0
        return loss, Gradient(left[:rows], right[:rows], decoder_gradient, encoder_gradient)

    @property
    def cost(self) -> int:
        return self.task.channels

    def for_activation(self, activation: str | None) -> Loss:
        if activation != "linear":
            raise InputError("loss", "averaged", f"'batch' or 'proxy' for the activation {activation!r}")
        return self
