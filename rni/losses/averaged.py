r"""The fully averaged loss of a linear network (section 3, first appendix): no batch, no noise."""

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import torch
from pydantic import Field
from scipy.linalg import eigvalsh, toeplitz
from torch import Generator, Tensor

from rni.core import memory
from rni.core.errors import InputError, require_whole
from rni.core.parts import Numbers, require
from rni.losses.base import LOSSES, Loss, LossPart, largest_scale
from rni.losses.gradient import Gradient, Trained, require_task, trained_parts
from rni.networks.network import Network
from rni.tasks.integration import Integration, require_integration
from rni.theory.moments import input_correlation, moments, target_moments


class SequenceLoss(Loss):
    r"""A loss of sequences of T steps.

    Descent warms up to $2 / (s^2 T^3)$, four times the authors' constant rate in the paper's normalisation: from
    there on the current manifold is flatter and the integrals are better for the same work; less from T = 5 on, where
    small batches would make it unstable.
    """

    task: Integration
    duration: int
    schedule = "warmup"

    def rate(self) -> float:
        return 2 / (largest_scale(self.task) ** 2 * self.duration**3) * min(1, 5 / self.duration)


@dataclass(frozen=True)
class AveragedLoss(SequenceLoss):
    r"""$L(W) = \sum_{q,p=1}^T \chi_{qp} (\mu_q - s\gamma^q)(\mu_p - s\gamma^p)$, for any number of channels.

    With several channels $\mu_q$ and $s\gamma^q$ are D x D matrices, and the sum also runs over the channels of the
    outputs and over the pairs of channels of the inputs. Input covariance: as for `input_correlation`.

    >>> task = rni.Integration(0.9)
    >>> net = rni.design(task, neurons=40, activation="linear").network
    >>> loss = rni.AveragedLoss(task, duration=5)
    >>> loss(net).item() < 1e-12, loss.draw() is None
    (True, True)
    """

    task: Integration
    duration: int = 3
    covariance: Tensor | None = None
    correlation: Tensor | None = field(init=False, repr=False)  # None for white noise: see `weighed`
    noisy = False

    def __post_init__(self):
        require_integration(self.task)
        require_whole("duration", self.duration, 1)
        given = self.covariance is not None
        chi = input_correlation(self.duration, self.task.channels, self.covariance) if given else None
        object.__setattr__(self, "correlation", chi)

    @cached_property
    def targets(self) -> Tensor:
        r"""$s\gamma^q$, (duration, channels, channels)."""
        with torch.inference_mode(mode=False):  # whoever asks first
            decays, scales = self._decays_and_scales()
            return target_moments(decays, scales, self.duration)

    def _decays_and_scales(self) -> tuple[Tensor, ...]:
        return torch.tensor([self.task.decays, self.task.scales], dtype=torch.float64).unbind()

    def weighed(self, residual: Tensor) -> Tensor:
        r"""$\sum_q \chi_{qp}\,(\mu_q - s\gamma^q)$, (duration, channels, channels)."""
        if self.correlation is None:
            return torch.arange(self.duration, 0, -1).to(residual)[:, None, None] * residual
        return torch.einsum("qapb,qca->pcb", self.correlation.to(residual), residual)

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> None:
        """Nothing is drawn: the average over the inputs is exact."""

    def silent(self) -> float:
        r"""The loss of a silent network: $\sum_c \sum_{q=1}^T (T + 1 - q)\,s_c^2\gamma_c^{2q}$ for white noise."""
        if self.correlation is None:
            decays, scales = self._decays_and_scales()
            q = torch.arange(1, self.duration + 1)[:, None]
            return float(((self.duration + 1 - q) * (scales * decays**q).square()).sum())
        return float((self.targets * self.weighed(self.targets)).sum())

    def value(self, net: Network, inputs: None = None) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        require_task(_linear(net), self.task)
        mu = moments(net.recurrent.matrix(), net.encoders, net.decoders, self.duration)
        residual = mu - self.targets.to(mu)
        return (residual * self.weighed(residual)).sum()

    @torch.no_grad()
    def gradient(self, net: Network, inputs: None = None, train: Trained = "recurrent") -> tuple[float, Gradient]:
        r"""The loss and its gradient from 2T products with D vectors.

        $\delta_p = 2 d\,A_p + W^\dagger \delta_{p+1}$ with $A_p = \sum_q \chi_{qp} (\mu_q - s\gamma^q)$, and
        $\partial L/\partial W = \sum_{p=1}^T \delta_p\,(W^{p-1} e)^\dagger$: of rank T D at most.
        """
        parts = trained_parts(net, train)
        require_task(_linear(net), self.task)
        w, decoders = net.recurrent, net.decoders
        images: list[Tensor] = [net.encoders.T]  # W^p E, as rows
        for _ in range(self.duration):
            images.append(w(images[-1]))
        residual = torch.stack([(image @ decoders).T for image in images[1:]]) - self.targets.to(net.encoders)
        weighed = self.weighed(residual)
        loss = float((residual * weighed).sum())

        slopes = 2 * weighed.mT  # 2 A_p', (duration, channels of the inputs, of the outputs)
        decoder_gradient = torch.cat(images[1:]).T @ slopes.flatten(0, 1) if "decoders" in parts else None
        if parts <= {"decoders"}:
            return loss, Gradient(images[0][:0], images[0][:0], decoder_gradient)
        errors = slopes @ decoders.T
        for p in range(self.duration - 1, 0, -1):
            w.pull_back(errors[p], onto=errors[p - 1])
        encoder_gradient = w.pull_back(errors[0]).T if "encoders" in parts else None
        left, right = errors.flatten(0, 1), torch.cat(images[:-1])
        kept = len(left) if "recurrent" in parts else 0
        return loss, Gradient(left[:kept], right[:kept], decoder_gradient, encoder_gradient)


