"""Integrators without training, compared with trained ones. Not in the paper."""

from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.analysis import relative_error, robustness
from rni.analysis.perturbations import noisy_weights
from rni.designs import design
from rni.designs.certificate import certify
from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.trainings import Run, networks
from rni.plots.style import CHANNELS, legend, panels
from rni.tasks.inputs import bursts, white_noise
from rni.tasks.integration import Integration

RELU = (0.995, 0.993, 0.99, 0.992, 0.994)
SIGMOID = (0.8, 0.75, 0.77)
SEVERAL = {"relu": (1, 2, 3, 5), "sigmoid": (1, 2, 3)}
DURATION = 2000
LEVELS = (0.003, 0.01, 0.03, 0.1)
KINDS = {"weights": "noise on $W$", "neurons": "silenced neurons", "state": "noise on $h$"}


def runs(profile: Profile) -> list[Run]:
    return networks(profile, "relu", "batch", 2, 1)


def measure(results: Results, profile: Profile) -> Measured:
    measured: Measured = {"neurons": profile.neurons}
    for name, decays, inputs in (("relu", RELU, white_noise), ("sigmoid", SIGMOID, bursts)):
        designs = [design(Integration(decays[:channels]), profile.neurons, name) for channels in SEVERAL[name]]
        tests = [inputs(8, DURATION, channels, torch.Generator().manual_seed(0)) for channels in SEVERAL[name]]
        errors = [float(relative_error(d.network, x).max()) for d, x in zip(designs, tests, strict=True)]
        certificates = [certify(d.network) for d in designs]
        measured |= {
            f"{name}_errors": np.array(errors),
            f"{name}_bounds": np.array([max(certificate.relative) for certificate in certificates]),
            f"{name}_rigorous": np.array([certificate.rigorous for certificate in certificates]),
            f"{name}_norms": np.array([d.norm for d in designs]),
        }
    trained = results[networks(profile, "relu", "batch", 2, 1)[0]].network
    nets = {"designed": design(trained.task, trained.neurons).network, "trained": trained}
    for name, net in nets.items():
        found = robustness(net, LEVELS, inputs=white_noise, draws=2)
        rows = [[found.undisturbed, *getattr(found, kind).values()] for kind in KINDS]
        measured |= {f"{name}_robustness": np.array(rows), f"{name}_change": change(net)}
    return measured


@torch.no_grad()
def change(net: Network, level: float = 0.01, draws: int = 8) -> float:
    """Return how far noise on W moves the outputs, relative to the integrals (root mean square)."""
    generator = torch.Generator().manual_seed(0)
    x = white_noise(8, 400, net.channels, generator).to(net.dtype)
    still, size = net.outputs(x), net.task.targets(x).square().mean()
    moved = [(noisy_weights(net, level, generator).outputs(x) - still).square().mean() / size for _ in range(draws)]
    return float(torch.stack(moved).mean().sqrt())


def claims(measured: Measured) -> list[Claim]:
    moved = {name: measured[f"{name}_change"] for name in ("designed", "trained")}
    limits = dict(zip(SEVERAL["sigmoid"], (0.01, 0.02, 0.04), strict=True))
    large = measured["neurons"] >= 1000
    ours = partial(Claim, where="Beyond the paper", origin="ours")
    return [
        ours(
            id="design.relu-exact",
            statement="ReLU integrators of any number of channels exist exactly, with W of rank D, in closed form.",
            criterion=f"relative error below 1e-10 over {DURATION} steps",
            expected="exact",
            measured=_by_channels("relu", measured["relu_errors"]),
            holds=lambda m: max(m.values()) < 1e-10,
        ),
        ours(
            id="design.certified",
            statement="Their errors stay below a bound for sequences of any length.",
            criterion="a rigorous bound, above the error that was measured, below 1e-6 of the largest integral",
            expected="certified",
            measured=_by_channels("relu", np.where(measured["relu_rigorous"], measured["relu_bounds"], np.inf)),
            holds=lambda m: max(m.values()) < 1e-6 and bool((measured["relu_bounds"] >= measured["relu_errors"]).all()),
        ),
        ours(
            id="design.sigmoid",
            statement="Sigmoid integrators without training are better than trained ones.",
            criterion=f"relative error over {DURATION} steps of structured sequences below 1, 2 and 4 % for 1, 2 and 3 "
            "channels, with 1000 neurons",
            needs="1000 neurons (--profile paper)",
            expected="below",
            measured=_by_channels("sigmoid", measured["sigmoid_errors"]) if large else None,
            holds=lambda m: all(m[f"D = {channels}"] < limit for channels, limit in limits.items()),
        ),
        ours(
            id="design.robust",
            statement="Designed weights are not more delicate than trained ones.",
            criterion="1 % of noise on W moves the outputs of a designed network by at most 1.5 times as much as those "
            "of a trained one with the same vectors, with 1000 neurons",
            needs="1000 neurons (--profile paper)",
            expected="alike",
            measured=moved if large else None,
            holds=lambda m: m["designed"] <= 1.5 * m["trained"],
            revised="The first criterion compared the increase of the errors by noise, which depends on the errors "
            "without noise.",
        ),
    ]


def _by_channels(name: str, values: np.ndarray) -> dict[str, float]:
    return {f"D = {channels}": float(value) for channels, value in zip(SEVERAL[name], values, strict=True)}


def draw(measured: Measured) -> Drawing:
    drawing, (errors, *several) = panels(4, width=3.4, height=3.3)
    for name, colour in zip(SEVERAL, CHANNELS, strict=False):
        errors.plot(SEVERAL[name], measured[f"{name}_errors"], "o-", color=colour, label=name)
        errors.plot(SEVERAL[name], measured[f"{name}_bounds"], "_:", color=colour, markersize=12, label="bound")
    errors.set(xlabel="channels $D$", ylabel=f"relative error, {DURATION} steps", yscale="log")
    legend(errors)
    for axis, title, k in zip(several, KINDS.values(), range(3), strict=True):
        for name, colour in zip(("designed", "trained"), CHANNELS[2:], strict=False):
            axis.plot(LEVELS, measured[f"{name}_robustness"][k, 1:], "o-", color=colour, label=name)
            axis.axhline(measured[f"{name}_robustness"][k, 0], color=colour, linestyle=":")
        axis.set(xlabel=title, ylabel="relative error", xscale="log", yscale="log")
        axis.set_ylim(bottom=1e-4)
        legend(axis)
    return drawing


CAPTION = (
    r"A: relative error of designed networks, and the bound of their certificates for sequences of any length "
    r"(of the largest integral; an estimate for sigmoids). B to D: error of a designed and a trained ReLU network of "
    r"two channels with the same encoders and decoders, over 400 steps, against noise on the weights (in parts of "
    r"their root mean square), the part of neurons that are silenced, and noise on the activities; dotted: without."
)
COMPUTES = True
