"""Sweeps: what is varied, what comes of it, and that nothing is computed or measured twice."""

import csv
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path

import pytest
import torch
from told import of, there, train_run

import rni
from rni import InputError
from rni.activations import Sigmoid
from rni.cli import app
from rni.runs import engine, numerics
from rni.runs.engine import compute_all
from rni.runs.measures import Measuring
from rni.runs.store import Store
from rni.runs.sweep import Sweep, planned

BASE = {"task": {"decays": [0.9]}, "network": {"neurons": 12}, "training": {"steps": 5}}
ROOT = Path(__file__).parents[2]


@pytest.fixture
def sweep(tmp_path):
    """A sweep in this process, with a store of its own."""

    def carried_out(over=None, base=BASE, measure="loss,steps", **options):
        return rni.sweep(base, over, store=tmp_path / "runs", workers=0, measure=measure, **options)

    return carried_out


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the user's, in the folder that one is in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    def write(text):
        (tmp_path / "mine.py").write_text(text)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        sys.modules.pop("mine", None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("mine", None)
    sys.path[:] = [path for path in sys.path if path != str(tmp_path)]


def points(**over):
    return [tuple(point.values()) for point in Sweep(over=over).points()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("100,300,1000", [100, 300, 1000]),
        ([100, 300], [100, 300]),
        ("0..3", [0, 1, 2, 3]),
        ("7..7", [7]),
        ("10..100:linear:4", [10, 40, 70, 100]),
        ("10..1000:log:3", [10, 100, 1000]),
        ("2..4:linear:9", [2, 3, 4]),
        (5, [5]),
    ],
)
def test_values_are_lists_or_ranges_with_both_ends(given, expected):
    assert points(neurons=given) == [(value,) for value in expected]


def test_a_logarithmic_range_is_even_in_the_logarithm():
    assert points(learning_rate="1e-3..1e-1:log:3") == [(0.001,), (0.01,), (0.1,)]


def test_lists_and_tables_are_values_too():
    assert points(decays="[0.9],[0.9,0.8]") == [([0.9],), ([0.9, 0.8],)]
    assert points(activation='relu,{name = "sigmoid", slope = 5}') == [("relu",), ({"name": "sigmoid", "slope": 5},)]


def test_fields_vary_on_a_grid_in_which_the_last_changes_fastest():
    assert points(neurons=[2, 3], seed="0..1") == [(2, 0), (2, 1), (3, 0), (3, 1)]


def test_zipped_fields_vary_together():
    sweep = Sweep(over={"seed": [0, 1]}, zip={"neurons": [20, 40], "steps": [10, 30]})
    assert [tuple(point.values()) for point in sweep.points()] == [(0, 20, 10), (0, 40, 30), (1, 20, 10), (1, 40, 30)]


def test_drawn_fields_vary_together_and_more_of_them_begin_with_the_same():
    def drawn(count):
        return points(learning_rate=f"1e-3..1e-1:lograndom:{count}", neurons=f"10..1000:random:{count}")

    few, many = drawn(5), drawn(50)
    assert len(few) == 5
    assert many[:5] == few
    assert all(1e-3 <= rate <= 1e-1 and 10 <= neurons <= 1000 for rate, neurons in many)
    assert sum(rate < 1e-2 for rate, _ in many) in range(15, 36), "half of them below the middle of the logarithm"


def test_a_field_within_a_part_can_be_swept():
    base = BASE | {"network": {"neurons": 12, "activation": "sigmoid"}}
    sweep = Sweep(over={"network.activation.slope": [5.0, 50.0]})
    runs = sweep.runs(base, list(sweep.points()))
    activations = [of(Sigmoid, there(run.specification).network.activation) for run in runs]
    assert [activation.slope for activation in activations] == [5.0, 50.0]
    assert base["network"]["activation"] == "sigmoid"


