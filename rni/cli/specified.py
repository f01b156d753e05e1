"""Runs that are made of flags."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rni.cli.lists import numbers, value
from rni.core.errors import InputError


def task_table(decays: str | None, scales: str | None) -> dict[str, Any]:
    """Return the table of a task from the flags --decays and --scales."""
    texts = {"decays": decays, "scales": scales}
    return {name: numbers(f"--{name}", text) for name, text in texts.items() if text is not None}


def design_table(
    decays: str | None, scales: str | None, neurons: int, activation: str, seed: int, leak: float = 1.0
) -> dict[str, Any]:
    """Return the configuration of a design from flags."""
    network = {"neurons": neurons, "activation": value(activation), "leak": leak}
    return {"kind": "design", "seed": seed, "task": task_table(decays, scales), "network": network}


@contextmanager
def fields_are_flags() -> Iterator[None]:
    """In errors about a field that was given as a flag, name the flag.

    The field ``task.decays.0`` is the first value of --decays, and ``network.activation.slope`` a part of --activation.
    """
    try:
        yield
    except InputError as error:
        if not error.field or error.field.startswith("--"):
            raise
        parts = [part for part in error.field.split(".") if part not in ("task", "network", "training", "loss")]
        name = (parts[0] if parts else error.field).replace("_", "-")
        raise InputError(f"--{name}", error.value, error.allowed, problem=error.problem, hint=error.hint) from None
