"""The engine: the same bytes whatever computes them, and no run fails because of another run."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from pathlib import Path

import pytest
from test_store import networks
from told import there, train_run

from rni import InputError
from rni.runs import engine, progress
from rni.runs.engine import ClusterLost, Here, LocalExecutor, RunOutcome, Step, WorkerDied, cluster, compute_all, local
from rni.runs.progress import runs_progress
from rni.runs.run import EXPECTED_STEPS, TrainRun
from rni.runs.store import Store, locked

RAW = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 60}, "training": {"steps": 40}}


def specification(seed=0, **training):
    return train_run(RAW | {"seed": seed, "training": RAW["training"] | training})


SEVERAL = [specification(seed, steps=60 + 20 * seed) for seed in range(5)]
LONG = [specification(seed, steps=100_000_000) for seed in range(2)]
WILD = specification(learning_rate=50.0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The networks of SEVERAL, computed in this process."""
    store = Store(tmp_path_factory.mktemp("undisturbed"))
    for each in SEVERAL:
        store.compute(each)
    return networks(store.root)


@pytest.fixture(scope="module")
def two_workers():
    with local(2) as executor:
        yield executor


def until(condition):
    """Wait for a condition, however long it takes: a test that hangs is ended from outside."""
    while not (found := condition()):
        time.sleep(0.02)
    return found


def failed(outcomes):
    return {key for key, outcome in outcomes.items() if not outcome.ok}


def test_one_and_two_workers_give_the_bytes_of_this_process(tmp_path, undisturbed, two_workers):
    with local(1) as one_worker:
        for name, executor in (("one", one_worker), ("two", two_workers)):
            outcomes = compute_all([*SEVERAL, SEVERAL[0]], tmp_path / name, executor)
            assert list(outcomes) == [each.key() for each in SEVERAL]
            assert not failed(outcomes)
            assert networks(tmp_path / name) == undisturbed


def test_a_run_that_diverges_is_an_outcome_with_its_reason_and_the_others_finish(tmp_path, undisturbed, two_workers):
    seen = []
    outcomes = compute_all([WILD, *SEVERAL], tmp_path, two_workers, on_event=seen.append)
    assert failed(outcomes) == {WILD.key()}
    assert "\n" not in there(outcomes[WILD.key()].reason)
    assert networks(tmp_path) == undisturbed
    assert sorted(outcome.key for outcome in seen) == sorted(outcomes)


def test_other_functions_run_on_the_same_workers_with_one_thread_each(two_workers):
    import torch

    assert isinstance(two_workers, Executor)
    assert two_workers.submit(torch.get_num_threads).result() == 1
    assert two_workers.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
    assert list(two_workers.map(abs, [-1, -2])) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        two_workers.submit(divmod, 1, 0).result()
    with pytest.raises(TypeError):
        two_workers.submit(threading.Lock).result()
    assert two_workers.submit(abs, -3).result() == 3, "the worker still lives"


@pytest.mark.parametrize(("how", "workers"), [(signal.SIGKILL, 2), (signal.SIGTERM, 1)])
def test_a_killed_worker_is_replaced_and_its_run_computed(tmp_path, undisturbed, how, workers):
    runs = [*SEVERAL, specification(9, steps=3000)]

    with local(workers) as executor:

        def kill():
            worker = until(lambda: [pid for pid, step in [*executor.steps.items()] if step.key == runs[-1].key()])[0]
            os.kill(worker, how)

        thread = threading.Thread(target=kill)
        thread.start()
        outcomes = compute_all(runs, tmp_path, executor)
        assert executor.submit(abs, -1).result() == 1
        thread.join()
    assert [outcome.reason for outcome in outcomes.values()] == [None] * 6
    assert networks(tmp_path).items() >= undisturbed.items()


def die(key, how, specification, root, report, wait):
    """Kill the worker by a segmentation fault, or as the system does when memory runs out, in one run."""
    with open(root / f"{specification.key()}.log", "a", encoding="utf-8") as log:
        log.write("begun\n")
    if specification.key() == key:
        os.kill(os.getpid(), how)
    engine.store_run(specification, root, report, wait)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_only_the_run_that_kills_its_worker_fails_and_the_others_are_computed_once(tmp_path, two_workers, how):
    deadly = SEVERAL[-1].key()  # the longest, which comes first
    outcomes = compute_all(SEVERAL, tmp_path, two_workers, work=partial(die, deadly, how))
    assert failed(outcomes) == {deadly}
    assert how.name in there(outcomes[deadly].reason)
    begun = {path.stem: len(path.read_text().split()) for path in tmp_path.glob("*.log")}
    assert begun == {each.key(): 3 if each.key() == deadly else 1 for each in SEVERAL}


