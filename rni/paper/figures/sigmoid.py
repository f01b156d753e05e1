"""How accurate sigmoid networks are: against the number of neurons, the length of the sequence and the decay."""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import NullLocator
from torch import Tensor

from rni.analysis import relative_error
from rni.inputs import bursts
from rni.network import Network
from rni.pages.style import CHANNELS, THEORY, legend, panels
from rni.paper.claims import Claim
from rni.paper.figure import Figure, Measured, Profile, Runs
from rni.paper.trainings import networks
from rni.runs.specification import Specification

DURATIONS = (50, 100, 200, 500, 1000, 2000)
DECAYS = (0.7, 0.8, 0.9, 0.95, 0.99)
RANGE = 5.0  # of z where it does not grow with the decay: that of decay 0.8
SEEDS = 4


def sizes(profile: Profile) -> tuple[int, ...]:
    return (256, 512, 1024) if profile.quick else (256, 512, 1024, 2048, 4096)


def by_size(profile: Profile) -> list[list[Specification]]:
    r"""For each size, several seeds: slope $50 \sqrt{n/1000}$, threshold in inverse proportion, descent on the proxy.

    The currents are of size $n^{-1/2}$ (the paper's footnote on the choice of slope and threshold), so that the
    networks differ in n alone. W stays of low rank, and is kept so.
    """

    def specification(neurons: int, seed: int) -> Specification:
        factor = (neurons / 1000) ** 0.5
        activation = {"name": "sigmoid", "slope": 50 * factor, "threshold": 0.1 / factor}
        weights = {"name": "lowrank", "tolerance": 1e-6}
        network = {"neurons": neurons, "activation": activation, "weights": weights}
        training = {"loss": "proxy", "points": 32, "learning_rate": 0.01, "schedule": "cosine"}
        training["steps"] = 1000 if profile.quick else 2000
        return Specification.parse({"seed": seed, "task": {"decays": [0.8]}, "network": network, "training": training})

    return [[specification(n, seed) for seed in range(profile.seeds(SEEDS))] for n in sizes(profile)]


def by_decay(profile: Profile) -> list[list[Specification]]:
    """For each decay: all integrals of inputs up to 1; integrals in the same range for all decays; ReLU."""
    adam = {"optimizer": "adam", "learning_rate": 0.5 / profile.neurons, "schedule": "cosine", "points": 32}

    def specification(decay: float, activation: str, **training: Any) -> Specification:
        network = {"neurons": profile.neurons, "activation": activation}
        training = {"loss": "proxy"} | training
        return Specification.parse({"task": {"decays": [decay]}, "network": network, "training": training})

    return [
        [
            specification(decay, "sigmoid", **adam, steps=2000),
            specification(decay, "sigmoid", **adam, steps=2000, bounds=[RANGE]),
            specification(decay, "relu", stop_loss=1e-9),
        ]
        for decay in DECAYS
    ]


def capacity(net: Network) -> float:
    r"""$\max_h d \cdot h = \sum_i \lfloor d_i \rfloor_+$ for activities between 0 and 1, about $\sqrt{n / 2\pi}$."""
    return float(net.decoders.detach().clamp(min=0).sum())


def measure(runs: Runs, profile: Profile) -> Measured:
    x = bursts(32, 1000, 1, torch.Generator().manual_seed(0))

    def error(specification: Specification, inputs: Tensor) -> float:
        return float(relative_error(runs[specification].network, inputs))

    def within(decay: float) -> Tensor:
        return x * RANGE * (1 - decay)

    long = bursts(16, DURATIONS[-1], 1, torch.Generator().manual_seed(1))
    proxies = networks(profile, "sigmoid", "proxy", 1)
    tried = list(zip(DECAYS, by_decay(profile), strict=True))
    return {
        "sizes": np.array(sizes(profile)),
        "size_errors": np.array([[error(s, x) for s in row] for row in by_size(profile)]),
        "size_losses": np.array([[np.mean(runs[s].losses[-100:]) for s in row] for row in by_size(profile)]),
        "duration_errors": np.array([[error(s, long[:, :duration]) for duration in DURATIONS] for s in proxies]),
        "decay_errors": np.array(
            [[error(full, x), error(same, within(decay)), error(relu, x)] for decay, (full, same, relu) in tried]
        ),
        "capacity": capacity(runs[tried[0][1][0]].network),
    }


