"""The accuracy of sigmoid networks, against the number of neurons, the length of the sequence and the decay."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import LogLocator, NullLocator
from torch import Tensor

from rni.designs import design
from rni.networks.accuracy import error_by_duration, relative_error
from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.trainings import Run, by_the_authors, factored, of_a_cell, training_run
from rni.plots.style import CHANNELS, THEORY, legend, panels
from rni.tasks.inputs import bursts
from rni.tasks.integration import Integration

DURATIONS = (50, 100, 200, 500, 1000, 2000)
DECAYS = (0.7, 0.8, 0.9, 0.95, 0.99)
RANGE = 5.0  # range of z, the same for all decays: that of decay 0.8
SIZE = (
    "Four trainings each of 256, 512 and 1024 neurons err by 3.8, 3.0 and 2.5 % in the mean, an exponent of -0.31 ± "
    "0.11, with a factor of 1.7 or so between the best and the worst of each size."
)
TRAINED = (250, 500, 1000)  # neurons


def sizes(profile: Profile) -> tuple[int, ...]:
    """Return the numbers of neurons of the designs."""
    return (200, 300, 450) if profile.quick else (250, 500, 1000, 2000)


def by_size(profile: Profile) -> list[list[Run]]:
    """Return several seeds of the authors' training for each size, as in Table 1. The quick profile has none."""
    if profile.quick:
        return []
    return [by_the_authors(replace(profile, neurons=n), "sigmoid", "proxy", 1, few=2) for n in TRAINED]


def by_decay(profile: Profile) -> list[list[Run]]:
    """Return, for each decay: batch loss; proxy for all integrals of inputs up to 1; proxy for a fixed range; ReLU."""
    adam = {"optimizer": "adam", "learning_rate": 0.5 / profile.neurons, "schedule": "cosine", "points": 32}
    adam |= {"steps": 1000 if profile.quick else 2000}
    descent = {"learning_rate": 0.5 / 27, "batch": 32, "train": "recurrent+decoders"}

    def specification(decay: float, activation: str, weights: str = "dense", **training: Any) -> Run:
        network = {"neurons": profile.neurons, "activation": activation, "weights": weights}
        training = {"loss": "proxy"} | training
        return training_run([decay], network, **training)

    return [
        [
            specification(
                decay, "sigmoid", factored(profile), **descent, loss="batch", steps=1500 if profile.quick else 3000
            ),
            specification(decay, "sigmoid", **adam),
            specification(decay, "sigmoid", **adam, bounds=[RANGE]),
            specification(decay, "relu", factored(profile), stop_loss=1e-9),
        ]
        for decay in DECAYS
    ]


def capacity(net: Network) -> float:
    r"""Return $\max_h d \cdot h = \sum_i \lfloor d_i \rfloor_+$ for activities up to 1, about $\sqrt{n / 2\pi}$."""
    return float(net.decoders.detach().clamp(min=0).sum())


def runs(profile: Profile) -> list[Run]:
    return [
        *(s for rows in (by_size(profile), by_decay(profile)) for row in rows for s in row),
        *of_a_cell(profile, "sigmoid", "proxy", 1),
    ]


@torch.no_grad()
def measure(results: Results, profile: Profile) -> Measured:
    x = bursts(32, 1000, 1, torch.Generator().manual_seed(0))

    def error(specification: Run, inputs: Tensor) -> float:
        return float(relative_error(results[specification].network, inputs))

    def within(decay: float) -> Tensor:
        return x * RANGE * (1 - decay)

    def designed(neurons: int, seed: int) -> float:
        return float(relative_error(design(Integration([0.8]), neurons, "sigmoid", seed=seed).network, x))

    def by_duration(specification: Run) -> list[float]:
        net = results[specification].network
        errors = error_by_duration(net.outputs(long), net.task.targets(long.double()), long)[:, 0]
        return [float(errors[duration - 1]) for duration in DURATIONS]

    long = bursts(16, DURATIONS[-1], 1, torch.Generator().manual_seed(1))
    proxies = of_a_cell(profile, "sigmoid", "proxy", 1)
    tried = list(zip(DECAYS, by_decay(profile), strict=True))
    return {
        "sizes": np.array(sizes(profile)),
        "trained_errors": np.array([[error(s, x) for s in row] for row in by_size(profile)]),  # (sizes, seeds)
        "design_errors": np.array([[designed(n, seed) for seed in range(profile.seeds(4))] for n in sizes(profile)]),
        "duration_errors": np.array([by_duration(s) for s in proxies]),
        "decay_errors": np.array(
            [
                [error(batch, x), error(full, x), error(same, within(decay)), error(relu, x)]
                for decay, (batch, full, same, relu) in tried
            ]
        ),
        "within_errors": np.array([error(batch, within(decay)) for decay, (batch, *_) in tried]),
        "capacity": capacity(results[tried[0][1][1]].network),
    }


