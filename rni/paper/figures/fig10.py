"""Fig 10: each neuron codes its own combination of the two integrals, mixed selectivity."""

from typing import Any, Literal

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.analysis import angles, current_coordinates, harmonics, linear_map, mixing, selectivity_vectors, svd
from rni.inputs import white_noise
from rni.network import Network
from rni.pages.style import CHANNELS, SEQUENTIAL, THEORY, legend, panels
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.trainings import networks
from rni.runs.specification import Specification

TRAJECTORIES, DURATION = 32, 200
MAPPED, SHOWN = 256, 5000  # trajectories and samples of panel A
UNIFORM = 2**0.5 - 1  # mean of the mixing index over all directions of the plane
ENOUGH = 4000  # angles in which a fourth harmonic of 0.06 has a p-value of 1e-6

PEAKS = (
    "the fourth harmonic has a p-value below 1e-6 and a phase within pi / 4 of 0, which puts the peaks within pi / 16 "
    f"of the axes; tested on {ENOUGH} angles or more"
)


def specifications(profile: Profile, activation: Literal["relu", "sigmoid"]) -> list[Specification]:
    """Two channels, 16 seeds: ReLU by the batch loss, sigmoid by the proxy loss as the authors weigh it."""
    if activation == "relu":
        return networks(profile, "relu", "batch", 2, 16)
    raw: dict[str, Any] = {
        "task": {"decays": [0.8, 0.75]},
        "network": {"neurons": profile.neurons, "activation": "sigmoid"},
        "training": {
            "loss": "proxy",
            "current_weight": 1 / profile.neurons,
            "optimizer": "adam",
            "learning_rate": 0.5 / profile.neurons,
            "steps": 1000,
        },
    }
    return [Specification.parse(raw | {"seed": seed}) for seed in range(profile.seeds(16))]


def as_printed(profile: Profile) -> list[Specification]:
    """The sigmoid networks of Table 1, trained on the proxy loss as the paper prints it."""
    return networks(profile, "sigmoid", "proxy", 2)


