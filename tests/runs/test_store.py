"""The store keeps what is finished, computes a run once, and never uses what is damaged."""

import errno
import os
import random
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from rni import Diverged, InputError, Specification
from rni.core.atomic import me
from rni.runs.store import Store, locked

RAW = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 60}, "training": {"steps": 40}}


def specification(seed=0, **training):
    return Specification.parse(RAW | {"seed": seed, "training": RAW["training"] | training})


def contents(root):
    return {path.name: path.read_bytes() for path in Path(root).glob("??/*")}


class Steps(list):
    """A callback that remembers which steps were computed."""

    def __call__(self, step, loss, net):
        self.append(step)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def test_a_finished_run_is_read_back_and_not_computed_again(store):
    assert store.get(specification()) is None
    first, again = store.compute(specification()), Steps()
    second = store.compute(specification(), [again])
    assert again == []
    assert second.losses == first.losses
    assert second.specification == specification()
    assert all(torch.equal(a, b) for a, b in zip(first.network.parameters(), second.network.parameters(), strict=True))


def test_the_store_is_in_the_cache_folder_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Store().root.name == "runs"
    assert sys.platform != "linux" or Store().root == tmp_path / "rni" / "runs"


def truncated(path):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path):
    path.write_bytes(b"")


def flipped(place):
    def flip(path):
        content = bytearray(path.read_bytes())
        content[place] ^= 4
        path.write_bytes(content)

    return flip


def of_another_run(path):
    other = Store(path.parents[1] / "other")
    other.compute(specification(1))
    source = other.path(specification(1).key())
    for suffix in (".safetensors", ".sha256"):
        path.with_suffix(suffix).write_bytes(source.with_suffix(suffix).read_bytes())


def without_checksum(path):
    path.with_suffix(".sha256").unlink()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (truncated, "differs from its checksum"),
        (empty, "differs from its checksum"),
        (flipped(3), "differs from its checksum"),
        (flipped(60), "differs from its checksum"),
        (flipped(-100), "differs from its checksum"),
        (of_another_run, "another specification's run"),
        (without_checksum, "no checksum"),
    ],
)
def test_a_damaged_entry_is_reported_and_computed_again_to_the_same_bytes(store, caplog, damage, why):
    store.compute(specification())
    path, whole = store.path(specification().key()), contents(store.root)
    damage(path)
    assert store.get(specification()) is None
    assert len(caplog.messages) == 1
    assert str(path) in caplog.messages[0]
    assert why in caplog.messages[0]
    assert "\n" not in caplog.messages[0]
    steps = Steps()
    store.compute(specification(), [steps])
    assert steps == list(range(40))
    assert contents(store.root) == whole


def test_a_diverged_run_raises_and_leaves_nothing(store):
    wild = specification(learning_rate=50.0)
    for _ in range(2):
        with pytest.raises(Diverged, match="step 1:"):
            store.compute(wild)
    assert contents(store.root) == {}


def test_a_network_that_could_not_be_read_back_is_not_stored(store, monkeypatch):
    def spoiled(*args, **kwargs):
        result = original(*args, **kwargs)
        result.network.encoders.data[0] = float("nan")
        return result

    from rni.runs import execution

    original = execution.run
    monkeypatch.setattr(execution, "run", spoiled)
    with pytest.raises(InputError, match="NaN"):
        store.compute(specification())
    assert contents(store.root) == {}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_goes_on_where_it_was_to_the_same_bytes(store, tmp_path, how):
    undisturbed = Store(tmp_path / "undisturbed")
    undisturbed.compute(specification())

    def interrupt(step, loss, net):
        if step == 20:
            signal.raise_signal(how)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        store.compute(specification(), [interrupt])
    assert signal.signal(signal.SIGTERM, before) is signal.default_int_handler
    steps = Steps()
    store.compute(specification(), [steps])
    assert steps == list(range(21, 40))
    assert contents(store.root) == contents(undisturbed.root)


def test_a_damaged_checkpoint_is_reported_and_the_run_begins_afresh(store, caplog):
    checkpoint = store.path(specification().key()).with_suffix(".checkpoint")
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"half")
    steps = Steps()
    store.compute(specification(), [steps])
    assert steps == list(range(40))
    assert str(checkpoint) in caplog.text
    assert not checkpoint.exists()


@pytest.fixture
def dead():
    """HOST-PID-THREAD of a process that is no more."""
    finished = subprocess.Popen([sys.executable, "-c", ""])
    finished.wait()
    return f"{me().rsplit('-', 2)[0]}-{finished.pid}-1"


def test_what_a_process_killed_while_writing_left_behind_is_cleared_away(store, dead):
    path = store.path(specification().key())
    path.parent.mkdir(parents=True)
    for name in (f".{path.name}", f"..{path.name}.{dead}.part", f".{path.stem}.checkpoint"):
        path.with_name(f"{name}.{dead}.part").write_bytes(b"half")
    store.compute(specification())
    assert set(contents(store.root)) == {path.name, f"{path.stem}.sha256"}


def test_what_a_process_killed_just_after_it_stored_the_run_left_behind_is_cleared_away(store, dead):
    store.compute(specification())
    whole, path = contents(store.root), store.path(specification().key())
    path.with_suffix(".checkpoint").write_bytes(b"old")
    path.with_suffix(".lock").touch()
    path.with_name(f".{path.stem}.checkpoint.{dead}.part").write_bytes(b"half")
    store.compute(specification())
    assert contents(store.root) == whole


