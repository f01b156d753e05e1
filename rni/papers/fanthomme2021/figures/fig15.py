r"""Fig 15: descent at the scale $s = d \cdot e$ is algebraic from W = 0 and exponential from a random start."""

from functools import cache, partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.losses import BatchLoss
from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021 import measuring
from rni.papers.fanthomme2021.figures.fig13 import null_eigenvalues
from rni.plots.style import SEEDS, TARGET, THEORY, legend, panels
from rni.tasks.integration import Integration
from rni.theory import (
    Plane,
    hessian_spectrum,
    intersection,
    is_generalizing_integrator,
    plane,
    plane_of,
    recipe_cosine,
    undriven_mode,
    unread_mode,
)
from rni.training import train
from rni.training.reduced import Descents
from rni.weights import random_matrix
from rni.weights.vectors import overlapping

DECAY, DURATION, OVERLAP, NEURONS, SEED_COUNT = 0.995, 3, 0.4, 1000, 8
RADIUS = 0.1  # spectral radius of the random starts
OTHER_OVERLAPS, OTHER_DURATION = (0.1, 0.8), 5
MANY = 200  # random starts, to count the slow ones
SLOW = 1e-8  # a slow descent does not reach this part of the first loss in 10 000 steps; from W = 0 it reaches 1e-6
NOISE, NOISY_STEPS, QUIET_STEPS = 0.1, 1000, 10_000


def descend(spaces: list[Plane], start: np.ndarray, duration: int, steps: int) -> Descents:
    r"""Descend at s = d.e from `start` (networks, 2, 2), with $\eta = 1/\lambda_{max}$ at the intersection."""
    rates = np.array([learning_rate(space, duration) for space in spaces])
    scales = [space.overlap for space in spaces]
    return measuring.descend(spaces, start, DECAY, scales, duration=duration, learning_rate=rates, steps=steps)


@cache  # the same few planes are used thousands of times
def learning_rate(space: Plane, duration: int) -> float:
    spectrum = hessian_spectrum(intersection(space, DECAY, 0.0), space, DECAY, space.overlap, duration)
    return 1 / spectrum[0].item()


def drawn(seed: int) -> Plane:
    return plane_of(*overlapping(NEURONS, 1, torch.Generator().manual_seed(seed), overlap=OVERLAP))


def distance(omega: np.ndarray, space: Plane) -> float:
    r"""Return the distance of $\omega$ from the point of the intersection that has the same trace."""
    nearest = intersection(space, DECAY, float(np.trace(omega)) - DECAY).numpy()
    return float(np.linalg.norm(omega - nearest))


def coordinates(omega: np.ndarray, space: Plane) -> np.ndarray:
    r"""Return the distances of $\omega$ (..., 2, 2) from the two manifolds, shape (..., 2).

    Where the second mode is not driven, $\omega e = \gamma e$; where it is not read, $\omega^\dagger d = \gamma d$. At
    a minimum, the first moment leaves only the part of each difference that is orthogonal to d, or to e.
    """
    e, d = space.encoder.numpy(), space.decoder.numpy()
    across = np.array([[0.0, -1.0], [1.0, 0.0]])
    undriven = (DECAY * e - omega @ e) @ (across @ d)
    unread = (DECAY * d - omega.swapaxes(-1, -2) @ d) @ (across.T @ e)
    return np.stack([undriven, unread], axis=-1)


def trajectories(space: Plane, starts: np.ndarray, steps: int = 10_000) -> np.ndarray:
    """Return the `coordinates` of descents at logarithmically spaced steps, shape (times, networks, 2).

    `starts` has the shape (networks, 2, 2).
    """
    omega, path = starts, [coordinates(starts, space)]
    for more in np.diff(np.unique(np.geomspace(1, steps, 60).astype(int)), prepend=0).tolist():
        omega = descend([space] * len(omega), omega, DURATION, more).omega
        path.append(coordinates(omega, space))
    return np.stack(path)


