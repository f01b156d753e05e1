"""Fig 18: at small scales, the populations of two neurons determine the sign of the weight between them."""

from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.trainings import Run, proxy_descent
from rni.plots.style import DIVERGING, panels

SCALES = (0.1, 10.0)
SETTINGS = "a learning rate just below the stability limit of each scale instead of the authors' small ones"


def runs(profile: Profile) -> list[Run]:
    return [proxy_descent(scale, profile.neurons, 0) for scale in SCALES]


@torch.no_grad()
def measure(results: Results, profile: Profile) -> Measured:
    measured: Measured = {"scales": np.array(SCALES), "agreement": [], "positive": [], "norm": [], "matrices": []}
    for scale in SCALES:
        net = results[proxy_descent(scale, profile.neurons, 0)].network
        pattern = net.recurrent(net.encoders.T)[0]  # W e, along L: its sign is the neuron's population
        order = torch.argsort((pattern < 0).int(), stable=True)
        w, positive = net.recurrent.matrix()[order][:, order], pattern[order] > 0
        same = positive[:, None] == positive
        measured["agreement"].append(float(((w > 0) == same).double().mean()))
        measured["positive"].append(float(positive.double().mean()))
        measured["norm"].append(float(w.norm()))
        measured["matrices"].append(w.float().numpy())
    return {key: np.array(value) for key, value in measured.items()}


def claims(measured: Measured) -> list[Claim]:
    where = "Appendix, Analysis of rank-1 ReLU generalizing integrators"
    (small, large), norms = measured["agreement"], measured["norm"]
    claim = partial(Claim, where=where, settings=SETTINGS)
    return [
        claim(
            id="fig18.ordered",
            statement=r"At $s = 0.1$ a weight is positive within a population and negative between the two.",
            criterion="the sign is the predicted one for more than 0.95 of the weights",
            expected="all",
            measured=small,
            holds=lambda fraction: fraction > 0.95,
        ),
        claim(
            id="fig18.random",
            statement=r"At $s = 10$ the populations do not determine the sign of a weight.",
            criterion="the sign is the predicted one for 0.4 to 0.6 of the weights",
            expected="a half",
            measured=large,
            holds=lambda fraction: 0.4 <= fraction <= 0.6,
        ),
        claim(
            id="fig18.norm",
            statement=r"The norm of W grows as $\max(1, s)$.",
            criterion="|W| at s = 10 is within 5 % of ten times |W| at s = 0.1",
            expected="10",
            measured=norms[1] / norms[0],
            holds=lambda ratio: abs(ratio / 10 - 1) <= 0.05,
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, axes = panels(2, width=4.2, height=3.6)
    drawing.set_dpi(max(150, 0.4 * measured["matrices"].shape[-1]))  # a pixel or more for each neuron
    for k, axis in enumerate(axes):
        w, positive = measured["matrices"][k], measured["positive"][k]
        limit = float(np.quantile(np.abs(w), 0.98))
        image = axis.imshow(
            w, cmap=DIVERGING, vmin=-limit, vmax=limit, extent=(0, 1, 1, 0), interpolation="nearest", rasterized=True
        )
        axis.axhline(positive, color="black", linewidth=0.8)
        axis.axvline(positive, color="black", linewidth=0.8)
        places, names = (positive / 2, (1 + positive) / 2), ('"+"', '"−"')
        axis.set_xticks(places, names)
        axis.set_yticks(places, names)
        axis.tick_params(length=0)
        axis.set(xlabel="from population, neuron $j$", ylabel="to population, neuron $i$")
        axis.set_title(f"$s = {measured['scales'][k]:g}$")
        drawing.colorbar(image, ax=axis, label="$W_{ij}$", shrink=0.85, extend="both")
    return drawing


CAPTION = (
    r"$W$ of two networks trained on the ReLU proxy loss, $\gamma = 0.995$, at $s = 0.1$ (A) and $s = 10$ (B); "
    r"neurons are ordered by the sign of their current at a positive integral, lines separate the two populations. "
    r"Colours saturate at the largest 2 % of the weights."
)
