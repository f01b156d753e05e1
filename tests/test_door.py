"""The command line as a stranger meets it: help, outputs that are never lost, closed pipes, Ctrl-C, advice."""

import errno
import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import rni as package
from rni.cli.fields import FIELDS
from rni.cli.train import _advice
from rni.runs.execution import Result, run
from rni.runs.label import apart
from rni.runs.specification import LOSSES, NetworkPart, Specification, Training, fields

RUN = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 30}, "training": {"steps": 3}}


@pytest.fixture
def rni(rni_command):
    return rni_command


@pytest.fixture
def net(tmp_path, small):
    package.save(small(), tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


@pytest.fixture
def config(tmp_path):
    (tmp_path / "run.toml").write_text(Specification.parse(RUN).to_toml())
    return tmp_path / "run.toml"


def test_version_and_short_help(rni):
    assert rni("--version")[:2] == (0, f"rni {package.__version__}\n")
    assert rni("-h") == rni("--help")
    assert rni("train", "-h")[0] == rni("runs", "show", "-h")[0] == 0


def test_the_shell_completes_commands_and_options(tmp_path):
    def completed(words):
        environment = os.environ | {"_RNI_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "1"}
        environment["COMP_CWORD"] = str(len(words.split()) - 1)
        command = [sys.executable, "-m", "rni"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path).stdout.split()

    assert completed("rni de") == ["design"]
    assert completed("rni design --act") == ["--activation"]


def test_the_help_of_train_lists_every_field_with_its_default(rni):
    """The table is written down, so that help comes without torch; here it is held against the specification."""
    assert {section: set(names) for section, names in FIELDS.items()} == {s: set(n) for s, n in fields().items()}
    parts = {"": Specification, "network": NetworkPart, "training": Training}
    for section, part in parts.items():
        of_losses = {name: field for loss in LOSSES.parts.values() for name, field in loss.model_fields.items()}
        known = (of_losses if section == "training" else {}) | part.model_fields
        for name, (default, _) in FIELDS[section].items():
            value = known[name].default
            value = getattr(value, "name", "" if value in (None, ()) else value)
            assert default == (f"{value:g}" if isinstance(value, float) else str(value).lower()), name
    shown = " ".join(rni("train", "--help")[1].split())
    for name, (default, _) in (pair for names in FIELDS.values() for pair in names.items()):
        assert f"--{name.replace('_', '-')} {default}" in shown


class Asked(Exception):
    """What a command was asked for, instead of doing it."""


@pytest.mark.parametrize("form", [["0.9", "0.8"], ["0.9,0.8"], ["[0.9, 0.8]"]], ids=" ".join)
def test_every_command_takes_a_list_in_every_form(rni, net, config, monkeypatch, form):
    def ask(decays):
        raise Asked(decays)

    monkeypatch.setattr("rni.runs.execution.run", lambda specification, **_: ask(specification.task.decays))
    monkeypatch.setattr("rni.designs.design", lambda task, *_, **__: ask(task.decays))
    monkeypatch.setattr("rni.analysis.analyze", lambda _, task: ask(task.decays))
    for command in (["train", config], ["design"], ["analyze", net], ["explore"]):
        with pytest.raises(Asked) as asked:
            rni(*command, "--decays", *form)
        assert asked.value.args == ((0.9, 0.8),)


def test_one_channel_needs_no_list():
    for decay in (0.9, 1):
        assert Specification.parse({"task": {"decays": decay}}).task.decays == (decay,)


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
def test_nothing_is_replaced_in_silence(rni, net, config, tmp_path, command, default):
    """Under a default name not at all; where --out names it, with a word; with --force."""
    (tmp_path / default).write_text("mine")
    code, _, err = rni(*command)
    assert (code, (tmp_path / default).read_text()) == (2, "mine")
    assert err == f"rni: {default}: there already; allowed: --out with another name, or --force to replace it\n"
    code, _, err = rni(*command, "--out", default)
    assert code == 0
    assert err.startswith(f"rni: {default}: there already, to be replaced\n")
    assert (tmp_path / default).read_bytes() != b"mine"
    code, _, err = rni(*command, "--force")
    assert (code, "replaced" in err) == (0, False)


class Closed(io.StringIO):
    """Standard output that nobody reads any more."""

    def write(self, text):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_closed_pipe_loses_no_page_and_says_nothing(rni, net, tmp_path, monkeypatch):
    monkeypatch.setattr("rni.pages.analysis.write_page", lambda analysis, out, name: out.write_text("page"))
    with monkeypatch.context() as piped:
        piped.setattr(sys, "stdout", Closed())
        code, _, err = rni("analyze", net, "--out", "page.html")
    assert (code, err) == (1, "")
    assert (tmp_path / "page.html").read_text() == "page"


@pytest.mark.parametrize("command", ["analyze", "simulate"])
def test_ctrl_c_says_that_nothing_is_half_written(rni, net, tmp_path, monkeypatch, command):
    def interrupted(*_):
        raise KeyboardInterrupt

    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    monkeypatch.setattr("rni.exchange.foreign.read", interrupted)
    monkeypatch.setattr("rni.exchange.native.read", interrupted)
    flags = ["--inputs", "x.npy", "--out", "y.npy"] if command == "simulate" else ["--out", "page.html"]
    assert rni(command, net, *flags) == (130, "", "rni: interrupted; what was written is whole\n")
    assert not (tmp_path / "y.npy").exists()


def test_ctrl_c_in_a_reproduction_says_where_the_runs_are_kept(rni, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rni.paper.reproduce.reproduce", interrupted)
    code, _, err = rni("reproduce", "fig1", "--workers", "1", "--store", "runs")
    assert code == 130
    assert err.startswith("rni: interrupted; finished runs, and those begun as far as they are, are kept in ")
    assert err.endswith(f"{tmp_path / 'runs'}: the same command goes on from there\n")


def test_going_on_from_a_checkpoint_is_announced(rni, config, tmp_path):
    def stop(step, *_):
        if step == 1:
            signal.raise_signal(signal.SIGINT)

    specification = Specification.from_toml(config)
    checkpoint = tmp_path / f"network.safetensors.{specification.key()[:8]}.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        run(specification, callbacks=[stop], checkpoint=checkpoint)
    code, _, err = rni("train", config)
    assert (code, err.splitlines()[0]) == (0, f"going on from {checkpoint.name}")


def test_a_training_that_was_too_short_says_so(rni, config):
    code, out, _ = rni("train", config)
    assert (code, out.splitlines()[1].split(":")[0]) == (0, "forgets")
    assert "what to do: train longer: the loss still falls, by " in out
    assert "--steps 1000\n" in out
    assert (
        "what to do" not in rni("train", config, "--steps", "2000", "--decays", "0.5", "--out", "long.safetensors")[1]
    )


def test_advice_knows_why_a_network_does_not_integrate():
    def result(losses, **network):
        specification = Specification.parse({"task": {"decays": [0.99]}, "network": {"neurons": 30, **network}})
        return Result(specification, specification.build(), losses)

    assert _advice(result([1.0] * 100)).startswith("the loss falls no more: --loss proxy, more --neurons")
    assert _advice(result([0.9**k for k in range(100)])).startswith("train longer: the loss still falls, by 65%")
    assert _advice(result([1.0] * 100, activation="tanh")).startswith(
        "integrals reach 99, and Tanh() with these decoders"
    )


def test_runs_that_look_alike_are_told_apart_by_what_differs():
    made = [RUN, RUN | {"network": {"neurons": 30, "weights": "lowrank"}}, RUN | {"seed": 1}]
    one, other, seed = apart([Specification.parse(raw).to_dict() for raw in made])
    assert ("network.weights.name dense" in one, "network.weights.name lowrank" in other) == (True, True)
    assert seed == ""
    assert apart([None]) == [""]


def test_a_reproduction_ends_with_the_claims_that_failed_in_words(rni, monkeypatch):
    from rni.paper.claims import Claim
    from rni.paper.outcome import Outcome
    from rni.paper.reproduce import all_figures

    parts = {"where": "section 2", "statement": "networks integrate", "criterion": "", "holds": lambda value: False}
    claims = [
        Claim(id="one", measured=1.23456, expected="at least 2", **parts),
        Claim(id="two", measured={"a": 1.0, "b": 2.0}, expected="a above b", **parts),
    ]
    found = [Outcome(all_figures()["fig1"], [], claims=claims)]
    monkeypatch.setattr("rni.paper.reproduce.reproduce", lambda *_: (found, "index.html"))
    *_, first, numbers, _, both, paper, ours, wrote = rni("reproduce", "fig1", "--workers", "1")[1].splitlines()
    assert first == "not reproduced: one, section 2: networks integrate"
    assert numbers == "    expected: at least 2; measured: 1.235"
    assert both == "    expected: a above b; measured: a 1, b 2"
    assert paper.startswith("claims, the paper's: 0 reproduced, 2 not reproduced")
    assert ours.startswith("claims, ours: 0 reproduced")
    assert wrote == "wrote index.html"
