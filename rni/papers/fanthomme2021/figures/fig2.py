r"""Fig 2: the generalizing integrators that descent from W = 0 can reach, in the space $(\lambda, \alpha, \beta)$."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D

from rni.papers import Claim, Measured, Profile, Results
from rni.plots.style import CHANNELS
from rni.theory import Plane, g_1, gamma_matrix, is_generalizing_integrator, plane, rank_one
from rni.weights.vectors import independent

DECAY, OVERLAP = 0.995, 0.8  # unit vectors with this overlap have alpha_0 = -2 and beta_0 = 2
REACH = 4.0  # alpha and beta are looked at from -REACH to REACH
EXACT = 1e-6
COLOURS = {"0": CHANNELS[1], "alpha": CHANNELS[0], "beta": CHANNELS[2]}
Point = tuple[float, float, float]


def points(space: Plane, rng: np.random.Generator, count: int) -> Iterator[Point]:
    r"""Draw random $(\lambda, \alpha, \beta)$ away from the three manifolds and from $\alpha = \beta$."""
    while count:
        other = rng.uniform(-0.9, 0.9)
        alpha, beta = rng.uniform(-REACH, REACH, 2)
        gaps = abs(other), abs(alpha - beta), abs(alpha - space.beta_0), abs(beta - space.alpha_0)
        if min(*gaps, abs(alpha - space.alpha_0), abs(beta - space.beta_0)) > 0.2:
            count -= 1
            yield other, alpha, beta


def examine(space: Plane, found: Sequence[Point], scale: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the largest moment error and the rank of each $\Gamma(\lambda, \alpha, \beta)$.

    The scale is `scale`, or the share $g_1$ of the eigenvalue $\gamma$ if it is None.
    """
    reports = []
    for other, alpha, beta in found:
        omega = gamma_matrix(DECAY, other, alpha, beta)
        wanted = g_1(space, alpha, beta) if scale is None else scale
        reports.append(is_generalizing_integrator(omega, space.encoder, space.decoder, DECAY, wanted))
    return np.array([report.moment_error for report in reports]), np.array([report.rank for report in reports])


def measure(results: Results, profile: Profile) -> Measured:
    space = plane(1, 1, OVERLAP)
    found = list(points(space, np.random.default_rng(2), 20))
    flat_error, flat_rank = examine(space, [(0.0, a, b) for _, a, b in found])
    unread = [(other, a, space.alpha_0) for other, a, _ in found]
    undriven = [(other, space.beta_0, b) for other, _, b in found]
    full_error, full_rank = examine(space, unread + undriven, OVERLAP)
    elsewhere_error, _ = examine(space, found)

    asked = [sign * size for size in (0.01, 0.1, 1.0, 10.0, 100.0) for sign in (1, -1)]
    reached = [
        is_generalizing_integrator(rank_one(space, DECAY, s, 0.7), space.encoder, space.decoder, DECAY, s).moment_error
        for s in asked
    ]
    neurons = np.array([250, 500, 1000, 2000, 4000])
    return {
        "decay": DECAY,
        "overlap": OVERLAP,
        "alpha_0": space.alpha_0,
        "beta_0": space.beta_0,
        "rank1_error": flat_error.max(),
        "rank1_rank": flat_rank.max(),
        "rank1_scales_error": max(reached),
        "rank2_error": full_error.max(),
        "rank2_rank": full_rank.min(),
        "elsewhere_error": elsewhere_error.min(),
        "neurons": neurons,
        "special_scale": np.array([special_scale(n, 400) for n in neurons.tolist()]),
    }


def special_scale(neurons: int, draws: int) -> float:
    r"""Return $\sqrt{\langle (d \cdot e)^2 \rangle}$ over independent unit vectors."""
    encoders, decoders = independent(neurons, draws, torch.Generator().manual_seed(neurons))
    return (encoders * decoders).sum(0).square().mean().sqrt().item()


