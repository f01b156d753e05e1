"""Fig 6: sigmoid networks have linear currents too, and recruit neurons as the integral grows."""

from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from torch import Tensor

from rni.activations import Sigmoid
from rni.analysis import relative_error, svd
from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.measuring import linear_part, stack
from rni.papers.fanthomme2021.trainings import Run, of_a_cell
from rni.plots.style import CHANNELS, SEQUENTIAL, colours, legend, panels
from rni.tasks.inputs import bursts
from rni.weights.vectors import independent

LOSSES = ("batch", "proxy")
VALUES = np.array([-3.5, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 3.5])  # of the integral, which stays in [-4, 4]
BIN = 8 / 100
SATURATED, STRONG = 0.95, 0.5
LENGTHS = (200, 2000)
SETTINGS = (
    "batch loss: half the authors' rate after a warm-up, batches of 32 quasi-random sequences instead of 2048, 5000 "
    "steps (3500 in the quick profile) instead of 10000; proxy loss: plain descent with fixed decoders, 32 "
    "quasi-random points instead of 4096 and Adam"
)


@torch.no_grad()
def examine(net: Network, x: Tensor) -> Measured:
    """Measure the linearity of the currents, the mean activity at VALUES, the spectrum and the errors."""
    y = net.task.targets(x).flatten(0, 1)
    currents = net.currents(x).flatten(0, 1)
    activity = net.f(currents)
    near = [activity[(y[:, 0] - value).abs() < BIN / 2].mean(0) for value in VALUES]
    values = svd(net.recurrent, 2).values
    long = bursts(8, LENGTHS[1], 1, torch.Generator().manual_seed(1))
    return {
        "explained": linear_part(currents, y),
        "activity": torch.stack(near).numpy(),
        "largest": activity.max(0).values.numpy(),
        "gap": (values[0] / values[1]).numpy(),
        "errors": np.array([float(relative_error(net, e)) for e in (x[:, : LENGTHS[0]], long, 2 * x)]),
    }


