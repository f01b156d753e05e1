"""Fig 4: the currents of a ReLU network are proportional to the integral."""

from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.trainings import Run, factored, training_run
from rni.plots.style import CHANNELS, POPULATIONS, TARGET, panels
from rni.tasks.inputs import white_noise


def specification(profile: Profile, seed: int = 0, duration: int = 3) -> Run:
    """Return a ReLU network with decay 0.995 and scale 2, trained from W = 0 by batch descent on a few steps."""
    rate, batch = (0.025, 32) if duration == 3 else (1 / (4 * duration**3), 16)  # longer ones need smaller steps
    steps = 3500 if profile.quick else 5000
    network = {"neurons": profile.neurons, "weights": factored(profile)}
    training = {"duration": duration, "batch": batch, "learning_rate": rate, "schedule": "cosine", "steps": steps}
    return training_run([0.995], network, scales=[2.0], seed=seed, **training)


def runs(profile: Profile) -> list[Run]:
    return [specification(profile)]


@torch.no_grad()
def measure(results: Results, profile: Profile) -> Measured:
    net = results[specification(profile)].network
    x = white_noise(16, 200, 1, torch.Generator().manual_seed(0))
    y = net.task.targets(x).flatten().double()
    currents = net.currents(x).flatten(0, 1).double()  # (samples, neurons)
    slopes = (y @ currents) / (y @ y)
    unexplained = (currents - y[:, None] * slopes).square().sum(0) / currents.square().sum(0)
    direction = net.recurrent(net.encoders.T)[0].double()  # W e
    expected = direction / (net.task.scales[0] * net.task.decays[0])  # L
    cosines = currents @ direction / (currents.norm(dim=1) * direction.norm())
    shown = [int(slopes.argmax()), int(slopes.argmin())]
    return {
        "integral": y.numpy(),
        "currents_of_two": currents[:, shown].numpy(),
        "slopes": slopes.numpy(),
        "explained": (1 - unexplained).numpy(),
        "cosines": cosines.numpy(),
        "amplitude": float(slopes @ expected / (expected @ expected)),
        "deviation": float((slopes - expected).norm() / slopes.norm()),
        "power": currents.square().sum(0).numpy(),
    }


SETTINGS = "batches of 32 quasi-random sequences instead of 4096, a learning rate that falls from 5.4 of theirs to 0"


def claims(measured: Measured) -> list[Claim]:
    y, cosines = measured["integral"], measured["cosines"]
    away = np.abs(y) > 0.1 * np.abs(y).max()
    explained = 1 - np.average(1 - measured["explained"], weights=measured["power"])
    trained_claim = partial(Claim, settings=SETTINGS)
    return [
        trained_claim(
            id="fig4.linear",
            where="Section 4.1, currents",
            statement=r"The current of every neuron is proportional to the integral: $\nu_t = y_t L$.",
            criterion="one line through the origin for each neuron explains at least 0.99 of the squared currents",
            expected="linear",
            measured=explained,
            holds=lambda part: part >= 0.99,
            revised="The first criterion was at least 0.98, far below the measured value.",
        ),
        trained_claim(
            id="fig4.signs",
            where="Section 4.1, currents",
            statement="The slopes vary from neuron to neuron in amplitude and in sign.",
            criterion="between 0.35 and 0.65 of the slopes are positive, and their sizes spread by half or more",
            expected="both signs",
            measured={
                "positive": (measured["slopes"] > 0).mean(),
                "spread": np.abs(measured["slopes"]).std() / np.abs(measured["slopes"]).mean(),
            },
            holds=lambda m: 0.35 <= m["positive"] <= 0.65 and m["spread"] > 0.5,
        ),
        trained_claim(
            id="fig4.alignment",
            where="Section 4.2, L = We / (s gamma)",
            statement=r"The currents lie along $W e$, on the side of the sign of the integral.",
            criterion="the cosine of current and W e has the integral's sign and is above 0.97 in size wherever the "
            "integral is above a tenth of its largest value",
            expected="+1 for positive, -1 for negative integrals",
            measured=(cosines * np.sign(y))[away].min(),
            holds=lambda cosine: cosine > 0.97,
            revised="The first criterion was above 0.95, far below the measured value.",
        ),
        trained_claim(
            id="fig4.amplitude",
            where="Section 4.2, L = We / (s gamma)",
            statement=r"In amplitude too: $L = W e / (s\gamma)$.",
            criterion="the slopes of the currents are W e / (s gamma) times 1, to within 5 %, and the vector of slopes "
            "differs from that by less than 10 % of its length",
            expected="1",
            measured={"amplitude": measured["amplitude"], "relative deviation": measured["deviation"]},
            holds=lambda m: abs(m["amplitude"] - 1) < 0.05 and m["relative deviation"] < 0.1,
            revised="The first criterion was the amplitude alone; the deviation was only shown.",
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, (left, right) = panels(2, width=4.4)
    y = measured["integral"]
    for currents, sign in zip(measured["currents_of_two"].T, ("+", "-"), strict=True):
        left.plot(y, currents, ".", color=POPULATIONS[sign], markersize=2, rasterized=True)
    left.axhline(0, color=TARGET, linewidth=0.8, zorder=0)
    left.set(xlabel=r"integral $\bar y_t$", ylabel=r"currents $(\nu_t)_i$ of two neurons")
    right.plot(y, measured["cosines"], ".", color=CHANNELS[2], markersize=2, rasterized=True)
    right.set(xlabel=r"integral $\bar y_t$", ylabel=r"cosine of $\nu_t$ and $W e$", ylim=(-1.1, 1.1))
    return drawing


CAPTION = (
    r"One channel, $s = 2$, $\gamma = 0.995$, batch descent on three steps, at a rate that falls to 0. A: "
    r"currents of the neurons with the steepest positive and negative slope against the integral, over 200 steps of "
    r"white noise. B: alignment of the whole current vector with the image $W e$ of the encoder."
)
