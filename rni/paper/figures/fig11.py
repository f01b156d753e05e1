"""Fig 11: what encoders and decoders on parts of the network do to W and to selectivity."""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.analysis import mixing, relative_error
from rni.inputs import white_noise
from rni.pages.style import CHANNELS, DIVERGING, TARGET, THEORY, panels
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.figures.fig10 import UNIFORM, examine
from rni.paper.trainings import factored, first_below
from rni.runs.specification import Specification

VARIANTS = ("independent", "same", "overlap", "disjoint", "decoders")
DESCRIBED = ("same", "overlap", "decoders")  # by the paper; the authors tried disjoint supports too
TITLES = {
    "independent": "no restriction",
    "same": "one half a channel",
    "overlap": "overlapping supports",
    "disjoint": "encoders, decoders apart",
    "decoders": "only decoders on halves",
}
LEARNED = 1e-3  # of the silent loss
PIXELS = 100


def specifications(profile: Profile, variant: str) -> list[Specification]:
    """ReLU, two channels, decays 0.995 and 0.993, batch descent on sequences of 4 steps from W = 0, for 2 seeds."""
    vectors: Any = "independent" if variant == "independent" else {"name": "supports", "kind": variant}
    raw: dict[str, Any] = {
        "task": {"decays": [0.995, 0.993]},
        "network": {"neurons": profile.neurons, "vectors": vectors, "weights": factored(profile)},
        "training": {"duration": 4, "batch": 16, "steps": 2000},
    }
    return [Specification.parse(raw | {"seed": seed}) for seed in range(profile.seeds(2))]


def outside_blocks(w: np.ndarray) -> float:
    r"""$\sum_{ij} W_{ij}^2$ over pairs in different halves of the network, as a part of the whole."""
    half = round(len(w) / 2)
    return float((np.square(w[:half, half:]).sum() + np.square(w[half:, :half]).sum()) / np.square(w).sum())