def test_the_death_of_a_worker_is_the_failure_of_its_own_task_only(two_workers):
    other, deadly = two_workers.submit(time.sleep, 1), two_workers.submit(os._exit, 1)
    assert isinstance(deadly.exception(), WorkerDied)
    assert isinstance(deadly.exception(), BrokenExecutor)
    assert other.result() is None


SCRIPT_WITHOUT_GUARD = """
import sys
sys.path[:0] = sys.argv[1].split(":")
import rni
base = {"task": {"decays": [0.9]}, "network": {"neurons": 20}, "training": {"steps": 3}}
rni.sweep(base, {"seed": [0, 1, 2]}, measure="loss", store=sys.argv[2], workers=1)
"""


def test_workers_that_cannot_start_end_the_command_with_the_reason(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT_WITHOUT_GUARD)
    command = [sys.executable, tmp_path / "script.py", str(Path(__file__).parents[2]), tmp_path / "runs"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "__main__" in done.stderr.strip().splitlines()[-1]


def test_a_run_that_is_computed_elsewhere_comes_last_and_is_not_computed_twice(tmp_path):
    order, begun = [], []

    def work(specification, root, report, wait):
        begun.append(specification.key())
        engine.store_run(specification, root, report, wait)

    busy = max(SEVERAL, key=TrainRun.cost)
    store = Store(tmp_path)
    holding = locked(store.path(busy.key()).parent.with_suffix(".lock"))
    holding.__enter__()

    def settle(outcome):
        order.append(outcome.key)
        if len(order) == len(SEVERAL) - 1:
            holding.__exit__(None, None, None)

    assert not failed(compute_all(SEVERAL, tmp_path, Here(), on_event=settle, work=work))
    assert order[-1] == busy.key()
    assert begun.count(busy.key()) == 2


def test_runs_that_this_process_cannot_see_are_not_reported_as_stored(tmp_path):
    def elsewhere(specification, root, report, wait):
        engine.store_run(specification, root / "elsewhere", report, wait)

    (outcome,) = compute_all(SEVERAL[:1], tmp_path, Here(), work=elsewhere).values()
    assert str(tmp_path) in there(outcome.reason)


def test_the_longest_run_comes_first():
    by_cost = sorted([*SEVERAL, *LONG, specification(duration=30)], key=TrainRun.cost, reverse=True)
    assert by_cost[0] in LONG
    assert by_cost[2] == specification(duration=30)
    assert specification(steps=10**6, stop_loss=1e-9).cost() == specification(steps=EXPECTED_STEPS).cost()


def test_a_run_that_cannot_be_written_is_an_outcome_that_says_so_and_the_others_finish(tmp_path, two_workers):
    blocked = Store(tmp_path).path(SEVERAL[0].key()).parents[1]
    others = {each.key() for each in SEVERAL if Store(tmp_path).path(each.key()).parents[1] != blocked}
    blocked.touch()
    outcomes = compute_all(SEVERAL, tmp_path, two_workers)
    assert failed(outcomes) == outcomes.keys() - others
    assert str(blocked) in there(outcomes[SEVERAL[0].key()].reason)
    blocked.unlink()
    assert not failed(compute_all(SEVERAL, tmp_path, two_workers))


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1].split(":")
if __name__ == "__main__":
    import test_engine
    import signal
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line does
    with test_engine.local(int(sys.argv[3])) as executor:
        test_engine.tell_when_all_work(executor)
        test_engine.compute_all(test_engine.LONG, Path(sys.argv[2]), executor)
