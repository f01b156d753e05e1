"""A run in one line."""

from typing import Any


def label(specification: dict[str, Any]) -> str:
    """From the plain data of its specification, as a file has it: torch is not needed."""
    network, training, task = (specification[name] for name in ("network", "training", "task"))
    loss = training["loss"]
    duration = f"T={loss['duration']} " if "duration" in loss else ""
    parts = (
        f"{network['activation']['name']} n={network['neurons']}",
        "decays " + " ".join(f"{decay:g}" for decay in task["decays"][:4]),
        f"{duration}{loss['name']} {training['optimizer']} {training['steps']} steps",
        f"seed {specification['seed']}",
    )
    return ", ".join(parts)
