"""What the README and the examples show works as shown."""

import re
import sys
from pathlib import Path

import pytest
from test_docs import shell

import rni
from rni.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def block(language: str, contains: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    return next(text for text in blocks if contains in text)


def worst_error(path):
    """On white noise and on bursts of 2000 steps, of all channels."""
    analysis = rni.analyze(rni.load(path))
    return max(max(errors[2000]) for errors in analysis.errors.values())


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", "import rni"), "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("integrates")
    assert worst_error(tmp_path / "integrator.safetensors") < 0.02


def test_the_command_line_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shell(block("sh", "rni train"), monkeypatch)
    output = capsys.readouterr().out
    assert output.count("\nintegrates: ") + output.startswith("integrates: ") == 2  # trained, analysed
    assert worst_error(tmp_path / "two.safetensors") < 0.02
    assert (tmp_path / "two.pt").exists()


def test_the_design_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", block("sh", "rni design").split())
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0
    assert "error certified below" in capsys.readouterr().out
    assert (tmp_path / "designed.safetensors").exists()


def test_the_picture_is_there():
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / name).stat().st_size > 10_000


def test_the_two_channel_example_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.syspath_prepend(ROOT / "examples")
    import two_channels

    two_channels.main(tmp_path / "two_channels.png", neurons=100, steps=100)
    assert (tmp_path / "two_channels.png").stat().st_size > 10_000


def test_the_auxiliary_loss_example_runs(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import auxiliary_proxy

    auxiliary_proxy.main(neurons=30, steps=5, seeds=1)
    assert capsys.readouterr().out.count("%") == 4


def test_the_example_with_any_activation_runs(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import any_activation

    errors = any_activation.main(neurons=150, steps=200)
    assert len(errors) == len(capsys.readouterr().out.splitlines()) == 6
    assert all(error < 0.5 for error in errors.values())
