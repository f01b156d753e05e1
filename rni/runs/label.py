"""A run in one line, from the plain data of its specification."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def label(specification: Mapping[str, Any]) -> str:
    """Return activation, neurons, decays, training and seed of a run. torch is not needed."""
    network, training, task = (specification[name] for name in ("network", "training", "task"))
    loss = training["loss"]
    duration = f"T={loss['duration']} " if "duration" in loss else ""
    trained = f"{duration}{loss['name']} {training['optimizer']} {training['steps']} steps"
    parts = (
        f"{network['activation']['name']} n={network['neurons']}",
        "decays " + " ".join(f"{decay:g}" for decay in task["decays"][:4]),
        "designed" if specification.get("kind") == "design" else trained,
        f"seed {specification['seed']}",
    )
    return ", ".join(parts)


def distinctions(labels: Sequence[str], specifications: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, for each run, those of its fields that differ between runs with the same label."""
    same_label: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(labels):
        same_label[text].append(index)
    found = [""] * len(labels)
    for indices in same_label.values():
        if len(indices) == 1:
            continue
        # Most sections are the same in all of these runs. Comparing them first saves most of the time.
        runs = [specifications[index] for index in indices]
        same = [name for name, value in runs[0].items() if all(name in run and run[name] == value for run in runs)]
        fields = [dict(_fields({name: value for name, value in run.items() if name not in same})) for run in runs]
        counts = Counter(item for of_run in fields for item in of_run.items())
        for index, of_run in zip(indices, fields, strict=True):
            differing = [f"{name} {value}" for (name, value) in of_run.items() if counts[name, value] < len(indices)]
            found[index] = ", ".join(differing)
    return found


def _fields(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield fields with their dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", " ".join(map(str, value)) if isinstance(value, list) else str(value)
