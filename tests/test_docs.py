"""Every public name is documented with an example, and what examples and pages show works as shown."""

import doctest
import inspect
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import rni
from rni.activations import ACTIVATIONS
from rni.analysis.verdict import GOOD
from rni.cli import main
from rni.losses import LOSSES
from rni.papers.fanthomme2021 import PAPER
from rni.weights import WEIGHTS
from rni.weights.vectors import VECTORS
from tests.dist import OF_EXTRAS, PROJECT

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "generated" not in path.parts)
MODULES = {name: getattr(rni, name) for name in rni.__all__ if isinstance(getattr(rni, name), ModuleType)}


def members(module):
    """The public names of a module: those it lists, or else all that it imports for others."""
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    return {f"{module.__name__}.{n}": v for n in names if not isinstance(v := getattr(module, n), ModuleType)}


PUBLIC = {f"rni.{name}": getattr(rni, name) for name in rni.__all__}
for each in MODULES.values():
    PUBLIC |= members(each)


def is_described(thing):
    return isinstance(thing, ModuleType) or inspect.isclass(thing) or inspect.isfunction(thing)


def test_every_public_name_is_documented():
    assert [name for name, thing in PUBLIC.items() if is_described(thing) and not inspect.getdoc(thing)] == []


def test_every_public_name_has_an_example():
    """Functions and classes in their own words; constants in those of their module."""
    own = {name for name, thing in PUBLIC.items() if is_described(thing) and ">>>" in (inspect.getdoc(thing) or "")}
    in_module = {
        name
        for name, thing in PUBLIC.items()
        if not is_described(thing) and name.rpartition(".")[2] in (sys.modules[name.rpartition(".")[0]].__doc__ or "")
    }
    modules = {f"rni.{name}" for name in MODULES}  # their members have theirs
    assert sorted(set(PUBLIC) - own - in_module - modules) == []


def test_every_figure_has_a_small_picture_in_the_gallery():
    pictures = {path.stem: path.stat().st_size for path in (DOCS / "gallery").iterdir()}
    assert set(pictures) == set(PAPER.titles())
    assert {name: size for name, size in pictures.items() if size > 60_000} == {}


def test_every_tutorial_ends_with_an_exercise():
    last = {
        page.stem: page.read_text(encoding="utf-8").rpartition("\n## ")[2] for page in (DOCS / "learn").glob("*.md")
    }
    assert [name for name, text in last.items() if not text.startswith("Exercise\n")] == ["index"]


def test_every_extra_is_documented_and_tried_before_a_release():
    documented = set(
        re.findall(r"^\| `(\w+)` \|", (DOCS / "do" / "install.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    assert documented == set(OF_EXTRAS) == set(PROJECT["optional-dependencies"])


def test_the_citation_is_of_this_version():
    assert f"version: {PROJECT['version']}\n" in (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def apart(monkeypatch, tmp_path):
    """In a folder of its own, with the parts that there were, and no figure left open."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # finished runs
    for family in (ACTIVATIONS, LOSSES, WEIGHTS, VECTORS):
        monkeypatch.setattr(family, "parts", dict(family.parts))
    plt.switch_backend("agg")
    torch.manual_seed(0)
    yield
    plt.close("all")


SOURCES = sorted({getattr(thing, "__module__", name) for name, thing in PUBLIC.items() if is_described(thing)})


@pytest.mark.parametrize("source", SOURCES)
def test_examples_of_public_names_work(source):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    things = {id(t): (n, t) for n, t in PUBLIC.items() if is_described(t) and getattr(t, "__module__", n) == source}
    for name, thing in things.values():
        known = {"rni": rni, "torch": torch, "np": np}
        found = doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", known, name, source, 0)
        torch.manual_seed(0)
        plt.close("all")
        runner.run(found)
    assert runner.failures == 0


def blocks(page):
    """(language, text) of each block of code on a page, in order."""
    fenced = re.findall(
        r"^(`{3,})(\{?[\w-]+\}?)[^\n]*\n(.*?)^\1$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return [(language, text) for _, language, text in fenced]


def shell(text, monkeypatch):
    """Run the commands `rni ...`, without a shell and in this process; cat > FILE <<END writes what follows."""
    text = re.sub(r"\\\n\s*", " ", text)
    pattern = r"cat > (\S+) <<END\n(.*?)^END$|^([^\n]+)$"
    for name, content, command in re.findall(pattern, text, flags=re.DOTALL | re.MULTILINE):
        if name:
            Path(name).write_text(content, encoding="utf-8")
            continue
        words = shlex.split(command, comments=True)
        if not words:
            continue
        assert words[0] == "rni", f"{command}: in a block of `console`, if it can't be run here"
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code == 0, command


def as_case(page):
    """Tutorials are longer, and run by `make docs` as well; sweeps start processes, and have tests of their own."""
    marks = [pytest.mark.slow] if page.parent.name == "learn" or page.name == "sweeps.md" else []
    return pytest.param(page, marks=marks, id=page.relative_to(DOCS).as_posix())


@pytest.mark.parametrize("page", [as_case(page) for page in PAGES])
def test_code_on_a_page_runs(page, monkeypatch, capsys):
    known = {"__name__": "page"}
    for language, text in blocks(page):
        if language in ("python", "{code-cell}"):
            code = re.sub(r"\A(---\n.*?\n---\n|(:\S+:[^\n]*\n)+)", "", text, flags=re.DOTALL)
            exec(compile(code, page.name, "exec"), known)
        elif language == "sh":
            shell(text, monkeypatch)


def run_cells(source: str) -> dict[str, Any]:
    """The names that the code cells of a tutorial leave."""
    known: dict[str, Any] = {"__name__": "page"}
    for code in re.findall(r"^```\{code-cell\}\n(.*?)^```$", source, flags=re.DOTALL | re.MULTILINE):
        exec(compile(code, "tutorial", "exec"), known)
    return known


def worst_error(analysis: Any) -> float:
    """On white noise and on bursts of 200 and of 2000 steps, of all channels."""
    return max(error for by_duration in analysis.errors.values() for row in by_duration.values() for error in row)


def test_the_first_tutorial_ends_with_a_network_whose_errors_are_good():
    analysis = run_cells((DOCS / "learn" / "first.md").read_text())["analysis"]
    assert analysis.verdict.kind == "integrates"
    assert worst_error(analysis) < GOOD


def test_the_exercise_of_the_first_tutorial_leads_to_a_network_that_integrates():
    """With a decay of 1: not after the batch loss alone, but after the proxy loss with the bounds of the exercise."""
    source = (DOCS / "learn" / "first.md").read_text()
    (decays,) = re.findall(r"`decays=(\[1\.0, [^]]*\])`", source)
    (loss,) = re.findall(r"`(rni\.ProxyLoss\(task, bounds=[^)]*\))`", source)
    source = source.replace("[0.99, 0.98]", decays).replace("rni.ProxyLoss(task)", loss)
    batch_loss_alone = source.partition("## Improve the network")[0]
    assert rni.analyze(run_cells(batch_loss_alone)["net"]).verdict.kind != "integrates"
    analysis = run_cells(source)["analysis"]
    assert analysis.verdict.kind == "integrates"
    assert worst_error(analysis) < 0.05