@torch.no_grad()
def examine(net: Network) -> dict[str, np.ndarray]:
    """Selectivity vectors, and for each neuron the squared activity they leave unexplained and how often it fires.

    Inputs come with their opposites, so that the integrals are spread alike over both sides of any line through 0.
    """
    directions = svd(net.recurrent, net.channels).left.double()
    x = white_noise(TRAJECTORIES // 2, DURATION, net.channels, torch.Generator().manual_seed(0))
    x = torch.cat([x, -x])
    y = net.task.targets(x.double()).flatten(0, 1)
    currents = net.currents(x.to(net.dtype)).flatten(0, 1)
    h = net.f(currents).double()
    matrix = linear_map(current_coordinates(currents.double(), directions), y).matrix
    vectors = selectivity_vectors(matrix, directions)
    return {
        "vectors": vectors.numpy(),
        "residual": (h - net.f(y @ vectors.T)).square().sum(0).numpy(),
        "power": h.square().sum(0).numpy(),
        "active": (h > 0).double().mean(0).numpy(),
    }


@torch.no_grad()
def map_activity(net: Network, neuron: int) -> dict[str, np.ndarray]:
    """Integrals and activity of a neuron at some samples of many trajectories."""
    generator = torch.Generator().manual_seed(1)
    x = white_noise(MAPPED, DURATION, net.channels, generator)
    h = torch.stack([h[:, neuron] for _, h in net.steps(x)], 1).flatten()
    some = torch.randperm(len(h), generator=generator)[:SHOWN]
    return {"integrals": net.task.targets(x.double()).flatten(0, 1)[some].numpy(), "activity": h[some].numpy()}


def measure(runs: Runs, profile: Profile) -> Measured:
    nets = {name: [runs[s].network for s in specifications(profile, name)] for name in ("relu", "sigmoid")}
    relu, sigmoid = ([examine(net) for net in nets[name]] for name in ("relu", "sigmoid"))
    measured: Measured = {key: np.stack([each[key] for each in relu]) for key in ("residual", "power", "active")}
    measured["relu_vectors"] = np.stack([each["vectors"] for each in relu])
    measured["sigmoid_vectors"] = np.stack([each["vectors"] for each in sigmoid])
    printed = [examine(runs[s].network) for s in as_printed(profile)]
    measured["printed_vectors"] = np.stack([each["vectors"] for each in printed])
    lengths = np.linalg.norm(measured["relu_vectors"][0], axis=1)
    neuron = int(np.abs(lengths - np.median(lengths)).argmin())
    return measured | {"neuron": np.array(neuron)} | map_activity(nets["relu"][0], neuron)


def claims(measured: Measured) -> list[Claim]:
    vectors = (torch.from_numpy(measured[f"{name}_vectors"]) for name in ("relu", "sigmoid", "printed"))
    relu, sigmoid, printed = vectors
    uniform = harmonics(angles(relu.flatten(0, 1)))
    halves = np.abs(measured["active"] - 0.5) <= 0.05
    return [
        Claim(
            id="fig10.rectified",
            where="Section 5, Fig 10A",
            statement=r"The activity of a neuron is $h_i = \lfloor s_i \cdot \bar y \rfloor_+$, with $s_i$ from the "
            r"coordinates of the current.",
            criterion="it explains at least 0.98 of the squared activity of all neurons over 200 steps",
            expected="of this form",
            measured=float(1 - measured["residual"].sum() / measured["power"].sum()),
            holds=lambda part: part >= 0.98,
        ),
        Claim(
            id="fig10.half-plane",
            where="Section 5, Fig 10A",
            statement="A neuron is only ever active in half of the plane of the integrals.",
            criterion="at least 95 % of the neurons are active in 0.5 +- 0.05 of samples that are symmetric around 0",
            expected="one half",
            measured=float(halves.mean()),
            holds=lambda part: part >= 0.95,
        ),
        Claim(
            id="fig10.relu-uniform",
            where="Section 5, Fig 10B",
            statement="The angles of the selectivity vectors of ReLU networks are equally distributed on [0, 2 pi].",
            criterion="none of the first four harmonics of the angles of all neurons is rejected by Rayleigh's test at "
            "1 %, with Bonferroni's correction for the four: all p >= 0.0025",
            expected="uniform",
            measured={f"p, harmonic {k}": float(p) for k, p in enumerate(uniform.p_values, 1)},
            holds=lambda m: all(p >= 0.0025 for p in m.values()),
        ),
        Claim(
            id="fig10.sigmoid-peaks",
            where="Section 5, Fig 10C",
            statement="The angles of sigmoidal networks have peaks at the multiples of pi / 2.",
            criterion=PEAKS,
            expected="clear peaks",
            measured=_peaks(sigmoid),
            holds=lambda m: m["p"] < 1e-6 and abs(m["phase"]) <= np.pi / 4,
        ),
        Claim(
            id="fig10.sigmoid-peaks-as-printed",
            origin="ours",
            where="Section 5, Fig 10C",
            statement="The same for networks trained on the proxy loss as the paper prints it, with the current term "
            "summed over neurons (the authors' trainings average it, a weight of 1 / n).",
            criterion=PEAKS,
            expected="clear peaks",
            measured=_peaks(printed),
            holds=lambda m: m["p"] < 1e-6 and abs(m["phase"]) <= np.pi / 4,
        ),
        Claim(
            id="fig10.mixed",
            where="Section 5, mixed selectivity",
            statement="Neurons jointly encode all of the integrals.",
            criterion=f"mean mixing index (0 for one integral a neuron, {UNIFORM:.3f} for directions spread evenly "
            "over the plane) at least half of what it is for evenly spread directions, in both kinds of network",
            expected="mixed",
            measured={
                "relu": float(mixing(relu.flatten(0, 1)).mean),
                "sigmoid": float(mixing(sigmoid.flatten(0, 1)).mean),
            },
            holds=lambda m: all(index >= UNIFORM / 2 for index in m.values()),
        ),
    ]


def _peaks(vectors: torch.Tensor) -> dict[str, float] | None:
    if vectors.shape[:2].numel() < ENOUGH:
        return None
    fourth = harmonics(angles(vectors.flatten(0, 1)), [4])
    return {"p": float(fourth.p_values), "length": float(fourth.lengths), "phase": float(fourth.phases)}


def draw(measured: Measured) -> Drawing:
    drawing, (plane, *histograms) = panels(2, 2, width=4.4, height=3.4)
    y, s = measured["integrals"], measured["relu_vectors"][0, measured["neuron"]]
    points = plane.scatter(*y.T, c=measured["activity"], s=3, cmap=SEQUENTIAL, rasterized=True)
    drawing.colorbar(points, ax=plane, label=r"activity $h_i$")
    reach = np.abs(y).max()
    boundary = reach * np.array([-s[1], s[0]]) / np.linalg.norm(s)
    plane.plot(*np.stack([-boundary, boundary], 1), color=THEORY, label=r"$s_i \cdot \bar y = 0$")
    plane.set(xlabel=r"$\bar y_1$", ylabel=r"$\bar y_2$", xlim=(-reach, reach), ylim=(-reach, reach))
    legend(plane)
    titles = {"relu": "ReLU", "sigmoid": "sigmoid, current term weighed by 1/n", "printed": "sigmoid, loss as printed"}
    for axis, (name, title), colour in zip(histograms, titles.items(), CHANNELS, strict=False):
        theta = angles(torch.from_numpy(measured[f"{name}_vectors"]).flatten(0, 1)).numpy()
        axis.hist(theta, bins=48, range=(0, 2 * np.pi), density=True, color=colour, alpha=0.8)
        axis.axhline(1 / (2 * np.pi), color=THEORY, linestyle=":")
        axis.set_xticks(np.arange(5) * np.pi / 2, labels=["0", r"$\pi/2$", r"$\pi$", r"$3\pi/2$", r"$2\pi$"])
        axis.set(xlabel=r"angle of $s_i$", ylabel="density")
        axis.set_title(title, fontsize="medium")
    return drawing


FIGURE = Figure(
    id="fig10",
    order=100,
    title="Mixed selectivity",
    section="Non-linear activation: case of multiple channels",
    caption=r"A: activity of a ReLU neuron with a selectivity vector $s_i$ of median length over the plane of the "
    rf"integrals, on white noise of {DURATION} steps, with the line on which its current changes sign. B to D: "
    r"angles of the selectivity vectors of all neurons of all networks; dotted: uniform. ReLU: decays 0.995 and 0.993, "
    r"batch loss; sigmoid: decays 0.8 and 0.75, proxy loss, in C as the authors train (mean over neurons of the "
    r"current term, Adam at a constant rate, 1000 steps, 64 points), in D the networks of Table 1.",
    runs=lambda profile: [
        *specifications(profile, "relu"),
        *specifications(profile, "sigmoid"),
        *as_printed(profile),
    ],
    measure=measure,
    claims=claims,
    draw=draw,
)
