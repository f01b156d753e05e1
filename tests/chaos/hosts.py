"""Many commands on one store: two hosts, wrong clocks, eight sweeps, stopped workers, little memory, a partition.

All sweeps of one experiment must end with exit code 0 and the table of an undisturbed sweep, and none may lose a run. A
host is a host name and a PID namespace of its own (`unshare`).
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from rni.runs import store as stores
from rni.runs.store import Store
from tests.chaos import _help, cluster

RUNS = 200
MANY = 10_000
NETWORK = "10.99.77"
HOST = ["unshare", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", 'hostname "$0"; exec "$@"']
CONFIG = "[task]\ndecays = [0.9]\n[network]\nneurons = 20\n[training]\nsteps = {steps}\n"
HUNGRY = """
import os
import signal

def size(net):
    if net.neurons == 21:
        memory = bytearray(b"1") * 2**28
        os.kill(os.getpid(), signal.SIGKILL)  # what the kernel does when memory runs out
    return net.neurons
"""
Row = cluster.Row


def run(seed: int, folder: Path) -> Iterator[Row]:
    expected = undisturbed(folder / "undisturbed", RUNS)
    yield two_hosts(folder / "hosts", expected)
    few = undisturbed(folder / "few", 24)
    yield wrong_clocks(folder / "clocks", few, random.Random(seed))
    yield eight_sweeps(folder / "eight", few)
    yield stopped_worker(folder / "stopped", few)
    yield memory(folder / "memory")
    yield partition(folder / "partition")
    yield many_runs(folder / "many")


def sweep(folder: Path, name: str, runs: int, steps: int = 200, **options: str) -> list[str]:
    """The arguments of a sweep with its own output and the store of the folder."""
    folder.mkdir(exist_ok=True)
    config = folder / f"{name}.toml"
    config.write_text(CONFIG.format(steps=steps))
    flags = {"--over": f"seed=0..{runs - 1}", "--measure": "loss", "--workers": "1", **options}
    places = ["--store", str(folder / "store"), "--out", str(folder / name)]
    return ["sweep", str(config), *(word for flag in flags.items() for word in flag), *places]


def table(folder: Path, name: str) -> bytes:
    path = folder / name / "table.csv"
    return path.read_bytes() if path.exists() else b""


def undisturbed(folder: Path, runs: int) -> bytes:
    code, err = _help.command(sweep(folder, "out", runs))
    assert code == 0, err
    return table(folder, "out")


def start(arguments: list[str], before: Sequence[str] = ()) -> "subprocess.Popen[str]":
    command = [*before, sys.executable, "-m", "rni", *arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=_help.environment(), start_new_session=True, **streams)


def judged(what: str, folder: Path, names: list[str], expected: bytes, ended: list[tuple[int, str]]) -> Row:
    """Compare exit codes, tables and what is left in the store."""
    codes = [code for code, _ in ended]
    lost = sum(err.count("FAILED") for _, err in ended)
    differ = [name for name in names if table(folder, name) != expected]
    left = _help.left_over(folder)
    runs = len(expected.splitlines()) - 1
    remark = f"exit codes {codes}, {lost} of {runs} runs lost"
    remark += f", {differ} differ" if differ else ", the same tables"
    return what, len(names), sum(code != 0 for code in codes) + len(differ) + len(left) + lost, remark


def two_hosts(folder: Path, expected: bytes) -> Row:
    what = f"two hosts and PID namespaces, one store, {RUNS} runs"
    if subprocess.run([*HOST, "test", "true"], capture_output=True, check=False).returncode:
        return what, 0, 0, "not permitted here"
    names = ["a", "b"]
    both = [start(sweep(folder, name, RUNS), [*HOST, f"node-{name}"]) for name in names]
    return judged(what, folder, names, expected, [_help.finish(each) for each in both])


def wrong_clocks(folder: Path, expected: bytes, moments: random.Random) -> Row:
    """The times of all files in the store jump by years while two sweeps use it."""
    names, is_over = ["a", "b"], threading.Event()

    def shift() -> None:
        while not is_over.wait(0.02):
            for path in (folder / "store").rglob("*"):
                then = time.time() + moments.uniform(-1, 1) * 1e8
                try:
                    os.utime(path, (then, then))
                except OSError:
                    continue

    both = [start(sweep(folder, name, 24)) for name in names]
    thread = threading.Thread(target=shift)
    thread.start()
    ended = [_help.finish(each) for each in both]
    is_over.set()
    thread.join()
    return judged("wrong clocks: file times that jump by years", folder, names, expected, ended)


def eight_sweeps(folder: Path, expected: bytes) -> Row:
    names = [str(number) for number in range(8)]
    all_of_them = [start(sweep(folder, name, 24)) for name in names]
    return judged("eight sweeps at once on one store", folder, names, expected, [_help.finish(p) for p in all_of_them])


def stopped_worker(folder: Path, expected: bytes) -> Row:
    """A worker is stopped while it holds a lock; another sweep continues, and then the worker continues."""
    names = ["a", "b"]
    first = start(sweep(folder, "a", 24))
    worker = _help.until(lambda: workers_of(first.pid) if list((folder / "store").glob("??/*.lock")) else [])[0]
    os.kill(worker, signal.SIGSTOP)
    second = _help.finish(_help.start(sweep(folder, "b", 24), STOPPED=5))
    os.kill(worker, signal.SIGCONT)
    ended = [_help.finish(first), second]
    return judged("a worker stopped for a while", folder, names, expected, ended)


def workers_of(parent: int) -> list[int]:
    """The worker processes of a command, without the process that cleans up after them."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and b"spawn_main" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def memory(folder: Path) -> Row:
    """One of four runs is killed as the kernel does when memory runs out. The others finish."""
    folder.mkdir()
    (folder / "mine.py").write_text(HUNGRY)
    options = {"--over": "neurons=20,21,22,23", "--measure": "mine:size", "--workers": "2"}
    command = [
        "sh",
        "-c",
        f'cd {folder}; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "rni",
        *sweep(folder, "out", 1, 200, **options),
    ]
    done = subprocess.run(command, env=_help.environment(), capture_output=True, text=True, check=False)
    rows = [row.split(",") for row in table(folder, "out").decode().splitlines()[1:]]
    good = [row for row in rows if row[0] == row[1]]
    killed = [row for row in rows if "SIGKILL" in "".join(row)]
    failures = int(done.returncode != 1) + int(len(good) != 3) + int(len(killed) != 1)
    remark = f"exit code {done.returncode}; {len(good)} runs measured, {len(killed)} named as killed"
    return "a worker killed because of its memory", 4, failures, remark


