"""The report of a reproduction: one page with every figure, claim, run and erratum, which needs no server."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from rni.core.atomic import write_atomically
from rni.pages import explore
from rni.pages.template import template
from rni.papers.claims import Claim, tally
from rni.papers.figure import Figure, Measured, Paper
from rni.plots.style import Picture
from rni.runs.run import Run


@dataclass
class Outcome:
    """The measurements and claims of a figure, or the reason why there are none.

    `picture` describes the drawing for the page. `training` is the processor time, in seconds, of the runs that no
    earlier figure needs; `seconds` is the processor time of measuring.
    """

    figure: Figure
    specifications: list[Run]
    measured: Measured = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    picture: Picture | None = None
    training: float = 0.0
    seconds: float = 0.0
    failure: str = ""


def write_report(paper: Paper, outcomes: Sequence[Outcome], folder: Path, summary: Mapping[str, Any]) -> Path:
    """Write index.html, which contains the figures that `folder` holds, and an interactive page for one network.

    Returns
    -------
    Path
        The path of index.html.
    """
    if paper.network:
        network, name = paper.network()
        explore(network, folder / "explore.html", name=name)
    page = template("report.html").render(
        paper=paper,
        sections=[(name, list(group)) for name, group in groupby(outcomes, key=lambda outcome: outcome.figure.section)],
        images={o.figure.id: _image(folder / o.figure.id) for o in outcomes if not o.failure},
        tally=tally(claim for outcome in outcomes for claim in outcome.claims),
        failures=[outcome for outcome in outcomes if outcome.failure],
        seeds=sorted({s.seed for outcome in outcomes for s in outcome.specifications}),
        summary=summary,
    )
    write_atomically(folder / "index.html", page.encode())
    return folder / "index.html"


def _image(path: Path) -> str:
    """Return the SVG or the PNG of a figure, whichever is smaller, as a data URL."""
    files = {"image/svg+xml": path.with_suffix(".svg"), "image/png": path.with_suffix(".png")}
    file_type = min(files, key=lambda name: files[name].stat().st_size)
    return f"data:{file_type};base64,{base64.b64encode(files[file_type].read_bytes()).decode()}"
