import errno
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from rni import load, save

CONFIG = """
[task]
decays = [0.9, 0.8]
[network]
neurons = 80
[training]
steps = 30
"""


@pytest.fixture
def rni(rni_command):
    return rni_command


@pytest.fixture
def config(tmp_path):
    (tmp_path / "run.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path / "run.toml"


@pytest.fixture
def trained(rni, config, tmp_path):
    assert rni("train", config, "--out", "net.safetensors")[0] == 0
    return tmp_path / "net.safetensors"


@pytest.fixture
def saved(small, tmp_path):
    """A network file, without waiting for a training."""
    save(small(), tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


def test_training_under_dales_law_without_inhibition_says_why_it_fails(rni, config):
    weights = "{ name = 'dale', inhibitory = 0 }"
    code, _, err = rni("train", config, "--weights", weights, "--steps", 3, "--out", "net.safetensors")
    assert code == 0
    assert "rni: warning: Dale's law with no inhibitory neurons: recurrent currents W h are never negative" in err
    code, _, err = rni("train", config, "--weights", "dale", "--steps", 3, "--out", "net.safetensors")
    assert (code, "warning" in err) == (0, False)


def test_analyze_shows_what_disturbances_cost(rni, saved):
    code, out, _ = rni("analyze", saved, "--robustness")
    assert code == 0
    shown = out[out.index("undisturbed") :].splitlines()
    assert [line.split(",")[0].strip() for line in shown[1:]] == ["noise on W", "silenced neurons", "noise on states"]
    assert all(line.count("%") == 3 for line in shown[1:])
    code, _, err = rni("analyze", "model.pt", "--robustness")
    assert (code, err[:17]) == (2, "rni: --robustness")


def test_simulate_warns_of_integrals_beyond_the_trained_range(rni, tmp_path):
    (tmp_path / "run.toml").write_text(
        """
        task = { decays = [0.8] }
        network = { neurons = 40, activation = "sigmoid" }
        training = { loss = "proxy", points = 16, learning_rate = 0.01, steps = 3 }
        """,
        encoding="utf-8",
    )
    assert rni("train", "run.toml", "--out", "net.safetensors")[0] == 0
    np.save(tmp_path / "x.npy", np.ones((1, 60, 1)))
    assert "warning" not in rni("simulate", "net.safetensors", "--inputs", "x.npy", "--out", "y.npy")[2]
    np.save(tmp_path / "x.npy", 2 * np.ones((1, 60, 1)))
    code, _, err = rni("simulate", "net.safetensors", "--inputs", "x.npy", "--out", "y.npy")
    assert code == 0
    assert "rni: warning: inputs: channel 1 reaches |z| = 10; trained for at most 5" in err


def test_train_analyze_simulate_export(rni, trained, tmp_path):
    code, out, _ = rni("analyze", trained)
    assert code == 0
    assert "relative error, bursts, 2000 steps" in out
    code, out, _ = rni("analyze", trained, "--json")
    assert set(json.loads(out)["errors"]) == {"white noise", "bursts"}

    x = np.random.default_rng(0).normal(size=(3, 50, 2))
    np.save(tmp_path / "x.npy", x)
    assert rni("simulate", trained, "--inputs", "x.npy", "--out", "y.npy")[0] == 0
    net = load(trained)
    inputs = torch.as_tensor(x, dtype=torch.float32)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), net.outputs(inputs).detach().numpy())
    np.save(tmp_path / "x.npy", x[0])
    assert rni("simulate", trained, "--inputs", "x.npy", "--out", "y.npy")[0] == 0
    assert np.load(tmp_path / "y.npy").shape == (50, 2)

    assert rni("export", trained, "--to", "torch")[0] == 0
    modules = nn.ModuleDict({"rnn": nn.RNN(2, 80, nonlinearity="relu", bias=False, batch_first=True)})
    modules["readout"] = nn.Linear(80, 2, bias=False)
    modules.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True))
    torch.testing.assert_close(modules["readout"](modules["rnn"](inputs)[0]), net.outputs(inputs))


