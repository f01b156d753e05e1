"""The page of results says what the analysis found, and opens from disk without anything else."""

import base64
import re

import pytest
import torch
from browser import CHROMIUM, Browser

from rni import Analysis, Integration, Recording, analyze, design
from rni.analysis.verdict import percent
from rni.pages.analysis import write_page
from rni.tasks.inputs import white_noise

SECTIONS = ["Integrals", "Effective decays", "Dimension", "Without inputs", "Linearity", "Selectivity"]


@pytest.fixture
def written(generator, tmp_path):
    def write(kind):
        decays = (0.9, 0.8) if kind.startswith("two") else (0.9,)
        net = design(Integration(decays), 40).network
        x = white_noise(6, 40, len(decays), generator, dtype=torch.float64)
        with torch.no_grad():
            thing = Recording(net(x)[0], x) if kind.endswith("recorded") else net
            analysis = analyze(thing) if isinstance(thing, Recording) else analyze(thing, inputs=x)
        write_page(analysis, tmp_path / "page.html", "net <1>")
        return analysis, (tmp_path / "page.html")

    return write


@pytest.mark.parametrize("kind", ["two", "one recorded"])
def test_every_section_has_a_figure_and_the_numbers_are_those_of_the_analysis(written, kind):
    analysis, path = written(kind)
    page = path.read_text(encoding="utf-8")
    shown = [title for title in SECTIONS if title != "Without inputs" or isinstance(analysis, Analysis)]
    assert re.findall(r"<h2>(.*)</h2>", page) == [*shown, "All numbers"]
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert all(b"<svg" in base64.b64decode(image) for image in images)
    assert len(images) >= len(shown)
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert "net &lt;1&gt;" in page
    assert f"<strong>{analysis.verdict}.</strong>" in page
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", page.split("<h2>")[0])]
    network = isinstance(analysis, Analysis)
    errors = analysis.errors["inputs"][40] if network else analysis.errors
    assert [row[3 if network else 1] for row in rows] == [
        f"{decay:.4g}" for decay in (analysis.fitted_decays if network else analysis.decays)
    ]
    assert [row[-1] for row in rows] == [percent(error) for error in errors]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
def test_the_page_fits_a_narrow_window(written, tmp_path):
    _, path = written("two")
    with Browser(tmp_path / "chromium") as browser:
        browser.open(path, 390, phone=True)
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not browser.problems
