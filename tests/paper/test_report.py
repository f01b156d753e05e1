import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch
from told import there

from rni.pages.template import number, with_math
from rni.papers import Claim
from rni.papers.claims import tally
from rni.papers.fanthomme2021 import PAPER
from rni.papers.figure import PROFILES
from rni.papers.report import Outcome, write_report
from rni.papers.reproduce import circumstances, draw, write_claims, write_figure
from rni.plots.style import panels, picture

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
OURS = Claim(
    id="fig1.ours",
    where="not in the paper",
    statement="Something <else>.",
    criterion="above 1",
    expected="2",
    measured={"<script>": 0.5, "half": 0.5},
    holds=lambda m: m["half"] > 1,
    origin="ours",
    settings="smaller < batches",
    revised="above 3, before $n$ was 300",
    because="half is less",
)


def summary():
    return {"profile": PROFILES["quick"], "minutes": "0.1", "runs": 0, "computed": 0, "circumstances": circumstances()}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of fig1, with a claim of ours that does not hold, and of a figure that failed."""
    folder = tmp_path_factory.mktemp("report")
    good = Outcome(PAPER.figure("fig1"), [])
    good.measured = good.figure.measure({}, PROFILES["quick"])
    good.claims = [*good.figure.claims(good.measured), OURS]
    write_figure(good, draw(good.figure, good.measured), folder)
    fig4 = PAPER.figure("fig4")
    bad = Outcome(fig4, list(fig4.runs(PROFILES["quick"])), failure="run failed: it diverged")
    write_claims([good, bad], folder / "claims.json")
    return write_report(PAPER, [good, bad], folder, summary())


def test_the_page_needs_nothing_from_elsewhere(report):
    page = report.read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="((?:https?:)?//[^"]*)', page) == [PAPER.link]  # a link, not a part of the page
    assert "run failed: it diverged" in page
    assert "<math" in page


def test_a_figure_is_embedded_as_its_smaller_file(report):
    (embedded,) = re.findall(r'<img src="data:image/[a-z+]+;base64,([^"]+)', report.read_text(encoding="utf-8"))
    kinds = [(report.parent / f"fig1.{kind}").read_bytes() for kind in ("png", "svg")]
    assert base64.b64decode(embedded) == min(kinds, key=len)


def test_who_does_not_see_a_figure_is_told_what_is_drawn(report):
    (image,) = [
        attributes
        for tag, attributes in Tags(report.read_text(encoding="utf-8")).found
        if tag == "img" and attributes["alt"]
    ]
    assert image["alt"] == (
        "Figure 1, Network and task. B: inputs x_t (bars), integrals y_t against time step t: "
        "y_1, γ_1 = 0.95; y_2, γ_2 = 0.8."
    )


def test_a_panel_keeps_its_colour_bar_and_its_inset():
    drawing, axes = panels(2)
    bars = [drawing.colorbar(axis.imshow([[0, 1]]), ax=axis, label="$W_{ij}$").ax for axis in axes]
    axes[0].inset_axes((0.5, 0.5, 0.4, 0.4))
    shown = picture(drawing)
    assert len(shown.panels) == 2
    for (left, _, width, _), bar in zip(shown.panels, bars, strict=True):
        box = there(bar.get_tightbbox())
        assert left < 96 / drawing.dpi * box.x0 < 96 / drawing.dpi * box.x1 <= left + width
    assert shown.seen.count("Colours: W_ij.") == 2


def test_three_axes_and_a_legend_of_the_whole_are_told():
    drawing = Drawing()
    axis = drawing.add_subplot(projection="3d")
    axis.set(xlabel="$x$", ylabel="$y$", zlabel="$z$")
    drawing.legend(handles=[Patch(label="planes")])
    assert picture(drawing).seen == "z against x and y. planes."


def test_a_legend_within_a_panel_belongs_to_it_and_one_beside_stands_for_itself():
    drawing, (axis, _) = panels(2)
    (line,) = axis.plot([0, 1])
    within = drawing.legend([line], ["y"], loc="center", bbox_to_anchor=(0.5, 0.5), bbox_transform=axis.transAxes)
    assert len(picture(drawing).panels) == 2
    within.remove()
    drawing.legend([line], ["y"], loc="outside upper center")
    assert len(picture(drawing).panels) == 3


def test_claims_and_numbers_stand_beside_the_page(report):
    claim, ours = json.loads((report.parent / "claims.json").read_text(encoding="utf-8"))
    words = {"id", "where", "statement", "criterion", "expected", "origin", "settings", "revised", "because"}
    assert set(claim) == words | {"measured", "verdict"}
    assert (claim["verdict"], claim["origin"]) == ("reproduced", "paper")
    assert (ours["verdict"], ours["origin"]) == ("not reproduced", "ours")
    assert (ours["settings"], ours["revised"]) == (OURS.settings, OURS.revised)
    assert np.load(report.parent / "fig1.npz")["targets"].shape == (150, 2)
    assert (report.parent / "fig1.svg").exists()
    assert 'href="explore.html"' in report.read_text(encoding="utf-8")
    assert "Two integrals, designed" in (report.parent / "explore.html").read_text(encoding="utf-8")


def test_the_page_says_what_differs_from_the_authors_which_criterion_was_moved_and_why_a_claim_fails(report):
    page = report.read_text(encoding="utf-8")
    said = ("settings</b> smaller &lt; batches", "revised</b> above 3, before <math", "because</b> half is less")
    for shown in (*said, OURS.where):
        assert page.count(shown) == 2  # in the list of all claims and under the figure


def test_a_table_of_the_paper_is_a_table_of_the_page(tmp_path):
    outcome = Outcome(PAPER.figure("table1"), [])
    values = np.full((12, 2), 0.01)
    keys = [name + key for name in ("authors_", "") for key in ("ratios", "square_ratios", "errors", "steps")]
    outcome.measured = {key: values for key in keys} | {"null": np.full(12, 20.0)}
    outcome.claims = list(outcome.figure.claims(outcome.measured))
    write_figure(outcome, draw(outcome.figure, outcome.measured), tmp_path)
    page = write_report(PAPER, [outcome], tmp_path, summary()).read_text(encoding="utf-8")
    article = page[page.index('<article id="table1">') :].partition("</article>")[0]
    assert re.findall(r'<th scope="row">(ReLU[^<]*)', article) == [
        "ReLU: paper",
        "ReLU: the authors’ protocol",
        "ReLU: our protocol",
    ]
    assert article.count("<td>1.00 ± 0.00</td>") == 24
    assert "<img" not in article


def test_the_same_measurements_give_the_same_files(report, tmp_path):
    figure = PAPER.figure("fig1")
    again = Outcome(figure, [], figure.measure({}, PROFILES["quick"]))
    write_figure(again, draw(figure, again.measured), tmp_path)
    for kind in ("png", "svg", "npz"):
        assert (tmp_path / f"fig1.{kind}").read_bytes() == (report.parent / f"fig1.{kind}").read_bytes()


def test_a_verdict_is_computed_from_the_measurement():
    parts = {"id": "x", "where": "", "statement": "", "criterion": "", "expected": "", "holds": lambda value: value > 1}
    verdicts = [Claim(measured=value, **parts).verdict for value in (2.0, 0.5, None)]
    assert verdicts == ["reproduced", "not reproduced", "not tested in this profile"]


def test_a_claim_says_why_it_fails_or_what_its_test_needs():
    failing = replace(OURS, because="an erratum", needs="1000 neurons")
    held = replace(failing, measured={"half": 2.0})
    untested = replace(failing, measured=None)
    assert [claim.reason for claim in (held, failing, untested)] == ["", "an erratum", "needs 1000 neurons"]
    entries = [claim.to_dict() for claim in (held, failing, untested)]
    assert [entry["because"] for entry in entries] == ["an erratum", "an erratum", "needs 1000 neurons"]


def test_claims_of_the_paper_and_ours_are_counted_apart():
    counts = tally([OURS])
    assert counts["ours"] == {"reproduced": 0, "not reproduced": 1, "not tested in this profile": 0}
    assert set(counts["paper"].values()) == {0}


class Tags(HTMLParser):
    """The tags of a page with their attributes, and the links within it."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_every_link_within_the_page_leads_somewhere_and_names_are_escaped(report):
    tags = Tags(report.read_text(encoding="utf-8")).found
    names = [attributes["id"] for _, attributes in tags if "id" in attributes]
    inner = {attributes["href"][1:] for tag, attributes in tags if tag == "a" and attributes["href"].startswith("#")}
    assert len(names) == len(set(names))
    assert {"fig1", "fig1.target", "fig1.ours", "fig4", "claims", "errata"} <= inner <= set(names)
    assert not any("style" in attributes for _, attributes in tags)  # the policy would not allow it
    assert [tag for tag, _ in tags].count("script") == 1
    assert "else" not in {tag for tag, _ in tags}


