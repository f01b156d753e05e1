"""Fig 6: sigmoid networks integrate through linear currents too, and recruit neurons as the integral grows."""

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from torch import Tensor

from rni.analysis import linear_map, relative_error, svd
from rni.inputs import bursts
from rni.network import Network
from rni.pages.style import CHANNELS, SEQUENTIAL, colours, legend, panels
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.trainings import networks

LOSSES = ("batch", "proxy")
VALUES = np.array([-3.5, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 3.5])  # of the integral, which stays in [-4, 4]
BIN = 8 / 100
SATURATED, STRONG = 0.95, 0.5
LENGTHS = (200, 2000)


@torch.no_grad()
def examine(net: Network, x: Tensor) -> dict[str, np.ndarray]:
    """Linearity of the currents, mean activity of each neuron at VALUES of the integral, spectrum and errors."""
    y = net.task.targets(x).flatten(0, 1)
    currents = net.currents(x).flatten(0, 1)
    fit = linear_map(currents.double(), y.double())
    power = currents.double().square().sum(0)
    activity = net.f(currents)
    near = [activity[(y[:, 0] - value).abs() < BIN / 2].mean(0) for value in VALUES]
    values = svd(net.recurrent, 2).values
    long = bursts(8, LENGTHS[1], 1, torch.Generator().manual_seed(1))
    return {
        "explained": (1 - ((1 - fit.explained) * power).sum() / power.sum()).numpy(),
        "activity": torch.stack(near).numpy(),
        "largest": activity.max(0).values.numpy(),
        "gap": (values[0] / values[1]).numpy(),
        "errors": np.array([float(relative_error(net, e)) for e in (x[:, : LENGTHS[0]], long, 2 * x)]),
    }


