"""Sweeps: what is varied, what comes of it, and that nothing is computed or measured twice."""

import csv
import importlib.util
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path

import pytest
import torch
from told import of, there

import rni
from rni import InputError, Specification
from rni.activations import SigmoidPart
from rni.cli import app
from rni.runs import engine, store
from rni.runs.condition import conditions
from rni.runs.engine import compute_all
from rni.runs.measures import Measuring
from rni.runs.progress import sparkline
from rni.runs.store import Store
from rni.runs.sweep import Sweep, planned
from rni.runs.tensorboard import TensorBoard

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
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")
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
    activations = [of(SigmoidPart, there(run.specification).network.activation) for run in runs]
    assert [activation.slope for activation in activations] == [5.0, 50.0]
    assert base["network"]["activation"] == "sigmoid"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"over": {"nurons": [3]}}, "over.nurons: no such field; allowed: seed, "),
        ({"over": {"seed": "5..1"}}, "over.seed: '5..1'; allowed: a range that is not empty"),
        ({"over": {"seed": ""}}, "over.seed: ''; allowed: at least one value"),
        ({"over": {"seed": []}}, "over.seed: []; allowed: at least one value"),
        ({"over": {"seed": "0.5..3"}}, "over.seed: '0.5..3'; allowed: whole numbers, or FROM..TO:linear:COUNT"),
        ({"over": {"seed": "0..99999999999"}}, "over.seed: '0..99999999999'; allowed: from 1 to 1000000 values"),
        ({"over": {"learning_rate": "0..1:log:3"}}, "over.training.learning_rate: '0..1:log:3'; allowed: ends above 0"),
        ({"over": {"learning_rate": "1..2:even:3"}}, "over.training.learning_rate: '1..2:even:3'; allowed: FROM..TO"),
        ({"over": {"neurons": [3], "network.neurons": [4]}}, "over.network.neurons: [4]; allowed: each field once"),
        ({"zip": {"seed": [1, 2], "neurons": [3]}}, "zip: {'network.neurons': 1, 'seed': 2}; allowed: as many values"),
        ({"zip": {"neurons": "2..9:bisect"}}, "zip.network.neurons: 'bisect'; allowed: lists and ranges"),
        ({"over": {"neurons": [object]}}, "over.network.neurons: [<class 'object'>]; allowed: finite numbers, texts"),
        ({"over": {"learning_rate": [float("nan")]}}, "over.training.learning_rate: [nan]; allowed: finite numbers"),
        ({"until": "error < 1"}, "until: 'error < 1'; allowed: with one field, FROM..TO:bisect"),
        ({"over": {"neurons": "2..9:bisect"}}, "until: None; allowed: with one field, FROM..TO:bisect"),
        ({"over": {"neurons": "2..9:bisect"}, "until": "error"}, "condition: 'error'; allowed: NAME COMPARISON VALUE"),
        ({"over": {"steps": [3]}, "kind": "design"}, "training.steps: 'no effect on a design'; allowed: seed, task"),
        (
            {"over": {"bounds": [[3.0]]}, "kind": "design"},
            "training.bounds: [3.0]; allowed: none in a design of 'relu'",
        ),
        ({"over": {"seed": [0]}, "x": "neurons"}, "x: 'network.neurons'; allowed: a swept field: seed"),
        ({"y": "los"}, "y: 'los'; allowed: of what is measured: error, ratio"),
        ({"over": {"neurons": [-3, 10]}}, "network.neurons: -3; allowed: 2 or more"),
        ({"measure": "los"}, "measure: 'los'; allowed: loss, steps, "),
        ({"measure": "steps@few"}, "measure: 'steps@few'; allowed: loss, steps, "),
        (
            {"measure": "nowhere:function"},
            "measure: 'nowhere:function' (ModuleNotFoundError: No module named 'nowhere')",
        ),
        ({"measure": "math:pi"}, "measure: 'math:pi', a float; allowed: a function"),
        ({"over": {"seed": "0..999", "neurons": "2..1001"}}, "sweep: 1000000 runs; allowed: up to 20000, or more with"),
    ],
)
def test_what_is_wrong_is_one_line_before_any_run(sweep, tmp_path, given, message):
    with pytest.raises(InputError) as caught:
        sweep(**{"measure": ("error", "ratio")} | given)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_the_table_has_a_row_for_each_run_and_diverged_ones_say_why(sweep, tmp_path):
    table = sweep({"learning_rate": [0.01, 1000.0], "seed": "0..1"}, out=tmp_path / "out")
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["training.learning_rate", "seed", "loss", "steps", "key", "failure"]
    assert [row["seed"] for row in rows] == ["0", "1", "0", "1"]
    for row, seed in zip(rows[:2], (0, 1), strict=True):
        run = rni.run(Specification.parse(BASE | {"seed": seed, "training": {"steps": 5, "learning_rate": 0.01}}))
        assert float(row["loss"]) == run.losses[-1]
        assert (row["steps"], row["key"], row["failure"]) == ("5", run.specification.key(), "")
    for row in rows[2:]:
        assert row["failure"].startswith("training diverged at step ")
        assert row["loss"] == ""
    assert table["loss"][2:] == [None, None]
    assert there(Store(tmp_path / "runs").show(rows[0]["key"]).specification)["seed"] == 0