def test_a_store_that_is_a_file_or_below_one_is_refused_in_a_line(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(InputError, match="file: not a folder; allowed: a folder") as caught:
            Store(place)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_the_file_system_has_no_locks_a_run_is_computed_without_one(store, monkeypatch, caplog, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("rni.runs.store.fcntl.flock", flock)
    assert store.compute(specification()).losses
    assert caplog.messages == [f"locks: {os.strerror(number)}; a run that two processes want at once is computed twice"]
    monkeypatch.setattr("rni.runs.store.fcntl", None)
    assert store.compute(specification(1)).losses


def test_entries_are_the_newest_first_and_name_what_they_are(store):
    for seed in (0, 1):
        store.compute(specification(seed))
        os.utime(store.path(specification(seed).key()), (seed, seed))
    entries = store.entries()
    assert [entry.specification for entry in entries] == [specification(1).to_dict(), specification(0).to_dict()]
    assert entries[0].label == "relu n=60, decays 0.9 0.8, T=3 batch sgd 40 steps, seed 1"
    assert entries[0].size == entries[0].path.stat().st_size
    empty(entries[0].path)
    assert store.entries()[0].label.startswith("unreadable: ")


def test_one_run_is_removed_by_the_beginning_of_its_key(store):
    for seed in range(40):
        store.compute(specification(seed, steps=0))
    with pytest.raises(InputError, match=r"begins \d+ runs; allowed"):
        next(store.remove(digit) for digit in "0123456789abcdef" if len([*store.root.glob(f"{digit}?/*")]) > 2)
    with pytest.raises(InputError, match="no such run"):
        store.remove("xyz")
    key = specification(7, steps=0).key()
    assert store.remove(key[:16]).key == key
    assert store.get(specification(7, steps=0)) is None
    assert len(store.entries()) == 39


def test_a_run_is_not_removed_while_somebody_computes_it(store):
    store.compute(specification())
    key = specification().key()
    with locked(store.path(key).with_suffix(".lock")), pytest.raises(InputError, match="computed at this moment"):
        store.remove(key)
    assert store.get(specification()) is not None


PROCESSES = get_context("forkserver")  # each begins with torch imported
PROCESSES.set_forkserver_preload(["rni.runs.store", "rni.runs.execution"])


def work(root, steps, seeds, line, together):
    """Compute some runs one after the other, and tell of each step."""
    together.wait()
    for seed in seeds:
        computed = []

        def step(*_, computed=computed):
            computed.append(1)
            line.send("step")

        Store(root).compute(specification(seed, steps=steps), [step])
        line.send(("finished", seed, len(computed)))


@contextmanager
def started(root, steps, *seeds, together=None):
    """A process that does, and the end of the line."""
    together = together or PROCESSES.Barrier(1)  # gone with the last name for it, if need be before it is seen
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=work, args=(root, steps, seeds, theirs, together))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()


def said(line):
    """What comes until the process ends."""
    with suppress(EOFError):
        while True:
            yield line.recv()


def test_two_processes_that_want_the_same_run_compute_it_once(store):
    options = {"together": PROCESSES.Barrier(2)}
    with started(store.root, 1000, 0, **options) as (_, one), started(store.root, 1000, 0, **options) as (_, two):
        outputs = [[*said(line)][-1] for line in (one, two)]
    assert sorted(outputs) == [("finished", 0, 0), ("finished", 0, 1000)]
    assert not list(store.root.glob("??/*.lock"))


def test_a_lock_is_exclusive_however_often_its_file_is_removed(tmp_path):
    """Threads count as processes here: each opens the lock's file for itself."""
    from concurrent.futures import ThreadPoolExecutor

    inside, most = [], []

    def enter(_):
        with locked(tmp_path / "a.lock"):
            inside.append(1)
            os.sched_yield()
            most.append(len(inside))
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(200)))
    assert max(most) == 1


def test_killed_at_random_moments_and_started_again_nothing_finished_is_lost(store, tmp_path):
    """A moment is a step of a run: the process reports each, and is killed at one of them."""
    seeds, steps = range(4), 200
    undisturbed = Store(tmp_path / "undisturbed")
    for seed in seeds:
        undisturbed.compute(specification(seed, steps=steps))
    moments = random.Random(0)
    finished, codes = {}, []
    for attempt in range(5):
        with started(store.root, steps, *seeds) as (process, line):
            heard = said(line)
            read = []
            if attempt < 3:
                read = [*islice(heard, moments.randrange(10, 2 * steps))]
                process.kill()
            done = [words[1:] for words in [*read, *heard] if words != "step"]
            process.join()
        codes.append(process.exitcode)
        assert not [seed for seed, count in done if count and seed in finished], "computed twice"
        finished |= {seed: path.stat().st_mtime_ns for seed, _ in done for path in [path_of(store, seed, steps)]}
        assert all(path_of(store, seed, steps).stat().st_mtime_ns == when for seed, when in finished.items())
    assert codes[-1] == 0
    assert contents(store.root) == contents(undisturbed.root)


def path_of(store, seed, steps):
    return store.path(specification(seed, steps=steps).key())


def test_a_run_on_a_loss_without_sequences_has_a_label():
    raw = {"task": {"decays": [0.9]}, "training": {"loss": "proxy"}}
    assert Specification.parse(raw).label() == "relu n=1000, decays 0.9, proxy sgd 5000 steps, seed 0"