@pytest.mark.parametrize(
    ("given", "field", "word"),
    [
        ({"over": {"nurons": [3]}}, "nurons", "neurons"),
        ({"over": {"seed": "5..1"}}, "over.seed", "FROM..TO"),
        ({"over": {"seed": ""}}, "over.seed", "at least one"),
        ({"over": {"seed": []}}, "over.seed", "at least one"),
        ({"over": {"seed": "0.5..3"}}, "over.seed", "whole numbers"),
        ({"over": {"seed": "0..99999999999"}}, "over.seed", "1000000"),
        ({"over": {"learning_rate": "0..1:log:3"}}, "over.training.learning_rate", "above 0"),
        ({"over": {"learning_rate": "1..2:even:3"}}, "over.training.learning_rate", "FROM..TO"),
        ({"over": {"neurons": "2..9:bisect"}}, "over.network.neurons", "FROM..TO"),
        ({"over": {"neurons": [3], "network.neurons": [4]}}, "over.network.neurons", "once"),
        ({"over": {"seed": [1]}, "zip": {"seed": [2]}}, "zip.seed", "once"),
        ({"zip": {"seed": [1, 2], "neurons": [3]}}, "zip", "as many"),
        ({"over": {"neurons": "2..9:random:3", "seed": "2..9:random:4"}}, "over", "as many"),
        ({"over": {"neurons": [object]}}, "over.network.neurons", "finite numbers"),
        ({"over": {"learning_rate": [float("nan")]}}, "over.training.learning_rate", "finite numbers"),
        ({"over": {"steps": [3]}, "kind": "design"}, "training.steps", "seed, task"),
        ({"over": {"bounds": [[3.0]]}, "kind": "design"}, "training.bounds", "none"),
        ({"over": {"seed": [0]}, "x": "neurons"}, "x", "seed"),
        ({"y": "los"}, "y", "error, ratio"),
        ({"over": {"neurons": [-3, 10]}}, "network.neurons", "2 or more"),
        ({"measure": "los"}, "measure", "loss, steps"),
        ({"measure": "steps@few"}, "measure", "loss, steps"),
        ({"measure": "nowhere:function"}, "measure", "module:name"),
        ({"measure": "math:pi"}, "measure", "a function"),
        ({"over": {"seed": "0..999", "neurons": "2..1001"}}, "sweep", "20000"),
    ],
)
def test_an_invalid_sweep_is_one_line_before_any_run(sweep, tmp_path, given, field, word):
    with pytest.raises(InputError) as caught:
        sweep(**{"measure": ("error", "ratio")} | given)
    first, _, allowed = str(caught.value).partition("; allowed: ")
    assert field in (caught.value.field or first)
    assert word in (caught.value.allowed or allowed)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_the_table_has_a_row_for_each_run_and_diverged_ones_say_why(sweep, tmp_path):
    table = sweep({"learning_rate": [0.01, 1000.0], "seed": "0..1"}, out=tmp_path / "out")
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["training.learning_rate", "seed", "loss", "steps", "key", "failure"]
    assert [row["seed"] for row in rows] == ["0", "1", "0", "1"]
    for row, seed in zip(rows[:2], (0, 1), strict=True):
        run = rni.run(train_run(BASE | {"seed": seed, "training": {"steps": 5, "learning_rate": 0.01}}))
        assert float(row["loss"]) == run.losses[-1]
        assert (row["steps"], row["key"], row["failure"]) == ("5", run.specification.key(), "")
    assert all(row["failure"] and row["loss"] == "" for row in rows[2:])
    assert table["loss"][2:] == [None, None]
    assert there(Store(tmp_path / "runs").show(rows[0]["key"]).specification)["seed"] == 0


def test_a_sweep_begun_again_computes_and_measures_nothing(sweep, monkeypatch):
    again = {"over": {"learning_rate": [0.01, 1000.0]}, "measure": "loss,seconds,error,certificate,steps@0.1"}
    table = sweep(**again)
    assert table.rows[0].failure.startswith("certificate: ")
    assert table.rows[0].values["seconds"] > 0
    monkeypatch.setattr("rni.runs.sweeping.compute_all", None)
    assert sweep(**again).to_csv() == table.to_csv()


def test_other_measures_of_the_same_runs_are_added_to_what_is_known(sweep, tmp_path, monkeypatch):
    sweep({"seed": [0]}, measure="error")
    with monkeypatch.context() as patch:
        patch.setattr("rni.runs.execution.run", None)
        patch.setattr("rni.analysis.analyze", None)
        table = sweep({"seed": [0]}, measure="steps,error,ratio,fitted_decays,errors,verdict")
    assert {"steps", "error", "ratio", "fitted_decays.1", "errors.bursts.2000.1", "verdict"} <= set(table.columns)
    analysis = rni.analyze(there(Store(tmp_path / "runs").get(table.rows[0].specification)).network)
    assert table["ratio"] == [pytest.approx(analysis.ratio)]
    assert table["errors.bursts.2000.1"] == [pytest.approx(analysis.errors["bursts"][2000][0])]
    assert table["error"] == [max(table[name][0] for name in table.columns if name.startswith("errors."))]


