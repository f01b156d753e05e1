"""Fig 3: a ReLU network codes the two signs of the integral by two populations."""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.analysis.population import NAMES, population_vectors, populations
from rni.inputs import white_noise
from rni.network import Network
from rni.pages.style import POPULATIONS, TARGET, legend, panels
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.trainings import factored, networks
from rni.runs.specification import Specification


def specifications(profile: Profile, loss: str = "batch") -> list[Specification]:
    """ReLU, one channel, decay 0.995, scale 1, from W = 0, for 10 seeds."""
    if loss == "batch":
        return networks(profile, "relu", "batch", 1, 10)
    network = {"neurons": profile.neurons, "weights": factored(profile)}
    raw: dict[str, Any] = {"task": {"decays": [0.995]}, "network": network}
    return [Specification.parse(raw | {"seed": k, "training": {"loss": loss}}) for k in range(profile.seeds(10))]


@torch.no_grad()
def examine(net: Network, threshold: float | None = None) -> dict[str, np.ndarray]:
    """Population vectors and populations of a network, on white noise of 200 steps."""
    x = white_noise(16, 200, 1, torch.Generator().manual_seed(0)).to(net.dtype)
    vectors = population_vectors(net(x)[0].flatten(0, 1).double(), net.task.targets(x).flatten().double())
    decoder = net.decoders[:, 0].double()
    return {
        "vectors": torch.stack(vectors).numpy(),
        "populations": populations(vectors, threshold).numpy(),
        "readouts": np.array([float(decoder @ vector) for vector in vectors]),
    }


@torch.no_grad()
def switch(net: Network, members: np.ndarray) -> dict[str, np.ndarray]:
    """Mean activity of the + and - populations around an input that turns the sign of the integral."""
    x = torch.zeros(1, 60, 1, dtype=net.dtype)
    x[0, 5], x[0, 30] = 1.0, -2.0
    h = net(x)[0][0].numpy()
    means = np.stack([h[:, members == k].mean(1) for k in (0, 1)])
    return {"switch_inputs": x[0, :, 0].numpy(), "switch_activity": means}


def measure(runs: Runs, profile: Profile) -> Measured:
    batch = [runs[specification].network for specification in specifications(profile)]
    examined = {"batch": [examine(net) for net in batch]}
    examined["proxy"] = [examine(runs[s].network, 1e-6) for s in specifications(profile, "proxy")]
    measured: Measured = {
        f"{loss}_{key}": np.stack([each[key] for each in several])
        for loss, several in examined.items()
        for key in ("vectors", "populations", "readouts")
    }
    return measured | switch(batch[0], measured["batch_populations"][0])


