"""Specifications that are made of flags."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rni.cli.lists import numbers, value
from rni.core.errors import InputError

FLAGS = "decays|scales|bounds|neurons|activation|leak|seed"
PLACE = re.compile(rf"^(Integration\.|(task|network|training)\.(loss\.)?)?(?=({FLAGS})\b)")


def without_training(
    decays: str | None, scales: str | None, neurons: int, activation: str, seed: int, leak: float = 1.0
) -> dict[str, Any]:
    """Plain data: the task and the network of a design, as they would be for a training with this seed."""
    lists = {"decays": decays, "scales": scales}
    task = {name: numbers(f"--{name}", text) for name, text in lists.items() if text is not None}
    network = {"neurons": neurons, "activation": value(activation), "weights": "lowrank", "precision": "float64"}
    return {"seed": seed, "task": task, "network": network | {"leak": leak}}


@contextmanager
def said_of_flags() -> Iterator[None]:
    """What is wrong with a field of a specification is said of the flag that it was made of."""
    try:
        yield
    except InputError as error:
        raise InputError(*(PLACE.sub("--", line) for line in str(error).splitlines())) from None
