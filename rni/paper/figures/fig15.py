r"""Descent at the scale $s = d \cdot e$: algebraic from W = 0, exponential from a random start."""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.figures.fig13 import null_eigenvalues
from rni.paper.style import SEEDS, THEORY, legend, panels
from rni.theory import (
    Plane,
    hessian_spectrum,
    intersection,
    plane,
    plane_of,
    recipe_cosine,
    undriven_mode,
    unread_mode,
)
from rni.training.reduced import Descents, descend_together
from rni.vectors import overlapping
from rni.weights import random_matrix

DECAY, DURATION, OVERLAP, NEURONS, SEED_COUNT = 0.995, 3, 0.4, 1000, 8
RADIUS = 0.1  # of the random starts
OTHER_OVERLAPS, OTHER_DURATION = (0.1, 0.8), 5


def descend(spaces: list[Plane], start: np.ndarray, duration: int, steps: int) -> Descents:
    r"""Descent at s = d.e from `start` (networks, 2, 2), with $\eta = 1/\lambda_{max}$ at the intersection."""
    return descend_together(
        start,
        np.stack([space.encoder.numpy() for space in spaces]),
        np.stack([space.decoder.numpy() for space in spaces]),
        DECAY,
        np.array([space.overlap for space in spaces]),
        duration=duration,
        learning_rate=np.array([learning_rate(space, duration) for space in spaces]),
        steps=steps,
    )


def learning_rate(space: Plane, duration: int) -> float:
    spectrum = hessian_spectrum(intersection(space, DECAY, 0.0), space, DECAY, space.overlap, duration)
    return 1 / spectrum[0].item()


def drawn(seed: int) -> Plane:
    return plane_of(*overlapping(NEURONS, 1, torch.Generator().manual_seed(seed), overlap=OVERLAP))


def distance(omega: np.ndarray, space: Plane) -> float:
    r"""How far $\omega$ is from the point of the intersection that has the same trace."""
    nearest = intersection(space, DECAY, float(np.trace(omega)) - DECAY).numpy()
    return float(np.linalg.norm(omega - nearest))