@torch.no_grad()
def characteristics(net: Network, x: Tensor, largest: np.ndarray) -> dict[str, np.ndarray]:
    """Current and activity against the integral for a neuron that saturates and one that does not."""
    currents, y = net.currents(x).flatten(0, 1), net.task.targets(x).flatten()
    order = np.argsort(largest)
    saturating, other = order[-max(1, int((largest > SATURATED).sum()) // 2)], order[len(order) // 2]
    shown = currents[:, [int(saturating), int(other)]][::4]
    activity = net.f(currents)[:, [int(saturating), int(other)]][::4]
    return {"integral": y[::4].numpy(), "currents": shown.numpy(), "activity": activity.numpy()}


def measure(runs: Runs, profile: Profile) -> Measured:
    x = bursts(32, 400, 1, torch.Generator().manual_seed(0))
    measured: Measured = {}
    for loss in LOSSES:
        trained = [runs[s].network for s in networks(profile, "sigmoid", loss, 1)]
        examined = [examine(net, x) for net in trained]
        measured |= {f"{loss}_{key}": np.stack([each[key] for each in examined]) for key in examined[0]}
        shown = characteristics(trained[0], x, examined[0]["largest"])
        measured |= {f"{loss}_shown_{key}": value for key, value in shown.items()}
    return measured


def recruited(activity: np.ndarray) -> np.ndarray:
    """Part of the neurons that are strongly active at each of VALUES, over all networks (networks, values, neurons)."""
    return (activity > STRONG).mean((0, 2))


def claims(measured: Measured) -> list[Claim]:
    saturating = {loss: float((measured[f"{loss}_largest"] > SATURATED).mean()) for loss in LOSSES}
    parts = {loss: recruited(measured[f"{loss}_activity"]) for loss in LOSSES}
    middle = len(VALUES) // 2
    steps = {loss: min(np.diff(part[middle:]).min(), np.diff(part[middle::-1]).min()) for loss, part in parts.items()}
    short, long, double = ({loss: float(measured[f"{loss}_errors"][:, k].mean()) for loss in LOSSES} for k in range(3))
    return [
        Claim(
            id="fig6.linear",
            where="Section 4.3, Fig 6A",
            statement="The currents of sigmoid networks are linear in the integral, although activities saturate.",
            criterion="one line through the origin for each neuron explains at least 0.98 of the squared currents, in "
            "the mean over the networks",
            expected="linear",
            measured={loss: float(measured[f"{loss}_explained"].mean()) for loss in LOSSES},
            holds=lambda m: all(part >= 0.98 for part in m.values()),
        ),
        Claim(
            id="fig6.one-singular-value",
            where="Section 4.3, sigmoidal activation",
            statement="W has a single dominant singular value, with the batch and the proxy loss.",
            criterion="it is at least twice the next one in every network",
            expected="one",
            measured={loss: float(measured[f"{loss}_gap"].min()) for loss in LOSSES},
            holds=lambda m: all(gap >= 2 for gap in m.values()),
        ),
        Claim(
            id="fig6.saturating-and-not",
            where="Section 4.3, Fig 6B",
            statement="Some neurons saturate at a value of the integral of their own, others never do.",
            criterion=f"between 2 % and 98 % of the neurons exceed an activity of {SATURATED} anywhere in [-4, 4]",
            expected="both kinds",
            measured=saturating,
            holds=lambda m: all(0.02 < part < 0.98 for part in m.values()),
        ),
        Claim(
            id="fig6.recruitment",
            where="Section 4.3, Fig 6C",
            statement="The further the integral is from 0, on either side, the more neurons are strongly active.",
            criterion=f"the part of neurons with activity above {STRONG} grows at each step of |y| on both sides; the "
            "least growth is given",
            expected="an increasing number",
            measured={loss: float(step) for loss, step in steps.items()},
            holds=lambda m: all(step > 0 for step in m.values()),
        ),
        Claim(
            id="fig6.any-length",
            where="Section 4.3, sigmoidal activation",
            statement="Sigmoid networks integrate signals of any length as long as the integral stays in range.",
            criterion=f"relative error below 10 %, and over {LENGTHS[1]} steps at most 1.5 times that over "
            f"{LENGTHS[0]}",
            expected="arbitrary length",
            measured={
                f"{loss}, {length}": error[loss]
                for loss in LOSSES
                for length, error in zip(LENGTHS, (short, long), strict=True)
            },
            holds=lambda m: all(
                m[f"{loss}, {LENGTHS[1]}"] < min(0.1, 1.5 * m[f"{loss}, {LENGTHS[0]}"]) for loss in LOSSES
            ),
        ),
        Claim(
            id="fig6.not-beyond-the-range",
            where="Section 4.3, sigmoidal activation",
            statement="They do not generalise to larger values of the integral.",
            criterion="with inputs of twice the size the relative error is more than twice as large",
            expected="inability",
            measured={loss: double[loss] / short[loss] for loss in LOSSES},
            holds=lambda m: all(growth > 2 for growth in m.values()),
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, (currents, activities, histogram, parts) = panels(2, 2, width=4.4, height=3.3)
    y = measured["batch_shown_integral"]
    names = ("saturates", "does not")
    for k, (name, colour) in enumerate(zip(names, CHANNELS, strict=False)):
        style = {"color": colour, "markersize": 1.5, "rasterized": True, "label": name}
        currents.plot(y, measured["batch_shown_currents"][:, k], ".", **style)
        activities.plot(y, measured["batch_shown_activity"][:, k], ".", **style)
    currents.set(xlabel=r"integral $\bar y_t$", ylabel=r"current $\nu_{i,t}$")
    currents.legend(frameon=False, fontsize="small", markerscale=6)
    activities.set(xlabel=r"integral $\bar y_t$", ylabel=r"activity $h_{i,t}$")
    positive = VALUES >= 0
    edges = np.linspace(0, 1, 26).tolist()
    activity = measured["proxy_activity"][:, positive]
    for k, (value, colour) in enumerate(zip(VALUES[positive], colours(SEQUENTIAL, positive.sum()), strict=True)):
        histogram.hist(activity[:, k].ravel(), edges, histtype="step", density=True, color=colour, label=f"{value:g}")
    histogram.set(xlabel="mean activity of a neuron", ylabel="density", yscale="log")
    histogram.legend(frameon=False, fontsize="small", title=r"$\bar y$")
    for loss, marker, colour in zip(LOSSES, "os", CHANNELS[2:], strict=False):
        parts.plot(VALUES, 100 * recruited(measured[f"{loss}_activity"]), marker + "-", color=colour, label=loss)
    parts.set(xlabel=r"integral $\bar y$", ylabel=f"neurons with $h_i > {STRONG}$ (%)")
    parts.set_ylim(bottom=0)
    legend(parts)
    return drawing


FIGURE = Figure(
    id="fig6",
    order=60,
    title="Sigmoid networks, one channel",
    section="Non-linear activation: case of a single channel",
    caption=r"A, B: current and activity of two neurons against the integral (batch loss): one saturates at the end of "
    r"its range, the other does not. C: mean activity of all neurons at given values of the integral, in bins of "
    r"$8/100$ (proxy loss, all networks). D: part of the neurons that are strongly active against the integral, for "
    r"both losses: more and more are recruited, on both sides. $\gamma = 0.8$, structured sequences.",
    runs=lambda profile: [s for loss in LOSSES for s in networks(profile, "sigmoid", loss, 1)],
    measure=measure,
    claims=claims,
    draw=draw,
)
