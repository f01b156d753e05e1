"""A real Dask scheduler and two real workers on this machine, one of which is killed in the middle."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from test_store import networks
from told import there, train_run

from rni import InputError
from rni.papers import Profile
from rni.papers.fanthomme2021 import PAPER
from rni.papers.reproduce import reproduce
from rni.runs.engine import ClusterLost, cluster, compute_all, local
from rni.runs.store import Store

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'rni[cluster]'")

RAW = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 60}}
RUNS = [train_run(RAW | {"seed": seed, "training": {"steps": 1000}}) for seed in range(4)]
WILD = train_run(RAW | {"training": {"steps": 40, "learning_rate": 50.0}})


def at_work(root, count):
    """Wait until so many runs are computed at once: their locks are there."""
    return until(lambda: len(found := list(Path(root).glob("??/*.lock"))) >= count and found)


def worker_of(lock, pids):
    """The process that has the file of a lock open."""
    for pid in pids:
        with suppress(OSError):
            if any(os.path.realpath(descriptor) == str(lock) for descriptor in Path(f"/proc/{pid}/fd").iterdir()):
                return pid
    return None


def until(condition):
    """Wait for a condition, however long it takes: a test that hangs is ended from outside."""
    while not (found := condition()):
        time.sleep(0.02)
    return found


@pytest.fixture
def processes():
    """Those of the cluster; the scheduler is the first."""
    return []


@pytest.fixture
def scheduler(tmp_path, processes, request):
    """The address of a scheduler with two workers of one thread each, or with as many as a test asks for."""

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *arguments]
        with (tmp_path / "dask.log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
        processes.append(process)
        running.callback(process.wait)
        running.callback(process.kill)

    with ExitStack() as running:
        found = tmp_path / "scheduler.json"
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(found))
        until(lambda: found.exists() and found.read_text(encoding="utf-8").endswith("}"))
        for _ in range(getattr(request, "param", 2)):
            only = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
            start("worker", "--scheduler-file", str(found), *only, "--local-directory", str(tmp_path))
        yield json.loads(found.read_text(encoding="utf-8"))["address"]


def test_a_cluster_that_loses_a_worker_in_the_middle_gives_the_same_bytes(scheduler, processes, tmp_path):
    pids = [process.pid for process in processes[1:]]
    root, here = tmp_path / "runs", Store(tmp_path / "here")
    for each in RUNS:
        here.compute(each)

    def kill_one_of_two():
        pid, lock = until(
            lambda: next(((pid, lock) for lock in at_work(root, 2) if (pid := worker_of(lock, pids))), None)
        )
        killed.append(lock.stem)
        os.kill(pid, signal.SIGKILL)

    killed = []
    with cluster(scheduler) as executor:
        until(lambda: len(executor._client.scheduler_info()["workers"]) == 2)
        killer = threading.Thread(target=kill_one_of_two)
        killer.start()
        outcomes = compute_all([*RUNS, WILD], root, executor)
        killer.join()
        assert executor.submit(abs, -1).result() == 1
        until(lambda: len(executor._client.scheduler_info()["workers"]) == 1)
    assert killed[0] in outcomes
    assert there(outcomes.pop(WILD.key()).reason)
    assert [outcome.reason for outcome in outcomes.values()] == [None] * len(RUNS)
    assert networks(root) == networks(here.root)


@pytest.mark.parametrize("scheduler", [1], indirect=True)
def test_a_scheduler_that_dies_in_the_middle_is_one_line_and_not_an_endless_wait(scheduler, processes, tmp_path):
    def kill_the_scheduler():
        at_work(tmp_path / "runs", 1)
        processes[0].kill()

    killer = threading.Thread(target=kill_the_scheduler)
    killer.start()
    long = [train_run(RAW | {"seed": seed, "training": {"steps": 10**8}}) for seed in range(3)]
    with pytest.raises(ClusterLost), cluster(scheduler) as executor:
        compute_all(long, tmp_path / "runs", executor)
    killer.join()


@pytest.mark.slow
def test_a_reproduction_on_a_cluster_has_the_same_claims_as_one_on_this_machine(scheduler, tmp_path):
    profile, chosen = Profile("tiny", neurons=60, quick=True), ["fig1", "fig4"]
    for name, executor in (("dask", cluster(scheduler)), ("local", local(1))):
        with executor:
            reproduce(PAPER, chosen, profile, tmp_path / name, executor, tmp_path / f"{name}-store")
    assert (tmp_path / "dask" / "claims.json").read_bytes() == (tmp_path / "local" / "claims.json").read_bytes()
    assert (tmp_path / "dask" / "fig4.npz").read_bytes() == (tmp_path / "local" / "fig4.npz").read_bytes()


@pytest.mark.parametrize("scheduler", [1], indirect=True)
def test_a_worker_without_the_package_is_one_line_before_any_work(scheduler, monkeypatch):
    monkeypatch.setattr("rni.runs.engine.__name__", "rni_that_is_not_there")
    with pytest.raises(InputError, match="rni_that_is_not_there"):
        cluster(scheduler)


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch):
    from distributed import Client

    monkeypatch.setattr("rni.runs.engine.CONNECT_TIMEOUT", 0.5)
    for address in ("tcp://127.0.0.1:1", "nonsense", "tcp://"):
        with pytest.raises(InputError) as caught:
            cluster(address)
        assert (caught.value.field, caught.value.value) == ("scheduler", address)
        assert "\n" not in str(caught.value)
        # one that is left half made ends when it is collected: while the next one starts, both would wait forever
        assert all(each.status in ("closed", "newly-created") for each in gc.get_objects() if type(each) is Client)
