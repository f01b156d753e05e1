"""Which trainings of a ReLU network generalise, and what training the vectors changes."""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.analysis import current_ratio, linear_map, mixing, relative_error, svd
from rni.losses import BatchLoss, CustomLoss, ReLUProxyLoss
from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.figures import fig3
from rni.papers.fanthomme2021.measuring import first_below, linear_part, stack
from rni.papers.fanthomme2021.trainings import Run, factored, networks, training_run
from rni.plots.style import CHANNELS, SEEDS, panels
from rni.tasks.inputs import white_noise
from rni.tasks.integration import Integration
from rni.training import train
from rni.weights import Dense
from rni.weights.vectors import independent

DURATIONS = (2, 3, 4, 10)
OPTIMIZERS = ("sgd", "adam")
LEVELS = (0.1, 1e-2, 1e-3, 1e-4)  # parts of the loss of zero outputs, up to which steps are counted
TRAINED = ("recurrent", "recurrent+decoders", "all")
RATES = (2, 3, 1)  # learning rates over the authors'; the quick profile has the first two
TWO = (0.995, 0.993)
RADIUS = 0.1
CHANNELS_TRAINED = (1, 2, 3, 4)  # the quick profile has the first two, because more channels need longer trainings


def specification(profile: Profile, weights: str = "dense", seed: int = 0, **training: Any) -> Run:
    """Return a ReLU network of one channel with decay 0.995, trained from W = 0."""
    network = {"neurons": profile.neurons, "weights": weights}
    return training_run([0.995], network, seed=seed, **training)


def by_duration(profile: Profile) -> dict[str, dict[int, Run]]:
    """Return the runs by optimizer and duration.

    All steps of Adam have the same size in every weight. Its rate is therefore proportional to 1 / n and has to fall to
    0. For durations above three it may be larger, and fewer steps are needed.
    """
    patient = 2500 if profile.quick else 5000
    adam = {3: (0.1, patient), 4: (0.3, 1500), 10: (0.3, 1000)}  # n times the rate, and steps
    batch = {t: 32 if t < 10 else 16 for t in DURATIONS}
    by_descent, by_adam = {}, {}
    for t in DURATIONS:
        by_descent[t] = specification(profile, factored(profile), duration=t, batch=batch[t], steps=patient)
    for t, (rate, steps) in adam.items():
        training = {"optimizer": "adam", "learning_rate": rate / profile.neurons, "schedule": "cosine", "steps": steps}
        by_adam[t] = specification(profile, duration=t, batch=batch[t], **training)
    return {"sgd": by_descent, "adam": by_adam}


def by_trained(profile: Profile) -> dict[str, list[list[Run]]]:
    """Return the runs by trained parameters: a row for each rate, a column for each seed.

    Trained vectors grow, and the curvature with them. Beyond four times the authors' rate descent may diverge.
    """
    seeds = range(1 if profile.quick else 3)
    rates = [0.5 * factor / 27 for factor in (RATES[:2] if profile.quick else RATES)]

    def run(trained: str, rate: float, seed: int) -> Run:
        training = {"train": trained, "learning_rate": rate, "schedule": "warmup", "batch": 16, "steps": 1000}
        return specification(profile, factored(profile), seed, **training)

    return {trained: [[run(trained, rate, seed) for seed in seeds] for rate in rates] for trained in TRAINED}


def two_channels(profile: Profile) -> dict[str, Run]:
    """Return networks of two channels, trained on batches, by start and optimizer."""
    n, steps = profile.neurons, 2500 if profile.quick else 3500
    others: dict[str, tuple[float, dict[str, Any]]] = {
        "null, Adam": (0.0, {"optimizer": "adam", "learning_rate": 0.1 / n, "schedule": "cosine", "steps": 2000}),
        f"radius {RADIUS}, GD": (RADIUS, {"steps": steps, "batch": 32}),
    }
    runs = {"null, GD": networks(profile, "relu", "batch", 2, 1)[0]}
    for name, (radius, training) in others.items():
        runs[name] = training_run(TWO, {"neurons": n, "initial_radius": radius}, **training)
    return runs


def of_channels(profile: Profile) -> list[Run]:
    """Return networks of 1 to 4 channels, trained on batches: those of Table 1 and Fig 7."""
    several = CHANNELS_TRAINED[:2] if profile.quick else CHANNELS_TRAINED
    return [networks(profile, "relu", "batch", channels, 1)[0] for channels in several]