def test_what_is_measured_of_a_run_goes_when_the_run_goes(sweep, tmp_path):
    table = sweep({"seed": [0]})
    Store(tmp_path / "runs").remove(table.rows[0].key)
    assert [path for path in (tmp_path / "runs").rglob("*") if path.is_file()] == []


def test_a_function_of_the_users_measures_and_again_when_its_file_changes(sweep, mine):
    mine("def size(net):\n    return {'n': net.neurons, 'norm': net.encoders.detach().norm()}\n")
    sweep({"seed": [0]})
    assert "mine" not in sys.modules, "imported only when it is named"
    table = sweep({"neurons": [12, 14]}, measure="mine:size")
    assert table["mine:size.n"] == [12, 14]
    assert table["mine:size.norm"][0] == pytest.approx(float(table_network(table).encoders.detach().norm()))
    mine("def size(net):\n    return -net.neurons\n")
    assert sweep({"neurons": [12, 14]}, measure="mine:size")["mine:size"] == [-12, -14]


def table_network(table):
    return rni.run(table.rows[0].specification).network


def test_a_function_that_raises_is_the_reason_in_its_rows_and_nothing_else_is_lost(sweep, mine):
    mine("def picky(net):\n    return 1 / (net.neurons - 12)\n\ndef odd(net):\n    return object()\n")
    table = sweep({"neurons": [12, 14]}, measure="mine:picky,loss,mine:odd")
    assert table["mine:picky"] == [None, 0.5]
    assert None not in table["loss"]
    assert all(word in table.rows[0].failure for word in ("mine:picky", "ZeroDivisionError", "mine:odd"))
    assert "mine:odd" in table.rows[1].failure
    assert "mine:picky" not in table.rows[1].failure
    mine("def picky(net):\n    return 1.0\n\ndef odd(net):\n    return 2\n")
    assert sweep({"neurons": [12, 14]}, measure="mine:picky,loss,mine:odd").rows[0].failure is None


def test_a_combination_that_cannot_be_is_a_row_with_its_reason(sweep):
    table = sweep({"activation": ["relu", "linear"], "loss": ["averaged", "batch"]})
    assert [row.failure is None for row in table.rows] == [True, True, True, False]
    assert "training.loss" in table.rows[-1].failure


def test_designs_are_swept_like_trainings(sweep, tmp_path):
    table = sweep({"neurons": [12, 20]}, kind="design", measure="certificate,loss,steps")
    stored = there(Store(tmp_path / "runs").get(table.rows[1].specification))
    again = designed(stored.network)
    assert torch.equal(stored.network.recurrent.matrix(), again.recurrent.matrix())
    assert table["certificate"][1] == max(rni.certify(again).relative)
    assert table["steps"] == [0, 0]
    assert all("designed" in entry.label for entry in Store(tmp_path / "runs").entries())
    trained = train_run(table.rows[1].specification.to_dict() | {"kind": "train"})
    assert trained.key() != table.rows[1].key


def test_leaky_networks_and_those_of_bounded_integrals_are_designed_too(sweep, tmp_path):
    leaky = sweep({"leak": [0.5]}, kind="design", measure="steps")
    network = there(Store(tmp_path / "runs").get(leaky.rows[0].specification)).network
    assert torch.equal(network.recurrent.matrix(), designed(network, leak=0.5).recurrent.matrix())
    base = {"task": {"decays": [0.8]}, "network": {"neurons": 100, "activation": "tanh"}}
    bounded = sweep({"bounds": [[2.0]]}, base, kind="design", measure="steps")
    network = there(Store(tmp_path / "runs").get(bounded.rows[0].specification)).network
    assert torch.equal(network.recurrent.matrix(), designed(network, bounds=[2.0]).recurrent.matrix())


def designed(like, **options):
    vectors = {"encoders": like.encoders, "decoders": like.decoders}
    return rni.design(like.task, like.neurons, like.f.name, **vectors, **options).network