def test_a_designed_network_is_simulated_though_it_was_not_trained(rni, tmp_path):
    assert rni("design", "--decays", "0.9", "--neurons", "40", "--out", "net.safetensors")[0] == 0
    np.save(tmp_path / "x.npy", np.ones((5, 1), dtype=">f4"))
    code, _, err = rni("simulate", "net.safetensors", "--inputs", "x.npy", "--out", "y.npy")
    assert (code, err) == (0, "")


def test_flags_override_the_file(rni, config, tmp_path):
    out = tmp_path / "net.safetensors"
    flags = ["--neurons", "50", "--training.steps=3", "--activation", "linear", "--decays", "[0.5]", "--seed", "9"]
    flags += ["--learning-rate", ".01"]
    assert rni("train", config, "--out", out, *flags)[0] == 0
    net = load(out)
    assert (net.neurons, net.f.name, net.task.decays) == (50, "linear", (0.5,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "run.toml", "--neurons", "x"], "rni: network.neurons: 'x'; allowed: a whole number"),
        (["train", "run.toml", "--nurons", "5"], "rni: nurons: no such field; allowed: seed"),
        (["train", "run.toml", "--neurons"], "rni: --neurons: no value"),
        (["train", "run.toml", "five"], "rni: five: unexpected"),
        (["train", "none.toml"], "rni: none.toml: no such file"),
        (["train", "x.npy"], "rni: x.npy: "),
        (["train", "run.toml", "--neurons", "9" * 5000], "rni: network.neurons: "),
        (["train", "run.toml", "--neurons", "[" * 5000], "rni: network.neurons: '[[["),
        (["train", "a\nb\x1b[31m.toml"], "rni: a\\nb\\x1b[31m.toml: no such file"),
        (["train", "x" * 5000], "rni: xxx"),
        (["analyze", "."], "rni: .: a folder; allowed: a file that can be read"),
        (["analyze", "x" * 5000], "rni: xxx"),
        (["simulate", "net.safetensors", "--inputs", ".", "--out", "y.npy"], "rni: .: a folder"),
        (["simulate", "net.safetensors", "--inputs", "giant.npy", "--out", "y.npy"], "rni: giant.npy: can't be read"),
        (
            ["simulate", "net.safetensors", "--inputs", "empty.npy", "--out", "y.npy"],
            "rni: empty.npy: float64 of shape",
        ),
        (["analyze", "none.safetensors"], "rni: none.safetensors: no such file"),
        (["analyze", "run.toml"], "rni: run.toml: a configuration; taken by rni train"),
        (["export", "net.safetensors", "--to", "nengo"], "rni: --to: 'nengo'; allowed: torch, onnx, arrays"),
        (
            ["export", "net.safetensors", "--to", "onnx", "--out", "net.pt"],
            "rni: --out: 'net.pt'; allowed: a name that",
        ),
        (["analyze", "x.pt"], "rni: x.pt: a text"),
        (["analyze", "x.npy.npz"], "rni: x.npy.npz: a text"),
        (
            ["analyze", "net.safetensors", "--out", "net.pdf"],
            "rni: --out: 'net.pdf'; allowed: a name that ends in .html",
        ),
        (
            ["analyze", "net.safetensors", "--activation", "tanh"],
            "rni: activation: 'tanh' for a Network; allowed: none",
        ),
        (["analyze", "net.safetensors", "--decays", "big"], "rni: --decays: 'big'; allowed: numbers"),
        (["analyze", "net.safetensors", "--decays", "0.9"], "rni: decays: 1; allowed: 2"),
        (["analyze", "net.safetensors", "--scales", "2"], "rni: --scales: given without --decays"),
        (["analyze", "net.safetensors", "--inputs", "x.npy"], "rni: x.npy: float64 of shape (4,); allowed: finite"),
        (["export", "net.safetensors", "--out", "net.h5"], "rni: --out: 'net.h5'; allowed: a name that ends in .pt"),
        (["simulate", "net.safetensors", "--inputs", "none.npy", "--out", "y.npy"], "rni: none.npy: "),
        (["simulate", "net.safetensors", "--inputs", "run.toml", "--out", "y.npy"], "rni: run.toml: "),
        (["simulate", "net.safetensors", "--inputs", "x.npy", "--out", "y.npy"], "rni: x.npy: float64 of shape (4,)"),
    ],
)
def test_a_wrong_call_is_answered_in_one_line_without_a_traceback(rni, config, saved, tmp_path, arguments, message):
    np.save(tmp_path / "x.npy", np.zeros(4))
    np.save(tmp_path / "empty.npy", np.zeros((0, 5, 2)))
    whole = (tmp_path / "empty.npy").read_bytes()
    (tmp_path / "giant.npy").write_bytes(whole.replace(b"(0, 5, 2), }" + b" " * 10, b"(10000000000, 5, 2), }"))
    for name in ("x.pt", "x.npy.npz"):
        (tmp_path / name).write_text("nothing", encoding="utf-8")
    code, _, err = rni(*arguments)
    assert code == 2
    assert err.startswith(message)
    assert all(line.startswith("rni: ") for line in err.splitlines())


