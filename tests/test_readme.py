"""What the README and the examples show works as shown."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from test_docs import shell

import rni
from rni.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = ROOT / "docs" / "learn" / "your_rnn.md"


def block(language: str, contains: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    return next(text for text in blocks if contains in text)


def worst_error(path):
    """On white noise and on bursts of 2000 steps, of all channels."""
    net, generator = rni.load(path), torch.Generator().manual_seed(0)
    tests = (make(16, 2000, net.channels, generator) for make in (rni.inputs.white_noise, rni.inputs.bursts))
    return max(float(rni.analysis.relative_error(net, x).max()) for x in tests)


def test_the_first_result_is_what_the_command_prints(tmp_path, monkeypatch, capsys):
    """For the network of the tutorial that the README names. Another processor rounds its training differently."""
    monkeypatch.chdir(tmp_path)
    model, inputs = re.findall(r"```\{code-cell\}\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), flags=re.DOTALL)[:2]
    known = {}
    exec(model, known)
    exec(inputs, known)
    torch.save(known["model"].state_dict(), "model.pt")
    np.save("x.npy", known["inputs"].numpy())
    shown = block("console", "rni analyze").removeprefix("$ ")
    capsys.readouterr()
    shell(shown.splitlines()[0], monkeypatch)
    printed = capsys.readouterr().out
    assert printed.partition(":")[0] == shown.splitlines()[1].partition(":")[0] == "integrates"
    for number in (r"relative error, inputs, 200 steps: (\S+) %", r"effective decays (\S+),", r"multipliers (\S+) "):
        (there,), (here,) = (re.findall(number, text) for text in (shown, printed))
        assert float(here) == pytest.approx(float(there), rel=0.1)


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


def measured(*words: str) -> list[list[str]]:
    """Rows of tables in bench/RESULTS.md that begin with one of these."""
    lines = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return [row for row in rows if row[0] in words]


def two_digits(value: str) -> str:
    return f"{float(f'{float(value):.1e}'):g}"


def test_its_numbers_are_those_that_were_measured():
    default, quickest = measured("default", "batch 16, 3500 steps, low-rank")
    rounded = [two_digits(each) for each in (quickest[2], default[2], default[3], quickest[3])]
    assert "{:.0f} to {} s, by {} to {} times".format(float(rounded[0]), *rounded[1:]) in README
    designs = [row[1].split(", ") for row in measured("1", "2", "3", "5") if row[1].endswith(" s")]
    assert max(float(error) for error, _ in designs) < 2e-12
    took = [1000 * float(time.removesuffix(" s")) for _, time in designs]
    assert f"errors of $10^{{-12}}$ over 2000 steps in {min(took):.0f} to {max(took):.0f} ms" in README
    bounds = [row[-1] for row in measured(*(f"relu, D = {channels}" for channels in (1, 2, 3, 5)))]
    assert max(float(each) for bound in bounds for each in re.findall(r"\S+e-\d+", bound)) < 3e-9
    (large,) = (row for row in measured("100000") if row[3] == "-")
    assert f"{large[6]} ms a step, {large[8]} GB" in README
    (million,) = measured("1000000")
    analysed = f"{float(million[5]):.0f} s, {float(million[6]):.1f} GB"
    assert f"a million designed in {million[1]} s and analysed in {analysed}" in README
    ((_, size, first, _, difference),) = measured("1000 neurons, factored")
    assert f"in {size} MB, opens from disk, first picture after {float(first):.1f} s" in README
    assert float(difference) <= 1e-6
    statements = (ROOT / "docs" / "statements.md").read_text(encoding="utf-8")
    assert f"{len(re.findall(r'^[|] [0-9]+ [|]', statements, flags=re.MULTILINE))} statements" in README


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
