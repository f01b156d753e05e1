"""A run in one line."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
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


def apart(specifications: Sequence[dict[str, Any] | None]) -> list[str]:
    """For each run, its fields that differ among those of the same label: what a line in a list does not say yet."""
    flat = [dict(_fields(specification)) if specification else {} for specification in specifications]
    alike: dict[str, list[dict[str, str]]] = defaultdict(list)
    for specification, fields in zip(specifications, flat, strict=True):
        if specification:
            alike[label(specification)].append(fields)

    def differing(specification: dict[str, Any] | None, fields: dict[str, str]) -> Iterator[str]:
        others = alike[label(specification)] if specification else []
        for name, value in fields.items():
            if any(other.get(name) != value for other in others):
                yield f"{name} {value}"

    return [", ".join(differing(*pair)) for pair in zip(specifications, flat, strict=True)]


def _fields(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """By dotted name."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", " ".join(map(str, value)) if isinstance(value, list) else str(value)