def test_a_table_in_the_file_says_the_same_as_arguments_and_these_go_first(tmp_path):
    (tmp_path / "base.toml").write_text(
        '[task]\ndecays = [0.9]\n[sweep]\nmeasure = "loss"\n[sweep.over]\nneurons = [10, 20]\nseed = "0..2"\n',
        encoding="utf-8",
    )
    raw, plan = planned(tmp_path / "base.toml")
    assert plan == Sweep(measure=("loss",), over={"network.neurons": "10,20", "seed": [0, 1, 2]} | {"seed": "0..2"})
    assert raw == {"task": {"decays": [0.9]}}
    assert planned(tmp_path / "base.toml", over={"network.neurons": "5,6"})[1].count() == 6
    assert planned(tmp_path / "base.toml", over={"neurons": "5..30:linear:5"}, measure="error")[1].measure == ("error",)


def test_runs_come_back_in_order_and_failed_ones_are_named_when_all_others_are_stored(tmp_path):
    good = [train_run(BASE | {"seed": seed}) for seed in (2, 1)]
    wild = train_run(BASE | {"training": {"steps": 5, "learning_rate": 1000.0}})
    options = {"store": tmp_path, "workers": 0}
    assert [result.specification for result in rni.run_all(good, **options)] == good
    another = train_run(BASE | {"seed": 7})
    with pytest.raises(InputError) as caught:
        rni.run_all([wild, another], **options)
    assert [wild.label() in reason for reason in there(caught.value.value)] == [True]
    assert Store(tmp_path).has(another.key())


class Counting(Executor):
    """Computes when it has to, and counts what waits."""

    def __init__(self, total):
        self.left, self.waiting, self.most = total, [], 0

    def submit(self, fn, /, *args, **kwargs):
        self.left -= 1
        self.waiting.append((Future(), partial(fn, *args, **kwargs)))
        self.most = max(self.most, len(self.waiting))
        submitted = self.waiting[-1][0]
        while self.waiting and (self.left == 0 or len(self.waiting) == engine.WINDOW):
            future, function = self.waiting.pop(0)
            future.set_result(function())
        return submitted


def test_only_so_many_runs_are_submitted_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "WINDOW", 3)
    executor = Counting(8)
    runs = [train_run(BASE | {"seed": seed, "training": {"steps": 1}}) for seed in range(8)]
    outcomes = compute_all(runs, tmp_path, executor, work=Measuring(["steps"]))
    assert [outcome.value["steps"] for outcome in outcomes.values()] == [1] * 8
    assert executor.most == 3


def test_a_run_on_the_proxy_has_a_label():
    proxy = train_run(BASE | {"training": {"loss": "proxy", "steps": 7}})
    assert proxy.label() == "relu n=12, decays 0.9, proxy sgd 7 steps, seed 0"


def test_columns_of_a_table_are_of_one_kind(sweep):
    table = sweep({"learning_rate": [0.01, 1000.0], "decays": [[0.9], [0.9, 0.8]], "activation": ["relu"]})
    columns = table.to_dict()
    assert columns["task.decays"] == ["[0.9]", "[0.9, 0.8]"] * 2
    assert columns["network.activation"] == ["relu"] * 4
    assert [type(value) for value in columns["loss"]] == [float, float, type(None), type(None)]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_a_killed_sweep_goes_on_to_the_same_table(tmp_path, sweep):
    plan = {"base": BASE | {"training": {"steps": 300}}, "over": {"seed": "0..5"}, "measure": "loss,steps"}
    code = f"import rni; rni.sweep(**{plan!r}, store={str(tmp_path / 'runs')!r}, workers=0)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, env=environment) as process:
        while not list((tmp_path / "runs").glob("??/*.measures")):
            time.sleep(0.01)
        process.kill()
    whole = sweep(**plan).to_csv()
    assert rni.sweep(**plan, store=tmp_path / "undisturbed", workers=0).to_csv() == whole
    assert len(whole.splitlines()) == 7


