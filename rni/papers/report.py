"""The report: one page that opens from disk, with every figure, claim, run and erratum."""

import base64
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rni.core.atomic import write_atomically
from rni.designs import design
from rni.pages import explore
from rni.pages.template import template
from rni.papers.claims import tally
from rni.papers.fanthomme2021.errata import ERRATA
from rni.papers.outcome import Outcome
from rni.tasks.integration import Integration

PAPER = "https://arxiv.org/abs/2011.10435"


def write_report(outcomes: Sequence[Outcome], folder: Path, summary: Mapping[str, Any]) -> Path:
    """index.html in `folder`, with the figures that stand there already built in, and a network to play with beside."""
    explore(design(Integration([0.995, 0.993])).network, folder / "explore.html", name="Two integrals, designed")
    page = template("report.html").render(
        sections=[(name, list(group)) for name, group in groupby(outcomes, key=lambda outcome: outcome.figure.section)],
        images={o.figure.id: _image(folder / o.figure.id) for o in outcomes if not o.failure},
        tally=tally(claim for outcome in outcomes for claim in outcome.claims),
        failures=[outcome for outcome in outcomes if outcome.failure],
        seeds=sorted({s.seed for outcome in outcomes for s in outcome.specifications}),
        errata=ERRATA,
        paper=PAPER,
        summary=summary,
    )
    write_atomically(folder / "index.html", page.encode())
    return folder / "index.html"


def _image(path: Path) -> str:
    """As SVG or as PNG, whichever is smaller."""
    kinds = {"image/svg+xml": path.with_suffix(".svg"), "image/png": path.with_suffix(".png")}
    kind = min(kinds, key=lambda each: kinds[each].stat().st_size)
    return f"data:{kind};base64,{base64.b64encode(kinds[kind].read_bytes()).decode()}"
