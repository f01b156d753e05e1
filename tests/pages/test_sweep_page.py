"""The page of a sweep: plots that are asked for and those that are not, a table that can be sorted, texts to copy."""

import re
from typing import cast

import pytest
from browser import CHROMIUM, Browser

import rni
from rni.pages.sweep import _is_logarithmic, drawn
from rni.runs.run import TrainRun, read_run
from rni.runs.sweep import Sweep
from rni.runs.table import Row, Table

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")


def made(plan, value=lambda fields: 1.0, names=("loss",)):
    """A table with invented measures."""
    base = {"task": {"decays": [0.9]}}
    rows = []
    for run in plan.runs(base, list(plan.points())):
        rows.append(Row(run.fields, run.specification, {name: value(run.fields) for name in names}, None))
    return Table(tuple(plan.fields), names, tuple(rows), tuple(plan.drawn))


def captions(table, plan):
    return [caption for section in drawn(table, plan)[0] for _, caption in section.panels]


def test_each_measure_is_drawn_against_each_field_and_two_make_a_heat_map():
    plan = Sweep(over={"neurons": [10, 100], "steps": [1, 2, 3], "seed": "0..2"}, measure=("loss",))
    assert captions(made(plan), plan) == [
        "loss against network.neurons, by training.steps: mean over seed; shaded, from the smallest to the largest.",
        "loss against training.steps, by network.neurons: mean over seed; shaded, from the smallest to the largest.",
        "loss for each network.neurons and training.steps: mean over all else.",
    ]


def test_a_sweep_over_seeds_alone_is_drawn_against_them():
    plan = Sweep(over={"seed": "0..2", "neurons": [10]}, measure=("loss",))
    assert captions(made(plan), plan) == ["loss against seed."]


def test_drawn_fields_are_points():
    plan = Sweep(over={"learning_rate": "1e-3..1:lograndom:5", "steps": "1..9:random:5"}, measure=("loss",))
    assert captions(made(plan), plan) == [
        "loss against training.learning_rate (one point for each run).",
        "loss against training.steps (one point for each run).",
    ]


def test_what_is_asked_for_is_drawn_alone():
    fields = {"neurons": [10, 100], "steps": [1, 2, 3], "seed": "0..1"}
    plan = Sweep(over=fields, measure=("loss", "error"), x="neurons", y=("error",), by="seed")
    table = made(plan, names=("loss", "error"))
    assert [caption.split(":")[0] for caption in captions(table, plan)] == [
        "error against network.neurons, by seed",
        "error for each network.neurons and seed",
    ]


def test_values_that_are_no_numbers_and_rows_without_any_can_be_drawn():
    fields = {"activation": ["relu", {"name": "sigmoid", "slope": 5}], "decays": [[0.9], [0.9, 0.8]]}
    plan = Sweep(over=fields, measure=("loss",))
    table = made(plan, lambda fields: None if fields["network.activation"] == "relu" else float("inf"))
    assert drawn(table, plan) == ([], 0)
    some = made(plan, lambda fields: None if fields["network.activation"] == "relu" else 2.0)
    assert len(captions(some, plan)) == 3


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([100, 300, 1000, 3000], True), (range(1, 11), False), ([0, 1, 10, 100], False), ([1, 2], False)],
)
def test_an_axis_is_logarithmic_where_the_range_asks_for_it(values, logarithmic):
    assert _is_logarithmic(list(values)) is logarithmic


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    base = {"task": {"decays": [0.9]}, "network": {"neurons": 12}, "training": {"steps": 5}}
    over = {"learning_rate": [0.02, 0.003, 1000.0], "seed": "0..1"}
    rni.sweep(base, over, measure="loss,steps", out=folder, store=folder / "runs", workers=0)
    return folder / "index.html"


def test_the_page_needs_nothing_else_and_says_why_a_run_failed(page):
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    assert "training diverged at step" in text


@in_browser
def test_the_table_is_sorted_and_a_configuration_copied_by_a_click(page, tmp_path):
    with Browser(tmp_path / "chromium") as browser:
        for phone in (False, True):
            browser.open(page, 390 if phone else 1280, 800, phone=phone)
            assert browser.problems == []
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        column = "[...document.querySelectorAll('.sortable tbody tr')].map(row => row.cells[0].textContent)"
        click = "document.querySelector('.sortable th button').click()"
        assert browser.evaluate(f"{click}; {column}") == ["0.003", "0.003", "0.02", "0.02", "1000", "1000"]
        assert browser.evaluate(f"{click}; {column}") == ["1000", "1000", "0.02", "0.02", "0.003", "0.003"]
        browser.call("Page.bringToFront")
        browser.evaluate("document.querySelector('.copy').click()")
        browser.wait_for("document.querySelector('.copy').textContent === 'copied'")
        toml = browser.evaluate("document.querySelector('.copy').dataset.text")
    (tmp_path / "row.toml").write_text(toml, encoding="utf-8")
    assert cast(TrainRun, read_run(tmp_path / "row.toml")).training.learning_rate == 1000.0
