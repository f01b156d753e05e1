"""A Dask cluster that loses workers or its scheduler, or lacks the package or the store: the claims, or one line."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rni.runs.progress import statuses
from tests.chaos import _command, _help

Row = tuple[str, int, int, str]
WORKER = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--death-timeout", "60"]
KNOWS = ["--preload", _command.__file__]  # the figure
WITHOUT_RNI = "import sys; sys.modules['rni'] = None; sys.argv[0] = 'dask'; from dask.__main__ import main; main()"


class Cluster:
    """A scheduler and its workers, as processes."""

    def __init__(self, folder: Path):
        self.folder, self.file, self.processes = folder, folder / "scheduler.json", []
        folder.mkdir()
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)]
        self.scheduler = self._start([sys.executable, "-m", "dask", "scheduler", *options])
        _help.until(lambda: self.file.exists() and self.file.read_text(encoding="utf-8").endswith("}"))
        self.address = json.loads(self.file.read_text(encoding="utf-8"))["address"]
        self.workers: list[Any] = []

    def add(self, *begin: str, knows: list[str] = KNOWS) -> None:
        begin = begin or (sys.executable, "-m", "dask")
        options = ["--scheduler-file", str(self.file), "--local-directory", str(self.folder)]
        self.workers.append(self._start([*begin, "worker", *options, *WORKER, *knows]))

    def _start(self, command: list[str]) -> Any:
        with (self.folder / "dask.log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=_help.environment())
        self.processes.append(process)
        return process


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        for process in cluster.processes:
            process.kill()
            process.wait()


def run(seed: int, folder: Path) -> list[Row]:
    (folder / "whole").mkdir()
    code, err = _help.command(_help.reproduce(folder / "whole"))
    assert code == 0, err
    claims = (folder / "whole" / "report" / "claims.json").read_bytes()
    cases = (worker_killed, all_workers_killed, scheduler_killed, without_package, without_store)
    return [case(folder / case.__name__, claims) for case in cases]


def begin(place: Path, cluster: Cluster) -> "subprocess.Popen[str]":
    (place / "here").mkdir(exist_ok=True)
    return _help.start([*_help.reproduce(place / "here"), "--scheduler", cluster.address])


def at_work(place: Path, process: "subprocess.Popen[str]", workers: int = 1) -> None:
    """Wait until so many workers compute; a command that is over already was not disturbed."""
    store = place / "here" / "store"
    _help.until(lambda: len({status.worker for status in statuses(store)}) >= workers or process.poll() is not None)


def judged(what: str, place: Path, claims: bytes, process: "subprocess.Popen[str]") -> Row:
    """The same claims, or one line and no claims."""
    code, err = _help.finish(process)
    found = place / "here" / "report" / "claims.json"
    last = err.strip().splitlines()[-1]
    if code == 0:
        left = _help.left_over(place / "here")
        good = found.read_bytes() == claims and not left
        return what, 1, int(not good), "the same claims" if good else f"differ, or left: {left[:3]}"
    return what, 1, int(not _help.one_line(err)), last.replace(str(place), "PLACE")


def worker_killed(place: Path, claims: bytes) -> Row:
    place.mkdir()
    with running(place / "dask") as cluster:
        for _ in range(2):
            cluster.add()
        process = begin(place, cluster)
        at_work(place, process, 2)
        cluster.workers[0].kill()
        cluster.workers[0].wait()  # a zombie would count as alive
        return judged("one worker of two killed", place, claims, process)


def all_workers_killed(place: Path, claims: bytes) -> Row:
    place.mkdir()
    with running(place / "dask") as cluster:
        for _ in range(2):
            cluster.add()
        process = begin(place, cluster)
        at_work(place, process, 2)
        for worker in cluster.workers:
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        cluster.add()
        return judged("all workers killed, another one started", place, claims, process)


def scheduler_killed(place: Path, claims: bytes) -> Row:
    place.mkdir()
    with running(place / "dask") as cluster:
        cluster.add()
        process = begin(place, cluster)
        at_work(place, process)
        cluster.scheduler.kill()
        _, _, failures, remark = judged("", place, claims, process)
    with running(place / "another") as cluster:
        cluster.add()
        again = judged("", place, claims, begin(place, cluster))
    return "scheduler killed, then another", 2, failures + again[2], f"{remark}; then {again[3]}"


def without_package(place: Path, claims: bytes) -> Row:
    place.mkdir()
    with running(place / "dask") as cluster:
        cluster.add(sys.executable, "-c", WITHOUT_RNI, knows=[])
        return judged("a worker that can't import the package", place, claims, begin(place, cluster))


def without_store(place: Path, claims: bytes) -> Row:
    """The worker sees an empty folder in the store's place: a mount of its own."""
    what = "a worker that does not share the store"
    place.mkdir()
    (place / "empty").mkdir()
    (place / "here" / "store").mkdir(parents=True)
    hide = f'mount --bind {place / "empty"} {place / "here" / "store"} && exec "$@"'
    apart = ["unshare", "--mount", "sh", "-c", hide, "sh"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        return what, 0, 0, "not permitted to mount here"
    with running(place / "dask") as cluster:
        cluster.add(*apart, sys.executable, "-m", "dask")
        return judged(what, place, claims, begin(place, cluster))
