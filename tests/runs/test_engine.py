"""The engine: the same bytes whatever computes them, and no run's failure is another's."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from told import there

from rni import InputError, Specification, atomic
from rni.runs import engine, progress
from rni.runs.engine import BARREN, RunOutcome, cluster, compute_all, local
from rni.runs.progress import remove_stale, reported, runs_progress, statuses
from rni.runs.specification import EXPECTED
from rni.runs.store import Store, locked

RAW = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 60}, "training": {"steps": 40}}


def specification(seed=0, **training):
    return Specification.parse(RAW | {"seed": seed, "training": RAW["training"] | training})


SEVERAL = [specification(seed, steps=60 + 20 * seed) for seed in range(5)]
LONG = [specification(seed, steps=100_000_000) for seed in range(2)]
WILD = specification(learning_rate=50.0)


def contents(root):
    return {path.name: path.read_bytes() for path in Path(root).glob("??/*")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The bytes of SEVERAL, computed in this process."""
    store = Store(tmp_path_factory.mktemp("undisturbed"))
    for each in SEVERAL:
        store.compute(each)
    return contents(store.root)


@pytest.fixture(scope="module")
def two_workers():
    with local(2) as executor:
        yield executor


def until(condition):
    """Wait for a condition, however long it takes: a test that hangs is ended from outside."""
    while not (found := condition()):
        time.sleep(0.02)
    return found


def test_one_and_two_workers_give_the_bytes_of_this_process(tmp_path, undisturbed, two_workers):
    with local(1) as one_worker:
        for name, executor in (("one", one_worker), ("two", two_workers)):
            outcomes = compute_all([*SEVERAL, SEVERAL[0]], tmp_path / name, executor)
            assert list(outcomes) == [each.key() for each in SEVERAL]
            assert all(outcome.ok for outcome in outcomes.values())
            assert contents(tmp_path / name) == undisturbed


def test_a_run_that_diverges_is_an_outcome_with_its_reason_and_the_others_finish(tmp_path, undisturbed, two_workers):
    seen = []
    outcomes = compute_all([WILD, *SEVERAL], tmp_path, two_workers, on_event=seen.append)
    reason = there(outcomes[WILD.key()].reason)
    assert reason.startswith("training diverged at step 1: ")
    assert "\n" not in reason
    assert contents(tmp_path) == undisturbed
    assert sorted(outcome.key for outcome in seen) == sorted(outcomes)


def test_other_functions_run_on_the_same_workers_with_one_thread_each(two_workers):
    import torch

    assert two_workers.submit(torch.get_num_threads).result() == 1
    assert two_workers.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
    assert list(two_workers.map(abs, [-1, -2])) == [1, 2]


@pytest.mark.parametrize(("how", "workers"), [(signal.SIGKILL, 2), (signal.SIGTERM, 1)])
def test_a_killed_worker_is_replaced_and_its_run_computed(tmp_path, undisturbed, how, workers):
    runs = [*SEVERAL, specification(9, steps=2000)]

    def kill():
        running = until(lambda: [s for s in statuses(tmp_path) if s.key == runs[-1].key()])
        os.kill(int(running[0].worker.rpartition("-")[2]), how)

    thread = threading.Thread(target=kill)
    thread.start()
    with local(workers) as executor:
        outcomes = compute_all(runs, tmp_path, executor)
        assert executor.submit(abs, -1).result() == 1
    thread.join()
    assert [outcome.reason for outcome in outcomes.values()] == [None] * 6
    assert contents(tmp_path).items() >= undisturbed.items()
    assert statuses(tmp_path) == []


