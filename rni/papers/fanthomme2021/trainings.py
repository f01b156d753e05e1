"""Trainings that several figures share.

`networks` and `by_the_authors` make the networks of section 5 and Table 1; `proxy_descent` makes the descents on the
exact ReLU proxy loss of the appendix (Figs 16 to 18). All figures make their runs with `training_run` and `changed`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from rni.papers import Profile
from rni.runs.run import TrainRun, override, parse_run

DECAYS: dict[Any, dict[int, tuple[float, ...]]] = {
    ("relu", "batch"): {1: (0.995,), 2: (0.995, 0.993), 3: (0.995, 0.995, 0.992), 4: (0.995, 0.995, 0.992, 0.992)},
    ("sigmoid", "batch"): {1: (0.8,), 2: (0.8, 0.75), 3: (0.8, 0.8, 0.75), 4: (0.8, 0.8, 0.75, 0.75)},
    "proxy": {1: (0.8,), 2: (0.8, 0.75), 3: (0.8, 0.77, 0.75), 5: (0.8, 0.77, 0.75, 0.76, 0.79)},
}


Run = TrainRun


def training_run(
    decays: Sequence[float],
    network: Mapping[str, Any],
    *,
    scales: Sequence[float] | None = None,
    seed: int = 0,
    **training: Any,
) -> Run:
    """Return a training run. Fields that are not given have their defaults.

    Parameters
    ----------
    decays, scales : sequence of float
        The task. The default of each scale is 1.
    network : mapping
        Fields of the network.
    seed : int
    **training
        Fields of the training.
    """
    task = {"decays": decays} if scales is None else {"decays": decays, "scales": scales}
    return cast(Run, parse_run({"seed": seed, "task": task, "network": network, "training": training}))


def changed(run: Run, fields: dict[str, Any]) -> Run:
    """Return a run with some fields changed. The names of nested fields have dots."""
    return cast(Run, parse_run(override(run.to_dict(), fields)))


def networks(
    profile: Profile,
    activation: str,
    loss: str,
    channels: int,
    seeds: int = 8,
    few: int | None = None,
    quick: int = 2,
) -> list[Run]:
    """Return networks with scale 1, trained from W = 0 by our own protocol, one for each seed."""
    decays = DECAYS["proxy" if loss == "proxy" else (activation, loss)][channels]
    stays_low = activation == "relu" or channels == 1
    weights = factored(profile) if stays_low else "dense"
    network = {"neurons": profile.neurons, "activation": activation, "weights": weights}
    training: dict[str, Any] = {"loss": loss} | _training(profile, activation, loss, channels)
    return [training_run(decays, network, seed=seed, **training) for seed in range(profile.seeds(seeds, few, quick))]


def of_a_cell(profile: Profile, activation: str, loss: str, channels: int) -> list[Run]:
    """Return the networks of a cell of Table 1, trained by our own protocol."""
    return networks(profile, activation, loss, channels, few=2, quick=1)


def factored(profile: Profile) -> str:
    """Return the form of W where its rank stays low: a product of two factors is faster for 1000 neurons or more."""
    return "lowrank" if profile.neurons >= 1000 else "dense"


def _training(profile: Profile, activation: str, loss: str, channels: int) -> dict[str, Any]:
    """Return the fields of the training that differ from the defaults.

    ReLU networks can integrate exactly, so plain gradient descent with few points or sequences converges. Sigmoid
    networks cannot. On the proxy loss of several channels, Adam with a rate that falls to 0 gets further than gradient
    descent in the same time. On the batch loss, gradient descent leaves less of the currents outside of the manifold.
    There the decoders are trained too, as the authors do, and several channels are trained on sequences of 5 steps,
    which reach larger integrals.
    """
    if activation == "relu" and loss == "batch":
        steps = 2500 if profile.quick else 3500 if channels <= 2 else 3000
        return {"steps": steps, "batch": 16 if channels == 1 else 32}
    if activation == "relu":
        return {"stop_loss": 1e-9} if channels == 1 else {"points": 32, "steps": 1500}
    if loss == "batch" and channels == 1:
        steps = 3500 if profile.quick else 5000
        return {"learning_rate": 0.25 / 27, "schedule": "warmup", "train": "recurrent+decoders", "steps": steps}
    if loss == "batch":
        batch = 16 if channels == 2 else 32
        steps = 2000 if profile.quick else 3000
        longer = {"duration": 5, "steps": steps, "batch": batch, "learning_rate": 0.5 / 125}
        return longer | {"train": "recurrent+decoders"}
    points = 64 if profile.quick and channels == 5 else 32  # few neurons need more
    falling = {"points": points, "schedule": "cosine", "steps": 4000 if channels == 5 else 2000}
    if channels == 1:
        return falling | {"learning_rate": 0.02}
    return falling | {"optimizer": "adam", "learning_rate": 0.5 / profile.neurons}


# Variance of the gradient after 50, 300 and 1000 steps, over that of 4096 independent points: ReLU .02, 2.6, 5 (D = 2),
# .2, 11, 11 (D = 3), 2, 12, 16 (D = 5); sigmoids .02, .2, 4 (D = 1), .4, .7, .6 (D = 2), .5, 1.3, 1.7 (D = 3),
# .8, .7, .4 (D = 5).
POINTS = {
    ("relu", 2): 512,
    ("relu", 3): 256,
    ("relu", 5): 256,
    ("sigmoid", 1): 64,
    ("sigmoid", 2): 512,
    ("sigmoid", 3): 128,
    ("sigmoid", 5): 256,
}


def by_the_authors(
    profile: Profile,
    activation: str,
    loss: str,
    channels: int,
    seeds: int = 8,
    few: int | None = 1,
    points: int | None = None,
) -> list[Run]:
    """Return the networks of Table 1, trained by the authors' protocol, with fewer points and sequences.

    The points and sequences are evenly spread. `points` overrides their number. As in the authors' program, the network
    of the lowest loss is kept.
    """
    shape: dict[str, Any] = {"name": "sigmoid", "slope": 5, "threshold": 0}
    decays = DECAYS["proxy" if loss == "proxy" else (activation, loss)][channels]
    training = _authors_training(profile, activation, loss, channels)
    training |= {"loss": loss, "keep": "best"} | ({} if points is None else {"points": points})
    stays_low = loss == "batch" and "optimizer" not in training
    if activation == "sigmoid":
        training |= {"train": "recurrent+decoders"}
    network = {
        "neurons": profile.neurons,
        "activation": shape if (activation, loss) == ("sigmoid", "proxy") and channels > 2 else activation,
        "weights": factored(profile) if stays_low else "dense",
    }
    return [training_run(decays, network, seed=seed, **training) for seed in range(profile.seeds(seeds, few))]


def _authors_training(profile: Profile, activation: str, loss: str, channels: int) -> dict[str, Any]:
    """Return the fields of the authors' training.

    For gradient descent the learning rate is the paper's divided by $T^3$, because the authors normalise the batch
    loss.

    The authors' program draws 4096 independent points, for two channels too, although its settings say 256. `POINTS`
    has fewer points, spread evenly so that the noise of the gradients is as large as theirs, or up to fifteen times as
    large for ReLU. With 512 evenly spread points, networks of two channels reach the r of 4096 independent points:
    0.0515 and 0.0519 for ReLU, 0.094 and 0.088 for sigmoids, with one training each.
    """
    if loss == "batch" and (activation, channels) == ("sigmoid", 2):
        return {"duration": 10, "batch": 8, "optimizer": "adam", "learning_rate": 5e-5, "steps": 10000}
    if loss == "batch":
        steps = 5000 if activation == "relu" else 10000
        batch = 128 if channels == 2 else 32  # noise in the first steps stays in W: r = .0169, .0155 with 32, 64
        return {"duration": 3, "batch": batch, "learning_rate": 0.5 / 27, "steps": steps}
    if (activation, channels) == ("relu", 1):
        return {"optimizer": "adam", "learning_rate": 1e-4, "steps": 1000, "stop_loss": 1e-9}
    steps = {1: 5000, 2: 1000, 3: 5000, 5: 5000}[channels] * (2 if activation == "sigmoid" and channels > 2 else 1)
    return {
        "points": POINTS[activation, channels],
        "sampling": "even" if (activation, channels) == ("sigmoid", 2) else "folded",
        "bounds": [5.0 if channels <= 2 else 5.1] * channels,
        "current_weight": 1 / profile.neurons,
        "optimizer": "adam",
        "learning_rate": 5e-4,
        "steps": steps,
    }


PROXY_DECAY = 0.995
PROXY_SCALES = (0.05, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0)


def proxy_scales(profile: Profile) -> tuple[float, ...]:
    """Return the scales of Figs 16 and 17. The quick profile omits the outermost, which need the most steps."""
    return PROXY_SCALES[1:-1] if profile.quick else PROXY_SCALES


def proxy_descents(scales: Sequence[float], neurons: int, seeds: int) -> list[list[Run]]:
    """Return a row of `proxy_descent` for each scale, with a column for each seed."""
    return [[proxy_descent(scale, neurons, seed) for seed in range(seeds)] for scale in scales]


def proxy_descent(scale: float, neurons: int, seed: int) -> Run:
    r"""Return a descent on the exact ReLU proxy loss from W = 0 to a loss of 1e-9.

    The largest eigenvalue of the Hessian is below $12\,(1 + s^2)$.
    """
    rate = 0.16 / (1 + scale**2)
    network = {"neurons": neurons, "weights": "lowrank", "precision": "float64"}
    training = {"loss": "proxy", "learning_rate": rate, "steps": 200_000, "stop_loss": 1e-9}
    return training_run([PROXY_DECAY], network, scales=[scale], seed=seed, **training)