def test_analyze_takes_a_state_dict_of_torch_and_writes_a_page(rni, tmp_path):
    """tanh.pt: a bare RNN with biases; what had to be assumed is said."""
    torch.manual_seed(0)
    torch.save(nn.RNN(1, 12).state_dict(), tmp_path / "tanh.pt")
    np.save(tmp_path / "x.npy", 0.3 * np.random.default_rng(0).normal(size=(8, 60, 1)))
    code, out, err = rni("analyze", "tanh.pt", "--inputs", "x.npy", "--out", "page.html")
    assert (code, err) == (0, "")
    assert out.startswith("forgets: ")
    assert "12 neurons, Tanh(), decays" in out
    assert "relative error, inputs, 60 steps" in out
    assert "note: activation tanh, torch's default" in out
    assert "tanh.pt" in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, out, _ = rni("analyze", "tanh.pt", "--inputs", "x.npy", "--activation", "relu", "--decays", "0.9", "--json")
    found = json.loads(out)
    assert (found["activation"], found["decays"], found["notes"]) == ("ReLU()", [0.9], [])


def test_analyze_takes_a_leaky_network_of_another_code_and_says_what_it_assumed(rni, tmp_path):
    """PsychRNN's file: W = 0.9 within a step of 0.2 is a decay of 0.98, 495 in the unit in which a step is 10."""
    n, rng = 6, np.random.default_rng(0)
    along = rng.normal(size=(n, 1))
    w = 0.9 * along @ along.T / np.sum(along**2)
    arrays = {"W_rec": w, "W_in": along, "W_out": along.T, "b_rec": 50 - w @ np.full(n, 50.0), "b_out": np.zeros(1)}
    np.savez(tmp_path / "w.npz", **arrays, rec_connectivity=np.ones((n, n)), dale_ratio=np.array(None))
    np.save(tmp_path / "x.npy", rng.normal(size=(16, 200, 1)))
    code, out, err = rni("analyze", "w.npz", "--inputs", "x.npy")
    assert (code, out) == (2, "")
    assert err.startswith(
        "rni: w.npz: leak: not in the file, which is of PsychRNN; allowed: leak (1 for none), or dt and tau"
    )
    given = ("--inputs", "x.npy", "--dt", "10", "--tau", "50", "--json", "--out", "page.html")
    found = json.loads(rni("analyze", "w.npz", *given)[1])
    assert found["verdict"]["kind"] == "integrates"
    assert found["fitted_decays"] == pytest.approx([0.98], rel=0.01)
    assert found["times"] == pytest.approx([495], rel=0.1)
    assert (found["leak"], found["form"], found["dt"]) == (0.2, "current", 10)
    assumed = "activation relu, PsychRNN's default: the file does not say which"
    assert found["notes"][:2] == ["read as the weights of PsychRNN", assumed]
    assert "not read, because pickled: dale_ratio" in found["notes"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "6 neurons, ReLU(), current form, leak 0.2, readout given." in page
    assert "<li>not read, because pickled: dale_ratio</li>" in page
    mapped = ("--map", "recurrent=W_rec,input_weights=W_in,bias=b_rec", "--leak", "0.2", "--form", "rate")
    found = json.loads(rni("analyze", "w.npz", *mapped, "--activation", "relu", "--inputs", "x.npy", "--json")[1])
    assert found["fitted_decays"] == pytest.approx([0.98], rel=0.01)
    assert (found["form"], found["readout"]) == ("rate", "fitted")
    assert rni("analyze", "w.npz", "--map", "recurrent")[2].startswith("rni: --map: 'recurrent'; allowed: OURS=THEIRS")


def test_analyze_takes_a_recording(rni, tmp_path):
    x = np.random.default_rng(0).normal(size=(6, 80, 1))
    np.savez(tmp_path / "recording.npz", activity=np.cumsum(x, axis=1) * np.ones(5), inputs=x)
    code, out, _ = rni("analyze", "recording.npz")
    assert code == 0
    assert out.startswith("integrates: ")
    assert "recording of 5 neurons, 6 trials of 80 steps, 1 input channels\neffective decays: 1\n" in out


def test_arrays_taken_out_are_analysed_like_the_file(rni, saved):
    assert rni("export", saved, "--to", "arrays")[0] == 0
    ours, arrays = (json.loads(rni("analyze", name, "--json")[1]) for name in ("net.safetensors", "net.npz"))
    assert arrays.keys() == ours.keys()
    for key in ("decays", "ratio", "fitted_decays", "singular_values", "linearity"):
        assert arrays[key] == pytest.approx(ours[key])


def test_onnx_is_written_where_the_extra_is_installed(rni, saved, tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs the extra `export`")
    assert rni("export", saved, "--to", "onnx")[1] == f"wrote {tmp_path / 'net.onnx'}\n"
    assert [node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node].count("RNN") == 1


def test_a_diverging_training_says_when_and_where_its_work_is(rni, config):
    code, _, err = rni("train", config, "--learning-rate", "500")
    assert code == 2
    assert "rni: training diverged at step 1: loss" in err
    assert "learning_rate: 500; allowed: a smaller one" in err
    assert "rni: weights and losses up to then are in network.safetensors." in err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_training_goes_on_where_it_was(rni, config, tmp_path, monkeypatch, how):
    """SIGINT and SIGTERM save; the same command then ends with the bits of an undisturbed run."""
    reached = []

    @contextmanager
    def stopped_at_the_twentieth(steps):
        def stop(step, loss, net):
            reached.append(step)
            if len(reached) == 20:
                signal.raise_signal(how)

        yield stop

    monkeypatch.setattr("rni.runs.progress.training_progress", stopped_at_the_twentieth)
    code, _, err = rni("train", config, "--out", "net.safetensors")
    (checkpoint,) = tmp_path.glob("net.safetensors.*.checkpoint")
    assert (code, err) == (130, f"rni: interrupted; the same command goes on from {checkpoint.name}\n")
    for out in ("net.safetensors", "whole.safetensors"):
        assert rni("train", config, "--out", out)[0] == 0
    assert reached == [*range(30), *range(30)], "each step once"
    assert (tmp_path / "net.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert not list(tmp_path.glob("*.checkpoint"))


def test_a_terminated_command_saves_and_says_so(config, tmp_path):
    command = [sys.executable, "-c", "from rni.cli import main; main()", "train", str(config), "--steps", "100000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline() == "training for 100000000 steps\n"
    assert process.stderr.readline().startswith("step 0/100000000  loss ")
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "rni: interrupted; the same command goes on from network.safetensors." in err
    assert len(list(tmp_path.glob("network.safetensors.*.checkpoint"))) == 1


def test_ctrl_c_before_the_first_step_says_that_nothing_was_saved(rni, config, monkeypatch):
    def silent(self):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("rni.losses.BatchLoss.zero_output_loss", silent)
    code, _, err = rni("train", config)
    assert code == 130
    assert err.splitlines() == [
        "training for 30 steps",
        "rni: interrupted; the same command begins afresh: nothing was saved yet",
    ]


def test_a_reproduction_counts_the_claims_of_the_paper_and_ours_apart(rni, monkeypatch):
    from rni.papers import Claim
    from rni.papers.fanthomme2021 import PAPER
    from rni.papers.report import Outcome

    parts = {"where": "", "statement": "", "criterion": "", "expected": "", "holds": lambda value: value > 0}
    claims = [Claim(id="one", measured=1.0, **parts), Claim(id="two", measured=-1.0, origin="ours", **parts)]
    found = [Outcome(PAPER.figure("fig1"), [], claims=claims)]
    monkeypatch.setattr("rni.papers.reproduce.reproduce", lambda *_: (found, "index.html"))
    _, out, _ = rni("reproduce", "fig1", "--workers", "1")
    assert "the paper's: 1 reproduced, 0 not reproduced, 0 not tested" in out
    assert "ours: 0 reproduced, 1 not reproduced, 0 not tested" in out


OUTPUTS = [
    ["train", "run.toml", "--out"],
    ["design", "--decays", "0.9", "--neurons", "20", "--out"],
    ["simulate", "net.safetensors", "--inputs", "x.npy", "--out"],
    ["analyze", "net.safetensors", "--out"],
    ["export", "net.safetensors", "--to", "arrays", "--out"],
    ["reproduce", "fig1", "--store", "runs", "--out"],
]


@pytest.mark.parametrize("command", OUTPUTS, ids=lambda command: command[0])
def test_a_place_that_cannot_be_written_is_one_line_before_any_work(rni, config, saved, tmp_path, monkeypatch, command):
    for work in (
        "rni.runs.execution.run",
        "rni.designs.designing",
        "rni.files.native.read",
        "rni.files.foreign.read",
    ):
        monkeypatch.setattr(work, None)  # would be a TypeError if called
    monkeypatch.setattr("rni.papers.reproduce.compute_all", None)
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    endings = {"analyze": ".html", "export": ".npz", "simulate": ".npy", "reproduce": ""}
    name = "out" + endings.get(command[0], ".safetensors")
    if command[0] != "reproduce":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).touch()
    for out, said in ((name, "folder; allowed: "), (f"file/{name}", "not a folder; allowed: a folder")):
        before = sorted(tmp_path.rglob("*"))
        code, _, err = rni(*command, out)
        assert code == 2, err
        assert said in err
        assert err.startswith("rni: ")
        assert err.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before


def no_room(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_during_a_training_is_one_line_and_the_same_command_goes_on(rni, config, monkeypatch):
    """Room for the question whether there is any, and none for the network."""
    from rni.core import atomic

    with monkeypatch.context() as full:
        full.setattr(atomic, "require_writable", lambda path: None)
        for module in ("train", "files"):
            full.setattr(f"rni.cli.{module}.require_writable", lambda path: None)
        full.setattr(os, "fsync", no_room)
        code, _, err = rni("train", config, "--out", "net.safetensors")
    assert code == 2
    line = err.splitlines()[-1]
    assert line == "rni: net.safetensors: No space left on device; the same command goes on once that is mended"
    assert rni("train", config, "--out", "net.safetensors")[0] == 0


def test_a_store_that_is_a_file_is_one_line(rni, tmp_path):
    (tmp_path / "file").touch()
    for command in (["runs", "list"], ["runs", "show", "ab"], ["runs", "remove", "--all"], ["reproduce", "fig3"]):
        code, _, err = rni(*command, "--store", "file")
        assert (code, err) == (2, "rni: file: not a folder; allowed: a folder, or a path where one can be created\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_one_line(tmp_path):
    command = [sys.executable, "-c", "from rni.cli import main; main()", "runs", "list", "--store", str(tmp_path)]
    with open("/dev/full", "w", encoding="utf-8") as full:
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "rni: No space left on device; the same command goes on once that is mended\n"
    assert (found.returncode, found.stderr) == (2, said)


@pytest.mark.parametrize(
    "arguments",
    [["reproduce", "--list"], ["reproduce", "fig1", "--workers", "1", "--store", "store"], ["analyze", "foreign.pt"]],
    ids=" ".join,
)
def test_commands_work_in_a_locale_that_only_has_ascii(tmp_path, arguments):
    layers = nn.ModuleDict({"rnn": nn.RNN(2, 20), "readout": nn.Linear(20, 2)})
    torch.save(layers.state_dict(), tmp_path / "foreign.pt")
    ascii_only = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "rni", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=ascii_only, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("ascii", "replace")
    assert done.stdout.isascii()


def test_a_log_that_cannot_be_written_does_not_end_a_training(rni, config, monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def isatty(self):
            return False

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stderr", Full())
    assert rni("train", config, "--out", "net.safetensors")[0] == 0


def test_an_error_that_is_not_the_users_is_not_hidden(rni, monkeypatch, tmp_path):
    def fails(self):
        raise ConnectionResetError(errno.ECONNRESET, "reset")

    monkeypatch.setattr("rni.runs.store.Store.entries", fails)
    with pytest.raises(ConnectionResetError):
        rni("runs", "list", "--store", tmp_path)


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from typer.testing import CliRunner; from rni.cli import app\n"
        "for command in ([], ['train'], ['design'], ['runs', 'list']):\n"
        "    assert CliRunner().invoke(app, [*command, '--help']).exit_code == 0\n"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_figures_are_listed_without_torch_under_the_titles_that_they_have():
    from rni.papers.fanthomme2021 import PAPER

    code = (
        "import sys; from rni.cli import app\n"
        "app(['reproduce', '--list'], standalone_mode=False)\n"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    titles = dict(line.split(maxsplit=1) for line in told.stdout.splitlines())
    assert (told.returncode, titles) == (0, PAPER.titles())


def test_theory_advises_on_learning_rate_time_and_scales(rni):
    code, out, _ = rni("theory", "--overlap", "0.3", "--scale", "0.3")
    assert code == 0
    assert "best learning rate         0.1502" in out
    assert "time to converge           inf" in out
    assert "scales to avoid            0.001 to" in out
    assert "from W = 0                 falls steadily up to a rate of 0.0" in out
    _, out, _ = rni("theory")
    assert "stays there                below a rate of 0.08824, started close to it" in out
    assert "from W = 0                 converges up to a rate of 0.07" in out


def test_theory_judges_a_linear_network_file(rni, config):
    linear = ["--out", "lin.safetensors", "--activation", "linear"]
    assert rni("design", "--decays", "0.9", "--neurons", "40", *linear)[0] == 0
    code, out, _ = rni("theory", "lin.safetensors")
    assert code == 0
    assert out.startswith("a generalizing integrator: largest error of a moment")
    few = ["--loss", "averaged", "--precision", "float64", "--steps", "3"]
    assert rni("train", config, *linear, *few)[0] == 0
    assert rni("theory", "lin.safetensors")[1].startswith("not a generalizing integrator")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--overlap", "3"], "rni: overlap: 3.0"),
        (["--duration", "2"], "rni: duration: 2"),
        (["--scale", "0"], "rni: scale: 0.0"),
        (["--decay", "2"], "rni: --decay: 2.0; allowed: above 0, up to 1"),
        (["net.safetensors"], "rni: net.safetensors: activation 'relu'"),
    ],
)
def test_theory_refuses_what_it_does_not_cover(rni, trained, arguments, message):
    code, _, err = rni("theory", *arguments)
    assert code == 2
    assert err.startswith(message)
