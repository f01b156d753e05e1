"""Which trainings of a ReLU network generalise, and what training the vectors too changes."""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.analysis import current_ratio, relative_error, svd
from rni.inputs import white_noise
from rni.pages.style import CHANNELS, SEEDS, panels
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.trainings import factored, first_below
from rni.runs.specification import Specification

DURATIONS = (2, 3, 4, 10)
OPTIMIZERS = ("sgd", "adam")
TRAINED = ("recurrent", "recurrent+decoders", "all")
CONVERGED = 1e-4  # of the silent loss


def specification(profile: Profile, weights: str = "dense", **training: Any) -> Specification:
    """ReLU, one channel, decay 0.995, from W = 0."""
    network = {"neurons": profile.neurons, "weights": weights}
    return Specification.parse({"task": {"decays": [0.995]}, "network": network, "training": training})


def by_duration(profile: Profile) -> list[list[Specification]]:
    """For each optimizer, the runs at each duration.

    Adam's steps have the same size in every weight, so that its rate goes with 1 / n and has to fall in the end.
    """
    steps = 3000 if profile.quick else 5000
    adam = {"optimizer": "adam", "learning_rate": 0.1 / profile.neurons, "schedule": "cosine"}
    both: tuple[dict[str, Any], ...] = ({"weights": factored(profile)}, adam)
    lengths: list[dict[str, Any]] = [{"duration": t, "batch": 32 if t < 10 or profile.quick else 16} for t in DURATIONS]
    return [[specification(profile, **options, **length, steps=steps) for length in lengths] for options in both]


def by_trained(profile: Profile) -> list[Specification]:
    """The authors' training of the recurrent weights alone, with the decoders, and with all vectors.

    Trained decoders grow, and with them the curvature: the warm-up's larger rate would diverge.
    """
    form = factored(profile)
    return [specification(profile, form, train=trained, learning_rate=0.5 / 27) for trained in TRAINED]


def measure(runs: Runs, profile: Profile) -> Measured:
    x = white_noise(16, 400, 1, torch.Generator().manual_seed(0))
    errors = [[relative_error(runs[s].network, x)[0] for s in row] for row in by_duration(profile)]
    trained = [runs[s] for s in by_trained(profile)]
    spectra = [svd(result.network.recurrent) for result in trained]
    curves = np.stack([np.array(result.losses) for result in trained])
    silent = specification(profile).loss().silent()
    return {
        "errors": np.array(errors),
        "curves": curves / silent,
        "ratios": np.array(
            [current_ratio(r.network, s.left[:, :1], x[:, :200]) for r, s in zip(trained, spectra, strict=True)]
        ),
        "gaps": np.array([float(s.values[0] / s.values[1]) for s in spectra]),
        "converged": np.array([first_below(curve / silent, CONVERGED) for curve in curves]),
    }


def claims(measured: Measured) -> list[Claim]:
    errors, steps = measured["errors"], measured["converged"]
    named = {f"{o} T={t}": float(errors[i, k]) for i, o in enumerate(OPTIMIZERS) for k, t in enumerate(DURATIONS)}
    return [
        Claim(
            id="relu.short-sequences",
            where="Sections 3.3 and 4.1",
            statement="Sequences of three steps or a few more are enough for ReLU networks to integrate much longer "
            "ones, by gradient descent and by Adam.",
            criterion="relative error below 10 % over 400 steps for T = 3, 4, 10 and both optimizers",
            expected="all generalise",
            measured={name: error for name, error in named.items() if not name.endswith("T=2")},
            holds=lambda m: all(error < 0.1 for error in m.values()),
        ),
        Claim(
            id="relu.two-steps",
            origin="ours",
            where="Section 3.3, for linear networks",
            statement="Sequences of two steps are not enough in linear networks; in ReLU networks the rank is "
            "not bounded by two either.",
            criterion="relative error above that of T = 3 over 400 steps, with gradient descent",
            expected="worse than T = 3",
            measured={"T=2": named["sgd T=2"], "T=3": named["sgd T=3"]},
            holds=lambda m: m["T=2"] > m["T=3"],
        ),
        Claim(
            id="relu.trained-vectors-faster",
            where="Section 2, learning procedure",
            statement="Training decoders, or encoders and decoders, along with the weights speeds convergence up.",
            criterion=f"fewer steps until the loss is below {CONVERGED:g} of a silent network's",
            expected="faster",
            measured=dict(zip(TRAINED, map(float, steps), strict=True)),
            holds=lambda m: m["recurrent+decoders"] < m["recurrent"] and m["all"] < m["recurrent"],
        ),
        Claim(
            id="relu.trained-vectors-same-kind",
            where="Section 2, learning procedure",
            statement="The nature of the solution stays the same when encoders and decoders are trained too.",
            criterion="one dominant singular value (ten times the next) and currents along it (r < 0.1) in each case",
            expected="qualitatively unchanged",
            measured={
                "smallest gap": float(measured["gaps"].min()),
                "largest r": float(measured["ratios"].max()),
            },
            holds=lambda m: m["smallest gap"] > 10 and m["largest r"] < 0.1,
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, (durations, training) = panels(2, width=4.6)
    for name, errors, colour in zip(OPTIMIZERS, measured["errors"], CHANNELS, strict=False):
        durations.plot(DURATIONS, 100 * errors, "o-", color=colour, label=name)
    durations.set(
        xlabel="training duration $T$", ylabel="relative error over 400 steps (%)", yscale="log", xscale="log"
    )
    durations.set_xticks(DURATIONS, labels=[str(t) for t in DURATIONS])
    durations.minorticks_off()
    durations.legend(frameon=False, title="optimizer")
    window = 50
    for name, curve, colour in zip(TRAINED, measured["curves"], SEEDS, strict=False):
        smooth = np.convolve(curve, np.ones(window) / window, mode="valid")
        training.plot(smooth, color=colour, label=name)
    training.axhline(CONVERGED, color="0.7", linewidth=0.8, zorder=0)
    training.set(xlabel=r"learning time $\tau$", ylabel="loss / silent loss", yscale="log")
    training.legend(frameon=False, title="trained")
    return drawing


FIGURE = Figure(
    id="relu",
    order=45,
    title="What generalises",
    section="Non-linear activation: case of a single channel",
    caption=r"Not in the paper as a figure. A: error of ReLU networks over 400 steps of white noise against the "
    r"duration of the sequences they were trained on. B: loss during training, averaged over 50 steps, when the "
    r"recurrent weights alone, the decoders too, or all vectors are trained, at the same learning "
    r"rate. Adam's rate is $0.1/n$, falling to 0: at a constant $5 \cdot 10^{-4}$ its networks drift.",
    runs=lambda profile: [*(s for row in by_duration(profile) for s in row), *by_trained(profile)],
    measure=measure,
    claims=claims,
    draw=draw,
)