class Deadly(Executor):
    """Computes here, but the deadly run breaks the pool, and with it what is submitted until the pool is replaced."""

    def __init__(self, key, root):
        self.key, self.root, self.lost, self.submitted = key, root, 0, []

    def submit(self, fn, /, *args, **kwargs):
        future, (specification, *_) = Future(), args
        self.submitted.append(specification.key())
        if specification.key() == self.key:
            self.lost = len(SEVERAL) if len(self.submitted) == 1 else 1
            with reported(self.root, self.key, "", 1):
                (left_by_the_dead,) = (self.root / "status").glob(f"*-{os.getpid()}-*.json")
                left_by_the_dead.rename(self.root / "status" / "elsewhere-1-1.json")
        if self.lost:
            self.lost -= 1
            future.set_exception(BrokenProcessPool("died"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_only_the_run_that_kills_its_worker_every_time_fails(tmp_path):
    deadly = SEVERAL[-1].key()  # the longest: it comes first and takes all others with it
    executor = Deadly(deadly, tmp_path)
    outcomes = compute_all(SEVERAL, tmp_path, executor)
    assert {key for key, outcome in outcomes.items() if not outcome.ok} == {deadly}
    assert "worker process died" in there(outcomes[deadly].reason)
    assert executor.submitted.count(deadly) == 3


def test_workers_that_never_start_are_a_reason_not_an_endless_wait(tmp_path):
    class Dead(Executor):
        def submit(self, fn, /, *args, **kwargs):
            future = Future()
            future.set_exception(BrokenProcessPool("died"))
            return future

    outcomes = compute_all(SEVERAL, tmp_path, Dead())
    assert {outcome.reason for outcome in outcomes.values()} == {BARREN}


def test_a_worker_that_does_not_see_our_folder_says_so_before_it_computes(tmp_path):
    class Elsewhere(Executor):
        def submit(self, fn, /, *args, **kwargs):
            future, (specification, root, sign) = Future(), args
            future.set_result(fn(specification, root / "elsewhere", sign, **kwargs))
            return future

    (outcome,) = compute_all(SEVERAL[:1], tmp_path, Elsewhere()).values()
    assert there(outcome.reason).endswith("allowed: a folder that all workers share")
    assert not (tmp_path / "elsewhere").exists(), "computed for nobody"


def test_the_longest_run_comes_first():
    by_cost = sorted([*SEVERAL, *LONG, specification(duration=30)], key=Specification.cost, reverse=True)
    assert by_cost[0] in LONG
    assert by_cost[2] == specification(duration=30)
    assert specification(steps=10**6, stop_loss=1e-9).cost() == specification(steps=EXPECTED).cost()


def test_a_run_that_cannot_be_written_is_an_outcome_that_says_so_and_the_others_finish(tmp_path, two_workers):
    here = SEVERAL[0]
    blocked = Store(tmp_path).path(here.key()).parent
    others = [each for each in SEVERAL if Store(tmp_path).path(each.key()).parent != blocked]
    blocked.touch()
    outcomes = compute_all(SEVERAL, tmp_path, two_workers)
    assert all(outcomes[each.key()].ok for each in others)
    assert outcomes[here.key()].reason == f"{Store(tmp_path).path(here.key())}: Not a directory"
    blocked.unlink()
    assert all(outcome.ok for outcome in compute_all(SEVERAL, tmp_path, two_workers).values())


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1].split(":")
if __name__ == "__main__":
    import test_engine
    import signal
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line does
    with test_engine.local(int(sys.argv[3])) as executor:
        test_engine.compute_all(test_engine.LONG, Path(sys.argv[2]), executor)
"""


def start(tmp_path, workers):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    here = Path(__file__).parent
    command = [sys.executable, tmp_path / "script.py", f"{here}:{here.parent}", tmp_path / "runs", str(workers)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes are alive")
@pytest.mark.parametrize(("how", "count"), [(signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGKILL, 1)])
def test_a_command_interrupted_or_killed_takes_its_workers_with_it_and_they_save_first(tmp_path, how, count):
    root = tmp_path / "runs"
    with start(tmp_path, count) as process:
        try:
            until(lambda: process.poll() is not None or len([s for s in statuses(root) if s.step]) == count)
            assert process.poll() is None
            workers = [int(status.worker.rpartition("-")[2]) for status in statuses(root)]
            process.send_signal(how)
            process.wait()
        finally:
            process.kill()
    until(lambda: not any(alive(pid) for pid in workers))
    assert len(list(root.glob("??/*.checkpoint"))) == count
    for left in root.glob("??/*.lock"):  # its file may stay, where a worker was ended between saving and removing it
        with locked(left, wait=False):
            assert left.exists(), "and nobody holds it"


def test_wrong_numbers_of_workers_and_schedulers_that_do_not_answer_are_one_line(monkeypatch):
    with pytest.raises(InputError, match="workers: 0; allowed: a whole number from 1 on"):
        local(0)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'rni\[cluster\]'"):
        cluster("tcp://127.0.0.1:1")


def test_a_system_without_room_for_the_locks_of_workers_is_told_in_words(monkeypatch):
    def full(*_):
        raise OSError(0, "Error")

    monkeypatch.setattr(engine, "ProcessPoolExecutor", full)
    with pytest.raises(InputError, match="workers: 2, the system gives them no shared memory"):
        local(2)


def test_progress_elsewhere_than_on_a_terminal_is_plain_lines(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.05)
    Store(tmp_path).compute(SEVERAL[0])
    with runs_progress([*SEVERAL[:2], WILD], tmp_path) as settle:
        with reported(tmp_path, SEVERAL[1].key(), "label", 80) as report:
            monkeypatch.setattr(progress, "REPORT_EVERY", 0.0)
            report(40, 0.1, None)
            assert [(s.step, s.steps, s.loss) for s in statuses(tmp_path)] == [(40, 80, 0.1)]
            lines = []
            until(lambda: lines.append(capsys.readouterr().err) or "about" in "".join(lines))
        settle(RunOutcome(SEVERAL[0].key(), "stored"))
        settle(RunOutcome(SEVERAL[1].key(), "computed", 2.0))
        settle(RunOutcome(WILD.key(), "wild", 1.0, "diverged"))
    lines = ("".join(lines) + capsys.readouterr().err).splitlines()
    assert lines[0] == "3 runs, 1 of them in the store"
    assert lines[1].startswith("0/3  1 running  about ")
    assert lines[-2:] == ["2/3  computed  2.0 s", "3/3  FAILED  wild: diverged"]


def test_what_was_begun_before_is_told(tmp_path, capsys):
    begun = Store(tmp_path).path(SEVERAL[0].key()).with_suffix(".checkpoint")
    begun.parent.mkdir(parents=True)
    begun.touch()
    with runs_progress(SEVERAL[:2], tmp_path):
        pass
    assert capsys.readouterr().err.startswith("2 runs, 0 of them in the store, 1 begun\n")


def test_progress_on_a_terminal_has_a_bar_and_a_line_for_each_worker(tmp_path):
    from rich.console import Console

    console = Console(width=150, file=open(os.devnull, "w", encoding="utf-8"), record=True)  # noqa: SIM115
    with reported(tmp_path, SEVERAL[1].key(), "some network", 80):
        console.print(progress._picture(progress.RunsProgress(SEVERAL, tmp_path)))
    console.file.close()
    overall, worker = console.export_text().splitlines()
    assert overall.startswith("runs 0/5  ")
    assert f"{os.getpid()}  some network  step 0/80" in worker


def test_what_dead_workers_were_doing_is_not_shown_and_then_forgotten(tmp_path):
    with reported(tmp_path, SEVERAL[0].key(), "label", 80):
        (mine,) = (tmp_path / "status").glob("*.json")
        host = mine.stem.rsplit("-", 2)[0]
        finished = subprocess.Popen([sys.executable, "-c", ""])
        finished.wait()
        (tmp_path / "status" / f"{host}-{finished.pid}-1.json").write_bytes(mine.read_bytes())
        (tmp_path / "status" / "elsewhere-1-1.json").write_bytes(mine.read_bytes())
        os.utime(tmp_path / "status" / "elsewhere-1-1.json", (0, 0))
        who = f"{host}-{finished.pid}-1"
        (tmp_path / "status" / f".{who}.sign.{who}.part").touch()  # killed while it was written
        assert [s.path for s in progress.RunsProgress(SEVERAL, tmp_path).running()] == [mine]
        remove_stale(tmp_path)
        assert list((tmp_path / "status").iterdir()) == [mine]


@pytest.fixture
def elsewhere(monkeypatch):
    """Call a function as a process of another machine, or of another container on this machine, would."""

    def call(function, node=None, namespace=None):
        with monkeypatch.context() as patch:
            if node is not None:
                patch.setattr(atomic.platform, "node", lambda: node)
            if namespace is not None:
                patch.setattr(atomic.os, "readlink", lambda path: f"pid:[{namespace}]")
                patch.setattr(atomic.os, "kill", no_such_process)
            return function()

    def no_such_process(*_):
        raise ProcessLookupError

    return call


@pytest.mark.parametrize("other", [{"node": "another"}, {"namespace": 4026532180}])
def test_a_second_machine_or_container_on_the_same_store_loses_no_run_of_the_first(tmp_path, elsewhere, other):
    begun = []

    def clean_elsewhere(outcome):
        begun.append(outcome)
        (marker,) = (tmp_path / "status").glob("*.sign")
        minutes_ago = time.time() - 600
        os.utime(marker, (minutes_ago, minutes_ago))  # a long sweep, or a clock that differs
        elsewhere(lambda: remove_stale(tmp_path), **other)

    outcomes = compute_all(SEVERAL, tmp_path, engine.Here(), on_event=clean_elsewhere)
    assert [outcome.reason for outcome in outcomes.values()] == [None] * len(SEVERAL)
    assert len(begun) == len(SEVERAL)


def test_the_marker_of_a_command_on_another_machine_is_removed_after_a_week(tmp_path):
    days = {"nodea-1-1.sign": 6.9, "nodeb-1-1.sign": 7.1, "nodec-1-1.json": 0.1}
    (tmp_path / "status").mkdir()
    for name, age in days.items():
        (tmp_path / "status" / name).touch()
        then = time.time() - age * 24 * 3600
        os.utime(tmp_path / "status" / name, (then, then))
    remove_stale(tmp_path)
    assert [path.name for path in (tmp_path / "status").iterdir()] == ["nodea-1-1.sign"]


def test_processes_of_two_containers_with_one_host_name_never_write_the_same_file(elsewhere):
    names = {elsewhere(atomic.me, node="box", namespace=number) for number in (4026531836, 4026532180, 4026532181)}
    assert len(names) == 3
    assert all(name.endswith(f"-{os.getpid()}-{threading.get_native_id()}") for name in names)
