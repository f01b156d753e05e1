"""`make setup` installs the CPU build of torch where it can, and asks pip's default index where it cannot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PINNED = next(line for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").split() if "torch==" in line)

PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && cp pip "$3/bin/pip"; fi
"""
PIP = """#!/bin/sh
echo "$@" >> pip.log
case "$*" in *" $UNREACHABLE"*) exit 1;; esac
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def setup(tmp_path):
    """Run `make setup` with a pip that only logs its arguments: the exit code, and the arguments of each call."""
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name, script in (("python", PYTHON), ("pip", PIP)):
        (tmp_path / name).write_text(script, encoding="utf-8")
        (tmp_path / name).chmod(0o755)

    def make(unreachable="nothing", **variables):
        environment = {"PATH": os.environ["PATH"], "UNREACHABLE": unreachable} | variables
        done = subprocess.run(
            ["make", "setup", "PYTHON=./python"], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        calls = (tmp_path / "pip.log").read_text(encoding="utf-8").splitlines()
        return done.returncode, [call.split() for call in calls]

    return make


def test_torch_comes_from_the_index_of_cpu_builds(setup, tmp_path):
    code, (torch, others, package) = setup()
    assert code == 0
    assert torch[0] == "install"
    assert torch[-1] == PINNED
    assert torch[torch.index("--index-url") + 1] == CPU_INDEX
    assert torch[torch.index("--retries") + 1] == "0"
    assert int(torch[torch.index("--timeout") + 1]) <= 15
    assert others[-2:] == ["-r", "requirements.txt"]
    assert package[-2:] == ["--editable", "."]
    assert CPU_INDEX not in others + package, "all else comes from the default index"
    assert (tmp_path / ".venv" / "ready").exists()


def test_torch_comes_from_the_default_index_where_that_of_cpu_builds_cannot_be_reached(setup):
    code, (first, second, *others) = setup(unreachable=f"--index-url {CPU_INDEX}")
    assert code == 0
    assert CPU_INDEX in first
    assert second[-1] == PINNED
    assert not {"--index-url", "--no-deps"} & set(second)
    assert len(others) == 2


def test_the_default_index_can_be_asked_for(setup):
    code, (torch, *others) = setup(TORCH="default")
    assert code == 0
    assert torch[-1] == PINNED
    assert "--index-url" not in torch
    assert len(others) == 2


def test_the_set_up_fails_where_no_index_has_torch(setup, tmp_path):
    code, calls = setup(unreachable=PINNED)
    assert code != 0
    assert len(calls) == 2
    assert not (tmp_path / ".venv" / "ready").exists()
