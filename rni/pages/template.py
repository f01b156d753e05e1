"""Templates of pages, and the filters that they use."""

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, Template
from markupsafe import Markup

from rni.core.errors import InputError

MARK = b'<meta name="generator" content="rni">'  # every page contains it


def template(name: str) -> Template:
    """Return a jinja2 template."""
    environment = Environment(loader=PackageLoader("rni.pages"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"math": with_math, "number": number, "slug": slug, "sha256": sha256}
    return environment.get_template(name)


def with_math(text: str) -> Markup:
    """Convert text with LaTeX between dollar signs to HTML with MathML, which browsers draw themselves."""
    from latex2mathml.converter import convert

    parts = re.split(r"\$([^$]+)\$", text)
    shown = [convert(part) if k % 2 else html.escape(part) for k, part in enumerate(parts)]
    return Markup("".join(shown))


def number(value: float | Mapping[str, float] | None) -> str:
    """Return a text for a measured value."""
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {number(each)}" for key, each in value.items())
    return f"{value:.4g}"


def slug(text: str) -> str:
    """Return a name for an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def sha256(text: str) -> str:
    """Return the hash by which a page's security policy names a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def require_own(folder: Path, page: str, *beside: str) -> None:
    """Raise an error if a folder contains files of these names, but no page that rni wrote."""
    there = [name for name in (page, *beside) if (folder / name).exists()]
    if there and MARK not in ((folder / page).read_bytes() if page in there else b""):
        problem = f"{there[0]} exists and was not written by rni"
        raise InputError(str(folder), there[0], "another folder, or an empty one", problem=problem)