def partition(folder: Path) -> Row:
    """The only worker loses its network to the scheduler. Another worker takes its run."""
    what = "a partition between scheduler and worker"
    with ExitStack() as stack:
        holders = [subprocess.Popen(["unshare", "--net", "sleep", "1000"]) for _ in range(2)]
        for holder in holders:
            stack.callback(holder.wait)
            stack.callback(holder.kill)
        time.sleep(1)
        here, there = (["nsenter", "-t", str(holder.pid), "-n"] for holder in holders)
        commands = [
            (here, f"link add veth0 type veth peer name veth1 netns {holders[1].pid}"),
            *((here, f"addr add {NETWORK}.1/24 dev veth0"), (there, f"addr add {NETWORK}.2/24 dev veth1")),
            *((here, "link set veth0 up"), (there, "link set veth1 up")),
            *((here, "link set lo up"), (there, "link set lo up")),
        ]
        for prefix, command in commands:
            words = [*prefix, "ip", *command.split()]
            if not shutil.which("ip") or subprocess.run(words, capture_output=True, check=False).returncode:
                return what, 0, 0, "not permitted to make network namespaces here"
        expected = undisturbed(folder, 24)
        dask = stack.enter_context(cluster.running(folder / "dask", f"{NETWORK}.1", here))
        dask.add(*there, sys.executable, "-m", "dask", host=f"{NETWORK}.2")
        arguments = sweep(folder, "other", 24, 200, **{"--workers": ""})
        place = arguments.index("--workers")
        arguments[place : place + 2] = ["--scheduler", dask.address]
        arguments[arguments.index("--store") + 1] = str(folder / "store2")
        process = start(arguments, before=here)
        _help.until(lambda: list((folder / "store2").glob("??/*.lock")) or process.poll() is not None)
        subprocess.run([*here, "ip", "link", "set", "veth0", "down"], check=True)
        dask.add(*here, sys.executable, "-m", "dask", host="127.0.0.1")
        code, err = _help.finish(process)
    same = table(folder, "other") == expected
    return what, 1, int(code != 0 or not same), f"exit code {code}, " + ("the same table" if same else err[-200:])


def many_runs(folder: Path) -> Row:
    """Copies of one entry: listing takes less than 1 s, and a sweep of that many stored runs less than 2 s."""
    expected = undisturbed(folder, 1)
    store = Store(folder / "store")
    entry = store.entries()[0]
    header, measures = stores._read_checked(entry.path / "header"), store.measured(entry.key)
    from rni.runs.sweep import planned

    raw, plan = planned(folder / "out.toml", over={"seed": f"0..{MANY - 1}"})
    for each in plan.runs(raw, list(plan.points())):
        assert each.specification is not None
        path = store.path(each.specification.key())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        stores._write_checked(path.parent / "header", header | {"specification": each.specification.to_dict()})
        store.keep(each.specification.key(), measures)
    listed = timed(lambda: _help.finish(start(["runs", "list", "--store", str(store.root)])))
    swept = timed(lambda: _help.command(sweep(folder, "again", MANY)))
    rows = table(folder, "again").count(b"\n") - 1
    failures = int(listed > 1) + int(swept > 2) + int(rows != MANY) + int(not expected)
    return f"a store of {MANY} runs", 2, failures, f"listed in {listed:.2f} s, swept again in {swept:.2f} s"


def timed(action: Callable[[], tuple[int, str]]) -> float:
    """The processor time of a command, which other work on the machine changes little."""
    before = sum(os.times()[2:4])
    code, err = action()
    assert code == 0, err
    return sum(os.times()[2:4]) - before