@torch.no_grad()
def characteristics(net: Network, x: Tensor, largest: np.ndarray) -> dict[str, np.ndarray]:
    """Return currents and activities of a neuron that saturates at negative integrals, and of one that does not."""
    currents, y = net.currents(x).flatten(0, 1), net.task.targets(x).flatten()
    falling = (y @ currents < 0).numpy()
    order = np.argsort(np.where(falling, largest, 0.0))
    saturating = order[-max(1, int((falling & (largest > SATURATED)).sum()) // 2)]
    other = np.argsort(largest)[len(order) // 2]
    shown = currents[:, [int(saturating), int(other)]][::4]
    activity = net.f(currents)[:, [int(saturating), int(other)]][::4]
    return {"integral": y[::4].numpy(), "currents": shown.numpy(), "activity": activity.numpy()}


def finite_set(neurons: int = 1000, count: int = 8, decay: float = 0.8) -> dict[str, float]:
    r"""Return the largest violation of the two conditions on `count` values of z, and half-way between them.

    $d^\dagger f(z_k v) = \gamma z_k$ is solved by Newton's method for $v = W e$, which has n components. W then follows
    from the linear equations $W f(z_k v) = \gamma z_k v$ and $W e = v$, one more than there are values.
    """
    e, d = (vectors[:, 0].numpy() for vectors in independent(neurons, 1, torch.Generator().manual_seed(0)))
    f, z = Sigmoid(), np.linspace(-1, 1, count) / (1 - decay)

    def activity(z: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nu = torch.from_numpy(np.outer(z, v))
        return f(nu).numpy(), f.derivative(nu).numpy()

    v = 0.025 * neurons**0.5 * d + 0.02 * np.random.default_rng(0).normal(size=neurons)
    for _ in range(100):
        h, slope = activity(z, v)
        step = np.linalg.lstsq(slope * z[:, None] * d, decay * z - h @ d, rcond=1e-10)[0]
        v = v + 0.05 / max(np.abs(step).max(), 0.05) * step
    h, _ = activity(z, v)
    w = np.linalg.lstsq(np.vstack([h, e]), np.vstack([decay * z[:, None] * v, v]), rcond=None)[0].T

    def violation(z: np.ndarray) -> float:
        h, _ = activity(z, v)
        currents = np.linalg.norm(h @ w.T - decay * z[:, None] * v, axis=1) / np.linalg.norm(v)
        return float(max(np.abs(h @ d - decay * z).max(), currents.max()))

    return {"on the set": violation(z), "between": violation((z[1:] + z[:-1]) / 2)}


def thresholds(activity: np.ndarray) -> np.ndarray:
    """Return the distribution of the saturating neurons over the steps of |y| at which they saturate.

    `activity` has the shape (networks, values, neurons).
    """
    middle = len(VALUES) // 2
    sides = np.concatenate([activity[:, middle:], activity[:, middle::-1]], axis=2) > SATURATED
    first = sides.argmax(1)[sides.any(1)]
    return np.bincount(first, minlength=middle + 1) / max(1, len(first))


def runs(profile: Profile) -> list[Run]:
    return [s for loss in LOSSES for s in of_a_cell(profile, "sigmoid", loss, 1)]


def measure(results: Results, profile: Profile) -> Measured:
    x = bursts(32, 400, 1, torch.Generator().manual_seed(0))
    measured: Measured = {}
    for loss in LOSSES:
        trained = [results[s].network for s in of_a_cell(profile, "sigmoid", loss, 1)]
        examined = [examine(net, x) for net in trained]
        measured |= stack(examined, f"{loss}_")
        shown = characteristics(trained[0], x, examined[0]["largest"])
        measured |= {f"{loss}_shown_{key}": value for key, value in shown.items()}
        measured[f"{loss}_thresholds"] = thresholds(measured[f"{loss}_activity"])
    finite = finite_set()
    return measured | {"finite_on": finite["on the set"], "finite_between": finite["between"]}


def recruited(activity: np.ndarray) -> np.ndarray:
    """Return the part of strongly active neurons at each of VALUES, from `activity` (networks, values, neurons)."""
    return (activity > STRONG).mean((0, 2))


def claims(measured: Measured) -> list[Claim]:
    saturating = {loss: (measured[f"{loss}_largest"] > SATURATED).mean() for loss in LOSSES}
    parts = {loss: recruited(measured[f"{loss}_activity"]) for loss in LOSSES}
    middle = len(VALUES) // 2
    steps = {loss: min(np.diff(part[middle:]).min(), np.diff(part[middle::-1]).min()) for loss, part in parts.items()}
    short, long, double = ({loss: measured[f"{loss}_errors"][:, k].mean() for loss in LOSSES} for k in range(3))
    trained_claim = partial(Claim, settings=SETTINGS)
    return [
        trained_claim(
            id="fig6.linear",
            where="Section 4.3, Fig 6A",
            statement="The currents of sigmoid networks are linear in the integral, although activities saturate.",
            criterion="one line through the origin for each neuron explains at least 0.98 of the squared currents, in "
            "the mean over the networks",
            expected="linear",
            measured={loss: measured[f"{loss}_explained"].mean() for loss in LOSSES},
            holds=lambda m: all(part >= 0.98 for part in m.values()),
        ),
        trained_claim(
            id="fig6.one-singular-value",
            where="Section 4.3, sigmoidal activation",
            statement="W has a single dominant singular value, with the batch and the proxy loss.",
            criterion="it is at least twice the next one in every network",
            expected="one",
            measured={loss: measured[f"{loss}_gap"].min() for loss in LOSSES},
            holds=lambda m: all(gap >= 2 for gap in m.values()),
        ),
        trained_claim(
            id="fig6.saturating-and-not",
            where="Section 4.3, Fig 6B",
            statement="Some neurons saturate at a value of the integral of their own, others never do.",
            criterion=f"between 2 % and 98 % of the neurons exceed an activity of {SATURATED} anywhere in [-4, 4]",
            expected="both kinds",
            measured=saturating,
            holds=lambda m: all(0.02 < part < 0.98 for part in m.values()),
        ),
        trained_claim(
            id="fig6.thresholds",
            where="Section 4.3, sigmoidal activation",
            statement=r"The threshold $\theta_i$ at which a neuron saturates is its own.",
            criterion="of the neurons that saturate, no more than 60 % do so between the same two of |y| = 0, 1, 2, 3, "
            "3.5",
            expected="neuron-specific",
            measured={loss: measured[f"{loss}_thresholds"].max() for loss in LOSSES},
            holds=lambda m: all(0 < part <= 0.6 for part in m.values()),
            revised="The first limit was 90 %, far above the measured values.",
        ),
        Claim(
            id="fig6.finite-set",
            where="Section 4.3, generic proxy loss",
            statement="The two conditions can be fulfilled exactly for a finite set of values, and not in between.",
            criterion="1000 sigmoids (50, 0.1), eight values of z in [-5, 5]: violated by less than 1e-10 there, and "
            "by more than 1e-3 half-way between them",
            expected="0 and not 0",
            measured={"on the set": measured["finite_on"], "between": measured["finite_between"]},
            holds=lambda m: m["on the set"] < 1e-10 and m["between"] > 1e-3,
        ),
        trained_claim(
            id="fig6.recruitment",
            where="Section 4.3, Fig 6C",
            statement="The further the integral is from 0, on either side, the more neurons are strongly active.",
            criterion=f"the part of neurons with activity above {STRONG} grows at each step of |y| on both sides; the "
            "least growth is given",
            expected="an increasing number",
            measured={loss: step for loss, step in steps.items()},
            holds=lambda m: all(step > 0 for step in m.values()),
        ),
        trained_claim(
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
        trained_claim(
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
    scales = activities, activities.twinx()  # the neuron that saturates and the other, each its own
    for k, (name, colour) in enumerate(zip(names, CHANNELS, strict=False)):
        style = {"color": colour, "markersize": 1.5, "rasterized": True, "label": name}
        currents.plot(y, measured["batch_shown_currents"][:, k], ".", **style)
        scales[k].plot(y, measured["batch_shown_activity"][:, k], ".", **style)
        scales[k].set_ylabel(r"activity $h_{i,t}$, " + name, color=colour)
        scales[k].tick_params(axis="y", colors=colour)
    currents.set(xlabel=r"integral $\bar y_t$", ylabel=r"current $\nu_{i,t}$")
    currents.legend(frameon=False, fontsize="small", markerscale=6)
    activities.set_xlabel(r"integral $\bar y_t$")
    edges, middle = np.linspace(0, 1, 26).tolist(), len(VALUES) // 2
    shades = colours(SEQUENTIAL, middle + 1)
    for k, value in enumerate(VALUES):
        style = {"color": shades[abs(k - middle)], "linestyle": "-" if value >= 0 else ":"}
        label = f"{value:g}" if value >= 0 else None
        heights = measured["proxy_activity"][:, k].ravel()
        histogram.hist(heights, edges, histtype="step", density=True, label=label, **style)
    histogram.set(xlabel="mean activity of a neuron", ylabel="density", yscale="log")
    histogram.legend(frameon=False, fontsize="small", title=r"$\bar y$")
    for loss, marker, colour in zip(LOSSES, "os", CHANNELS[2:], strict=False):
        parts.plot(VALUES, 100 * recruited(measured[f"{loss}_activity"]), marker + "-", color=colour, label=loss)
    parts.set(xlabel=r"integral $\bar y$", ylabel=f"neurons with $h_i > {STRONG}$ (%)")
    parts.set_ylim(bottom=0)
    legend(parts)
    return drawing


CAPTION = (
    r"A, B: current and activity of two neurons against the integral (batch loss): one saturates at the end of "
    r"its range, the other does not; each has its scale in B. C: mean activity of all neurons at given values of the "
    r"integral, in bins of $8/100$, and at their negatives (dotted) (proxy loss, all networks). D: part of the neurons "
    r"that are strongly active against the integral, for both losses: more and more are recruited, on both sides. "
    r"$\gamma = 0.8$, structured sequences."
)