"""


def tell_when_all_work(executor):
    """Print the process ids of the workers as soon as all of them are at a step."""

    def tell():
        until(lambda: len(executor.steps) == executor.workers)
        print(*executor.steps, flush=True)

    threading.Thread(target=tell, daemon=True).start()


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes are alive")
@pytest.mark.parametrize("to_group", [False, True])
@pytest.mark.parametrize(("how", "count"), [(signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGKILL, 1)])
def test_workers_save_their_runs_and_end_with_the_command(tmp_path, how, count, to_group):
    """A terminal sends Ctrl-C to all processes of a command, and `kill` sends a signal to one of them."""
    if to_group and how == signal.SIGKILL:
        pytest.skip("nothing can be saved")
    (tmp_path / "script.py").write_text(SCRIPT)
    here, root = Path(__file__).parent, tmp_path / "runs"
    places = f"{here}:{here.parent}:{here.parents[1]}"
    command = [sys.executable, tmp_path / "script.py", places, root, str(count)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True
    ) as process:
        try:
            workers = [int(word) for word in there(process.stdout).readline().split()]
            assert len(workers) == count
            (os.killpg if to_group else os.kill)(process.pid, how)
            process.wait()
        finally:
            process.kill()
    until(lambda: not any(is_running(pid) for pid in workers))
    assert len(list(root.glob("??/*.checkpoint"))) == count
    for left in root.glob("??/*.lock"):  # its file may stay, if the worker was ended before it removed the file
        with locked(left, wait=False):
            assert left.exists(), "and no process holds it"


def test_invalid_numbers_of_workers_and_a_missing_dask_are_one_line(monkeypatch):
    with pytest.raises(InputError, match="workers"):
        local(0)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError) as caught:
        cluster("tcp://127.0.0.1:1")
    assert caught.value.field == "scheduler"


def test_an_error_of_the_cluster_about_this_package_is_told_from_other_errors():
    def outcome(error, cause):
        future = Future()
        error.__cause__ = cause
        future.set_exception(error)
        return engine.result(future)

    with pytest.raises(ClusterLost):
        outcome(RuntimeError("cannot be unpickled"), ModuleNotFoundError("no", name="rni.runs"))
    with pytest.raises(RuntimeError):
        outcome(RuntimeError("rni"), ModuleNotFoundError("rni", name="mine"))


class Working(Here):
    """An executor whose workers have reached these steps."""

    def __init__(self, *steps):
        self.steps = dict(enumerate(steps))


def test_progress_without_a_terminal_is_plain_lines(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.05)
    Store(tmp_path).compute(SEVERAL[0])
    executor = Working(Step(SEVERAL[1].key(), "label", 40, 80, 0.1))
    with runs_progress([*SEVERAL[:2], WILD], tmp_path, executor) as settle:
        lines = []
        until(lambda: lines.append(capsys.readouterr().err) or "left" in "".join(lines))
        settle(RunOutcome(SEVERAL[0].key(), "stored"))
        settle(RunOutcome(SEVERAL[1].key(), "computed", 2.0))
        settle(RunOutcome(WILD.key(), "wild", 1.0, "diverged"))
    lines = ("".join(lines) + capsys.readouterr().err).splitlines()
    assert lines[0].startswith("3 runs, 1 ")
    assert lines[1].startswith("0/3 ")
    assert lines[-2:] == ["2/3  computed  2.0 s", "3/3  FAILED  wild: diverged"]


def test_runs_with_a_checkpoint_are_counted(tmp_path, capsys):
    checkpoint = Store(tmp_path).path(SEVERAL[0].key()).parent.with_suffix(".checkpoint")
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    with runs_progress(SEVERAL[:2], tmp_path):
        pass
    assert ", 1 with a checkpoint\n" in capsys.readouterr().err


def test_progress_on_a_terminal_has_a_bar_and_a_line_for_each_worker(tmp_path):
    from rich.console import Console

    console = Console(width=150, file=open(os.devnull, "w", encoding="utf-8"), record=True)  # noqa: SIM115
    executor = Working(Step(SEVERAL[1].key(), "some network", 20, 80, 0.125), Step("of another command", "", 1, 2, 1.0))
    console.print(progress._picture(progress.RunsProgress(SEVERAL, tmp_path, executor)))
    console.file.close()
    overall, worker = console.export_text().splitlines()
    assert overall.startswith("runs 0/5  ")
    assert all(text in worker for text in ("some network", "20/80", "0.125"))


def test_steps_of_a_worker_reach_this_process(tmp_path):
    seen = []
    with LocalExecutor(1) as executor:

        def watch():
            seen.append(until(lambda: [*executor.steps.values()])[0])

        thread = threading.Thread(target=watch)
        thread.start()
        compute_all([specification(3, steps=3000)], tmp_path, executor)
        thread.join()
        assert executor.steps == {}
    assert (seen[0].key, seen[0].steps) == (specification(3, steps=3000).key(), 3000)
    assert 0 <= seen[0].step < 3000