def exponent(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Slope in double logarithms of values (times, ...) by least squares: (...)."""
    return np.polyfit(np.log(times), np.log(values), 1)[0]


def exponential_times(losses: np.ndarray) -> np.ndarray:
    """Steps that shrink each loss (steps, networks) by e, late: from 1e-8 to 1e-20 of the first; NaN if not reached."""
    relative = losses / losses[0]
    times = []
    for curve in relative.T:
        below = [int((curve < level).argmax()) for level in (1e-8, 1e-20)]
        reached = curve.min() < 1e-20
        times.append((below[1] - below[0]) / np.log(curve[below[0]] / curve[below[1]]) if reached else np.nan)
    return np.array(times)


def measure(runs: Runs, profile: Profile) -> Measured:
    spaces = [drawn(seed) for seed in range(SEED_COUNT)]
    others = [plane(1, 1, recipe_cosine(o)) for o in OTHER_OVERLAPS]
    steps = 50_000 if profile.quick else 200_000
    sampled = np.unique(np.geomspace(1, steps, 200).astype(int))

    early = descend([*spaces, *others], np.zeros((SEED_COUNT + 2, 2, 2)), DURATION, steps // 10)
    rest = descend([*spaces, *others], early.omega, DURATION, steps - steps // 10)
    losses = np.concatenate([early.losses, rest.losses])
    longer = descend([spaces[0], *others], np.zeros((3, 2, 2)), OTHER_DURATION, steps).losses

    starts = [random_matrix(2, RADIUS, torch.Generator().manual_seed(seed)).numpy() for seed in range(SEED_COUNT)]
    random = descend(spaces, np.stack(starts), DURATION, 10_000 if profile.quick else 30_000)
    return {
        "steps": sampled,
        "algebraic": losses[sampled - 1, :SEED_COUNT],
        "other_vectors": losses[sampled - 1, SEED_COUNT:],
        "other_duration": longer[sampled - 1],
        "random_steps": np.arange(1, len(random.losses) + 1)[::10],
        "exponential": random.losses[::10],
        "measured_times": exponential_times(random.losses),
        "predicted_times": np.array([slowest(w, space) for w, space in zip(random.omega, spaces, strict=True)]),
        "distance_steps": np.array([steps // 10, steps]),
        "distances": np.array(
            [[distance(w, space) for w, space in zip(run.omega, spaces, strict=False)] for run in (early, rest)]
        ),
        "random_distances": np.array([distance(w, space) for w, space in zip(random.omega, spaces, strict=True)]),
        **null_counts(spaces[0]),
    }


def slowest(omega: np.ndarray, space: Plane) -> float:
    r"""$-1 / \ln (1 - \eta\lambda_2)^2$: steps that shrink the loss by e, from the Hessian's second eigenvalue."""
    second = hessian_spectrum(omega, space, DECAY, space.overlap, DURATION)[1].item()
    return -0.5 / np.log1p(-learning_rate(space, DURATION) * second)


def null_counts(space: Plane) -> dict[str, Any]:
    others = (-0.6, 0.0, 0.3, 0.7)
    on = [intersection(space, DECAY, other) for other in others]
    off = [
        family(space, DECAY, other, angle)
        for family in (unread_mode, undriven_mode)
        for other in others
        for angle in (0.4, 1.2, 2.5)
    ]
    return {
        "null_on": np.array([null_eigenvalues(omega, space, space.overlap) for omega in on]),
        "null_off": np.array([null_eigenvalues(omega, space, space.overlap) for omega in off]),
    }


def claims(measured: Measured) -> list[Claim]:
    where = "Appendix, Algebraic convergence for specific scale value; Fig 15"
    times, last = measured["steps"], measured["steps"][-1]
    decades, decade = times >= last / 100, times >= last / 10
    slopes = exponent(times[decades], measured["algebraic"][decades])
    elsewhere = np.concatenate([measured["other_vectors"], measured["other_duration"]], axis=1)
    other_slopes = exponent(times[decade], elsewhere[decade])
    measured_times, predicted = measured["measured_times"], measured["predicted_times"]
    exponential = np.isfinite(measured_times)
    deviation = np.abs(measured_times / predicted - 1)[exponential]
    approach = exponent(measured["distance_steps"], measured["distances"])
    return [
        Claim(
            id="fig15.algebraic",
            where=where,
            statement=r"From W = 0 at $s = d \cdot e$ the loss falls as $\tau^{-2}$.",
            criterion="exponent fitted over the last two decades of steps within 0.1 of -2 for each of 8 draws of the "
            "vectors",
            expected="-2",
            measured={"smallest": float(slopes.min()), "mean": float(slopes.mean()), "largest": float(slopes.max())},
            holds=lambda m: max(abs(m["smallest"] + 2), abs(m["largest"] + 2)) < 0.1,
        ),
        Claim(
            id="fig15.any-vectors-and-duration",
            where=where,
            statement="The exponent depends neither on T nor on the vectors.",
            criterion="overlaps of 0.1 and 0.8, and T = 5: exponent over the last decade of steps within 0.2 of -2",
            expected="-2",
            measured={"smallest": float(other_slopes.min()), "largest": float(other_slopes.max())},
            holds=lambda m: max(abs(m["smallest"] + 2), abs(m["largest"] + 2)) < 0.2,
        ),
        Claim(
            id="fig15.slow-coordinate",
            where=where,
            statement=r"The distance to the intersection falls as $\tau^{-1}$.",
            criterion="mean exponent over the last decade of steps within 0.1 of -1",
            expected="-1",
            measured=float(approach.mean()),
            holds=lambda slope: abs(slope + 1) < 0.1,
        ),
        Claim(
            id="fig15.null-start-is-slow",
            where=where,
            statement="Descent from W = 0 ends on the intersection of the two manifolds, from a random start away "
            "from it.",
            criterion="the largest final distance from W = 0 is below a third of the median one from random starts",
            expected="0 from W = 0",
            measured={
                "largest from W = 0": float(measured["distances"][-1].max()),
                "median from random starts": float(np.median(measured["random_distances"])),
            },
            holds=lambda m: m["largest from W = 0"] < m["median from random starts"] / 3,
        ),
        Claim(
            id="fig15.exponential",
            where=where,
            statement="From a random start in the subspace convergence is usually exponential, in a wide range of "
            "times.",
            criterion="at least three quarters of 8 starts reach 1e-20 of the first loss; times spread by a factor 2 "
            "or more",
            expected="usually",
            measured={
                "fraction": float(exponential.mean()),
                "longest time / shortest": float(predicted.max() / predicted.min()),
            },
            holds=lambda m: m["fraction"] >= 0.75 and m["longest time / shortest"] >= 2,
        ),
        Claim(
            id="fig15.predicted-rate",
            where=where,
            statement="There it converges at the rate of the smaller of the two positive eigenvalues of the Hessian.",
            criterion="measured time of each exponential convergence within 5 % of the prediction at its end point",
            expected="0",
            measured={
                "largest relative deviation": float(deviation.max(initial=0.0)),
                "cases": float(exponential.sum()),
            },
            holds=lambda m: m["largest relative deviation"] < 0.05 and m["cases"] > 0,
        ),
        Claim(
            id="fig15.null-eigenvalues",
            where=where,
            statement="The Hessian has two null eigenvalues on either manifold and three on their intersection.",
            criterion="numbers of null eigenvalues at 24 points off the intersection and at 4 on it",
            expected="2 and 3",
            measured={
                "fewest off": float(measured["null_off"].min()),
                "most off": float(measured["null_off"].max()),
                "fewest on": float(measured["null_on"].min()),
                "most on": float(measured["null_on"].max()),
            },
            holds=lambda m: m["fewest off"] == m["most off"] == 2 and m["fewest on"] == m["most on"] == 3,
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, axes = panels(2)
    for curve, colour in zip(measured["exponential"].T, SEEDS, strict=True):
        axes[0].semilogy(measured["random_steps"], curve, color=colour, linewidth=1.2)
    spread = np.nanmax(measured["measured_times"], initial=1.0)
    axes[0].set(xlim=(0, min(40 * spread, measured["random_steps"][-1])), ylim=(1e-30, None))
    axes[0].set(xlabel=r"steps $\tau$", ylabel=r"loss $\mathcal{L}$", title="random start")
    times = measured["steps"]
    for curve, colour in zip(measured["algebraic"].T, SEEDS, strict=True):
        axes[1].loglog(times, curve, color=colour, linewidth=1.2)
    late = times[times >= times[-1] / 100]
    guide = 4 * measured["algebraic"][-1].max() * (late / late[-1]) ** -2.0
    axes[1].loglog(late, guide, color=THEORY, linestyle="--", label=r"$\propto \tau^{-2}$")
    axes[1].set(xlabel=r"steps $\tau$", ylabel=r"loss $\mathcal{L}$", title="$W = 0$")
    legend(axes[1])
    return drawing


FIGURE = Figure(
    id="fig15",
    order=150,
    title="Exponential and algebraic convergence",
    section="Algebraic convergence for specific scale value",
    caption=r"Loss during descent at the scale $s = d \cdot e$, for 8 draws of the vectors (overlap 0.4). (A) From a "
    r"random $\omega$ of spectral radius 0.1 the loss ends on a straight line in a logarithmic scale, steeper or "
    r"flatter according to where it arrives (the floor is rounding). (B) From $W = 0$ it ends on the power law "
    r"$\tau^{-2}$. $\gamma = 0.995$, $T = 3$, $\eta = 1/\lambda_{max}$ at the intersection of the manifolds (about "
    r"0.025 for the loss summed over time), so that the power law is reached soon enough to be seen over two decades.",
    measure=measure,
    claims=claims,
    draw=draw,
)