class SequencePart(LossPart):
    """Length of the sequences, and the correlation of their inputs at lags 0 to T - 1, white noise if left open."""

    duration: Annotated[int, Field(ge=1, le=10_000)] = 3
    correlation: Annotated[Numbers, Field(max_length=1000)] = ()

    @abstractmethod
    def make(self, task: Integration, covariance: Tensor | None) -> Loss: ...

    def build(self, task: Integration, activation: str) -> Loss:
        return self.make(task, torch.tensor(toeplitz(self.correlation)) if self.correlation else None)

    def check(self, task: Integration, activation: str) -> None:
        if self.correlation:
            given = ("training.loss.correlation", self.correlation)
            require(len(self.correlation) == self.duration, *given, f"{self.duration} numbers, one for each lag")
            smallest: Any = eigvalsh(toeplitz(self.correlation))[0]
            positive = smallest >= -1e-10 * abs(self.correlation[0])
            require(positive, *given, "a correlation without negative eigenvalues")

    def require_memory(self, task: Integration, neurons: int, size: int) -> None:
        pairs = 16 * (task.channels * len(self.correlation)) ** 2  # covariance and correlation, in float64
        memory.require(pairs, f"training.loss.correlation: {len(self.correlation)} lags", "fewer, or fewer channels")


@LOSSES.add("averaged")
class Averaged(SequencePart):
    def make(self, task: Integration, covariance: Tensor | None) -> Loss:
        return AveragedLoss(task, self.duration, covariance)

    def check(self, task: Integration, activation: str) -> None:
        super().check(task, activation)
        require(
            activation == "linear", "training.loss", self.name, f"'batch' or 'proxy' for the activation {activation!r}"
        )

    def rows(self, task: Integration, activation: str) -> int:
        return task.channels


def _linear(net: Network) -> Network:
    if net.f.name != "linear":
        raise InputError(f"activation: {net.f.name!r}; allowed: 'linear' for the averaged loss, or another loss")
    return net
