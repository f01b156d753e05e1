"""A paper outside of the package is reproduced without a change in the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rni import InputError
from rni.papers.figure import load_paper

HERE = Path(__file__).parent


def rni(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(HERE.parents[1]), "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "rni", "reproduce", "--paper", "guest", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_another_paper_is_reproduced_on_the_command_line(tmp_path):
    shutil.copytree(HERE / "guest", tmp_path / "guest")
    assert rni(tmp_path, "--list").stdout.split(maxsplit=1) == ["decay", "The output of a network\n"]
    done = rni(tmp_path, "--workers", "2", "--store", "runs", "--out", "report")
    assert done.returncode == 0, done.stderr
    (claim,) = json.loads((tmp_path / "report/claims.json").read_text(encoding="utf-8"))
    assert (claim["id"], claim["verdict"]) == ("decay.rate", "reproduced")
    page = (tmp_path / "report/index.html").read_text(encoding="utf-8")
    assert "<h1>Leaky integrators exist</h1>" in page
    assert 'href="https://example.org/paper"' in page
    assert "Fanthomme" not in page
    assert 'href="explore.html"' not in page
    assert {path.suffix for path in (tmp_path / "report").glob("decay.*")} == {".png", ".svg", ".npz"}


def test_figures_are_checked_against_those_of_the_paper():
    with pytest.raises(InputError) as error:
        load_paper("guest").select(["fig1"])
    assert (error.value.field, error.value.value, error.value.allowed) == ("figure", "fig1", "decay")


@pytest.mark.parametrize("module", ["no_such_package", "json", "rni.papers.claims"])
def test_a_module_that_is_not_a_paper_is_refused(module):
    with pytest.raises(InputError) as error:
        load_paper(module)
    assert (error.value.field, error.value.value) in [("paper", module), ("paper", f"{module}:PAPER")]
