import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from rni.paper.claims import Claim
from rni.paper.figure import PROFILES
from rni.paper.report import number, with_math, write_report
from rni.paper.reproduce import Outcome, all_figures, circumstances, judge, write_claims, write_figure

CHROMIUM = shutil.which("chromium")


def summary():
    return {"profile": PROFILES["quick"], "minutes": "0.1", "runs": 0, "computed": 0, "circumstances": circumstances()}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of fig1 and of a figure that failed."""
    folder = tmp_path_factory.mktemp("report")
    figures = all_figures()
    good = Outcome(figures["fig1"], [])
    good.measured = good.figure.measure({}, PROFILES["quick"])
    judge(good)
    write_figure(good, folder)
    bad = Outcome(figures["fig4"], list(figures["fig4"].runs(PROFILES["quick"])), failure="run failed: it diverged")
    write_claims([good, bad], folder / "claims.json")
    return write_report([good, bad], folder, summary())


def test_the_page_needs_nothing_from_elsewhere(report):
    page = report.read_text()
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert 'src="data:image/png;base64,' in page
    assert "run failed: it diverged" in page
    assert "<math" in page


def test_claims_and_numbers_stand_beside_the_page(report):
    (claim,) = json.loads((report.parent / "claims.json").read_text())
    assert set(claim) == {"id", "where", "statement", "criterion", "expected", "measured", "verdict"}
    assert claim["verdict"] == "reproduced"
    assert np.load(report.parent / "fig1.npz")["targets"].shape == (150, 2)
    assert (report.parent / "fig1.svg").exists()
    assert 'href="explore.html"' in report.read_text()
    assert "Two integrals, designed" in (report.parent / "explore.html").read_text()


def test_the_same_measurements_give_the_same_files(report, tmp_path):
    figure = all_figures()["fig1"]
    again = Outcome(figure, [], figure.measure({}, PROFILES["quick"]))
    write_figure(again, tmp_path)
    for kind in ("png", "npz"):
        assert (tmp_path / f"fig1.{kind}").read_bytes() == (report.parent / f"fig1.{kind}").read_bytes()


def test_a_verdict_is_computed_from_the_measurement():
    parts = {"id": "x", "where": "", "statement": "", "criterion": "", "expected": "", "holds": lambda value: value > 1}
    verdicts = [Claim(measured=value, **parts).verdict for value in (2.0, 0.5, None)]
    assert verdicts == ["reproduced", "not reproduced", "not tested in this profile"]


def test_text_is_escaped_and_formulas_become_mathml():
    shown = with_math(r"a < b, $\gamma_1$")
    assert "a &lt; b" in shown
    assert "<msub>" in shown


def test_numbers_are_shown_as_people_read_them():
    assert number({"a": 0.123456, "b": 1e-9}) == "a 0.1235, b 1e-09"
    assert number(None) == "–"


PROBE = """
<script>
window.addEventListener("load", () => {
  const page = document.documentElement;
  const images = [...document.querySelectorAll("figure img")];
  const shown = images.filter(i => i.complete && i.naturalWidth > 0 && i.width > 0);
  document.title = JSON.stringify({
    overflow: page.scrollWidth - page.clientWidth,
    images: images.length,
    shown: shown.length,
    widest: Math.max(...[...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll, pre, dialog, math"))
      .map(e => e.getBoundingClientRect().right)) - page.clientWidth,
  });
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 500])
def test_every_figure_shows_and_nothing_overflows_in_a_browser(report, tmp_path, width):
    """500 is the narrowest window that headless Chromium opens; the phone layout starts at 832."""
    probe = report.parent / "probe.html"
    probe.write_text(report.read_text() + PROBE)
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += ["--no-first-run", "--disable-sync", "--disable-component-update", "--disable-quic"]
    command += [f"--user-data-dir={tmp_path}", f"--window-size={width},900", "--virtual-time-budget=3000"]
    done = subprocess.run(
        [*command, "--dump-dom", probe.as_uri()], capture_output=True, text=True, check=True, timeout=60
    )
    found = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert found is not None
    measured = json.loads(found.group(1))
    assert measured["images"] == measured["shown"] == 1
    assert measured["overflow"] <= 0
    assert measured["widest"] <= 1
