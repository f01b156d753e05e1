"""The fields of a configuration and their defaults, for `rni train --help`: they are torch's neighbours elsewhere.

A test holds this table against the specification.
"""

from types import SimpleNamespace
from typing import Any

from typer.core import TyperCommand

FIELDS = {
    "": {"seed": ("0", "of all random numbers")},
    "task": {
        "decays": ("", "gamma, from 0 to 1, one for each channel: the one field without a default"),
        "scales": ("1", "s, one for each channel"),
    },
    "network": {
        "neurons": ("1000", "how many"),
        "activation": ("relu", "or linear, sigmoid, tanh, softplus, rectified_power"),
        "vectors": (
            "independent",
            "encoders and decoders; or overlap, orthonormal, supports (each on neurons of its own)",
        ),
        "weights": ("dense", "or lowrank, dale"),
        "leak": ("1", "alpha = dt / tau of a leaky network; 1 is none"),
        "initial_radius": ("0", "spectral radius of W at the start; 0: null initialisation, W = 0"),
        "initial_space": ("", "vectors: that W within the space of encoders and decoders; left open, anywhere"),
        "precision": ("float32", "or float64"),
    },
    "training": {
        "loss": ("batch", "outputs on sequences; or proxy: at single points, quicker; averaged: exact, for linear"),
        "optimizer": ("sgd", "or adam"),
        "learning_rate": ("", "left open, it is chosen for the loss"),
        "schedule": ("", "constant, warmup or cosine; left open, it is chosen with the rate"),
        "steps": ("5000", "how many"),
        "stop_loss": ("0", "loss at which to stop"),
        "keep": ("", "best: the network of the lowest loss; left open, the last one"),
        "train": ("recurrent", "or recurrent+decoders, decoders, all"),
        "threads": ("1", "that products run on"),
        "duration": ("3", "batch, averaged: length T of the sequences"),
        "correlation": ("", "batch, averaged: of the inputs at lags 0 to T - 1; left open, white noise"),
        "sampling": ("even", "batch, proxy: or independent; proxy: folded"),
        "batch": ("32", "batch: sequences a step"),
        "points": ("64", "proxy: integrals a step"),
        "bounds": ("", "proxy: largest integrals; left open, 1 / (1 - decay)"),
        "current_weight": ("1", "proxy: of the term of the currents"),
        "covariance": ("", "batch, averaged: of the inputs, a matrix in place of a correlation"),
        "inputs": ("", "batch, custom: MODULE:FUNCTION that draws the inputs"),
        "function": ("", "custom: MODULE:FUNCTION of the network, the loss"),
        "fixed": ("false", "proxy: the same points at every step"),
    },
}


class WithFields(TyperCommand):
    """A command that takes any field as a flag."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        for section, fields in FIELDS.items():
            with formatter.section(f"Fields, {section}" if section else "Fields, with their defaults"):
                rows = {f"{_flag(name)} {default}".rstrip(): words for name, (default, words) in fields.items()}
                formatter.write_dl(list(rows.items()))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        flags = {_flag(name): words for fields in FIELDS.values() for name, (_, words) in fields.items()}
        begun = {flag: words for flag, words in flags.items() if incomplete and flag.startswith(incomplete)}
        return super().shell_complete(ctx, incomplete) + [
            SimpleNamespace(value=flag, type="plain", help=words) for flag, words in begun.items()
        ]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