def claims(measured: Measured) -> list[Claim]:
    sizes, trained, designs = measured["sizes"], measured["trained_errors"], measured["design_errors"]
    over_time = measured["duration_errors"].mean(0)
    law = _power(sizes, designs)
    by_decay = dict(zip(DECAYS, measured["decay_errors"], strict=True))
    return [
        Claim(
            id="sigmoid.size",
            where="Section 4.3",
            statement=r"The error of sigmoid networks falls with their size as $n^{-1/2}$.",
            criterion=f"fitted exponent over n = {TRAINED[0]} to {TRAINED[-1]} within 0.15 of -1/2, known to at "
            "most as much, in networks trained as the authors train them, the same sigmoid for all sizes",
            expected="-1/2",
            measured=_power(np.array(TRAINED), trained) if len(trained) else None,
            needs=f"trainings of {TRAINED[0]} to {TRAINED[-1]} neurons (--profile paper)",
            holds=lambda m: abs(m["exponent"] + 0.5) <= 0.15 >= m["its standard error"],
            settings="64 points in pairs, evenly spread, instead of 4096; 250 to 1000 neurons instead of 256 to 4096; "
            "two trainings of each size, eight in the full profile",
            revised="The first networks had slope and threshold in proportion to the size of the currents. The next "
            "were trained with a rate that falls to 0 and the weight 1 of the current term, until convergence. But "
            "with n² weights for n conditions per point there is no convergence: twice the steps reduced the error by "
            "a fifth to a third.",
            because=SIZE,
        ),
        Claim(
            id="sigmoid.size-designed",
            origin="ours",
            where="Section 4.3",
            statement=r"The error of designed sigmoid networks falls as $n^{-1/2}$.",
            criterion=f"fitted exponent over n = {sizes[0]} to {sizes[-1]} within 0.15 of -1/2, over all draws",
            expected="-1/2",
            # the criterion's margin is 0.15: a less certain exponent would decide nothing
            measured=law | {"largest error": designs.max()} if law["its standard error"] <= 0.15 else None,
            needs="an exponent known to within 0.15: designs of 250 to 2000 neurons (--profile paper)",
            holds=lambda m: abs(m["exponent"] + 0.5) <= 0.15,
            revised="This was part of the claim on trained networks, up to 1000 neurons, where it held because of the "
            "value for 250 neurons.",
            because="Designs err by 0.8 % with 250 neurons and by 0.4 % with 500, 1000 and 2000. More neurons do not "
            "reduce the error there.",
        ),
        Claim(
            id="sigmoid.duration",
            where="Section 4.3",
            statement="The error does not depend on the length T of the sequence, as long as the integral is in range.",
            criterion=f"mean errors at T = {', '.join(map(str, DURATIONS))} within a factor of 1.5",
            expected="irrespectively of T",
            measured={f"T = {duration}": e for duration, e in zip(DURATIONS, over_time, strict=True)},
            holds=lambda m: max(m.values()) <= 1.5 * min(m.values()),
            settings="our protocol of Table 1; structured sequences",
        ),
        Claim(
            id="sigmoid.decay",
            where="Section 4.3, sigmoidal activation",
            statement=r"Sigmoid networks trained on the batch loss perform poorly with $\gamma$ too close to 1.",
            criterion="the error at decay 0.99 is at least five times that at 0.8, for inputs up to 1, and at least "
            f"twice, for inputs that keep z in [-{RANGE:g}, {RANGE:g}]",
            expected="poor performance",
            measured={f"{decay:g}": row[0] for decay, row in by_decay.items()}
            | {f"{d:g}, z within {RANGE:g}": e for d, e in zip(DECAYS, measured["within_errors"], strict=True)},
            holds=lambda m: (
                m["0.99"] >= 5 * m["0.8"] and m[f"0.99, z within {RANGE:g}"] >= 2 * m[f"0.8, z within {RANGE:g}"]
            ),
            revised="The first criterion was for inputs up to 1 only, whose integrals at decay 0.99 exceed any output.",
            settings="batches of 32 and 3000 steps (1500 in the quick profile) instead of 2048 and 10000",
        ),
        Claim(
            id="sigmoid.decay-either-loss",
            where="Section 4.3, sigmoidal activation",
            statement="So the limit is not due to the proxy loss: it has the same.",
            criterion="for inputs up to 1 the error at decay 0.99 is at least five times that at 0.8, with both losses",
            expected="not entirely due to the choice of proxy loss",
            measured={
                f"{name}, {decay:g}": by_decay[decay][k]
                for k, name in enumerate(("batch", "proxy"))
                for decay in (0.8, 0.99)
            },
            holds=lambda m: all(m[f"{name}, 0.99"] >= 5 * m[f"{name}, 0.8"] for name in ("batch", "proxy")),
            settings="batches of 32 and 3000 steps (1500 in the quick profile) instead of 2048 and 10000; proxy: 32 "
            "points, weight 1 of the current term, fixed decoders, a rate that falls to 0",
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
                **{f"{decay:g}, z within {RANGE:g}": row[2] for decay, row in by_decay.items()},
                "0.99, ReLU": by_decay[0.99][3],
            },
            holds=lambda m: (
                m["largest integral"] > m["largest output"]
                and m[f"0.99, z within {RANGE:g}"] >= 2 * m[f"0.8, z within {RANGE:g}"]
                and m["0.99, ReLU"] < m[f"0.99, z within {RANGE:g}"] / 10
            ),
        ),
    ]


