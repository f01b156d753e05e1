"""The report: one page that opens from disk, with every figure, claim, run and erratum."""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, Template
from markupsafe import Markup

from rni.atomic import write_atomically
from rni.designing import design
from rni.pages import explore
from rni.paper.reproduce import Outcome
from rni.task import Integration
from rni.theory.errata import ERRATA


def write_report(outcomes: Sequence[Outcome], folder: Path, summary: Mapping[str, Any]) -> Path:
    """index.html in `folder`, with the figures that stand there already built in, and a network to play with beside."""
    explore(design(Integration([0.995, 0.993])).network, folder / "explore.html", name="Two integrals, designed")
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    page = template("report.html").render(
        sections=[(name, list(group)) for name, group in groupby(outcomes, key=lambda outcome: outcome.figure.section)],
        images={o.figure.id: _image(folder / f"{o.figure.id}.png") for o in outcomes if not o.failure},
        verdicts={v: sum(claim.verdict == v for claim in claims) for v in ("reproduced", "not reproduced")},
        untested=sum(claim.verdict == "not tested in this profile" for claim in claims),
        failures=[outcome for outcome in outcomes if outcome.failure],
        seeds=sorted({s.seed for outcome in outcomes for s in outcome.specifications}),
        errata=ERRATA,
        summary=summary,
    )
    write_atomically(folder / "index.html", page.encode())
    return folder / "index.html"


def template(name: str) -> Template:
    """A page to be filled in."""
    environment = Environment(loader=PackageLoader("rni.paper"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"math": with_math, "number": number, "slug": slug}
    return environment.get_template(name)


def with_math(text: str) -> Markup:
    """Text with LaTeX between dollar signs, as HTML with MathML, which browsers draw without any help."""
    from latex2mathml.converter import convert

    parts = re.split(r"\$([^$]+)\$", text)
    shown = [convert(part) if k % 2 else html.escape(part) for k, part in enumerate(parts)]
    return Markup("".join(shown))


def number(value: float | Mapping[str, float] | None) -> str:
    """A measured value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {number(each)}" for key, each in value.items())
    return f"{value:.4g}"


def slug(text: str) -> str:
    """A name for an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _image(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
