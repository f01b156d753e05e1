r"""Transfer (last appendix): a fixed network as feature extractor, a trained sigmoidal head $u$ on its states.

$out = 1 / (1 + e^{-k(u \cdot h - \theta)})$ is to be 1 where a function of the integrals says so, else 0. The network
is anything that maps inputs to states: a `Network`, a `torch.nn.RNN`, the integrals themselves.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from scipy.spatial import KDTree
from torch import Tensor

from rni.activation import SLOPE, THRESHOLD
from rni.errors import InputError
from rni.task import Integration

Rule = Callable[[Tensor], Tensor]


class Head(NamedTuple):
    r"""$out = 1 / (1 + e^{-k(u \cdot h - \theta)})$: u (neurons,), slope k, threshold $\theta$."""

    u: Tensor
    slope: float = SLOPE
    threshold: float = THRESHOLD

    def logits(self, states: Tensor) -> Tensor:
        return self.slope * (states @ self.u - self.threshold)

    def __call__(self, states: Tensor) -> Tensor:
        """(...) from states (..., neurons)."""
        return torch.sigmoid(self.logits(states))


def context(integrals: Tensor) -> Tensor:
    r"""The paper's rule for integrals (..., 3): $y_0 > 0$ where $y_2 < 0$, and $y_1 > 0$ where $y_2 > 0$; boolean."""
    y0, y1, y2 = integrals.unbind(-1)
    return torch.where(y2 < 0, y0, y1) > 0


def fit_head(
    states: Tensor,
    labels: Tensor,
    *,
    slope: float = SLOPE,
    threshold: float = THRESHOLD,
    ridge: float = 1e-6,
    iterations: int = 100,
) -> Head:
    r"""$\min_u \langle -\log p(\text{label}) \rangle + \rho\,|k u|^2$ by L-BFGS: cross-entropy is convex in u.

    states (..., neurons), labels (...) of 0 and 1. The ridge $\rho$ makes the minimum unique where labels separate.
    """
    if labels.shape != states.shape[:-1]:
        raise InputError(
            f"states, labels: shapes {tuple(states.shape)}, {tuple(labels.shape)}; allowed: (..., neurons) and (...)"
        )
    h, target = states.detach().flatten(0, -2), labels.detach().to(states).flatten()
    if not bool(torch.isfinite(h).all()):
        raise InputError("states: missing or infinite values; allowed: finite numbers")
    if not bool(((target == 0) | (target == 1)).all()):
        raise InputError("labels: other values than 0 and 1; allowed: 0 and 1, or booleans")
    scaled = torch.zeros(h.shape[1], dtype=h.dtype, device=h.device, requires_grad=True)  # k u
    solver = torch.optim.LBFGS([scaled], max_iter=iterations, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        logits = h @ scaled - slope * threshold
        value = torch.nn.functional.binary_cross_entropy_with_logits(logits, target) + ridge * scaled.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        solver.step(loss)
    return Head(scaled.detach() / slope, slope, threshold)


@torch.no_grad()
def transfer(states_of: Callable[[Tensor], Tensor], task: Integration, rule: Rule, inputs: Tensor, **options) -> Head:
    r"""A head for `rule`$(\bar y)$ on the states (batch, time, neurons) that `states_of` gives for the inputs."""
    return fit_head(states_of(inputs), rule(task.targets(inputs)), **options)


def accuracy(outputs: Tensor, labels: Tensor) -> float:
    """Fraction of the outputs on the side of 1/2 that the labels, 0 and 1, are on."""
    return float(((outputs > 0.5) == (labels > 0.5)).double().mean())


def boundary_distance(integrals: Tensor, labels: Tensor) -> Tensor:
    """Distance of each sample of the integrals (samples, channels) to the nearest one with the other label: (samples,).

    An upper bound of the distance to the decision boundary of any rule, as close as the samples are dense.
    """
    labels = labels > 0.5
    if bool(labels.all()) or not bool(labels.any()):
        raise InputError("labels: all the same; allowed: samples of both labels")
    distances = torch.empty(len(integrals), dtype=torch.float64)
    for side in (labels, ~labels):
        found, _ = KDTree(integrals[~side].double().numpy()).query(integrals[side].double().numpy())
        distances[side] = torch.as_tensor(found)
    return distances
