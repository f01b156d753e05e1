"""A run in one line."""

from typing import Any


def label(specification: dict[str, Any]) -> str:
    """From the plain data of its specification, as a file has it: torch is not needed."""
    network, training, task = (specification[name] for name in ("network", "training", "task"))
    loss = training["loss"]
    parts = (
        f"{network['activation']['name']} n={network['neurons']}",
        "decays " + " ".join(f"{decay:g}" for decay in task["decays"][:4]),
        " ".join([f"T={loss[name]}" for name in ("duration",) if name in loss] + [loss["name"], training["optimizer"]])
        + f" {training['steps']} steps",
        f"seed {specification['seed']}",
    )
    return ", ".join(parts)
