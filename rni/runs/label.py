"""A run in one line."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any


def label(specification: dict[str, Any]) -> str:
    """From the plain data of its specification, as a file has it: torch is not needed."""
    network, training, task = (specification[name] for name in ("network", "training", "task"))
    parts = (
        f"{network['activation']['name']} n={network['neurons']}",
        "decays " + " ".join(f"{decay:g}" for decay in task["decays"][:4]),
        "designed" if specification.get("kind") == "design" else _training(training),
        f"seed {specification['seed']}",
    )
    return ", ".join(parts)


def apart(specifications: Sequence[dict[str, Any] | None]) -> list[str]:
    """For each run, its fields that differ among those of the same label: what a line in a list does not say yet."""
    labels = [label(specification) if specification else "" for specification in specifications]
    flat = [dict(_fields(specification)) if specification else {} for specification in specifications]
    runs, values = Counter(labels), defaultdict(Counter)  # of a label, of a field's values in it
    for each, fields in zip(labels, flat, strict=True):
        for name, value in fields.items():
            values[each, name][value] += 1
    return [
        ", ".join(f"{name} {value}" for name, value in fields.items() if values[each, name][value] < runs[each])
        for each, fields in zip(labels, flat, strict=True)
    ]


def _fields(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """By dotted name."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", " ".join(map(str, value)) if isinstance(value, list) else str(value)


def field(specification: dict[str, Any], name: str) -> Any:
    """A field of plain data by its full name, or the last part of it; None where there is no such field."""
    *path, last = name.split(".")
    place: Any = specification
    for each in path:
        place = place.get(each) if isinstance(place, dict) else None
    training = specification.get("training", {})
    places = [place] if path else [specification, *(specification.get(part) for part in ("task", "network")), training]
    places += [training.get("loss")] if path in ([], ["training"]) and isinstance(training, dict) else []
    return next((table[last] for table in places if isinstance(table, dict) and last in table), None)


def _training(training: dict[str, Any]) -> str:
    loss = training["loss"]
    duration = f"T={loss['duration']} " if "duration" in loss else ""
    return f"{duration}{loss['name']} {training['optimizer']} {training['steps']} steps"
