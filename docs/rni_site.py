"""What the site adds to Sphinx: docstrings with formulas in dollars, formulas as MathML, generated pages."""

import re
from pathlib import Path

import generate
import links
from docutils import nodes  # pyright: ignore[reportMissingModuleSource]
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError  # pyright: ignore[reportMissingImports]
from sphinx.util import logging  # pyright: ignore[reportMissingImports]

HERE = Path(__file__).parent
log = logging.getLogger(__name__)


def as_rest(app, what, name, thing, options, lines):
    """Convert formulas in dollars and names in single backticks to reStructuredText.

    Markup that is reStructuredText already, and the examples, are left as they are.
    """
    text = "\n".join(lines)
    parts = re.split(
        r"(^ *>>> .*(?:\n.*\S.*)*|``[^`]+``|:\w+:`[^`]+`|^ *\.\. .*(?:\n(?: +.*|))*|\$[^$]+\$|`[^`]+`)",
        text,
        flags=re.M,
    )
    for k, part in enumerate(parts):
        if k % 2 == 0:
            parts[k] = part.replace("|", r"\|").replace("*", r"\*")
        elif part.startswith("$"):
            parts[k] = rf"\ :math:`{' '.join(part[1:-1].split())}`\ "
        elif part.startswith("`") and not part.startswith("``"):
            parts[k] = rf"{part}\ "  # whatever follows
    lines[:] = "".join(parts).split("\n")


def measured_here(app, name, content):
    """What stands beside docs/ in the sources stands among the generated pages of the site."""
    content[0] = content[0].replace("../bench/RESULTS.md", "generated/measured.md")


def mathml(node: nodes.Element, display: str) -> str:
    """Brackets grow by themselves in MathML, and some names are unknown to the converter."""
    formula = re.sub(r"\\[bB]igg?[lr]?(?![a-zA-Z])", "", node.astext()).replace(r"\arg\min", r"\mathrm{argmin}")
    try:
        shown = convert(formula, display=display)
    except Exception as error:  # whatever the converter stumbles on
        log.warning("formula %r: %s", formula, type(error).__name__, location=node)
        return ""
    if unknown := re.findall(r"<m[ion][^>]*>(\\[a-zA-Z]+)", shown):
        log.warning("formula %r: unknown %s", formula, ", ".join(unknown), location=node)
    return shown


def inline_formula(self, node: nodes.math) -> None:
    self.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def formula(self, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def require_pages(app, error):
    """A page that is missing is an error: one in a process that writes pages goes unseen."""
    if error is None and app.builder.name == "html":
        written = Path(app.outdir)
        missing = [name for name in sorted(app.env.all_docs) if not (written / f"{name}.html").exists()]
        if missing:
            raise ExtensionError(f"pages that were not written: {', '.join(missing)}")


def require_links(app, error):
    """Links between pages, to places within them and to source code; those that Sphinx writes itself as well."""
    if error is None and app.builder.name == "html" and (broken := list(links.broken(Path(app.outdir)))):
        raise ExtensionError("links that lead nowhere:\n" + "\n".join(broken))


def require_markup(app, doctree, name):
    """Markup that was not understood is shown as it is, without a warning."""
    for text in doctree.findall(nodes.Text):
        if not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.raw) and ":math:" in text:
            log.warning("markup in the text: %r", text[:80], location=name)


def setup(app):
    app.connect("builder-inited", lambda app: generate.write_all(HERE / "generated"))
    app.connect("source-read", measured_here)
    app.connect("autodoc-process-docstring", as_rest, priority=400)  # before napoleon reads the sections
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))
    app.connect("doctree-resolved", require_markup)
    app.connect("build-finished", require_pages)
    app.connect("build-finished", require_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