def contrast(one, other):
    """Of two colours #rgb or #rrggbb, as WCAG defines it."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        values = np.array([int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)])
        return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_text_stands_out_in_light_and_dark():
    """WCAG AA: 4.5 for text, 3 for the edges of fields."""
    assert contrast("#fff", "#000000") == pytest.approx(21)
    style = files("rni.pages").joinpath("templates/page.css").read_text(encoding="utf-8")
    schemes = [dict(re.findall(r"--(\w+): (#\w+)", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)]
    assert len(schemes) == 2
    for scheme in schemes:
        for ground in (scheme["page"], scheme["card"]):
            texts = [contrast(scheme[name], ground) for name in ("text", "soft", "good", "bad", "open", "link")]
            assert min(texts) >= 4.5
        assert contrast(scheme["edge"], scheme["page"]) >= 3


def test_text_is_escaped_and_formulas_become_mathml():
    shown = with_math(r"a < b, $\gamma_1$")
    assert "a &lt; b" in shown
    assert "<msub>" in shown


def test_numbers_are_shown_as_people_read_them():
    assert number({"a": 0.123456, "b": 1e-9}) == "a 0.1235, b 1e-09"
    assert number(None) == "–"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


MEASURE = """(() => {
  const page = document.documentElement;
  const images = [...document.querySelectorAll("figure img")];
  const wide = i => i.width || i.parentElement.querySelector(".stack").clientWidth;
  const inside = [...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll, pre, math, svg"));
  return {
    overflow: page.scrollWidth - page.clientWidth,
    images: images.length,
    shown: images.filter(i => i.complete && i.naturalWidth > 0 && wide(i) > 0).length,
    widest: Math.max(...inside.map(e => e.getBoundingClientRect().right)) - page.clientWidth,
  };
})()"""


@in_browser
@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_every_figure_shows_and_nothing_overflows_in_a_browser(browser, report, width, phone):
    browser.open(report, width, phone=phone, dark=phone)
    measured = browser.evaluate(MEASURE)
    assert measured["images"] == measured["shown"] == 1
    assert measured["overflow"] <= 0
    assert measured["widest"] <= 1
    assert not browser.problems  # above all: nothing that the page's own policy forbids


PANELS = """[...document.querySelectorAll("#fig1 .stack svg")].map(e => e.getBoundingClientRect())
  .map(({ top, bottom, width }) => ({ top, bottom, width }))"""


@in_browser
def test_panels_stack_on_a_phone(browser, report):
    browser.open(report, 390, phone=True)
    first, second = browser.evaluate(PANELS)
    assert first["bottom"] <= second["top"]
    assert min(first["width"], second["width"]) > 300
    assert browser.evaluate("document.querySelector('#fig1 img').alt === document.querySelector('.stack').ariaLabel")
    browser.open(report)
    assert browser.evaluate(PANELS) == []


@in_browser
def test_figures_turn_dark_with_the_page_and_are_printed_as_drawn(browser, report):
    shown = "getComputedStyle(document.querySelector('figure img')).filter"
    for dark in (False, True):
        browser.open(report, dark=dark)
        assert browser.evaluate(shown).startswith("invert") == dark
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.evaluate(shown) == "none"
        hidden = "[...document.querySelectorAll('nav, .filters label')].every(e => !e.getClientRects().length)"
        assert browser.evaluate(hidden)
        assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


ROWS = (
    "[...document.querySelectorAll('#all-claims tbody tr')].filter(r => !r.hidden).map(r => r.querySelector('a').text)"
)


def press(browser, key, text=""):
    code = {"Enter": 13, "Escape": 27}[key]
    browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, text=text)
    browser.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)


@in_browser
def test_claims_are_searched_and_filtered(browser, report):
    browser.open(report)
    assert browser.evaluate(ROWS) == ["fig1.target", "fig1.ours"]
    browser.evaluate("filters.elements.search.focus()")
    browser.call("Input.insertText", text="STEP integral")
    assert browser.evaluate(ROWS) == ["fig1.target"]
    assert browser.evaluate("filters.querySelector('output').textContent") == "1 of 2 claims shown"
    browser.evaluate("document.querySelector('a.tile[data-origin=ours][data-verdict=\\'not reproduced\\']').click()")
    assert browser.evaluate(ROWS) == ["fig1.ours"]
    assert browser.evaluate("[filters.elements.search.value, filters.elements.origin.value]") == ["", "ours"]
    browser.evaluate("filters.elements.origin.value = 'paper'; filters.dispatchEvent(new Event('input'))")
    assert browser.evaluate(ROWS) == []
    browser.evaluate("filters.querySelector('button').click()")
    browser.wait_for(f"{ROWS}.length === 2")


@in_browser
def test_a_figure_opens_large_from_the_keyboard_and_the_contents_follow_the_reader(browser, report):
    browser.open(report)
    browser.wait_for("document.querySelector('nav [aria-current]')?.hash === '#summary'")
    browser.evaluate("document.querySelector('#fig1 .enlarge').focus()")
    press(browser, "Enter", "\r")
    assert browser.evaluate("zoom.open && zoom.querySelector('img').src.startsWith('data:image/svg')")
    press(browser, "Escape")
    browser.wait_for("!zoom.open")
    assert browser.evaluate("document.activeElement.className") == "enlarge"
    browser.evaluate("errata.scrollIntoView({behavior: 'instant'})")
    browser.wait_for("document.querySelector('nav [aria-current]')?.hash === '#errata'")


@in_browser
def test_without_scripts_the_claims_are_a_plain_table(browser, report):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(report)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.evaluate(ROWS) == ["fig1.target", "fig1.ours"]
    assert browser.evaluate("filters.hidden")
