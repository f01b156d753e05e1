r"""Fig 13: where gradient descent can be slow, and the curves of equal scale in the plane $\lambda = 0$."""

from functools import partial
from itertools import combinations

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d.axes3d import Axes3D
from numpy.polynomial import Polynomial

from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.figures.fig2 import DECAY, EXACT, OVERLAP, REACH, draw_manifolds
from rni.plots.style import SEEDS, THEORY, plain
from rni.theory import (
    Plane,
    averaged_hessian,
    beta_of_scale,
    g_1,
    gamma_matrix,
    is_generalizing_integrator,
    linear_problem,
    plane,
)

SCALES = (-2.0, -0.5, 0.4, 1.2, 2.0, 4.0)  # neither 0 nor d.e
DURATION = 3
ROUNDING = 1e-11  # eigenvalues below this share of the largest one are null


def null_eigenvalues(omega: torch.Tensor, space: Plane, scale: float, duration: int = DURATION) -> int:
    """Return how many of the four eigenvalues of the loss's Hessian vanish at omega (2, 2)."""
    problem = linear_problem(space.encoder, space.decoder, DECAY, scale, duration)
    eigenvalues = torch.linalg.eigvalsh(averaged_hessian(omega, problem).reshape(4, 4))
    return int((eigenvalues.abs() < ROUNDING * eigenvalues.max()).sum())


def crossings(space: Plane, first: float, second: float) -> np.ndarray:
    r"""Return $|\alpha - \beta|$ at each $\alpha$ where $\beta_s(\alpha) = \beta_{s'}(\alpha)$."""
    (d1, d2), (e1, e2) = space.decoder.tolist(), space.encoder.tolist()
    reading, alpha = Polynomial([d1, d2]), Polynomial([0.0, 1.0])
    above = [reading * e2 - alpha * s for s in (first, second)]
    below = [reading * e1 - s for s in (first, second)]
    roots = (above[0] * below[1] - above[1] * below[0]).roots()
    return np.array([abs(root - beta_of_scale(space, first, root)) for root in roots.real])


def measure(results: Results, profile: Profile) -> Measured:
    space = plane(1, 1, OVERLAP)
    rng = np.random.default_rng(13)
    alphas = [a for a in rng.uniform(-REACH, REACH, 12) if min(abs(a - space.alpha_0), abs(a - space.beta_0)) > 0.2]
    errors, nulls = [], []
    for scale in SCALES:
        for alpha in alphas:
            omega = gamma_matrix(DECAY, 0.0, alpha, beta_of_scale(space, scale, alpha))
            report = is_generalizing_integrator(omega, space.encoder, space.decoder, DECAY, scale)
            errors.append(report.moment_error)
            nulls.append(null_eigenvalues(omega, space, scale))

    others = [other for other in rng.uniform(-0.9, 0.9, 6) if abs(other) > 0.1]
    slow = [gamma_matrix(DECAY, other, space.beta_0, space.alpha_0) for other in [0.0, *others]]
    brink = [gamma_matrix(DECAY, 0.0, alpha, space.alpha_0) for alpha in alphas]
    brink += [gamma_matrix(DECAY, 0.0, space.beta_0, beta) for beta in alphas]
    grid = np.linspace(-REACH, REACH, 801)
    return {
        "decay": DECAY,
        "overlap": OVERLAP,
        "alpha_0": space.alpha_0,
        "beta_0": space.beta_0,
        "scales": np.array(SCALES),
        "alpha": grid,
        "beta": np.array([[beta_of_scale(space, s, a) for a in grid] for s in SCALES]),
        "curve_error": max(errors),
        "curve_null_eigenvalues": np.array(nulls),
        "crossing_gap": max(crossings(space, a, b).max() for a, b in combinations(SCALES, 2)),
        "scale_zero": max(abs(g_1(space, *pair)) for a in alphas for pair in ((space.alpha_0, a), (a, space.beta_0))),
        "scale_overlap": max(
            abs(g_1(space, *pair) - OVERLAP) for a in alphas for pair in ((a, space.alpha_0), (space.beta_0, a))
        ),
        "slow_null_eigenvalues": np.array([null_eigenvalues(omega, space, OVERLAP) for omega in slow]),
        "brink_null_eigenvalues": np.array([null_eigenvalues(omega, space, OVERLAP) for omega in brink]),
    }


