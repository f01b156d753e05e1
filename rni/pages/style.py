"""One look for all figures: colours that stay apart for every kind of colour vision, light frames."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

# Okabe and Ito's palette. Channels and populations keep their colour through the whole report.
CHANNELS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
POPULATIONS = {"+": "#D55E00", "-": "#0072B2", "shared": "#009E73", "null": "#999999"}
SEEDS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
TARGET = "#B0B0B0"
THEORY = "#000000"
DIVERGING = "RdBu_r"
SEQUENTIAL = "viridis"


def panels(
    columns: int, rows: int = 1, *, width: float = 4.0, height: float = 3.2, **options: Any
) -> tuple[Drawing, list[Axes]]:
    """A drawing with a row-by-row list of axes, lettered A, B, ... where there are several."""
    drawing = Drawing(figsize=(width * columns, height * rows), layout="constrained", dpi=150)
    axes = list(np.ravel(drawing.subplots(rows, columns, **options)))
    for letter, axis in zip("ABCDEFGHIJKLMNOP", axes, strict=False):
        plain(axis)
        if len(axes) > 1:
            axis.set_title(letter, loc="left", fontweight="bold")
    return drawing, axes


def plain(axis: Axes) -> None:
    """No frame where nothing is measured."""
    axis.spines[["top", "right"]].set_visible(False)


def legend(axis: Axes, columns: int = 1) -> None:
    """A legend without a frame."""
    axis.legend(frameon=False, fontsize="small", ncols=columns)


def colours(name: str, count: int) -> list[Any]:
    """Colours along a map, for an ordered family of curves; without its lightest end."""
    return list(colormaps[name](np.linspace(0, 0.9, count)))