def claims(measured: Measured) -> list[Claim]:
    sizes = measured["sizes"]
    exponent, deviation = _power(sizes, measured["size_errors"])
    of_loss, _ = _power(sizes, measured["size_losses"])
    over_time = measured["duration_errors"].mean(0)
    by_decay = dict(zip(DECAYS, measured["decay_errors"], strict=True))
    return [
        Claim(
            id="sigmoid.size",
            where="Section 4.3",
            statement=r"The error of sigmoid networks falls with their size as $n^{-1/2}$.",
            criterion=f"fitted exponent over n = {sizes[0]} to {sizes[-1]} within 0.15 of -1/2; its standard error and "
            "the exponent of the loss, a squared error, are beside it",
            expected="-1/2",
            measured={"exponent": exponent, "standard error": deviation, "exponent of the loss": of_loss},
            holds=lambda m: abs(m["exponent"] + 0.5) <= 0.15,
        ),
        Claim(
            id="sigmoid.duration",
            where="Section 4.3",
            statement="The error does not depend on the length T of the sequence, as long as the integral is in range.",
            criterion=f"mean errors at T = {', '.join(map(str, DURATIONS))} within a factor of 1.5",
            expected="irrespectively of T",
            measured={f"T = {duration}": float(e) for duration, e in zip(DURATIONS, over_time, strict=True)},
            holds=lambda m: max(m.values()) <= 1.5 * min(m.values()),
        ),
        Claim(
            id="sigmoid.decay",
            where="Section 4.3, sigmoidal activation",
            statement=r"Sigmoid networks perform poorly with $\gamma$ too close to 1.",
            criterion="for inputs up to 1 the error at decay 0.99 is at least five times that at 0.8",
            expected="poor performance",
            measured={f"{decay:g}": float(row[0]) for decay, row in by_decay.items()},
            holds=lambda m: m["0.99"] >= 5 * m["0.8"],
        ),
        Claim(
            id="sigmoid.decay-range",
            origin="ours",
            where="Section 4.3, sigmoidal activation",
            statement="The limit is not that of the range alone. Activities of at most 1 give outputs of at most "
            r"$\sum_i \lfloor d_i \rfloor_+$, which a slow integral exceeds; but within the same range of "
            "integrals too, errors of the map grow as 1 / (1 - decay).",
            criterion="the largest integral of decay 0.99 exceeds the largest output; with inputs that keep z in "
            f"[-{RANGE:g}, {RANGE:g}] the error at 0.99 is still at least twice that at 0.8; a ReLU network has "
            "less than a tenth of it",
            expected="intrinsic limitations of the activation",
            measured={
                "largest output": measured["capacity"],
                "largest integral": 0.99 / (1 - 0.99),
                **{f"{decay:g}, z within {RANGE:g}": float(row[1]) for decay, row in by_decay.items()},
                "0.99, ReLU": float(by_decay[0.99][2]),
            },
            holds=lambda m: (
                m["largest integral"] > m["largest output"]
                and m[f"0.99, z within {RANGE:g}"] >= 2 * m[f"0.8, z within {RANGE:g}"]
                and m["0.99, ReLU"] < m[f"0.99, z within {RANGE:g}"] / 10
            ),
        ),
    ]


def _power(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The exponent of the power law through values (sizes, seeds), with its standard error."""
    logarithms = np.repeat(np.log(sizes), values.shape[1]), np.log(values).ravel()
    (exponent, _), covariance = np.polyfit(*logarithms, 1, cov=True)
    return float(exponent), float(covariance[0, 0] ** 0.5)


def draw(measured: Measured) -> Drawing:
    drawing, (size, time, decay) = panels(3, width=3.8, height=3.4)
    n, errors = measured["sizes"], 100 * measured["size_errors"]
    size.plot(n, errors, ".", color=CHANNELS[0], markersize=4)
    size.plot(n, errors.mean(1), "o-", color=CHANNELS[0])
    size.plot(n, errors.mean(1)[0] * (n / n[0]) ** -0.5, ":", color=THEORY, label=r"$n^{-1/2}$")
    size.set(xlabel="neurons $n$", ylabel="relative error (%)", xscale="log", yscale="log")
    size.set_xticks(n, labels=[str(k) for k in n])
    size.xaxis.set_minor_locator(NullLocator())
    size.yaxis.set_minor_formatter("{x:g}")
    legend(size)
    time.plot(DURATIONS, 100 * measured["duration_errors"].T, color=CHANNELS[0], alpha=0.4)
    time.plot(DURATIONS, 100 * measured["duration_errors"].mean(0), "o-", color=CHANNELS[0])
    time.set(xlabel="sequence length $T$", ylabel="relative error (%)", xscale="log")
    time.set_ylim(bottom=0)
    names = (r"sigmoid, $|x| \leq 1$", rf"sigmoid, $|z| \leq {RANGE:g}$", r"ReLU, $|x| \leq 1$")
    for name, row, colour in zip(names, 100 * measured["decay_errors"].T, CHANNELS, strict=False):
        decay.plot(1 - np.array(DECAYS), row, "o-", color=colour, label=name)
    limit = 1 / (1 + measured["capacity"])
    decay.axvline(limit, color=THEORY, linestyle=":", label="largest output")
    decay.set(xlabel=r"decay $\gamma$", ylabel="relative error (%)", xscale="log", yscale="log")
    decay.set_xticks(1 - np.array(DECAYS), labels=[f"{g:g}" for g in DECAYS])
    decay.minorticks_off()
    decay.invert_xaxis()
    legend(decay)
    return drawing


FIGURE = Figure(
    id="sigmoid",
    order=62,
    title="Accuracy of sigmoid networks",
    section="Non-linear activation: case of a single channel",
    caption=r"Not in the paper as a figure. Relative error on structured sequences, one channel, proxy loss. A: "
    r"against the number of neurons, with slope and threshold in proportion to the size of the currents; each seed and "
    r"the mean. B: against the length of the sequence, each network of Table 1 and the mean. C: against the decay, for "
    r"networks trained for all integrals of inputs up to 1, for the same range of $z$ at all decays, and for ReLU; "
    r"dotted: the decay beyond which no activities between 0 and 1 can make the largest integral.",
    runs=lambda profile: [
        *(s for rows in (by_size(profile), by_decay(profile)) for row in rows for s in row),
        *networks(profile, "sigmoid", "proxy", 1),
    ],
    measure=measure,
    claims=claims,
    draw=draw,
)
