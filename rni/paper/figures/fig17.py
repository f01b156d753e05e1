"""Fig 17: descent on the ReLU proxy loss ends at W of rank one, with the singular value and vectors of the theory."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from rni.analysis import svd
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.style import CHANNELS, TARGET, THEORY, legend, panels
from rni.paper.trainings import PROXY_DECAY, proxy_descent, proxy_scales
from rni.runs.execution import Result
from rni.runs.specification import Specification

SEEDS = 6


def specifications(profile: Profile) -> list[list[Specification]]:
    """A row for each scale, a column for each seed."""
    seeds = range(profile.seeds(SEEDS))
    return [[proxy_descent(scale, profile.neurons, seed) for seed in seeds] for scale in proxy_scales(profile)]


def measure(runs: Runs, profile: Profile) -> Measured:
    rows = [[_singular(runs[spec]) for spec in row] for row in specifications(profile)]
    sigma, second, left_d, right_e, right_d = np.moveaxis(np.array(rows), -1, 0)  # each (scales, seeds)
    return {
        "scales": np.array(proxy_scales(profile)),
        "sigma": sigma,
        "second": second,
        "left_d": left_d,
        "right_e": right_e,
        "right_d": right_d,
    }


def _singular(result: Result) -> list[float]:
    r"""$\sigma_1$, $\sigma_2$, l.d, r.e, r.d, of the sign for which r.e > 0."""
    net = result.network
    left, values, right = svd(net.recurrent)
    e, d = net.encoders.detach()[:, 0], net.decoders.detach()[:, 0]
    sign = 1 if right[:, 0] @ e > 0 else -1
    overlaps = (left[:, 0] @ d, right[:, 0] @ e, right[:, 0] @ d)
    return [float(values[0]), float(values[1]), *(sign * float(overlap) for overlap in overlaps)]


def claims(measured: Measured) -> list[Claim]:
    s = measured["scales"]
    ratio = measured["sigma"] / (2 * PROXY_DECAY * np.maximum(s, 1))[:, None]
    outer = (s <= 0.3) | (s >= 4)
    small, large = s.argmin(), s.argmax()
    where = "Appendix, Analysis of rank-1 ReLU generalizing integrators"
    return [
        Claim(
            id="fig17.rank-one",
            where="Section 4.2, properties of the connection matrix",
            statement="One singular value dominates.",
            criterion="the second is below 0.01 of the first in every network",
            expected="rank 1",
            measured=float((measured["second"] / measured["sigma"]).max()),
            holds=lambda second: second < 0.01,
        ),
        Claim(
            id="fig17.bound",
            where=where,
            statement=r"$\sigma \ge 2\gamma\max(s, 1)$.",
            criterion="no network's sigma is below the bound by more than 0.001 of it. (For W of rank 1 the bound "
            "holds at any n: the sums of the paper's conditions for both signs are sigma (r.l) = 2 gamma and "
            "sigma (r.e) (d.l) = 2 s gamma.)",
            expected="1 or more",
            measured=float(ratio.min()),
            holds=lambda smallest: smallest >= 0.999,
        ),
        Claim(
            id="fig17.tight",
            where=where,
            statement=r"Away from $s = 1$ the bound is tight: $\sigma = 2\gamma\max(s, 1)$.",
            criterion="for every s <= 0.3 and s >= 4, the mean of sigma is within 3 % of it",
            expected="1",
            measured=float(_farthest(ratio.mean(1)[outer], 1.0)),
            holds=lambda value: abs(value - 1) <= 0.03,
        ),
        Claim(
            id="fig17.left",
            where=where,
            statement=r"The left singular vector is almost the decoder, $l \simeq d$.",
            criterion="l.d above 0.9 in every network",
            expected="1",
            measured=float(measured["left_d"].min()),
            holds=lambda overlap: overlap > 0.9,
        ),
        Claim(
            id="fig17.right-encoder",
            where=where,
            statement=r"$r^\dagger e \simeq \min(s, 1)$.",
            criterion="for every s <= 0.3 and s >= 4, the mean of r.e is within 5 % of it",
            expected="1",
            measured=float(_farthest((measured["right_e"].mean(1) / np.minimum(s, 1))[outer], 1.0)),
            holds=lambda value: abs(value - 1) <= 0.05,
        ),
        Claim(
            id="fig17.turn",
            where=where,
            statement=r"The right singular vector turns from the decoder at small scales to the encoder at large ones.",
            criterion="in every network r.d > 0.95 at the smallest scale and r.e > 0.95 at the largest",
            expected="1 and 1",
            measured={
                "r.d at the smallest scale": float(measured["right_d"][small].min()),
                "r.e at the largest scale": float(measured["right_e"][large].min()),
            },
            holds=lambda overlaps: min(overlaps.values()) > 0.95,
        ),
    ]


def _farthest(values: np.ndarray, target: float) -> float:
    return values[np.abs(values - target).argmax()]


def draw(measured: Measured) -> Drawing:
    drawing, (values, vectors) = panels(2, width=4.6, height=3.4)
    s = measured["scales"]
    line = np.geomspace(s.min(), s.max(), 200)
    values.plot(line, 2 * PROXY_DECAY * np.maximum(line, 1), color=THEORY, label=r"$2\gamma\,\max(s, 1)$")
    _points(values, s, measured["sigma"], CHANNELS[0], r"$\sigma$")
    values.set(xscale="log", yscale="log", xlabel="scale $s$", ylabel=r"singular value $\sigma$")
    values.set_yticks([2, 4, 10, 20, 40], ["2", "4", "10", "20", "40"])
    values.minorticks_off()
    vectors.axhline(1, color=TARGET, linewidth=0.8, zorder=0)
    vectors.axhline(0, color=TARGET, linewidth=0.8, zorder=0)
    vectors.plot(line, np.minimum(line, 1), color=THEORY, label=r"$\min(s, 1)$")
    names = {"left_d": r"$l^\dagger d$", "right_e": r"$r^\dagger e$", "right_d": r"$r^\dagger d$"}
    for color, (key, label) in zip(CHANNELS, names.items(), strict=False):
        _points(vectors, s, measured[key], color, label)
    vectors.set(xscale="log", xlabel="scale $s$", ylabel="overlap", ylim=(-0.1, 1.1))
    for axis in (values, vectors):
        legend(axis)
    return drawing


def _points(axis: Axes, s: np.ndarray, values: np.ndarray, color: str, label: str) -> None:
    spread = np.abs(values - values.mean(1, keepdims=True)).max(1)
    axis.errorbar(s, values.mean(1), spread, fmt="o--", color=color, markersize=4, linewidth=0.8, label=label)


FIGURE = Figure(
    id="fig17",
    order=170,
    title="Rank-one ReLU integrators",
    section="Analysis of rank-1 ReLU generalizing integrators",
    caption=r"One channel, $\gamma = 0.995$, plain gradient descent on the exact ReLU proxy loss from $W = 0$. A: the "
    r"leading singular value against the scale, with the lower bound (line). B: overlaps of the leading singular "
    r"vectors $l, r$ with decoder and encoder; the line is the prediction for $r^\dagger e$. Means over networks, bars "
    r"reach the farthest one.",
    runs=lambda profile: [spec for row in specifications(profile) for spec in row],
    measure=measure,
    claims=claims,
    draw=draw,
)
