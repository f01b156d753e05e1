"""Pages to be filled in, and what stands in them."""

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, Template
from markupsafe import Markup

from rni.core.errors import InputError

MARK = b'<meta name="generator" content="rni">'  # of every page


def template(name: str) -> Template:
    """A page to be filled in."""
    environment = Environment(loader=PackageLoader("rni.pages"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"math": with_math, "number": number, "slug": slug, "sha256": sha256}
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


def sha256(text: str) -> str:
    """What a page's security policy calls a script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def require_own(folder: Path, page: str, *beside: str) -> None:
    """Refuse a folder with files of these names that are not of rni: without a page of ours among them."""
    there = [name for name in (page, *beside) if (folder / name).exists()]
    if there and MARK not in ((folder / page).read_bytes() if page in there else b""):
        found = f"{there[0]} there already, without the mark of rni"
        raise InputError(f"{folder}: {found}; allowed: another folder, or an empty one")
