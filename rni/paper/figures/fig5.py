"""Fig 5: what recurrence and encoder bring to the currents of a ReLU network are patterns along one line."""

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from matplotlib.figure import SubFigure

from rni.analysis.population import NAMES
from rni.network import Network
from rni.pages.style import POPULATIONS, THEORY, legend, plain
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.figures.fig3 import examine
from rni.paper.figures.fig4 import specification

NETWORKS = 4


@torch.no_grad()
def measure(runs: Runs, profile: Profile) -> Measured:
    """Currents of the first network; the lines, (networks, 2) with slope and correlation, of all."""
    nets = [runs[specification(profile, seed)].network for seed in range(profile.seeds(NETWORKS))]
    examined = [examine(net) for net in nets]
    positive, negative, encoder = np.stack([currents(*each) for each in zip(nets, examined, strict=True)], axis=1)
    return {
        "positive": positive[0],
        "negative": negative[0],
        "encoder": encoder[0],
        "populations": examined[0]["populations"],
        "scale": nets[0].task.scales[0],
        "opposite_lines": np.array([line(*each) for each in zip(positive, negative, strict=True)]),
        "encoder_lines": np.array([line(*each) for each in zip(positive, encoder, strict=True)]),
    }


def currents(net: Network, examined: dict[str, np.ndarray]) -> np.ndarray:
    """$W L_+$, $W L_-$ and $W e$, (3, neurons)."""
    vectors = torch.as_tensor(examined["vectors"], dtype=net.dtype)
    return net.recurrent(torch.cat([vectors, net.encoders.T])).double().numpy()


def line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of the line through the origin along which the points lie, their first principal axis; correlation."""
    axis = np.linalg.svd(np.stack([x, y], axis=1), full_matrices=False)[2][0]
    return axis[1] / axis[0], np.corrcoef(x, y)[0, 1]


def claims(measured: Measured) -> list[Claim]:
    opposite, encoder = measured["opposite_lines"], measured["encoder_lines"]
    bar = 0.02 * (1000 / len(measured["encoder"])) ** 0.5
    scatter = rf"the networks' mean slope is within {100 * bar:.2g} % (2 % at n = 1000, as $1/\sqrt{{n}}$) of "
    return [
        Claim(
            id="fig5.opposite",
            where="Section 4.2, Fig 5 left",
            statement=r"The two population vectors bring opposite currents: $W L_+ = -W L_-$.",
            criterion=scatter + "-1, with correlations below -0.98",
            expected="-1",
            measured={"slope": float(opposite[:, 0].mean()), "correlation": float(opposite[:, 1].max())},
            holds=lambda m: abs(m["slope"] + 1) < bar and m["correlation"] < -0.98,
        ),
        Claim(
            id="fig5.encoder",
            where="Section 4.2, Fig 5 right",
            statement=r"The encoder brings the same currents as the integral, times the scale: $W e = s\,W L_+$.",
            criterion=scatter + "s, with correlations above 0.98",
            expected="slope / s = 1",
            measured={
                "slope / s": float(encoder[:, 0].mean() / measured["scale"]),
                "correlation": float(encoder[:, 1].min()),
            },
            holds=lambda m: abs(m["slope / s"] - 1) < bar and m["correlation"] > 0.98,
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
    r"population. Left: $W L_-$ against $W L_+$. Right: $W e$ against $W L_+$. Dashed: exact integration. Slopes "
    r"differ by some percent from one training to the next; the claims are about their mean over all networks.",
    runs=lambda profile: [specification(profile, seed) for seed in range(profile.seeds(NETWORKS))],
    measure=measure,
    claims=claims,
    draw=draw,
)