@torch.no_grad()
def examine(net: Network) -> dict[str, float]:
    """Measure error, current manifold, spectrum, selectivity and bulk of a network, on white noise of 200 steps."""
    x = white_noise(16, 200, net.channels, torch.Generator().manual_seed(0)).to(net.dtype)
    left, values, right = svd(net.recurrent)
    count = net.channels
    currents, y = net.currents(x).flatten(0, 1).double(), net.task.targets(x).flatten(0, 1).double()
    seen = (values[count:, None] * (right[:, count:].T @ net.encoders)).norm()  # |bulk of W, on the encoders|
    blind = values[count:].norm() * (count / net.neurons) ** 0.5  # the same for random unit vectors
    return {
        "error": float(relative_error(net, x).max()),
        "ratio": current_ratio(net, left[:, :count], x),
        "gap": float(values[count - 1] / values[count]),
        "explained": linear_part(currents, y),
        "mixing": float(mixing(linear_map(currents, y).matrix).mean) if count > 1 else np.nan,
        "bulk": float(values[count:].norm() / values.norm()),
        "bulk_on_encoders": float(seen / blind),
    }


def proxy_as_a_term(steps: int = 400) -> np.ndarray:
    """Return relative errors after a short training on batches, without and with the proxy as a term of the loss."""
    task, x = Integration([0.995]), white_noise(16, 200, 1, torch.Generator().manual_seed(0))
    batch, proxy, errors = BatchLoss(task, 3, batch=16), ReLUProxyLoss(task), []
    for weight in (0.0, 1.0):
        vectors = independent(150, 1, torch.Generator().manual_seed(0))
        net = Network(task, *vectors, Dense(torch.zeros(150, 150)), "relu")
        loss = CustomLoss(lambda net, inputs, weight=weight: batch(net, inputs) + weight * proxy(net), batch.draw)
        train(net, loss, learning_rate=0.03, steps=steps, generator=torch.Generator().manual_seed(1))
        errors.append(float(relative_error(net, x)))
    return np.array(errors)


def runs(profile: Profile) -> list[Run]:
    return [
        *(s for row in by_duration(profile).values() for s in row.values()),
        *(s for rows in by_trained(profile).values() for row in rows for s in row),
        *two_channels(profile).values(),
        *of_channels(profile),
        *fig3.specifications(profile, "proxy")[:1],
    ]


def measure(results: Results, profile: Profile) -> Measured:
    x = white_noise(16, 400, 1, torch.Generator().manual_seed(0))
    errors = {
        f"errors_{optimizer}": np.array([[t, float(relative_error(results[s].network, x)[0])] for t, s in row.items()])
        for optimizer, row in by_duration(profile).items()
    }
    silent = specification(profile).loss().zero_output_loss()
    trained = {name: [[results[s] for s in row] for row in rows] for name, rows in by_trained(profile).items()}
    steps = {  # (rates, seeds, levels)
        name: np.array([[[first_below(np.array(r.losses) / silent, x) for x in LEVELS] for r in row] for row in rows])
        for name, rows in trained.items()
    }
    usual = [rows[0][0] for rows in trained.values()]
    vectors_too = [examine(result.network) for result in usual]
    of_two = [examine(results[s].network) for s in two_channels(profile).values()]
    several = [examine(results[s].network) for s in of_channels(profile)]
    minimiser = examine(results[fig3.specifications(profile, "proxy")[0]].network)
    return {
        **errors,  # (durations, 2): each with its error
        "curves": np.stack([np.array(result.losses) for result in usual]) / silent,
        "steps": np.array([each.mean(1).min(0) for each in steps.values()]),  # the best rate's, (trained, levels)
        **stack(vectors_too, "trained_"),
        **stack(of_two, "two_"),
        **stack(several, "several_"),
        **{f"proxy_{key}": value for key, value in minimiser.items()},
        "term_errors": proxy_as_a_term(),
    }


OURS = "small batches and a learning rate that warms up to four times the authors', as in Table 1 and Fig 7"


def _by_channels(values: np.ndarray) -> dict[str, float]:
    return {f"D = {d}": float(value) for d, value in zip(CHANNELS_TRAINED, values, strict=False)}