def test_a_sweep_begun_again_computes_and_measures_nothing(sweep, monkeypatch):
    again = {"over": {"learning_rate": [0.01, 1000.0]}, "measure": "loss,seconds,error,certificate,steps@0.1"}
    table = sweep(**again)
    assert table.rows[0].failure.startswith("certificate: network: W of rank ")
    assert table.rows[0].values["seconds"] > 0
    monkeypatch.setattr("rni.runs.sweeping.compute_all", None)
    assert sweep(**again).to_csv() == table.to_csv()


def test_other_measures_of_the_same_runs_are_added_to_what_is_known(sweep, tmp_path, monkeypatch):
    sweep({"seed": [0]}, measure="error")
    monkeypatch.setattr("rni.runs.execution.run", None)
    monkeypatch.setattr("rni.runs.measures.analyze", None)
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
    assert table.rows[0].failure.startswith(
        "mine:picky: ZeroDivisionError: division by zero; mine:odd: returned object"
    )
    assert table.rows[1].failure == "mine:odd: returned object; allowed: a number, or a dict of numbers"
    mine("def picky(net):\n    return 1.0\n\ndef odd(net):\n    return 2\n")
    assert sweep({"neurons": [12, 14]}, measure="mine:picky,loss,mine:odd").rows[0].failure is None


def test_a_combination_that_cannot_be_is_a_row_with_its_reason(sweep):
    table = sweep({"activation": ["relu", "linear"], "loss": ["averaged", "batch"]})
    assert [row.failure is None for row in table.rows] == [True, True, True, False]
    assert table.rows[-1].failure.startswith("training.loss: 'averaged'; allowed: 'batch'")


def test_designs_are_swept_like_trainings(sweep, tmp_path):
    table = sweep({"neurons": [12, 20]}, kind="design", measure="certificate,loss,steps")
    stored = there(Store(tmp_path / "runs").get(table.rows[1].specification))
    again = designed(stored.network)
    assert torch.equal(stored.network.recurrent.matrix(), again.recurrent.matrix())
    assert table["certificate"][1] == max(rni.certify(again).relative)
    assert table["steps"] == [0, 0]
    assert all("designed" in entry.label for entry in Store(tmp_path / "runs").entries())
    trained = Specification.parse(table.rows[1].specification.to_dict() | {"kind": "train"})
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


