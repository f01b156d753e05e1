r"""Where a network stands still: minima of $|R^\dagger f(L\kappa + b) - \kappa|^2$, from many states at once.

Levenberg and Marquardt's method: with matrices where there are few coordinates; by conjugate gradients, which need
products with W alone, where there are many. Newton's method ends it.
"""

import torch
from torch import Generator, Tensor

from rni.analysis.latents import Latent

FEW = 32  # coordinates up to which equations are solved with matrices
ITERATIONS = 50  # with matrices
ROUNDS, PRODUCTS = 15, 40  # of conjugate gradients
CLOSE = 1e-5  # of the visited range: there Newton's method takes over
APART = 1e-4  # of the visited range: closer points are the same


def still_points(reduced: Latent, begun: Tensor, more: int, size: float) -> tuple[Tensor, Tensor]:
    """Distinct minima of q (points, K), and which of them each row of begun (states, K) leads to.

    Also from as many as `more` states between the points that these lead to. size: the range of the states.
    """
    ends = descend(reduced, begun, CLOSE * size)
    others = between(distinct(reduced, ends, 10 * APART * size)[0], more)
    ends = torch.cat([ends, descend(reduced, others, CLOSE * size)])
    found, member = distinct(reduced, ends, 10 * APART * size)
    polished = torch.cat([polish(reduced, kappa, APART * size) for kappa in found.split(1)])
    kept, again = distinct(reduced, polished, APART * size)
    return kept, again[member[: len(begun)]]


def spaced(rows: Tensor, count: int) -> Tensor:
    """As many rows as that, from the first to the last."""
    return rows[torch.linspace(0, len(rows) - 1, min(len(rows), count)).round().long()]


def between(points: Tensor, count: int) -> Tensor:
    """Where saddles are: half-way between points (points, K); and all about them, where there are a few coordinates."""
    pairs = torch.combinations(torch.arange(len(points)))
    midpoints = points[spaced(pairs, count)].mean(1)
    if points.shape[1] > FEW or len(points) == 1:
        return midpoints
    cloud = torch.randn(count, points.shape[1], generator=Generator().manual_seed(0), dtype=torch.float64)
    return torch.cat([midpoints, points.mean(0) + 2 * float((points - points.mean(0)).square().mean().sqrt()) * cloud])


def descend(reduced: Latent, kappa: Tensor, tolerance: float) -> Tensor:
    r"""Rows of (batch, K) moved to where $q = |r|^2$ is least, $(J^\dagger J + \mu)\,\delta = -J^\dagger r$ a step.

    $\mu$ of each row falls where a step makes q smaller, else the step is not taken and it rises.
    """
    kappa = kappa.clone()
    damping = kappa.new_full((len(kappa),), 1e-2)
    active = torch.arange(len(kappa))
    solve, rounds = (_by_matrices, ITERATIONS) if reduced.dimension <= FEW else (_by_gradients, ROUNDS)
    for _ in range(rounds):
        if not len(active):
            break
        here, mu = kappa[active], damping[active]
        slopes, r = reduced.slopes(here), reduced.pull(here)
        gradient, q = reduced.against(slopes, r), r.square().sum(1)
        moved = here - solve(reduced, slopes, gradient, mu)
        better = reduced.pull(moved).square().sum(1) < q  # False where it is not a number
        kappa[active[better]] = moved[better]
        damping[active] = torch.where(better, mu / 10, mu * 10).clamp(min=1e-13)
        going = (q > tolerance**2) & (gradient.square().sum(1) > 1e-12 * q) & (damping[active] < 1e8)
        active = active[going]
    return kappa


def _by_matrices(reduced: Latent, slopes: Tensor, gradient: Tensor, mu: Tensor) -> Tensor:
    one = torch.eye(reduced.dimension, dtype=torch.float64)
    j = reduced.matrices(slopes) - one
    return torch.linalg.solve(j.mT @ j + mu[:, None, None] * one, gradient)


def _by_gradients(reduced: Latent, slopes: Tensor, gradient: Tensor, mu: Tensor) -> Tensor:
    """Conjugate gradients, all rows side by side; those that are done stand still."""
    x, r = torch.zeros_like(gradient), gradient.clone()
    p, size = r, r.square().sum(1)
    enough = 1e-4 * size
    for _ in range(PRODUCTS):
        ap = reduced.against(slopes, reduced.along(slopes, p)) + mu[:, None] * p
        rate = torch.where(size > enough, size / (p * ap).sum(1), 0.0)[:, None]
        x, r = x + rate * p, r - rate * ap
        size, before = r.square().sum(1), size
        if bool((size <= enough).all()):
            break
        p = r + (size / before)[:, None] * p
    return x


def polish(reduced: Latent, kappa: Tensor, reach: float) -> Tensor:
    """Newton's method on one row (1, K), as long as it makes the pull smaller within reach."""
    for _ in range(8):
        r = reduced.pull(kappa)
        j = reduced.matrices(reduced.slopes(kappa))[0] - torch.eye(reduced.dimension, dtype=torch.float64)
        move, _ = torch.linalg.solve_ex(j, r[0])
        if not (move.norm() <= reach and reduced.pull(kappa - move).norm() < r.norm()):
            break
        kappa = kappa - move
    return kappa


def distinct(reduced: Latent, kappa: Tensor, apart: float) -> tuple[Tensor, Tensor]:
    """One row for all that are closer than `apart`, the stillest; and which of them each row of (batch, K) is."""
    order = torch.argsort(reduced.pull(kappa).norm(dim=1))
    chosen: list[int] = []
    for k in order.tolist():
        if not chosen or float((kappa[chosen] - kappa[k]).norm(dim=1).min()) > apart:
            chosen.append(k)
    return kappa[chosen], torch.cdist(kappa, kappa[chosen]).argmin(1)
