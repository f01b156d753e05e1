"""What docs/sweeps.md shows works as shown."""

import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from rni.cli import main
from rni.runs import engine
from rni.runs.sweep import planned

TEXT = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, with a store of its own and runs computed in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("rni.runs.sweeping.local", lambda workers: engine.Here())
    return tmp_path


def test_the_commands_run(here, monkeypatch, capsys):
    for script in blocks("sh"):
        for name, content in re.findall(r"cat > (\S+) <<END\n(.*?)END\n", script, flags=re.DOTALL):
            Path(name).write_text(content, encoding="utf-8")
        lines = script.replace("\\\n", " ").splitlines()
        for command in (line for line in lines if line.startswith("rni ")):
            monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
            with pytest.raises(SystemExit) as done:
                main()
            assert done.value.code == 0, command
    out = capsys.readouterr().out
    assert len(Path("sweep/table.csv").read_text(encoding="utf-8").splitlines()) == 1 + 18
    assert "18 runs, " in out
    assert {"index.html", "table.csv"} <= set(os.listdir("sweep"))


def test_the_python_example_runs(here, capsys):
    found = {}
    for script in blocks("python"):
        exec(script, found)
    assert len(found["table"]) == 6
    assert [result.losses[-1] for result in found["results"]] == found["table"]["loss"]


def test_the_table_in_the_file_is_a_sweep():
    for text in blocks("toml"):
        assert planned(tomllib.loads(text))[1].count() == 30