@pytest.mark.parametrize(
    ("text", "smallest", "largest"), [(">= 37", 37, None), ("< 37", None, 36), (">= 2", None, None)]
)
def test_a_bisection_finds_where_a_condition_begins_or_ceases_to_hold(sweep, mine, text, smallest, largest):
    mine("def neurons(net):\n    return net.neurons\n")
    plan = {"over": {"neurons": "2..100:bisect", "seed": "0..1"}, "base": BASE | {"training": {"steps": 1}}}
    table = sweep(**plan, measure="mine:neurons", until=f"mine:neurons {text}")
    assert len(table) <= 2 * 9
    if smallest:
        assert table.notes[0].startswith(f"network.neurons = {smallest}: the smallest found with mine:neurons >= 37")
        assert {smallest, smallest - 1} <= set(table["network.neurons"])
    elif largest:
        assert table.notes[0].startswith(f"network.neurons = {largest}: the largest found")
    else:
        assert table.notes == ("mine:neurons >= 2 holds at both ends, network.neurons = 2 and 100",)


def test_a_bisection_is_made_for_each_value_of_other_fields(sweep, mine):
    mine("def product(net):\n    return net.neurons * net.channels\n")
    over = {"decays": [[0.9], [0.9, 0.8]], "neurons": "4..40:bisect"}
    table = sweep(over, BASE | {"training": {"steps": 0}}, measure="mine:product", until="mine:product > 30")
    assert [note.split(":")[0] for note in table.notes] == ["network.neurons = 31", "network.neurons = 16"]


def test_conditions_are_read_and_never_executed():
    one, two = conditions("network.neurons >= 100 and loss == batch")
    assert one.holds(100)
    assert not one.holds(99)
    assert not one.holds(None)
    assert not one.holds("many")
    assert two.holds({"name": "batch"})
    with pytest.raises(InputError, match=r"^condition: .*; allowed: NAME COMPARISON VALUE"):
        conditions("__import__('os')")


def test_runs_come_back_in_order_and_failed_ones_are_named_when_all_others_are_stored(tmp_path):
    good = [Specification.parse(BASE | {"seed": seed}) for seed in (2, 1)]
    wild = Specification.parse(BASE | {"training": {"steps": 5, "learning_rate": 1000.0}})
    options = {"store": tmp_path, "workers": 0}
    assert [result.specification for result in rni.run_all(good, **options)] == good
    another = Specification.parse(BASE | {"seed": 7})
    with pytest.raises(InputError, match=r"^relu n=12, .*seed 0: training diverged at step"):
        rni.run_all([wild, another], **options)
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
    runs = [Specification.parse(BASE | {"seed": seed, "training": {"steps": 1}}) for seed in range(8)]
    outcomes = compute_all(runs, tmp_path, executor, work=Measuring(["steps"]))
    assert [outcome.value["steps"] for outcome in outcomes.values()] == [1] * 8
    assert executor.most == 3


def test_a_run_on_the_proxy_has_a_label():
    proxy = Specification.parse(BASE | {"training": {"loss": "proxy", "steps": 7}})
    assert proxy.label() == "relu n=12, decays 0.9, proxy sgd 7 steps, seed 0"


def test_a_curve_in_a_line_falls_as_the_losses_fall():
    assert sparkline([100.0, 10.0, 1.0, 0.1]) == "█▆▃▁"
    assert len(sparkline([0.5**k for k in range(100)])) == 24
    assert sparkline([1.0]) == sparkline([]) == ""


@pytest.mark.skipif(
    not (importlib.util.find_spec("polars") or importlib.util.find_spec("pyarrow")),
    reason="needs polars or pyarrow: pip install 'rni[tables]'",
)
def test_the_table_is_written_as_parquet_too(sweep, tmp_path):
    table = sweep({"learning_rate": [0.01, 1000.0], "decays": [[0.9], [0.9, 0.8]]}, out=tmp_path / "out")
    if importlib.util.find_spec("polars"):
        polars = importlib.import_module("polars")
        found = polars.read_parquet(tmp_path / "out" / "table.parquet").to_dict(as_series=False)
    else:
        parquet = importlib.import_module("pyarrow.parquet")
        found = parquet.read_table(tmp_path / "out" / "table.parquet").to_pydict()
    assert found == table.to_dict()