def _power(sizes: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """Return the exponent of the power law through values (sizes, seeds), and its standard error."""
    logarithms = np.repeat(np.log(sizes), values.shape[1]), np.log(values).ravel()
    (exponent, _), covariance = np.polyfit(*logarithms, 1, cov=True)
    return {"exponent": float(exponent), "its standard error": float(covariance[0, 0] ** 0.5)}


def draw(measured: Measured) -> Drawing:
    drawing, (size, time, decay) = panels(3, width=3.8, height=3.4)
    n, trained, designs = measured["sizes"], measured["trained_errors"], measured["design_errors"]
    shown = [("trained", np.array(TRAINED), trained, CHANNELS[1])] if len(trained) else []
    for name, neurons, errors, colour in [*shown, ("designed", n, designs, CHANNELS[2])]:
        size.plot(neurons, 100 * errors, ".", color=colour, markersize=4)
        size.plot(neurons, 100 * errors.mean(1), "o-", color=colour, label=name)
    first = trained if len(trained) else designs
    size.plot(n, 100 * first[0].mean() * (n / n[0]) ** -0.5, ":", color=THEORY, label=r"$n^{-1/2}$")
    size.set(xlabel="neurons $n$", ylabel="relative error (%)", xscale="log", yscale="log")
    size.set_xticks(n, labels=[str(k) for k in n])
    size.xaxis.set_minor_locator(NullLocator())
    size.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    size.yaxis.set_major_formatter("{x:g}")
    size.yaxis.set_minor_locator(NullLocator())
    legend(size)
    time.plot(DURATIONS, 100 * measured["duration_errors"].T, color=CHANNELS[0], alpha=0.4)
    time.plot(DURATIONS, 100 * measured["duration_errors"].mean(0), "o-", color=CHANNELS[0])
    time.set(xlabel="sequence length $T$", ylabel="relative error (%)", xscale="log")
    time.set_ylim(bottom=0)
    names = ("batch loss", "proxy loss", rf"proxy, $|z| \leq {RANGE:g}$", "ReLU")
    for name, row, colour in zip(names, 100 * measured["decay_errors"].T, CHANNELS, strict=False):
        decay.plot(1 - np.array(DECAYS), row, "o-", color=colour, label=name)
    within = 100 * measured["within_errors"]
    decay.plot(1 - np.array(DECAYS), within, "o--", color=CHANNELS[0], label=rf"batch, $|z| \leq {RANGE:g}$")
    limit = 1 / (1 + measured["capacity"])
    decay.axvline(limit, color=THEORY, linestyle=":", label="largest output")
    decay.set(xlabel=r"decay $\gamma$", ylabel="relative error (%)", xscale="log", yscale="log")
    decay.set_xticks(1 - np.array(DECAYS), labels=[f"{g:g}" for g in DECAYS])
    decay.minorticks_off()
    decay.invert_xaxis()
    legend(decay)
    return drawing


CAPTION = (
    r"Not in the paper as a figure. Relative error on structured sequences, one channel. A: against the number "
    r"of neurons, the same sigmoid for all: trained on the proxy loss as in Table 1 by the authors' protocol (not in "
    r"the quick profile), and designed instead; each seed and the mean. B: against the length of the sequence, each "
    r"network of Table 1 by our protocol and the mean. C: against the decay, for sigmoid networks trained on the "
    r"batch loss (dashed: with inputs that keep $z$ in the same range), on the proxy for all "
    r"integrals of inputs up to 1 and on the proxy for the same range of $z$ at all decays, and for ReLU; "
    r"dotted: the decay beyond which no activities between 0 and 1 can make the largest integral."
)
