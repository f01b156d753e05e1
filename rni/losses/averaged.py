r"""The fully averaged loss of a linear network (section 3, first appendix): no batch, no noise."""

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from rni.errors import InputError
from rni.losses.gradient import Gradient, Trained
from rni.network import Network
from rni.task import Integration
from rni.theory.moments import input_correlation, moments, target_moments


@dataclass(frozen=True)
class AveragedLoss:
    r"""$L(W) = \sum_{q,p=1}^T \chi_{qp} (\mu_q - s\gamma^q)(\mu_p - s\gamma^p)$, for any number of channels.

    With several channels $\mu_q$ and $s\gamma^q$ are D x D matrices, and the sum also runs over the channels of the
    outputs and over the pairs of channels of the inputs. Input covariance: as for `input_correlation`.
    """

    task: Integration
    duration: int = 3
    covariance: Tensor | None = None
    correlation: Tensor = field(init=False, repr=False)
    targets: Tensor = field(init=False, repr=False)

    def __post_init__(self):
        decays = torch.tensor(self.task.decays, dtype=torch.float64)
        scales = torch.tensor(self.task.scales, dtype=torch.float64)
        chi = input_correlation(self.duration, self.task.channels, self.covariance)
        object.__setattr__(self, "correlation", chi)
        object.__setattr__(self, "targets", target_moments(decays, scales, self.duration))

    def draw(self, generator: Generator | None = None, dtype: torch.dtype = torch.float32) -> None:
        """Nothing is drawn: the average over the inputs is exact."""

    def silent(self) -> float:
        """The loss of a network without output."""
        return float(torch.einsum("qapb,qca,pcb->", self.correlation, self.targets, self.targets))

    def value(self, net: Network, inputs: None = None) -> Tensor:
        """The loss, a scalar for automatic differentiation."""
        mu = moments(_linear(net).recurrent.matrix(), net.encoders, net.decoders, self.duration)
        residual = mu - self.targets.to(mu)
        return torch.einsum("qapb,qca,pcb->", self.correlation.to(mu), residual, residual)

    @torch.no_grad()
    def gradient(self, net: Network, inputs: None = None, train: Trained = "recurrent") -> tuple[float, Gradient]:
        r"""The loss and its gradient from 2T products with D vectors.

        $\partial L/\partial W = 2 \sum_{p=1}^T \sum_{m=0}^{p-1} (W^{\dagger m} d)\, A_p\, (W^{p-1-m} e)^\dagger$ with
        $A_p = \sum_q \chi_{qp} (\mu_q - s\gamma^q)$: of rank T D at most.
        """
        w = _linear(net).recurrent
        images: list[Tensor] = [net.encoders]  # W^m E
        pulled: list[Tensor] = [net.decoders]  # W'^m D
        for _ in range(self.duration):
            images.append(w(images[-1].T).T)
            pulled.append(w.pull_back(pulled[-1].T).T)
        residual = torch.stack([net.decoders.T @ image for image in images[1:]]) - self.targets.to(net.dtype)
        weighed = torch.einsum("qapb,qca->pcb", self.correlation.to(residual), residual)
        loss = float((residual * weighed).sum())

        right = [
            sum((images[p - m] @ (2 * weighed[p]).T for p in range(m, self.duration)), torch.zeros_like(net.encoders))
            for m in range(self.duration)
        ]
        decoders = encoders = None
        if train != "recurrent":
            decoders = torch.stack([2 * v @ a.T for v, a in zip(images[1:], weighed, strict=True)]).sum(0)
        if train == "all":
            encoders = torch.stack([2 * u @ a for u, a in zip(pulled[1:], weighed, strict=True)]).sum(0)
        return loss, Gradient(torch.cat(pulled[:-1], dim=1).T, torch.cat(right, dim=1).T, decoders, encoders)


def _linear(net: Network) -> Network:
    if net.f.name != "linear":
        raise InputError(f"activation: {net.f.name!r}; allowed: 'linear' for the averaged loss, or the batch loss")
    return net