def noisy_descent(space: Plane, noise: float, networks: int = 16) -> np.ndarray:
    """Return the losses (networks,) of descents from W = 0 whose first steps are noisy and whose last are not."""
    rng, omega = np.random.default_rng(15), np.zeros((networks, 2, 2))
    for _ in range(NOISY_STEPS // 10):
        omega = descend([space] * networks, omega, DURATION, 10).omega + noise * rng.normal(size=omega.shape)
    return descend([space] * networks, omega, DURATION, QUIET_STEPS).losses[-1]


def batch_noise(space: Plane, steps: int = 1000) -> float:
    """Return how far descent on batches of 8 sequences leaves the symmetric line, relative to its distance."""
    task = Integration([DECAY], [space.overlap])
    start = torch.zeros(2, 2, dtype=torch.float64)
    net = Network(task, space.encoder[:, None], space.decoder[:, None], start, "linear")
    rate, generator = learning_rate(space, DURATION) / 2, torch.Generator().manual_seed(15)
    train(net, BatchLoss(task, DURATION, batch=8), learning_rate=rate, steps=steps, generator=generator)
    undriven, unread = coordinates(net.recurrent.matrix().detach().numpy(), space)
    return abs(undriven - unread) / (abs(undriven) + abs(unread))


def exponent(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Fit a power law to values (times, ...) by least squares of the logarithms and return its exponents (...)."""
    return np.polyfit(np.log(times), np.log(values), 1)[0]


def exponential_times(losses: np.ndarray, high: float = 1e-8, low: float = 1e-20) -> np.ndarray:
    """Return the number of steps that shrink each loss by e, between two levels.

    Parameters
    ----------
    losses : array, shape (steps, networks)
    high, low : float
        The levels, in parts of the first loss.

    Returns
    -------
    array, shape (networks,)
        NaN where the loss does not reach the lower level.
    """
    relative = losses / losses[0]
    times = []
    for curve in relative.T:
        below = [int((curve < level).argmax()) for level in (high, low)]
        reached = curve.min() < low
        times.append((below[1] - below[0]) / np.log(curve[below[0]] / curve[below[1]]) if reached else np.nan)
    return np.array(times)


def measure(results: Results, profile: Profile) -> Measured:
    spaces = [drawn(seed) for seed in range(SEED_COUNT)]
    others = [plane(1, 1, recipe_cosine(o)) for o in OTHER_OVERLAPS]
    steps = 50_000 if profile.quick else 200_000
    sampled = np.unique(np.geomspace(1, steps, 200).astype(int))

    early = descend([*spaces, *others], np.zeros((SEED_COUNT + 2, 2, 2)), DURATION, steps // 10)
    rest = descend([*spaces, *others], early.omega, DURATION, steps - steps // 10)
    losses = np.concatenate([early.losses, rest.losses])
    longer = descend([spaces[0], *others], np.zeros((3, 2, 2)), OTHER_DURATION, steps).losses

    starts = [random_matrix(2, RADIUS, torch.Generator().manual_seed(seed)).numpy() for seed in range(MANY)]
    random = descend(spaces, np.stack(starts[:SEED_COUNT]), DURATION, 10_000 if profile.quick else 30_000)
    typical = plane(1, 1, recipe_cosine(OVERLAP))
    many = descend([typical] * MANY, np.stack(starts), DURATION, QUIET_STEPS)
    ends = zip(random.omega, spaces, strict=True)
    reports = [is_generalizing_integrator(w, s.encoder, s.decoder, DECAY, s.overlap, tolerance=1e-6) for w, s in ends]
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
        "random_errors": np.array([report.moment_error for report in reports]),
        "random_ranks": np.array([report.rank for report in reports]),
        "many_losses": many.losses[-1] / many.losses[0],
        "many_coordinates": coordinates(np.stack(starts), typical),
        "trajectories": trajectories(typical, np.stack([np.zeros((2, 2)), *starts[:SEED_COUNT]])),
        "noisy_losses": noisy_descent(typical, NOISE),
        "quiet_loss": noisy_descent(typical, 0.0, 1)[0],
        "batch_asymmetry": batch_noise(typical),
        **null_counts(spaces[0]),
    }


def slowest(omega: np.ndarray, space: Plane) -> float:
    r"""Return $-1 / \ln (1 - \eta\lambda_2)^2$, the steps that shrink the loss by e in the slowest direction."""
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
    converged = measured["random_errors"] < 1e-6
    slow = measured["many_losses"] > SLOW
    asymmetry = np.abs(np.diff(np.square(measured["many_coordinates"]), axis=1)[:, 0])
    claim = partial(Claim, where=where)
    return [
        claim(
            id="fig15.algebraic",
            statement=r"From W = 0 at $s = d \cdot e$ the loss falls as $\tau^{-2}$.",
            criterion="exponent fitted over the last two decades of steps within 0.1 of -2 for each of 8 draws of the "
            "vectors",
            expected="-2",
            measured={"smallest": slopes.min(), "mean": slopes.mean(), "largest": slopes.max()},
            holds=lambda m: max(abs(m["smallest"] + 2), abs(m["largest"] + 2)) < 0.1,
            settings="learning rate 0.025 for the loss summed over time, where the authors have 0.001 and 0.005",
        ),
        claim(
            id="fig15.any-vectors-and-duration",
            statement="The exponent depends neither on T nor on the vectors.",
            criterion="overlaps of 0.1 and 0.8, and T = 5: exponent over the last decade of steps within 0.2 of -2",
            expected="-2",
            measured={"smallest": other_slopes.min(), "largest": other_slopes.max()},
            holds=lambda m: max(abs(m["smallest"] + 2), abs(m["largest"] + 2)) < 0.2,
        ),
        claim(
            id="fig15.slow-coordinate",
            statement=r"The distance to the intersection falls as $\tau^{-1}$.",
            criterion="mean exponent over the last decade of steps within 0.1 of -1",
            expected="-1",
            measured=approach.mean(),
            holds=lambda slope: abs(slope + 1) < 0.1,
            settings="learning rate 0.025 for the loss summed over time, where the authors have 0.001 and 0.005",
            because=r"Erratum slow_direction: the loss falls as $\tau^{-2}$, as printed, but it is of fourth order in "
            r"the distance, which falls as $\tau^{-1/2}$.",
        ),
        claim(
            id="fig15.null-start-is-slow",
            statement="Descent from W = 0 ends on the intersection of the two manifolds, from a random start away "
            "from it.",
            criterion="the largest final distance from W = 0 is below a third of the median one from random starts",
            expected="0 from W = 0",
            measured={
                "largest from W = 0": measured["distances"][-1].max(),
                "median from random starts": np.median(measured["random_distances"]),
            },
            holds=lambda m: m["largest from W = 0"] < m["median from random starts"] / 3,
            settings="learning rate 0.025 for the loss summed over time, where the authors have 0.001 and 0.005",
        ),
        claim(
            id="fig15.exponential",
            statement="From a random start in the subspace convergence is usually exponential, in a wide range of "
            "times.",
            criterion="at least three quarters of 8 starts reach 1e-20 of the first loss; the times that those needed "
            "spread by a factor 2 or more",
            expected="usually",
            measured={
                "fraction": exponential.mean(),
                "longest time / shortest": np.nanmax(measured_times, initial=0)
                / np.nanmin(measured_times, initial=np.inf),
            },
            holds=lambda m: m["fraction"] >= 0.75 and m["longest time / shortest"] >= 2,
            revised="The spread was first that of predicted times, which included starts that did not converge.",
            settings="learning rate 0.025 for the loss summed over time, where the authors have 0.001 and 0.005",
        ),
        claim(
            id="fig15.union",
            statement="At this scale descent from a random start ends on the union of the two manifolds, at a W of "
            "rank 2.",
            criterion="where the loss is exponential, the end is an integrator of scale d.e (every moment to 1e-6) of "
            "rank 2; at least three quarters of 8",
            expected="rank 2",
            measured={
                "integrators": converged.mean(),
                "least rank": measured["random_ranks"][converged].min(initial=9),
            },
            holds=lambda m: m["integrators"] >= 0.75 and m["least rank"] == 2,
        ),
        claim(
            id="fig15.rare",
            statement="In rare cases a random start is on the slow manifold, or close enough to it, and convergence is "
            "as slow as from W = 0.",
            criterion=f"of {MANY} random starts, more than none and less than a tenth do not reach {SLOW:g} of the "
            "first loss in 10 000 steps; those started closer to the slow manifold than the others: by the median of "
            "$|x^2 - y^2|$ with the coordinates of panel A",
            expected="rare",
            measured={
                "slow": slow.mean(),
                "distance of the slow": np.median(asymmetry[slow]) if slow.any() else np.inf,
                "distance of the others": np.median(asymmetry[~slow]) if not slow.all() else np.inf,
            },
            holds=lambda m: 0 < m["slow"] < 0.1 and m["distance of the slow"] < m["distance of the others"],
        ),
        Claim(
            id="fig15.noise",
            where=where + ", last paragraph",
            statement="Noise on the updates leads away from the slow manifold, and then to exponential convergence.",
            criterion=f"Gaussian noise of size {NOISE} on every entry of omega every ten steps, {NOISY_STEPS} steps "
            "long: after 10 000 more steps without noise the loss is below a millionth of the undisturbed one in three "
            "quarters of 16 descents from W = 0",
            expected="exponential",
            measured=(measured["noisy_losses"] < 1e-6 * measured["quiet_loss"]).mean(),
            holds=lambda part: part >= 0.75,
            revised="We chose the size of the noise. It was 0.05 first, with which 12 of 16 descents converged, just "
            "three quarters. With 0.1 it was 15.",
        ),
        Claim(
            id="fig15.batch-noise",
            origin="ours",
            where="not in the paper",
            statement="The noise of batches does not: the loss of any batch depends on W through its moments alone, "
            "which stay the same when e and d change places and W is transposed. Nor does any learning rate. From "
            "W = 0 descent stays symmetric in this sense, and that is the slow manifold.",
            criterion="|x - y| / (|x| + |y|), with the coordinates of panel A, below 1e-6 after 1000 steps on batches "
            "of 8 sequences",
            expected="0",
            measured=measured["batch_asymmetry"],
            holds=lambda asymmetry: asymmetry < 1e-6,
        ),
        claim(
            id="fig15.predicted-rate",
            statement="There it converges at the rate of the smaller of the two positive eigenvalues of the Hessian.",
            criterion="measured time of each exponential convergence within 5 % of the prediction at its end point",
            expected="0",
            measured={
                "largest relative deviation": deviation.max(initial=0.0),
                "cases": exponential.sum(),
            },
            holds=lambda m: m["largest relative deviation"] < 0.05 and m["cases"] > 0,
        ),
        claim(
            id="fig15.null-eigenvalues",
            statement="The Hessian has two null eigenvalues on either manifold and three on their intersection.",
            criterion="numbers of null eigenvalues at 24 points off the intersection and at 4 on it",
            expected="2 and 3",
            measured={
                "fewest off": measured["null_off"].min(),
                "most off": measured["null_off"].max(),
                "fewest on": measured["null_on"].min(),
                "most on": measured["null_on"].max(),
            },
            holds=lambda m: m["fewest off"] == m["most off"] == 2 and m["fewest on"] == m["most on"] == 3,
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, (plane, *axes) = panels(3, width=3.8, height=3.4)
    null, *random = measured["trajectories"].swapaxes(0, 1)
    plane.plot(*null.T, color=THEORY, linewidth=2.5, linestyle=":", label="$W = 0$", zorder=3)
    for path, colour in zip(random, SEEDS, strict=False):
        plane.plot(*path.T, color=colour, linewidth=1.2)
        plane.plot(*path[0], ".", color=colour)
        plane.plot(*path[-1], "o", color=colour, markersize=5, clip_on=False)
    plane.axhline(0, color=TARGET, linewidth=3, zorder=0)
    plane.axvline(0, color=TARGET, linewidth=3, zorder=0)
    legend(plane)
    plane.set(xlabel=r"$x$: how much the second mode is driven", ylabel="$y$: how much it is read")
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


CAPTION = (
    r"Descent at the scale $s = d \cdot e$. (A) Trajectories, computed: $x = 0$ and $y = 0$ (grey) are the two "
    r"manifolds of integrators; random starts (colours) end on one of them, $W = 0$ (dotted) comes down the diagonal "
    r"to where they meet. (B) Loss for 8 draws of the vectors (overlap 0.4). From a "
    r"random $\omega$ of spectral radius 0.1 it ends on a straight line in a logarithmic scale, steeper or "
    r"flatter according to where it arrives (the floor is rounding). (C) From $W = 0$ it ends on the power law "
    r"$\tau^{-2}$. $\gamma = 0.995$, $T = 3$, $\eta = 1/\lambda_{max}$ at the intersection of the manifolds (about "
    r"0.025 for the loss summed over time), so that the power law is reached soon enough to be seen over two decades."
)