def test_columns_of_a_table_are_of_one_kind(sweep):
    table = sweep({"learning_rate": [0.01, 1000.0], "decays": [[0.9], [0.9, 0.8]], "activation": ["relu"]})
    columns = table.to_dict()
    assert columns["task.decays"] == ["[0.9]", "[0.9, 0.8]"] * 2
    assert columns["network.activation"] == ["relu"] * 4
    assert [type(value) for value in columns["loss"]] == [float, float, type(None), type(None)]


def test_losses_go_to_tensorboard_where_it_is_installed(tmp_path, monkeypatch, sweep):
    logged = []

    class Writer:
        def __init__(self, folder):
            logged.append(folder)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            logged.append("closed")

        def add_text(self, name, text):
            assert "neurons = 12" in text

        def add_scalar(self, name, value, step):
            logged.append((name, step, value))

    module = type(sys)("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    specification = Specification.parse(BASE)
    (outcome,) = compute_all(
        [specification], tmp_path, engine.Here(), work=Measuring(["loss"], TensorBoard(tmp_path / "logs"))
    ).values()
    assert outcome.ok
    assert logged[0] == str(tmp_path / "logs" / specification.key()[:12])
    losses = there(Store(tmp_path).get(specification)).losses
    assert logged[1:] == [*(("loss", step, loss) for step, loss in enumerate(losses)), "closed"]


def test_without_tensorboard_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"^tensorboard: not installed; allowed: "):
        TensorBoard(tmp_path)


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
    assert "rni: 4 of 4 with a failure, the first: mine:bad: RuntimeError: no such thing" in done.output
    for wrong in (["--over", "seed"], ["--over", "seed=1", "--over", "seed=2"]):
        done = CliRunner().invoke(app, ["sweep", str(tmp_path / "base.toml"), *wrong, *places])
        assert isinstance(done.exception, InputError)


@pytest.mark.parametrize(
    ("over", "code"),
    [
        (["training.learning_rate=0.01,1000"], 1),  # the second diverges
        (["network.activation=relu,linear", "training.loss=averaged,batch"], 0),  # relu and averaged is impossible
        (["training.learning_rate=0.01..1000:bisect", "--until", "loss < 1"], 0),  # to diverge is an answer
    ],
)
def test_the_command_fails_if_a_run_failed_but_not_for_impossible_combinations(tmp_path, monkeypatch, over, code):
    from typer.testing import CliRunner

    monkeypatch.setattr("rni.runs.sweeping.local", lambda workers: engine.Here())
    (tmp_path / "base.toml").write_text(
        "[task]\ndecays = [0.9]\n[network]\nneurons = 12\n[training]\nsteps = 5\n", encoding="utf-8"
    )
    flags = [flag for field in over for flag in (["--over", field] if "=" in field else [field])]
    places = ["--measure", "loss", "--store", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["sweep", str(tmp_path / "base.toml"), *flags, *places])
    assert done.exit_code == code, done.output
    assert (tmp_path / "out" / "table.csv").exists()


def test_a_store_of_many_runs_finds_one_by_its_key_in_its_folder(tmp_path, monkeypatch):
    place = Store(tmp_path)
    key = place.compute(Specification.parse(BASE)).specification.key()
    for other in ("aa", "bb", "cc"):
        (tmp_path / other).mkdir(exist_ok=True)
        (tmp_path / other / f"{other}{key[2:]}.safetensors").touch()
    monkeypatch.setattr(store, "_entry", lambda path: path.stem)
    assert place.show(key[:6]) == key
    for wrong in ("", "*", f"{key[:4]}*", "zz"):
        with pytest.raises(InputError):
            place.show(wrong)