def claims(measured: Measured) -> list[Claim]:
    where = "Appendix, Generalizing Integrators in the null initialization subspace; Fig 13"
    nulls, slow, brink = (measured[f"{name}_null_eigenvalues"] for name in ("curve", "slow", "brink"))
    claim = partial(Claim, where=where)
    return [
        claim(
            id="fig13.iso-scale",
            statement=r"For $s \notin \{0, d \cdot e\}$ the integrators of scale $s$ with $\lambda = 0$ are the curve "
            r"$\beta_s(\alpha)$, of dimension 1.",
            criterion="on 6 curves: relative error of every moment below 1e-6, and exactly one null eigenvalue of the "
            "Hessian at every point",
            expected="exact, 1 null eigenvalue",
            measured={
                "largest error": measured["curve_error"],
                "fewest null eigenvalues": nulls.min(),
                "most null eigenvalues": nulls.max(),
            },
            holds=lambda m: (
                m["largest error"] < EXACT and m["fewest null eigenvalues"] == m["most null eigenvalues"] == 1
            ),
        ),
        claim(
            id="fig13.crossings",
            statement=r"Curves of different scales cross only on the line $\alpha = \beta$, which is no matrix.",
            criterion=r"largest $|\alpha - \beta|$ over all crossings of 6 curves below 1e-6",
            expected="0",
            measured=measured["crossing_gap"],
            holds=lambda gap: gap < 1e-6,
        ),
        claim(
            id="fig13.special-scales",
            statement=r"The scale is 0 on $\alpha = \alpha_0$ and $\beta = \beta_0$, and $d \cdot e$ on $\beta = "
            r"\alpha_0$ and $\alpha = \beta_0$.",
            criterion="largest deviation of $g_1$ on those lines below 1e-9",
            expected="0 and d.e",
            measured={"from 0": measured["scale_zero"], "from d.e": measured["scale_overlap"]},
            holds=lambda m: max(m.values()) < 1e-9,
        ),
        claim(
            id="fig13.slow-minima",
            statement="The minima to which descent can be slow are those where the manifolds of rank 2 intersect.",
            criterion=r"Hessian at s = d.e: 3 null eigenvalues at every point of the intersection, 2 where only one "
            r"of the manifolds meets the plane $\lambda = 0$",
            expected="3 at the intersection, 2 elsewhere",
            measured={
                "fewest at the intersection": slow.min(),
                "most at the intersection": slow.max(),
                "most elsewhere": brink.max(),
            },
            holds=lambda m: (
                m["fewest at the intersection"] == m["most at the intersection"] == 3 and m["most elsewhere"] == 2
            ),
        ),
    ]


def draw(measured: Measured) -> Drawing:
    alpha_0, beta_0 = measured["alpha_0"], measured["beta_0"]
    drawing = Drawing(figsize=(11.0, 4.8), dpi=150)
    left = drawing.add_axes((0.0, 0.02, 0.44, 0.94), projection="3d")
    assert isinstance(left, Axes3D)
    handles = draw_manifolds(left, alpha_0, beta_0)
    left.plot([-1, 1], [beta_0] * 2, [alpha_0] * 2, color=THEORY, linewidth=3, zorder=10)
    slow = Line2D([], [], color=THEORY, linewidth=3, label="slow minima")
    drawing.legend(handles=[*handles, slow], loc=(0.03, 0.87), ncols=2, frameon=False, fontsize="small")
    drawing.text(0.01, 0.95, "A", fontweight="bold", fontsize="large")

    right = drawing.add_axes((0.55, 0.13, 0.29, 0.74))
    plain(right)
    right.set_title("B", loc="left", fontweight="bold")
    for scale, beta, colour in zip(measured["scales"], measured["beta"], SEEDS, strict=False):
        jumps = np.abs(np.diff(beta, append=beta[-1])) > REACH
        right.plot(measured["alpha"], np.where(jumps, np.nan, beta), color=colour, label=f"$s = {scale:g}$")
    overlap = f"$s = d \\cdot e = {measured['overlap']:g}$"
    right.plot([-REACH, REACH], [alpha_0] * 2, color=THEORY, linewidth=2, label=overlap)
    right.plot([beta_0] * 2, [-REACH, REACH], color=THEORY, linewidth=2)
    right.plot([-REACH, REACH], [beta_0] * 2, color=THEORY, linestyle=":", label="$s = 0$")
    right.plot([alpha_0] * 2, [-REACH, REACH], color=THEORY, linestyle=":")
    right.plot([-REACH, REACH], [-REACH, REACH], color="#999999", linestyle="--", label=r"$\alpha = \beta$ (no matrix)")
    right.plot(beta_0, alpha_0, "o", color=THEORY, markersize=7, label="slow minimum")
    right.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), xlabel=r"$\alpha$", ylabel=r"$\beta$")
    right.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawing


CAPTION = (
    r"(A) The manifolds of Figure 2 with the minima at which the loss is flat in a third direction: the line "
    r"where both manifolds of rank 2 meet. (B) The plane $\lambda = 0$, with a curve $\beta_s(\alpha)$ for each of "
    r"several scales. At $s = d \cdot e$ and at $s = 0$ the curve degenerates into two straight lines. All curves pass "
    r"through two points of the line $\alpha = \beta$, where the two eigenvectors coincide and no matrix exists. "
    r"Unit vectors with $d \cdot e = 0.8$, $\gamma = 0.995$."
)