def test_the_command_writes_table_and_page_and_says_what_failed(tmp_path, monkeypatch, mine):
    from typer.testing import CliRunner

    mine("def bad(net):\n    raise RuntimeError('no such thing')\n")
    monkeypatch.setattr("rni.runs.sweeping.local", lambda workers: engine.Here())
    (tmp_path / "base.toml").write_text(
        "[task]\ndecays = [0.9]\n[network]\nneurons = 12\n[training]\nsteps = 5\n", encoding="utf-8"
    )
    places = ["--store", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    over = ["--over", "network.neurons=12,14", "--over", "seed=0..1"]
    done = CliRunner().invoke(app, ["sweep", str(tmp_path / "base.toml"), *over, "--measure", "loss", *places])
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"table.csv", "index.html"}
    done = CliRunner().invoke(app, ["sweep", str(tmp_path / "base.toml"), *over, "--measure", "mine:bad", *places])
    assert done.exit_code == 1
    assert all(word in done.output for word in ("4 of 4", "mine:bad", "RuntimeError"))
    for wrong in (["--over", "seed"], ["--over", "seed=1", "--over", "seed=2"]):
        done = CliRunner().invoke(app, ["sweep", str(tmp_path / "base.toml"), *wrong, *places])
        assert isinstance(done.exception, InputError)


@pytest.mark.parametrize(
    ("over", "code"),
    [
        (["training.learning_rate=0.01,1000"], 1),  # the second run diverges
        (["network.activation=relu,linear", "training.loss=averaged,batch"], 0),  # relu and averaged is impossible
    ],
)
def test_the_command_fails_if_a_run_failed_but_not_for_impossible_combinations(tmp_path, monkeypatch, over, code):
    from typer.testing import CliRunner

    monkeypatch.setattr("rni.runs.sweeping.local", lambda workers: engine.Here())
    (tmp_path / "base.toml").write_text("[task]\ndecays = [0.9]\n[network]\nneurons = 12\n[training]\nsteps = 5\n")
    flags = [flag for field in over for flag in ("--over", field)]
    places = ["--measure", "loss", "--store", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["sweep", str(tmp_path / "base.toml"), *flags, *places])
    assert done.exit_code == code, done.output
    assert (tmp_path / "out" / "table.csv").exists()


MEASURED = """[task]
decays = [0.9]
[network]
neurons = 12
[training]
steps = 1
[sweep]
measure = "mine:size"
"""


def test_code_that_a_file_names_runs_only_with_permission(tmp_path, monkeypatch, mine):
    from typer.testing import CliRunner

    mine("from pathlib import Path\nPath('imported').touch()\n\ndef size(net):\n    return net.neurons\n")
    monkeypatch.setattr("rni.runs.sweeping.local", lambda workers: engine.Here())
    (tmp_path / "base.toml").write_text(MEASURED)
    command = ["sweep", str(tmp_path / "base.toml"), "--store", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    for flags in ([], ["--allow", "mine:other"]):
        done = CliRunner().invoke(app, [*command, *flags])
        assert isinstance(done.exception, InputError)
        assert done.exception.value == "mine:size"
        assert not (tmp_path / "imported").exists()
    for flags in (["--allow", "mine:size"], ["--measure", "mine:size"]):
        assert CliRunner().invoke(app, [*command, *flags]).exit_code == 0
    options = {"store": tmp_path / "runs", "workers": 0}
    with pytest.raises(InputError):
        rni.sweep(tmp_path / "base.toml", **options)
    assert rni.sweep(tmp_path / "base.toml", **options, allow=["mine:size"])["mine:size"] == [12]
    assert rni.sweep(BASE, measure="mine:size", **options)["mine:size"] == [12]


def test_runs_of_different_versions_or_processors_are_noted(sweep, monkeypatch):
    assert sweep({"seed": [0]}).notes == ()
    here = numerics.origin()
    monkeypatch.setattr(numerics, "origin", lambda: here | {"processor": "z80 Zilog", "torch": "1.0"})
    (note,) = sweep({"seed": [0, 1]}).notes
    assert all(word in note for word in ("torch", "1.0", here["torch"], "processor", "z80 Zilog", here["processor"]))
    assert "numpy" not in note


def test_a_damaged_measure_is_measured_again(sweep, tmp_path, caplog):
    table = sweep({"seed": [0]}, measure="error")
    (path,) = (tmp_path / "runs").rglob("*.measures")
    text, value = path.read_text(), repr(table["error"][0])
    assert value in text
    path.write_text(text.replace(value, f"1{value}"))
    assert sweep({"seed": [0]}, measure="error")["error"] == table["error"]
    assert str(path) in caplog.text


def test_measures_of_the_training_do_not_load_the_analysis():
    code = "import sys; import rni.runs.measures as m; m.sources(['loss']); sys.exit('rni.analysis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}).returncode == 0
