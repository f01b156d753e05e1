"""Every statement of the paper has a claim, a test or an erratum that exists."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from told import there

from rni.papers.fanthomme2021 import figures
from rni.papers.fanthomme2021.errata import ERRATA
from rni.papers.fanthomme2021.figures.table1 import PAPER

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs/statements.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d", line)
]


def claim_patterns():
    """The ids that figures give to their claims, as their sources have them; a part in braces may be anything."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in Path(figures.__path__[0]).glob("*.py"))
    ids = re.findall(r'\bid=f?"([a-z0-9]+\.[^"]+)"', sources)
    return [re.sub(r"\\{.*?\\}", "[a-zA-Z0-9]+", re.escape(each)) for each in ids]


def names_of_tests():
    found = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return set(re.findall(r"^def (test_\w+)", found, re.MULTILINE))


TESTS, CLAIMS, WRONG = names_of_tests(), re.compile("|".join(claim_patterns())), {erratum.id for erratum in ERRATA}


def test_all_statements_are_there_each_once():
    assert [int(row[0]) for row in ROWS] == list(range(1, 194))
    assert all(len(row) == 4 and row[1] and row[2] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_statement_is_judged_by_what_exists(row):
    judges = row[-1].split(", ")
    assert judges
    for judge in judges:
        kind, name = there(re.fullmatch(r"(erratum )?`([^`]+)`", judge)).groups()
        known = name in WRONG if kind else name in TESTS if name.startswith("test_") else CLAIMS.fullmatch(name)
        assert known, f"{name}: no such thing"


def test_every_erratum_is_that_of_a_statement():
    named = {name for row in ROWS for name in re.findall(r"erratum `([^`]+)`", row[-1])}
    assert named == WRONG


def test_every_claim_judges_a_statement_or_is_ours():
    page = "\n".join(row[-1] for row in ROWS)
    sources = [path.read_text(encoding="utf-8") for path in Path(figures.__path__[0]).glob("*.py")]
    claims = [claim for source in sources for claim in re.findall(CALL, source, re.MULTILINE | re.DOTALL)]
    assert len(claims) > 140
    for function, id, rest in claims:
        if function != "ours" and 'origin="ours"' not in rest:
            assert f"`{id}`" in page


CALL = r"""\b(\w+)\(\n +id="([a-z0-9]+\.[^"{]+)",\n(.*?)\n +holds="""  # of Claim, or of a function that makes claims


def test_the_table_of_all_trainings_is_that_of_the_numbers_kept():
    spec = there(importlib.util.spec_from_file_location("table1_page", ROOT / "docs/table1.py"))
    page = importlib.util.module_from_spec(spec)
    there(spec.loader).exec_module(page)
    cells = json.loads((ROOT / "docs/table1.json").read_text(encoding="utf-8"))
    assert f"{page.BEGIN}\n{page.table(cells)}\n{page.END}" in (ROOT / "docs/statements.md").read_text(encoding="utf-8")
    for (activation, loss, channels), (mean, deviation) in PAPER.items():
        kept = cells[f"{activation} {loss} {channels}"]["authors"]
        assert len(kept) == (4 if channels > 2 else 8)
        row = there(re.search(rf"^\| {activation}, {loss}, D = {channels} .*$", page.table(cells), re.M | re.I))[0]
        assert row.endswith("| yes |") == (abs(sum(kept) / len(kept) - mean) <= 2 * deviation)