def claims(measured: Measured) -> list[Claim]:
    where = "Section 3, null-weight initialization; Fig 2"
    slope = np.polyfit(np.log(measured["neurons"]), np.log(measured["special_scale"]), 1)[0]
    claim = partial(Claim, where=where)
    return [
        claim(
            id="fig2.rank-1",
            statement=r"Every $\omega$ with eigenvalues $\gamma$ and 0 is an integrator of rank 1, and they have all "
            r"scales.",
            criterion="20 random members, and one for each of 10 scales from 0.01 to 100 of both signs: rank 1, "
            "relative error of every moment below 1e-6",
            expected="rank 1, exact",
            measured={
                "largest error": measured["rank1_error"],
                "largest error over scales": measured["rank1_scales_error"],
                "rank": measured["rank1_rank"],
            },
            holds=lambda m: max(m["largest error"], m["largest error over scales"]) < EXACT and m["rank"] == 1,
        ),
        claim(
            id="fig2.rank-2",
            statement=r"The other two manifolds, $\beta = \alpha_0$ and $\alpha = \beta_0$, hold integrators of rank "
            r"2 at the scale $d \cdot e$.",
            criterion="40 random members: rank 2, relative error of every moment at the scale d.e below 1e-6",
            expected="rank 2, exact at s = d.e",
            measured={"largest error": measured["rank2_error"], "rank": measured["rank2_rank"]},
            holds=lambda m: m["largest error"] < EXACT and m["rank"] == 2,
        ),
        claim(
            id="fig2.nothing-else",
            statement="These three manifolds are all of the integrators that descent from W = 0 can reach.",
            criterion=r"20 random matrices with the eigenvalue $\gamma$, at least 0.2 away from the manifolds in each "
            "coordinate: some moment is wrong by more than 1e-3 at their own scale",
            expected="no integrator elsewhere",
            measured=measured["elsewhere_error"],
            holds=lambda error: error > 1e-3,
        ),
        claim(
            id="fig2.special-scale",
            statement=r"For independent vectors the special scale $d \cdot e$ is of order $n^{-1/2}$.",
            criterion="exponent of its root mean square over n = 250 to 4000 within 0.05 of -0.5",
            expected="-0.5",
            measured=slope,
            holds=lambda exponent: abs(exponent + 0.5) < 0.05,
        ),
    ]


def draw_manifolds(axis: Axes3D, alpha_0: float, beta_0: float) -> list[Patch]:
    """Draw the three manifolds as planes, cut where they meet so that each piece hides what is behind it."""
    ends = -REACH, REACH

    def pieces(first: Sequence[float], second: Sequence[float]) -> Iterator[tuple[tuple[float, float], ...]]:
        for a, b in pairwise(first):
            for c, d in pairwise(second):
                yield (a, c), (b, c), (b, d), (a, d)

    lambdas, alphas, betas = (-1.0, 0.0, 1.0), (ends[0], beta_0, ends[1]), (ends[0], alpha_0, ends[1])
    patches = {
        "0": [[(0.0, a, b) for a, b in piece] for piece in pieces(alphas, betas)],
        "alpha": [[(other, a, alpha_0) for other, a in piece] for piece in pieces(lambdas, alphas)],
        "beta": [[(other, beta_0, b) for other, b in piece] for piece in pieces(lambdas, betas)],
    }
    for name, corners in patches.items():
        for corner in corners:
            axis.add_collection3d(Poly3DCollection([corner], color=COLOURS[name], alpha=0.4, linewidth=0.5))
    axis.set(xlim=(-1, 1), ylim=ends, zlim=ends, xlabel=r"$\lambda$", ylabel=r"$\alpha$", zlabel=r"$\beta$")
    axis.set_xticks([-1, 0, 1], ["-1", "0", "1"])
    axis.set_yticks([0, beta_0, 4], ["0", r"$\beta_0$", "4"])
    axis.zaxis.set_ticks([alpha_0, 0, 4], [r"$\alpha_0$", "0", "4"])
    axis.view_init(elev=22, azim=-52)
    labels = {
        "0": r"$\lambda = 0$: rank 1, any $s$",
        "alpha": r"$\beta = \alpha_0$: rank 2, $s = d \cdot e$",
        "beta": r"$\alpha = \beta_0$: rank 2, $s = d \cdot e$",
    }
    return [Patch(color=COLOURS[name], alpha=0.5, label=label) for name, label in labels.items()]


def draw(measured: Measured) -> Drawing:
    drawing = Drawing(figsize=(5.6, 4.6), dpi=150)
    axis = drawing.add_axes((0.0, 0.03, 0.92, 0.97), projection="3d")
    assert isinstance(axis, Axes3D)
    handles = draw_manifolds(axis, measured["alpha_0"], measured["beta_0"])
    drawing.legend(handles=handles, loc="upper center", ncols=2, frameon=False, fontsize="small")
    return drawing


CAPTION = (
    r"Matrices $\omega$ with one eigenvalue $\gamma$, by their other eigenvalue $\lambda$ and the slopes "
    r"$\alpha$, $\beta$ of the two eigenvectors. All integrators lie on three surfaces: where $\lambda = 0$ any scale "
    r"occurs; on the other two, where the mode of $\lambda$ is not read or not driven, only $s = d \cdot e$. Drawn "
    r"from the closed forms for unit vectors with $d \cdot e = 0.8$; $\alpha = \beta$ is no matrix."
)
