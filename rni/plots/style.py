"""One look for all figures: colours that stay apart for every kind of colour vision, light frames."""

import html
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d import Axes3D

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


class Picture(NamedTuple):
    """How a drawing stands on a page: what is seen in it, in words; its width and height; its panels, for a narrow one.

    In pixels of the style sheet; panels are (left, top, width, height).
    """

    seen: str
    size: tuple[float, float]
    panels: list[tuple[float, float, float, float]]


def picture(drawing: Drawing) -> Picture:
    width, height = map(float, 96 * drawing.get_size_inches())
    named = [text.get_text() for legend in drawing.legends for text in legend.get_texts()]
    seen = " ".join(filter(None, (described(drawing.axes), _in_words("; ".join(named) + "." if named else ""))))
    return Picture(seen, (width, height), _parts(drawing, width, height))


def described(axes: Iterable[Axes]) -> str:
    """For those who do not see a drawing: what is drawn against what in each panel, and the names of the curves."""
    return " ".join(filter(None, map(_described, axes)))


def _described(axis: Axes) -> str:
    across, up = ((each.get_label_text(), each.get_scale() == "log") for each in (axis.xaxis, axis.yaxis))
    across, up = (f"{text}{' (logarithmic)' if text and log else ''}" for text, log in (across, up))
    if axis.get_label() == "<colorbar>":
        return _in_words(f"Colours: {up or across}.") if up or across else ""
    name = ", ".join(filter(None, (axis.get_title("left"), axis.get_title())))
    if isinstance(axis, Axes3D):
        up, across = axis.zaxis.get_label_text(), f"{across} and {up}"
    drawn = " against ".join(filter(None, (up, across)))
    curves = "; ".join(dict.fromkeys(axis.get_legend_handles_labels()[1]))
    text = ": ".join(filter(None, (name, drawn, curves)))
    return _in_words(f"{text}.") if len(text) > 1 else ""


def _in_words(text: str) -> str:
    r"""Text without LaTeX: `$\sigma_k$ of $\bar{y}$` as `σ_k of y`."""
    text = re.sub(r"\\(bar|hat|mathrm)\b", "", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda command: html.unescape(f"&{command[1]};").strip("&;"), text)
    return " ".join(re.sub(r"[${}\\]", "", text).split())


def _parts(drawing: Drawing, width: float, height: float) -> list[tuple[float, float, float, float]]:
    """Legends beside the panels, then panels: with their colour bars, and with what overlaps them, as insets do."""
    layout = drawing.get_layout_engine()
    if layout is not None:
        layout.execute(drawing)  # all that is needed of a drawing, and a quarter quicker
    bars = {axis: [bar.ax for bar in map(_bar, axis.get_children()) if bar is not None] for axis in drawing.axes}
    boxes: list[Bbox] = [box for each in drawing.legends if (box := each.get_tightbbox()) is not None]
    for axis in (axis for axis in drawing.axes if axis.get_label() != "<colorbar>"):
        box = Bbox.union([part for each in (axis, *bars[axis]) if (part := each.get_tightbbox()) is not None])
        inside = [each for each in boxes if _overlap(each, box) > 0.5]
        boxes = [each for each in boxes if each not in inside] + [Bbox.union([box, *inside])]
    ends = [width, height, width, height]
    cut = [np.clip(96 / drawing.dpi * np.array(box.padded(8).extents), 0, ends).tolist() for box in boxes]
    return [(left, height - top, right - left, top - bottom) for left, bottom, right, top in cut]


def _bar(artist: Any) -> Any:
    return getattr(artist, "colorbar", None)


def _overlap(one: Bbox, other: Bbox) -> float:
    """Of the smaller of the two."""
    common = Bbox.intersection(one, other)
    return 0.0 if common is None else common.width * common.height / min(b.width * b.height for b in (one, other))