def claims(measured: Measured) -> list[Claim]:
    null, adam, random = (
        {key: measured[f"two_{key}"][k] for key in ("error", "ratio", "gap", "mixing", "bulk", "bulk_on_encoders")}
        for k in range(3)
    )
    named = {f"{o} T={t:.0f}": error for o in OPTIMIZERS for t, error in measured[f"errors_{o}"]}
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
            settings="small quasi-random batches, a learning rate that warms up to four times the authors'; Adam's is "
            "0.1/n for T = 3 and 0.3/n for more, falling to 0, with 5000 steps (2500 in the quick profile) for T = 3, "
            "1500 and 1000 for T = 4 and 10",
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
            id="relu.trained-decoders-faster",
            where="Section 2, learning procedure",
            statement="Training the decoders along with the weights speeds convergence up.",
            criterion="fewer steps until the loss is below 0.1, 0.01, 0.001 and 0.0001 of a silent network's, at the "
            "best learning rate, the same ones for each; the quotients of the steps are given, for all vectors too",
            expected="below 1",
            measured={
                f"{name}, {level:g}": part
                for name, row in zip(TRAINED[1:], measured["steps"][1:] / measured["steps"][0], strict=True)
                for level, part in zip(LEVELS, row, strict=True)
            },
            holds=lambda m: all(m[f"recurrent+decoders, {level:g}"] < 1 for level in LEVELS),
            settings="batches of 16 quasi-random sequences; one to three times the authors' learning rate",
            revised="The first criterion was one level, 0.0001, at one learning rate for one seed, and for all vectors "
            "as well.",
            because="Training the decoders is faster until the loss is a thousandth of that of a silent network, and "
            "slower from there.",
        ),
        Claim(
            id="relu.trained-vectors-same-kind",
            where="Section 2, learning procedure",
            statement="The nature of W and the way the integral is represented stay the same when encoders and "
            "decoders are trained too.",
            criterion="one dominant singular value (ten times the next), currents along it (r < 0.1) and linear in the "
            "integral (0.9 of their square explained) in each case",
            expected="qualitatively unchanged",
            measured={
                "smallest gap": measured["trained_gap"].min(),
                "largest r": measured["trained_ratio"].max(),
                "least explained": measured["trained_explained"].min(),
            },
            holds=lambda m: m["smallest gap"] > 10 and m["largest r"] < 0.1 and m["least explained"] >= 0.9,
            settings="batches of 16 quasi-random sequences, 1000 steps",
            revised="The first limit was 0.98 of the squared currents. With all vectors trained 0.94 is measured.",
        ),
        Claim(
            id="relu.several-channels",
            where="Section 5, currents of ReLU networks",
            statement="Descent on the batch loss gives networks that perform several integrations with excellent "
            "accuracy.",
            criterion="relative error of each channel below 5 % over 200 steps of white noise, D = 1 and 2, and 3 and "
            "4 but in the quick profile",
            expected="excellent",
            measured=_by_channels(measured["several_error"]),
            holds=lambda m: max(m.values()) < 0.05,
            settings=OURS,
            revised="D = 3 and 4 were first judged in the quick profile too, where they had 14.6 and 29 %.",
            because="Three and four channels need longer trainings. With 1000 neurons and four times the steps, 12 000 "
            "instead of 3000, the error is 2.8 % for D = 3, and falls from 16.8 to 14.6 % only for D = 4.",
        ),
        Claim(
            id="relu.batch-and-proxy",
            where="Section 6, summary",
            statement="Networks trained on batches behave similarly to those that minimise the proxy loss, in "
            "performance and in representation.",
            criterion="D = 1: errors below 5 % over 200 steps, one singular value ten times the next, and currents "
            "that are linear in the integral (0.98 of their square explained) with either loss",
            expected="alike",
            measured={
                f"{key}, {loss}": value
                for key in ("error", "gap", "explained")
                for loss, value in (("batch", measured[f"several_{key}"][0]), ("proxy", measured[f"proxy_{key}"]))
            },
            holds=lambda m: all(
                m[f"error, {loss}"] < 0.05 and m[f"gap, {loss}"] > 10 and m[f"explained, {loss}"] >= 0.98
                for loss in ("batch", "proxy")
            ),
            settings=OURS,
        ),
        Claim(
            id="relu.adam",
            where="Section 2, learning procedure",
            statement="Adam leads to the same results, D = 2.",
            criterion="two large singular values (the third is below half of the second), r < 0.5, and a mean mixing "
            "index within a factor 1.5 of descent's",
            expected="robust",
            measured={
                f"{key}, {name}": m[key]
                for key in ("gap", "ratio", "mixing")
                for name, m in (("GD", null), ("Adam", adam))
            },
            holds=lambda m: (
                m["gap, Adam"] > 2 and m["ratio, Adam"] < 0.5 and 1 / 1.5 < m["mixing, Adam"] / m["mixing, GD"] < 1.5
            ),
            settings="Adam's rate 0.1/n, falling to 0",
        ),
        Claim(
            id="relu.initial-weights",
            where="Section 6, nature of representations",
            statement="The low-dimensional representation is robust to the initial W.",
            criterion=f"from a random W of radius {RADIUS}, D = 2: two large singular values (the third is below half "
            "of the second) and r < 0.5; beside it the error over 200 steps",
            expected="robust",
            measured={key: random[key] for key in ("gap", "ratio", "error")},
            holds=lambda m: m["gap"] > 2 and m["ratio"] < 0.5,
            settings="the authors start from W = 0; the error is not at its end: 14.7 % after 3500 steps, 11.4 % after "
            "7000, the singular values and r within 5 %",
        ),
        Claim(
            id="relu.bulk-influenced",
            where="Section 5, sigmoidal units",
            statement="The bulk of small singular values is influenced by the initial W and by the algorithm.",
            criterion="its part of the norm of W, beyond the D leading ones, is at least three times as large with "
            "Adam, and from a random W, as with descent from W = 0",
            expected="influenced",
            measured={"null, GD": null["bulk"], "null, Adam": adam["bulk"], "random, GD": random["bulk"]},
            holds=lambda m: min(m["null, Adam"], m["random, GD"]) > 3 * m["null, GD"],
            settings="ReLU networks, D = 2; the sentence of the paper is about sigmoids",
        ),
        Claim(
            id="relu.bulk-unseen",
            where="Section 5, before the definition of r",
            statement="The bulk is not negligible, but it does not show in the currents: its vectors may be orthogonal "
            "to the encoders.",
            criterion="from a random W: the bulk has a tenth of the norm of W or more, while r is below a tenth; "
            "beside it what the bulk makes of the encoders, relative to random vectors: 1 where it is blind to them, 0 "
            "where it is orthogonal",
            expected="not in contradiction",
            measured={"norm": random["bulk"], "r": random["ratio"], "on encoders": random["bulk_on_encoders"]},
            holds=lambda m: m["norm"] >= 0.1 and m["r"] < 0.1,
            settings="from a random W, which the authors mention",
        ),
        Claim(
            id="relu.proxy-term",
            where="Section 6, machine learning",
            statement="The proxy loss as a term of a task's loss facilitates training.",
            criterion="400 steps at one learning rate on batches of 16 sequences of three steps: the error over 200 "
            "steps is smaller with the proxy as a term, of weight 1, than without",
            expected="smaller",
            measured=dict(zip(("without", "with"), map(float, measured["term_errors"]), strict=True)),
            holds=lambda m: m["with"] < m["without"],
            settings="a suggestion of the paper; 150 neurons, the task is integration itself",
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, (durations, training, levels) = panels(3, width=3.8, height=3.3)
    for name, colour in zip(OPTIMIZERS, CHANNELS, strict=False):
        steps, errors = measured[f"errors_{name}"].T
        durations.plot(steps, 100 * errors, "o-", color=colour, label=name)
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
    training.set(xlabel=r"learning time $\tau$", ylabel="loss / silent loss", yscale="log")
    training.legend(frameon=False, title="trained")
    for name, steps, colour in zip(TRAINED, measured["steps"], SEEDS, strict=False):
        levels.plot(LEVELS, steps, "o-", color=colour, label=name)
    levels.set(xlabel="loss / silent loss", ylabel="steps to reach it, at the best rate", xscale="log", yscale="log")
    levels.invert_xaxis()
    return drawing


CAPTION = (
    "Not in the paper as a figure. A: error of ReLU networks over 400 steps of white noise against the duration of "
    "the sequences they were trained on. B: loss during training, averaged over 50 steps, when the recurrent weights "
    "alone, the decoders too, or all vectors are trained, at twice the authors' learning rates each. C: steps until "
    "the loss has fallen to a part of a silent network's, with the best of the three. Adam's rate is $0.1/n$, for "
    r"longer sequences $0.3/n$, falling to 0: at a constant $5 \cdot 10^{-4}$ its networks drift."
)
