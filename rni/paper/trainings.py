"""The networks of section 5 that several figures and Table 1 share: activation, loss and channels say how to train."""

from typing import Any, Literal

from rni.paper.figure import Profile
from rni.runs.specification import Specification

DECAYS = {
    ("relu", "batch"): (0.995, 0.993, 0.992),
    ("relu", "proxy"): (0.8, 0.75, 0.77, 0.76, 0.79),
    ("sigmoid", "batch"): (0.8, 0.75, 0.77),
    ("sigmoid", "proxy"): (0.8, 0.75, 0.77, 0.76, 0.79),
}


def networks(
    profile: Profile,
    activation: Literal["relu", "sigmoid"],
    loss: Literal["batch", "proxy"],
    channels: int,
    seeds: int = 8,
) -> list[Specification]:
    """One network for each seed, n neurons, scale 1, from W = 0."""
    raw: dict[str, Any] = {
        "task": {"decays": DECAYS[activation, loss][:channels]},
        "network": {"neurons": profile.neurons, "activation": activation},
        "training": {"loss": loss} | _training(profile, activation, loss, channels),
    }
    return [Specification.parse(raw | {"seed": seed}) for seed in range(profile.seeds(seeds))]


def _training(profile: Profile, activation: str, loss: str, channels: int) -> dict[str, Any]:
    if activation == "relu" and loss == "batch":
        return {}
    if activation == "relu":
        return {"steps": 2000}
    adam = {"optimizer": "adam", "learning_rate": 0.5 / profile.neurons, "schedule": "cosine", "steps": 2500}
    return adam if loss == "proxy" else adam | {"duration": 10, "batch": 64}