def picture(w: np.ndarray) -> np.ndarray:
    """W with one pixel for each block of neurons: the entry that is the largest in size."""
    width = -(-len(w) // PIXELS)
    padded = np.pad(w, (0, -len(w) % width))
    blocks = (
        padded.reshape(len(padded) // width, width, -1, width)
        .swapaxes(1, 2)
        .reshape(len(padded) // width, -1, width**2)
    )
    return np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)[..., 0]


@torch.no_grad()
def measure(runs: Runs, profile: Profile) -> Measured:
    x = white_noise(16, 200, 2, torch.Generator().manual_seed(1))
    measured: Measured = {}
    for variant in VARIANTS:
        results = [runs[specification] for specification in specifications(profile, variant)]
        nets = [result.network for result in results]
        matrices = [net.recurrent.matrix().numpy() for net in nets]
        silent = results[0].specification.loss().silent()
        values = {
            "outside": np.array([outside_blocks(w) for w in matrices]),
            "vectors": np.stack([examine(net)["vectors"] for net in nets]),
            "shared": np.stack([(net.encoders != 0).all(1).numpy() for net in nets]),
            "errors": np.stack([relative_error(net, x).numpy() for net in nets]),
            "steps": np.array([first_below(np.array(result.losses) / silent, LEARNED) for result in results]),
            "picture": picture(matrices[0]),
        }
        measured |= {f"{variant}_{key}": value for key, value in values.items()}
    return measured


def mixed(measured: Measured, variant: str, shared: bool | None = None) -> float:
    """Mean mixing index; only of neurons in the support of both encoders, or only of the others."""
    vectors = measured[f"{variant}_vectors"]
    chosen = vectors if shared is None else vectors[measured[f"{variant}_shared"] == shared]
    return float(mixing(torch.from_numpy(chosen.reshape(-1, 2))).mean)


def claims(measured: Measured) -> list[Claim]:
    outside = {variant: float(measured[f"{variant}_outside"].max()) for variant in VARIANTS}
    errors = {v: float(np.sqrt(np.square(measured[f"{v}_errors"]).mean())) for v in VARIANTS}
    steps = {v: float(measured[f"{v}_steps"].mean()) for v in VARIANTS}
    bar = f"{UNIFORM / 2:.3f}, half of the value for directions spread evenly over the plane"
    return [
        Claim(
            id="fig11.blocks",
            where="Section 5, Fig 11 middle",
            statement="With encoder and decoder of each channel on a half of the network of its own, W is "
            "block-diagonal.",
            criterion="less than 1 % of the squared weights connect the two halves",
            expected="block-diagonal",
            measured={v: outside[v] for v in ("same", "independent")},
            holds=lambda m: m["same"] < 0.01,
        ),
        Claim(
            id="fig11.pure",
            where="Section 5, Fig 11 middle",
            statement="There is no mixed selectivity then: each half codes one integral.",
            criterion=f"mean mixing index below {UNIFORM / 10:.3f}, a tenth of the value for directions spread evenly "
            "over the plane",
            expected="pure selectivity",
            measured=mixed(measured, "same"),
            holds=lambda index: index < UNIFORM / 10,
        ),
        Claim(
            id="fig11.overlap",
            where="Section 5, Fig 11 right",
            statement="Where the supports of the channels overlap neurons have mixed selectivity, and the others "
            "remain simply selective.",
            criterion=f"mean mixing index of the neurons in both supports at least {bar}; of the others below "
            f"{UNIFORM / 10:.3f}, a tenth",
            expected="mixed in the overlap only",
            measured={"in both": mixed(measured, "overlap", True), "others": mixed(measured, "overlap", False)},
            holds=lambda m: m["in both"] >= UNIFORM / 2 and m["others"] < UNIFORM / 10,
        ),
        Claim(
            id="fig11.relaxed",
            where="Section 5, text before Fig 11",
            statement="When the constraint on the encoders is relaxed, and only the decoders stay on their halves, "
            "mixed selectivity reappears.",
            criterion=f"mean mixing index of at least {UNIFORM / 10:.3f}, where selectivity is called pure below it",
            expected="mixed selectivity reappears",
            measured={v: mixed(measured, v) for v in ("decoders", "same", "independent")},
            holds=lambda m: m["decoders"] >= UNIFORM / 10,
        ),
        Claim(
            id="fig11.performance",
            where="Section 5, text before Fig 11",
            statement="None of these restrictions of the supports has a significant effect on the final performance.",
            criterion="relative error over 200 steps within a factor 2 of that without restriction, for the three "
            "restrictions that the paper describes: not judged where encoders and decoders are apart",
            expected="no significant difference",
            measured=errors,
            holds=lambda m: all(0.5 <= m[v] / m["independent"] <= 2 for v in DESCRIBED),
        ),
        Claim(
            id="fig11.learning",
            where="Section 5, text before Fig 11",
            statement="None of these restrictions of the supports has a significant effect on the learning dynamics.",
            criterion=f"steps until the loss is below {LEARNED:g} of a silent network's within a factor 2 of those "
            "without restriction",
            expected="no significant difference",
            measured=steps,
            holds=lambda m: all(0.5 <= number / m["independent"] <= 2 for number in m.values()),
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, axes = panels(3, 2, width=4.0, height=3.5)
    for axis, variant in zip(axes, VARIANTS, strict=False):
        image = measured[f"{variant}_picture"]
        limit = np.quantile(np.abs(image), 0.995)
        neurons = measured[f"{variant}_vectors"].shape[1]
        shown = axis.imshow(image, cmap=DIVERGING, vmin=-limit, vmax=limit, extent=(0, neurons, neurons, 0))
        drawing.colorbar(shown, ax=axis, label="$W_{ij}$", fraction=0.046)
        axis.set(xlabel="from neuron $j$", ylabel="to neuron $i$")
        axis.set_title(TITLES[variant], loc="right", fontsize="medium")
    parts = {TITLES[v]: mixed(measured, v) for v in VARIANTS}
    del parts[TITLES["overlap"]]
    parts["overlap, both channels"] = mixed(measured, "overlap", True)
    parts["overlap, one channel"] = mixed(measured, "overlap", False)
    index = axes[-1]
    index.barh(range(len(parts)), list(parts.values()), height=0.35, color=CHANNELS[2])
    for row, (name, value) in enumerate(parts.items()):
        index.annotate(f"{name}: {value:.3f}", (0.01, row - 0.28), fontsize="small", va="bottom")
    for limit, style in ((UNIFORM, ":"), (UNIFORM / 2, "-"), (UNIFORM / 10, "-")):
        index.axvline(limit, color=THEORY if style == ":" else TARGET, linestyle=style, linewidth=1, zorder=0)
    index.set(xlabel="mean mixing index", yticks=[], ylim=(len(parts) - 0.6, -0.9))
    return drawing


FIGURE = Figure(
    id="fig11",
    order=110,
    title="Structured supports",
    section="Non-linear activation: case of multiple channels",
    caption=r"A to E: $W$ of ReLU networks whose encoders and decoders are restricted to parts of the network; each "
    r"pixel is the largest weight in size of a block of neurons, and colours saturate at the largest 0.5 %. F: mean "
    r"mixing index of the selectivity vectors, 0 where each neuron codes one integral; dotted: directions spread "
    r"evenly over the plane; grey: the limits of what is called pure (left) and mixed (right). Decays 0.995 and 0.993, "
    r"batch descent on four steps.",
    runs=lambda profile: [s for variant in VARIANTS for s in specifications(profile, variant)],
    measure=measure,
    claims=claims,
    draw=draw,
)
