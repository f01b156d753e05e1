"""The command line as a stranger meets it: help, outputs that are never lost, closed pipes, Ctrl-C, advice."""

import errno
import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from told import there, train_run

import rni
from rni.analysis.verdict import percent
from rni.cli.fields import field_help
from rni.cli.train import _advice
from rni.pages import template
from rni.pages.analysis import _linearity
from rni.runs.engine import local
from rni.runs.execution import Result, run
from rni.runs.run import fields, read_run

RUN = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 30}, "training": {"steps": 3}}


@pytest.fixture
def net(tmp_path, small):
    rni.save(small(), tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


@pytest.fixture
def config(tmp_path):
    (tmp_path / "run.toml").write_text(train_run(RUN).to_toml(), encoding="utf-8")
    return tmp_path / "run.toml"


def test_version_and_short_help(rni_command):
    assert rni_command("--version")[:2] == (0, f"rni {rni.__version__}\n")
    assert rni_command("-h") == rni_command("--help")
    assert rni_command("train", "-h")[0] == rni_command("runs", "show", "-h")[0] == 0


def test_the_shell_completes_commands_and_options(tmp_path):
    def completed(words):
        environment = os.environ | {"_RNI_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "1"}
        environment["COMP_CWORD"] = str(len(words.split()) - 1)
        command = [sys.executable, "-m", "rni"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path).stdout.split()

    assert completed("rni de") == ["design"]
    assert completed("rni design --act") == ["--activation"]
    assert completed("rni train run.toml --ne") == ["--neurons"]
    assert completed("rni train run.toml --neurons 50 --st") == ["--steps", "--stop-loss"]


def test_the_help_of_train_lists_every_field_with_its_default(rni_command):
    listed = field_help()
    assert {table: set(names) for table, names in listed.items()} == {table: set(n) for table, n in fields().items()}
    assert listed["network"]["neurons"][0] == "1000"
    assert all(description for names in listed.values() for _, description in names.values())
    shown = " ".join(rni_command("train", "--help")[1].split())
    for name, (default, _) in (pair for names in listed.values() for pair in names.items()):
        assert f"--{name.replace('_', '-')} {default}".strip() in shown


class Asked(Exception):
    """What a command was asked for, instead of doing it."""


@pytest.mark.parametrize("form", [["0.9", "0.8"], ["0.9,0.8"], ["[0.9, 0.8]"]], ids=" ".join)
def test_every_command_takes_a_list_in_every_form(rni_command, net, config, monkeypatch, form):
    def ask(decays):
        raise Asked(decays)

    monkeypatch.setattr("rni.runs.execution.run", lambda specification, **_: ask(specification.task.decays))
    monkeypatch.setattr("rni.runs.execution.design", lambda task, *_, **__: ask(task.decays))
    for package in ("rni.analysis", "rni.analysis.examination"):  # the first imports the name from the second
        monkeypatch.setattr(f"{package}.analyze", lambda _, task: ask(task.decays))
    for command in (["train", config], ["design"], ["analyze", net], ["explore"]):
        with pytest.raises(Asked) as asked:
            rni_command(*command, "--decays", *form)
        assert asked.value.args == ((0.9, 0.8),)


def test_one_channel_needs_no_list():
    for decay in (0.9, 1):
        assert train_run({"task": {"decays": decay}}).task.decays == (decay,)


@pytest.mark.parametrize(
    ("command", "default"),
    [
        (["train", "run.toml"], "network.safetensors"),
        (["design", "--decays", "0.9", "--neurons", "20"], "designed.safetensors"),
        (["export", "net.safetensors"], "net.pt"),
        (["explore", "net.safetensors"], "explore.html"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_nothing_is_replaced_in_silence(rni_command, net, config, tmp_path, command, default):
    """Under a default name not at all; where --out names it, with a word; with --force."""
    (tmp_path / default).write_text("mine", encoding="utf-8")
    code, _, err = rni_command(*command)
    assert (code, (tmp_path / default).read_text(encoding="utf-8")) == (2, "mine")
    assert err == f"rni: {default}: there already; allowed: --out with another name, or --force to replace it\n"
    code, _, err = rni_command(*command, "--out", default)
    assert code == 0
    assert err.startswith(f"rni: {default}: there already, to be replaced\n")
    assert (tmp_path / default).read_bytes() != b"mine"
    code, _, err = rni_command(*command, "--force")
    assert (code, "replaced" in err) == (0, False)


class Closed(io.StringIO):
    """Standard output that nobody reads any more."""

    def write(self, text):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_closed_pipe_loses_no_page_and_says_nothing(rni_command, net, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "rni.pages.analysis.write_page", lambda analysis, out, name: out.write_text("page", encoding="utf-8")
    )
    with monkeypatch.context() as piped:
        piped.setattr(sys, "stdout", Closed())
        code, _, err = rni_command("analyze", net, "--out", "page.html")
    assert (code, err) == (1, "")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "page"


@pytest.mark.parametrize("command", ["analyze", "simulate"])
def test_ctrl_c_says_that_nothing_is_half_written(rni_command, net, tmp_path, monkeypatch, command):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    monkeypatch.setattr("rni.files.foreign.read", interrupted)
    monkeypatch.setattr("rni.files.native.read", interrupted)
    flags = ["--inputs", "x.npy", "--out", "y.npy"] if command == "simulate" else ["--out", "page.html"]
    assert rni_command(command, net, *flags) == (130, "", "rni: interrupted; no file is left half written\n")
    assert not (tmp_path / "y.npy").exists()


def test_ctrl_c_in_a_reproduction_says_where_the_runs_are_kept(rni_command, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rni.papers.reproduce.reproduce", interrupted)
    code, _, err = rni_command("reproduce", "fig1", "--workers", "1", "--store", "runs")
    assert code == 130
    assert err.startswith("rni: interrupted; finished runs, and those begun as they were last saved, are kept in ")
    assert err.endswith(f"{tmp_path / 'runs'}: the same command goes on from there\n")


def test_a_worker_that_others_end_still_saves_its_run(tmp_path, monkeypatch):
    """Ctrl-C reaches all workers; the pool ends the others by SIGTERM as soon as one of them is gone."""
    specification = train_run(RUN)
    kept = tmp_path / "run.checkpoint"

    def stop(step, *_):
        if step == 1:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        run(specification, callbacks=[stop], checkpoint=kept)
    assert kept.exists()


def test_a_worker_that_is_no_longer_wanted_saves_its_run(tmp_path, monkeypatch):
    monkeypatch.setattr("rni.core.interrupt.no_longer_wanted.is_set", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        run(train_run(RUN), checkpoint=tmp_path / "run.checkpoint")
    assert (tmp_path / "run.checkpoint").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_finished_when_ctrl_c_comes_is_kept(tmp_path, monkeypatch, number):
    from rni.runs import store

    def write(*parts):
        signal.raise_signal(number)
        return whole(*parts)

    whole = store._write
    monkeypatch.setattr(store, "_write", write)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            store.Store(tmp_path).compute(train_run(RUN))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert store.Store(tmp_path).get(train_run(RUN)) is not None


def test_workers_start_without_an_ear_for_ctrl_c():
    """Python has a traceback for one that comes while it starts."""
    with local(1) as executor:
        executor.submit(os.getpid).result()
        masks = [executor.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()]
        assert executor.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
    assert masks == [signal.pthread_sigmask(signal.SIG_BLOCK, [])] == [set()]


def test_a_command_ends_soon_after_ctrl_c_whatever_it_computes():
    """A product of matrices that Python waits for: here a lock that no signal opens."""
    script = """
import ctypes, os, signal, sys
from rni.cli.ending import end_at_once

def main():
    print("begun", flush=True)
    libc = ctypes.CDLL(None)
    while True:
        libc.usleep(100_000_000)  # called without Python's lock, and again if a signal ends it: no bytecode is run

signal.signal(signal.SIGINT, lambda *_: None)
end_at_once(main)
"""
    command = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert there(command.stdout).readline() == "begun\n"
    command.send_signal(signal.SIGINT)
    said = command.communicate()[1].splitlines()
    assert said[0] == "rni: interrupted; ends within a second"
    assert said[1] == "rni: ended in a long step; what was written before is whole"
    assert command.returncode == 130


def test_a_step_that_will_be_saved_is_waited_for_but_not_after_ctrl_c_again():
    script = """
import select
from rni.cli import ending
from rni.core.interrupt import held_interrupt

ending.AT_ONCE = ending.PATIENCE = 0.01

def step():
    with held_interrupt() as interrupted:
        print("begun", flush=True)
        while not interrupted() or %s:
            select.select([], [], [], 0.3)
        select.select([], [], [], 0.3)  # longer than there is patience
        print("saved", flush=True)
        raise KeyboardInterrupt

def main():
    try:
        step()
    except KeyboardInterrupt:
        raise SystemExit(130)

ending.end_at_once(main)
"""
    for forever, said in ((False, "saved\n"), (True, "")):
        with subprocess.Popen(
            [sys.executable, "-c", script % forever], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as command:
            assert there(command.stdout).readline() == "begun\n"
            command.send_signal(signal.SIGINT)
            assert (
                there(command.stderr).readline()
                == "rni: interrupted; ends as soon as the step is saved; Ctrl-C again: now\n"
            )
            if forever:
                command.send_signal(signal.SIGINT)
            assert there(command.stdout).read() == said
        assert command.returncode == 130


def test_a_command_leaves_with_its_code_and_what_is_due_at_the_exit():
    script = "import atexit; atexit.register(print, 'due'); from rni.cli.ending import end_at_once; end_at_once(%s)"
    for main, code in (("lambda: None", 0), ("lambda: exit(3)", 3), ("lambda: exit('no')", 1)):
        done = subprocess.run([sys.executable, "-c", script % main], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (code, "due\n")


def test_going_on_from_a_checkpoint_is_announced(rni_command, config, tmp_path):
    def stop(step, *_):
        if step == 1:
            signal.raise_signal(signal.SIGINT)

    specification = read_run(config)
    checkpoint = tmp_path / f"network.safetensors.{specification.key()[:8]}.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        run(specification, callbacks=[stop], checkpoint=checkpoint)
    code, _, err = rni_command("train", config)
    assert (code, err.splitlines()[0]) == (0, f"going on from {checkpoint.name}")


def test_a_training_that_was_too_short_says_so(rni_command, config):
    code, out, _ = rni_command("train", config)
    assert (code, out.splitlines()[1].split(":")[0]) == (0, "forgets")
    assert "what to do: train longer: the loss still falls, by " in out
    assert "--steps 5000\n" in out
    longer = ["--steps", "1000", "--decays", "0.5", "--out", "long.safetensors"]
    assert "what to do" not in rni_command("train", config, *longer)[1]


def test_advice_knows_why_a_network_does_not_integrate():
    def result(losses, **network):
        specification = train_run({"task": {"decays": [0.99]}, "network": {"neurons": 30, **network}})
        return Result(specification, specification.build(), losses)

    assert _advice(result([1.0] * 100)).startswith("the loss falls no more: --loss proxy, more --neurons")
    assert _advice(result([0.9**k for k in range(100)])).startswith("train longer: the loss still falls, by 65%")
    assert _advice(result([1.0] * 100, activation="tanh")).startswith(
        "integrals reach 99, and Tanh() with these decoders"
    )


def test_each_number_of_an_analysis_stands_beside_a_good_one(small):
    lines = rni.analyze(small()).lines()
    judged = [line for line in lines if line.startswith(("relative error", "singular", "currents", "principal"))]
    assert len(judged) >= 7
    assert all("good: " in line for line in judged)


def test_rounding_is_a_number_and_an_error_a_percentage():
    assert [percent(part) for part in (1.043e-14, 0.01158, 0.0)] == ["1e-14", "1.158 %", "0 %"]


def test_each_integral_has_the_colour_of_its_output():
    t = np.arange(9.0)
    lines = rni.plot.outputs(np.stack([t, 2 * t], 1), np.stack([t, 2 * t], 1)).get_lines()
    assert [line.get_color() for line in lines[::2]] == [line.get_color() for line in lines[1::2]]
    assert lines[0].get_color() != lines[2].get_color()


def test_the_page_of_an_analysis_shows_the_coordinates_of_all_channels():
    data = {name: np.eye(8)[:, :5] for name in ("coordinates", "predicted")}
    section = _linearity(data, "currents", 1.0)
    assert len(section.images) == 5
    assert section.images[4][1] == "E: α_5 against (Ry)_5."


def test_a_reproduction_ends_with_the_claims_that_failed_in_words(rni_command, monkeypatch):
    from rni.papers import Claim
    from rni.papers.fanthomme2021 import PAPER
    from rni.papers.report import Outcome

    parts = {"where": "section 2", "statement": "networks integrate", "criterion": "", "holds": lambda value: False}
    claims = [
        Claim(id="one", measured=1.23456, expected="at least 2", **parts),
        Claim(id="two", measured={"a": 1.0, "b": 2.0}, expected="a above b", **parts),
    ]
    found = [Outcome(PAPER.figure("fig1"), [], claims=claims)]
    monkeypatch.setattr("rni.papers.reproduce.reproduce", lambda *_: (found, "index.html"))
    *_, first, numbers, _, both, paper, ours, wrote = rni_command("reproduce", "fig1", "--workers", "1")[1].splitlines()
    assert first == "not reproduced: one, section 2: networks integrate"
    assert numbers == "    expected: at least 2; measured: 1.235"
    assert both == "    expected: a above b; measured: a 1, b 2"
    assert paper.startswith("claims, the paper's: 0 reproduced, 2 not reproduced")
    assert ours.startswith("claims, ours: 0 reproduced")
    assert wrote == "wrote index.html"


@pytest.mark.parametrize("there", ["index.html", "table.csv"])
def test_a_folder_with_files_of_somebody_else_is_left_alone(rni_command, tmp_path, there):
    (tmp_path / "run.toml").write_text('kind = "design"\ntask.decays = [0.9]\nnetwork.neurons = 20\n', encoding="utf-8")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / there).write_text("mine", encoding="utf-8")
    commands = [("sweep", tmp_path / "run.toml", "--over", "seed=0..1", "--measure", "error", "--workers", 1)]
    commands += [("reproduce", "fig1", "--workers", 1)] if there == "index.html" else []
    for command in commands:
        code, _, err = rni_command(*command, "--out", tmp_path / "mine", "--store", tmp_path / "runs")
        assert code == 2
        assert err.startswith(f"rni: {tmp_path / 'mine'}: {there}")
    assert (tmp_path / "mine" / there).read_text(encoding="utf-8") == "mine"


def test_a_page_of_ours_is_replaced(tmp_path):
    template.require_own(tmp_path / "nowhere", "index.html")
    (tmp_path / "index.html").write_bytes(b"<head>" + template.MARK)
    (tmp_path / "table.csv").write_text("key", encoding="utf-8")
    template.require_own(tmp_path, "index.html", "table.csv")
