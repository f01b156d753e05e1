"""Fig 5: what recurrence and encoder bring to the currents of a ReLU network are patterns along one line."""

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from matplotlib.figure import SubFigure

from rni.analysis.populations import NAMES
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.figures.fig3 import examine
from rni.paper.figures.fig4 import specification
from rni.paper.style import POPULATIONS, THEORY, legend, plain


@torch.no_grad()
def measure(runs: Runs, profile: Profile) -> Measured:
    net = runs[specification(profile)].network
    examined = examine(net)
    vectors = torch.as_tensor(examined["vectors"], dtype=net.dtype)
    positive, negative = net.recurrent(vectors).double().numpy()
    encoder = net.recurrent(net.encoders.T)[0].double().numpy()
    return {
        "positive": positive,
        "negative": negative,
        "encoder": encoder,
        "populations": examined["populations"],
        "scale": net.task.scales[0],
    }


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Of the line through the origin along which the points lie: their first principal axis."""
    axis = np.linalg.svd(np.stack([x, y], axis=1), full_matrices=False)[2][0]
    return float(axis[1] / axis[0])


def claims(measured: Measured) -> list[Claim]:
    positive, negative, encoder = measured["positive"], measured["negative"], measured["encoder"]
    return [
        Claim(
            id="fig5.opposite",
            where="Section 4.2, Fig 5 left",
            statement=r"The two population vectors bring opposite currents: $W L_+ = -W L_-$.",
            criterion="the points lie along a line of slope -1 to within 2 %, with a correlation below -0.98",
            expected="-1",
            measured={"slope": slope(positive, negative), "correlation": float(np.corrcoef(positive, negative)[0, 1])},
            holds=lambda m: abs(m["slope"] + 1) < 0.02 and m["correlation"] < -0.98,
        ),
        Claim(
            id="fig5.encoder",
            where="Section 4.2, Fig 5 right",
            statement=r"The encoder brings the same currents as the integral, times the scale: $W e = s\,W L_+$.",
            criterion="the points lie along a line of slope s to within 2 %, with a correlation above 0.98",
            expected="slope / s = 1",
            measured={
                "slope / s": slope(positive, encoder) / measured["scale"],
                "correlation": float(np.corrcoef(positive, encoder)[0, 1]),
            },
            holds=lambda m: abs(m["slope / s"] - 1) < 0.02 and m["correlation"] > 0.98,
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing = Drawing(figsize=(9, 4.4), layout="constrained", dpi=150)
    halves: list[SubFigure] = list(drawing.subfigures(1, 2))  # pyright: ignore[reportArgumentType]
    pairs = (("positive", "negative", -1.0), ("positive", "encoder", measured["scale"]))
    names = {"positive": r"$(W L_+)_i$", "negative": r"$(W L_-)_i$", "encoder": r"$(W e)_i$"}
    for half, (across, up, expected) in zip(halves, pairs, strict=True):
        grid = half.add_gridspec(2, 2, width_ratios=(5, 1), height_ratios=(1, 5), wspace=0.03, hspace=0.03)
        points = half.add_subplot(grid[1, 0])
        sides = (half.add_subplot(grid[0, 0], sharex=points), half.add_subplot(grid[1, 1], sharey=points))
        x, y = measured[across], measured[up]
        for k, name in enumerate(NAMES):
            chosen = measured["populations"] == k
            if chosen.any():
                colour = POPULATIONS[name]
                points.plot(x[chosen], y[chosen], ".", color=colour, markersize=3, label=name, rasterized=True)
                sides[0].hist(x[chosen], bins=40, color=colour, alpha=0.7)
                sides[1].hist(y[chosen], bins=40, color=colour, alpha=0.7, orientation="horizontal")
        reach = np.array([x.min(), x.max()])
        points.plot(reach, expected * reach, color=THEORY, linewidth=0.8, linestyle="--", label=f"slope {expected:g}")
        points.set(xlabel=names[across], ylabel=names[up])
        plain(points)
        legend(points)
        for side in sides:
            side.set_axis_off()
    return drawing


FIGURE = Figure(
    id="fig5",
    order=50,
    title="Patterns of currents",
    section="Non-linear activation: case of a single channel",
    caption=r"Contributions to the currents of the network of Figure 4 ($s = 2$), neuron by neuron, coloured by "
    r"population. Left: $W L_-$ against $W L_+$. Right: $W e$ against $W L_+$. Dashed: exact integration.",
    runs=lambda profile: [specification(profile)],
    measure=measure,
    claims=claims,
    draw=draw,
)
