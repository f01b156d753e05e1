r"""Transfer (last appendix): a fixed network as feature extractor, a trained sigmoidal head $u$ on its states.

$out = 1 / (1 + e^{-k(u \cdot h - \theta)})$ is to be 1 where a function of the integrals says so, else 0. The network
is anything that maps inputs to states: a `Network`, a `torch.nn.RNN`, the integrals themselves.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.spatial import KDTree
from torch import Tensor

from rni.activations import Sigmoid
from rni.core.errors import InputError
from rni.tasks.integration import Integration

__all__ = ["Head", "accuracy", "boundary_distance", "context", "fit_head", "transfer"]

Rule = Callable[[Tensor], Tensor]


class Head(NamedTuple):
    r"""$out = 1 / (1 + e^{-k(u \cdot h - \theta)})$: u (neurons,), slope k, threshold $\theta$.

    >>> head = rni.transfer.Head(u=torch.tensor([1.0, 0.0]), slope=50.0, threshold=0.1)
    >>> head(torch.tensor([[0.1, 3.0], [1.0, 0.0]])).tolist()
    [0.5, 1.0]
    """

    u: Tensor
    slope: float = Sigmoid.slope
    threshold: float = Sigmoid.threshold

    def logits(self, states: Tensor) -> Tensor:
        return self.slope * (states @ self.u - self.threshold)

    def __call__(self, states: Tensor) -> Tensor:
        """(...) from states (..., neurons)."""
        return torch.sigmoid(self.logits(states))


def context(integrals: Tensor) -> Tensor:
    r"""The paper's rule for integrals (..., 3): $y_0 > 0$ where $y_2 < 0$, and $y_1 > 0$ where $y_2 > 0$; boolean.

    >>> rni.transfer.context(torch.tensor([[1.0, -1.0, -1.0], [1.0, -1.0, 1.0]])).tolist()
    [True, False]
    """
    y0, y1, y2 = integrals.unbind(-1)
    return torch.where(y2 < 0, y0, y1) > 0


def fit_head(
    states: Tensor,
    labels: Tensor,
    *,
    slope: float = Sigmoid.slope,
    threshold: float = Sigmoid.threshold,
    ridge: float = 1e-6,
    iterations: int = 100,
) -> Head:
    r"""$\min_u \langle -\log p(\text{label}) \rangle + \rho\,|k u|^2$ by L-BFGS: cross-entropy is convex in u.

    states (..., neurons), labels (...) of 0 and 1. The ridge $\rho$ makes the minimum unique where labels separate.

    >>> states = torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    >>> labels = states[:, 0] > 0
    >>> head = rni.transfer.fit_head(states, labels)
    >>> rni.transfer.accuracy(head(states), labels) > 0.95
    True
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

    def loss(scaled: np.ndarray) -> tuple[float, np.ndarray]:
        """And its gradient, of k u."""
        logits = h @ torch.from_numpy(scaled).to(h) - slope * threshold
        value = torch.nn.functional.binary_cross_entropy_with_logits(logits.double(), target.double())
        gradient = ((torch.sigmoid(logits) - target) @ h / len(h)).cpu().double().numpy() + 2 * ridge * scaled
        return float(value) + ridge * float(scaled @ scaled), gradient

    # torch's own would load its compiler first, which takes seconds
    options = {"maxiter": iterations, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(loss, np.zeros(h.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return Head(torch.from_numpy(found.x).to(h) / slope, slope, threshold)


@torch.no_grad()
def transfer(states_of: Callable[[Tensor], Tensor], task: Integration, rule: Rule, inputs: Tensor, **options) -> Head:
    r"""A head for `rule`$(\bar y)$ on the states (batch, time, neurons) that `states_of` gives for the inputs.

    >>> task = rni.Integration([0.9, 0.9, 0.9])
    >>> net = rni.design(task, neurons=60).network
    >>> x = rni.inputs.white_noise(20, 50, 3, torch.Generator().manual_seed(0)).double()
    >>> head = rni.transfer.transfer(lambda x: net(x)[0], task, rni.transfer.context, x)
    >>> head.u.shape
    torch.Size([60])
    """
    return fit_head(states_of(inputs), rule(task.targets(inputs)), **options)


def accuracy(outputs: Tensor, labels: Tensor) -> float:
    """Fraction of the outputs on the side of 1/2 that the labels, 0 and 1, are on.

    >>> rni.transfer.accuracy(torch.tensor([0.9, 0.2, 0.6]), torch.tensor([1, 0, 0]))
    0.6666666666666666
    """
    return float(((outputs > 0.5) == (labels > 0.5)).double().mean())


def boundary_distance(integrals: Tensor, labels: Tensor) -> Tensor:
    """Distance of each sample of the integrals (samples, channels) to the nearest one with the other label: (samples,).

    An upper bound of the distance to the decision boundary of any rule, as close as the samples are dense.

    >>> integrals = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> rni.transfer.boundary_distance(integrals, torch.tensor([0, 1, 0])).round(decimals=2).tolist()
    [5.0, 4.24, 4.24]
    """
    labels = labels > 0.5
    if bool(labels.all()) or not bool(labels.any()):
        raise InputError("labels: all the same; allowed: samples of both labels")
    distances = torch.empty(len(integrals), dtype=torch.float64)
    for side in (labels, ~labels):
        found, _ = KDTree(integrals[~side].double().numpy()).query(integrals[side].double().numpy())
        distances[side] = torch.as_tensor(found)
    return distances