def claims(measured: Measured) -> list[Claim]:
    balance = [float((measured["batch_populations"] == k).mean()) for k in (0, 1)]
    members = measured["batch_populations"][..., None, :]
    power = np.square(measured["batch_vectors"])
    shared = float((power * (members == 2)).sum() / power.sum())
    before, after = measured["switch_activity"][:, 20], measured["switch_activity"][:, 40]
    return [
        Claim(
            id="fig3.two-populations",
            where="Section 4.1, Fig 3A",
            statement="After batch descent neurons are active for one sign of the integral only, but for a few percent "
            "that are shared or null.",
            criterion="shared and null neurons together are below a tenth",
            expected="around 5 %",
            measured=float((measured["batch_populations"] >= 2).mean()),
            holds=lambda part: part < 0.1,
        ),
        Claim(
            id="fig3.balance",
            where="Appendix on rank-1 ReLU integrators",
            statement="Half of the neurons code for positive, half for negative integrals.",
            criterion="each of the two populations has between 0.4 and 0.55 of the neurons",
            expected="one half each",
            measured={"+": balance[0], "-": balance[1]},
            holds=lambda m: all(0.4 <= part <= 0.55 for part in m.values()),
        ),
        Claim(
            id="fig3.shared-are-weak",
            where="Section 4.1",
            statement="Shared neurons never have strong activities.",
            criterion="they carry less than 1 % of the squared population vectors",
            expected="irrelevant for the output",
            measured=shared,
            holds=lambda part: part < 0.01,
        ),
        Claim(
            id="fig3.readout",
            where="Section 4.1, after the coding equation",
            statement=r"$d \cdot L_+ = 1$ and $d \cdot L_- = -1$.",
            criterion="to within 3 % in every network",
            expected="+1 and -1",
            measured={
                "+": _furthest(measured["batch_readouts"][:, 0], 1.0),
                "-": _furthest(measured["batch_readouts"][:, 1], -1.0),
            },
            holds=lambda m: abs(m["+"] - 1) < 0.03 and abs(m["-"] + 1) < 0.03,
        ),
        Claim(
            id="fig3.proxy-shared",
            where="Section 4.1, last sentence on populations",
            statement="Training on the proxy loss leaves no shared neurons.",
            criterion="none at all, with a coefficient of 1e-6 told from none",
            expected="none",
            measured=float((measured["proxy_populations"] == 2).mean()),
            holds=lambda part: part == 0,
        ),
        Claim(
            id="fig3.proxy-null",
            where="Section 4.1, last sentence on populations",
            statement="Training on the proxy loss leaves no null neurons.",
            criterion="none at all, with a coefficient of 1e-6 told from none; descent can trap neurons where their "
            "current vanishes, at the kink of the activation",
            expected="none",
            measured=float((measured["proxy_populations"] == 3).mean()),
            holds=lambda part: part == 0,
        ),
        Claim(
            id="fig3.switch",
            where="Section 4.1, Fig 3B",
            statement="An input that turns the sign of the integral hands the activity over from one population to the "
            "other.",
            criterion="the population of the other sign has less than 5 % of the activity, before and after",
            expected="one population at a time",
            measured={"before": float(before[1] / before.sum()), "after": float(after[0] / after.sum())},
            holds=lambda m: m["before"] < 0.05 and m["after"] < 0.05,
        ),
    ]


def _furthest(values: np.ndarray, target: float) -> float:
    return float(values[np.abs(values - target).argmax()])


def draw(measured: Measured) -> Drawing:
    drawing, (vectors, time) = panels(2, width=4.6, height=3.6)
    positive, negative = np.moveaxis(measured["batch_vectors"], 1, 0).reshape(2, -1)
    members = measured["batch_populations"].ravel()
    for k, name in enumerate(NAMES):
        chosen = members == k
        label = f"{name}  ({100 * chosen.mean():.1f} %)"
        style = {"color": POPULATIONS[name], "markersize": 2.5, "rasterized": True, "label": label}
        vectors.plot(positive[chosen], negative[chosen], ".", **style)
    vectors.set(xlabel=r"$(L_+)_i$", ylabel=r"$(L_-)_i$")
    vectors.legend(frameon=False, fontsize="small", markerscale=3)
    steps = np.arange(len(measured["switch_inputs"]))
    for name, activity in zip(NAMES, measured["switch_activity"], strict=False):
        time.plot(steps, activity, color=POPULATIONS[name], label=f"{name} population")
    time.vlines(steps[measured["switch_inputs"] != 0], 0, measured["switch_activity"].max(), color=TARGET, zorder=0)
    for step in steps[measured["switch_inputs"] != 0]:
        time.annotate(f"$x = {measured['switch_inputs'][step]:+.0f}$", (step + 0.7, measured["switch_activity"].max()))
    time.set(xlabel="time step $t$", ylabel="mean activity")
    time.set_ylim(top=1.15 * measured["switch_activity"].max())
    legend(time)
    return drawing


FIGURE = Figure(
    id="fig3",
    order=30,
    title="Two populations",
    section="Non-linear activation: case of a single channel",
    caption=r"A: activity of each neuron per unit of positive ($L_+$) and negative ($L_-$) integral, for all neurons "
    r"of all networks; almost all lie on one of the axes. B: mean activity of the two populations when a second input "
    r"turns the sign of the integral.",
    runs=lambda profile: [*specifications(profile), *specifications(profile, "proxy")],
    measure=measure,
    claims=claims,
    draw=draw,
)
