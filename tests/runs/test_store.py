"""The store keeps finished results, computes each run once, and never uses a damaged file."""

import errno
import json
import os
import random
import signal
import sys
import time
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from told import there, train_run

from rni import Diverged, InputError
from rni.core.atomic import process_tag
from rni.runs import store as module
from rni.runs.store import Busy, Store, locked

RAW = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 60}, "training": {"steps": 40}}


def specification(seed=0, **training):
    return train_run(RAW | {"seed": seed, "training": RAW["training"] | training})


def networks(root):
    """Each network's bytes, by key."""
    return {path.parent.name: path.read_bytes() for path in Path(root).glob("??/*/network.safetensors")}


def files(root):
    return sorted(str(path.relative_to(root)) for path in Path(root).rglob("*") if path.is_file())


def folder(store, seed=0):
    return store.path(specification(seed).key()).parent


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


def test_the_store_is_in_the_cache_folder_by_default(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Store().root.name == "runs"
    assert sys.platform != "linux" or Store().root == tmp_path / "rni" / "runs"


def test_a_cache_folder_that_cannot_be_written_is_one_line_that_names_the_flag(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/1/nowhere")
    with pytest.raises(InputError) as caught:
        Store().require_writable()
    assert caught.value.field == "store"
    assert "--store" in caught.value.allowed


def test_the_header_records_what_computed_the_run(store):
    store.compute(specification())
    (entry,) = store.entries()
    assert entry.specification == specification().to_dict()
    assert entry.label == specification().label()
    assert set(entry.origin) == {"rni", "torch", "numpy", "python", "processor"}
    assert entry.origin["torch"] == torch.__version__
    assert os.uname().machine in entry.origin["processor"]
    assert entry.size == store.path(entry.key).stat().st_size
    assert abs(entry.finished - time.time()) < 60


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path):
    path.write_bytes(b"")


def flip(position):
    def flipped(path):
        content = bytearray(path.read_bytes())
        content[position] ^= 4
        path.write_bytes(content)

    return flipped


def from_another_run(path):
    other = Store(path.parents[2] / "other")
    other.compute(specification(1))
    for name in ("network.safetensors", "header"):
        (path.parent / name).write_bytes((folder(other, 1) / name).read_bytes())


DAMAGES = [truncate, empty, flip(3), flip(60), flip(-100), Path.unlink]


@pytest.mark.parametrize("name", ["network.safetensors", "header"])
@pytest.mark.parametrize("damage", [*DAMAGES, from_another_run])
def test_a_damaged_entry_is_reported_and_computed_again_to_the_same_bytes(store, caplog, name, damage):
    store.compute(specification())
    store.keep(specification().key(), {"loss": 1.0})
    path, whole = folder(store) / name, networks(store.root)
    damage(path)
    assert store.get(specification()) is None
    assert len(caplog.messages) == 1
    assert str(path.parent) in caplog.messages[0]
    steps = Steps()
    store.compute(specification(), [steps])
    assert steps == list(range(40))
    assert networks(store.root) == whole
    assert store.measured(specification().key()) == {}, "measured of the network that was damaged"


@pytest.mark.parametrize("damage", [truncate, empty, *(flip(position) for position in range(66, 120, 6)), flip(2)])
def test_a_damaged_file_of_measures_is_reported_and_not_used(store, caplog, damage):
    store.keep("abcd", {"error": 0.0063, "ratio": 1.0, "verdict": "integrates"})
    assert store.measured("abcd")["error"] == 0.0063
    (path,) = store.root.glob("??/*.measures")
    damage(path)
    assert store.measured("abcd") == {}
    assert str(path) in caplog.text


def test_measures_of_another_version_are_not_used(store, monkeypatch):
    store.keep("abcd", {"error": 0.1})
    monkeypatch.setattr(module, "MEASURES", module.MEASURES + 1)
    assert store.measured("abcd") == {}


def test_a_diverged_run_raises_and_leaves_nothing(store):
    wild = specification(learning_rate=50.0)
    for _ in range(2):
        with pytest.raises(Diverged) as caught:
            store.compute(wild)
        assert caught.value.step == 1
    assert files(store.root) == []


def test_a_network_that_could_not_be_read_back_is_not_stored(store, monkeypatch):
    def spoiled(*args, **kwargs):
        result = original(*args, **kwargs)
        result.network.encoders.data[0] = float("nan")
        return result

    from rni.runs import execution

    original = execution.run
    monkeypatch.setattr(execution, "run", spoiled)
    with pytest.raises(InputError):
        store.compute(specification())
    assert networks(store.root) == {}
    assert not list(store.root.rglob("*.part"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_resumes_to_the_same_bytes(store, tmp_path, how):
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
    assert networks(store.root) == networks(undisturbed.root)


def test_a_damaged_checkpoint_is_reported_and_the_run_starts_afresh(store, caplog):
    checkpoint = folder(store).with_suffix(".checkpoint")
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"half")
    steps = Steps()
    store.compute(specification(), [steps])
    assert steps == list(range(40))
    assert str(checkpoint) in caplog.text
    assert not checkpoint.exists()


@pytest.fixture
def dead():
    """The tag of a process that has ended."""
    namespace = process_tag().split("-")[0]
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    return f"{namespace}-{process}-1"


def test_temporary_files_of_a_killed_process_are_removed(store, dead):
    place = folder(store).parent
    unfinished = place / f".{folder(store).name}.{dead}.part"
    unfinished.mkdir(parents=True)
    (unfinished / "network.safetensors").write_bytes(b"half")
    (place / f".{folder(store).name}.checkpoint.{dead}.part").write_bytes(b"half")
    store.compute(specification())
    assert {path.name for path in place.iterdir()} == {folder(store).name}


def test_files_of_a_process_that_was_killed_after_it_had_stored_the_run_are_removed(store, dead):
    store.compute(specification())
    whole = files(store.root)
    folder(store).with_suffix(".checkpoint").write_bytes(b"old")
    folder(store).with_suffix(".lock").touch()
    (folder(store).parent / f".x.checkpoint.{dead}.part").write_bytes(b"half")
    store.compute(specification())
    assert files(store.root) == whole


def test_a_store_that_is_a_file_or_below_one_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(InputError) as caught:
            Store(place)
        assert caught.value.field == str(tmp_path / "file")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EIO, errno.EBADF])
def test_without_locks_a_run_is_computed_and_a_message_names_the_file(store, monkeypatch, caplog, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    assert store.compute(specification()).losses
    assert str(folder(store).with_suffix(".lock")) in caplog.text
    assert networks(store.root)


def test_the_first_of_two_finished_results_stays(store, monkeypatch):
    """Without locks two processes compute the same run. Here they get different bits."""

    def also_computed_elsewhere(step, loss, net):
        if step == 20:
            other.compute(specification())
            monkeypatch.setattr(other, "root", None)

    @contextmanager
    def no_lock(path, *, wait=True):
        yield lambda: None

    monkeypatch.setattr(module, "locked", no_lock)
    other = Store(store.root)
    of_other = []
    original = module._write
    monkeypatch.setattr(module, "_write", lambda *parts: (original(*parts), of_other.append(networks(store.root)))[0])

    def differ(step, loss, net):
        also_computed_elsewhere(step, loss, net)
        net.decoders.data += 1e-3

    result = store.compute(specification(), [differ])
    assert len(of_other) == 2
    assert of_other[0] == of_other[1] == networks(store.root)
    assert torch.equal(result.network.decoders, there(store.get(specification())).network.decoders)
    assert not list(store.root.rglob("*.part"))


def test_others_wait_for_a_holder_that_works_but_not_for_one_that_is_stopped(tmp_path, monkeypatch, caplog):
    """A holder changes the time of the lock file now and then. Its clock may differ by years."""
    monkeypatch.setattr(module, "STOPPED", 1.5)
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=hold, args=(tmp_path / "a.lock", theirs))
    process.start()
    try:
        ours.recv()
        with pytest.raises(Busy), locked(tmp_path / "a.lock", wait=False):
            pass
        started = time.monotonic()
        os.utime(tmp_path / "a.lock", (0, 0))
        with locked(tmp_path / "a.lock"):
            waited = time.monotonic() - started
        assert waited > 4, "the holder worked for 4 s before it stopped"
        assert waited < 20
        assert str(tmp_path / "a.lock") in caplog.text
    finally:
        process.kill()
        process.join()
    caplog.clear()
    with locked(tmp_path / "a.lock", wait=False):
        pass
    assert not caplog.messages


def hold(path, connection):
    """Hold a lock, work for four seconds, and do nothing after that."""
    module.BEAT = 0.2
    with locked(path) as beat:
        connection.send("held")
        started = time.monotonic()
        while time.monotonic() - started < 4:
            beat()
            time.sleep(0.05)
        time.sleep(1000)


def test_entries_are_the_newest_first_and_a_damaged_one_is_named(store):
    for seed in (0, 1):
        store.compute(specification(seed))
    entries = store.entries()
    assert [entry.specification["seed"] for entry in entries] == [1, 0]
    empty(entries[0].path / "header")
    damaged = store.entries()[-1]
    assert (damaged.key, damaged.specification, damaged.origin) == (entries[0].key, {}, {})
    assert "header" in damaged.label
    store.remove(damaged.key)
    assert len(store.entries()) == 1


def test_one_run_is_removed_by_the_beginning_of_its_key(store):
    for seed in range(40):
        store.compute(specification(seed, steps=0))
    keys = [entry.key for entry in store.entries()]
    ambiguous = next(digit for digit in "0123456789abcdef" if sum(key[0] == digit for key in keys) > 1)
    for wrong in (ambiguous, "xyz", "", "*"):
        with pytest.raises(InputError) as caught:
            store.remove(wrong)
        assert caught.value.field == "key"
    key = specification(7, steps=0).key()
    assert store.remove(key[:16]).key == key
    assert store.get(specification(7, steps=0)) is None
    assert len(store.entries()) == 39


def test_a_run_is_not_removed_while_another_process_computes_it(store):
    store.compute(specification())
    with locked(folder(store).with_suffix(".lock")), pytest.raises(InputError) as caught:
        store.remove(specification().key())
    assert caught.value.field == "key"
    assert store.get(specification()) is not None


def test_ten_thousand_runs_are_listed_from_their_headers_alone(store, monkeypatch):
    store.compute(specification())
    header = json.loads((folder(store) / "header").read_text().splitlines()[1])
    for number in range(10_000):
        key = f"{number * 7919 % 256:02x}{number:030x}"
        (store.root / key[:2] / key).mkdir(parents=True)
        module._write_checked(store.root / key[:2] / key / "header", header)
    from rni.cli.runs import list_runs

    lines = []
    monkeypatch.setattr("builtins.print", lines.append)
    list_runs(store.root)  # these entries have no network files
    assert sum(line[:12].strip().isalnum() for line in lines) >= 10_000


PROCESSES = get_context("forkserver")  # each process starts with torch imported
PROCESSES.set_forkserver_preload(["rni.runs.store", "rni.runs.execution"])


def work(root, steps, seeds, line, together):
    """Compute some runs one after the other, and report each step."""
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
    """A process that works, and the end of its line."""
    together = together or PROCESSES.Barrier(1)  # must not be collected before the process has it
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=work, args=(root, steps, seeds, theirs, together))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()


def received(line):
    """Yield what comes until the process ends."""
    with suppress(EOFError):
        while True:
            yield line.recv()


def test_two_processes_that_want_the_same_run_compute_it_once(store):
    options = {"together": PROCESSES.Barrier(2)}
    with started(store.root, 1000, 0, **options) as (_, one), started(store.root, 1000, 0, **options) as (_, two):
        outputs = [[*received(line)][-1] for line in (one, two)]
    assert sorted(outputs) == [("finished", 0, 0), ("finished", 0, 1000)]
    assert not list(store.root.glob("??/*.lock"))


def test_a_lock_is_exclusive_however_often_its_file_is_removed(tmp_path):
    """Threads count as processes here, because each opens the file of the lock itself."""
    from concurrent.futures import ThreadPoolExecutor

    inside, most = [], []

    def enter(_):
        with locked(tmp_path / "a.lock"):
            inside.append(1)
            os.sched_yield()
            most.append(len(inside))
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(100)))
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
            heard = received(line)
            read = []
            if attempt < 3:
                read = [*islice(heard, moments.randrange(10, 2 * steps))]
                process.kill()
            done = [words[1:] for words in [*read, *heard] if words != "step"]
            process.join()
        codes.append(process.exitcode)
        assert not [seed for seed, count in done if count and seed in finished], "computed twice"
        finished |= {seed: modified(store, seed, steps) for seed, _ in done}
        assert all(modified(store, seed, steps) == when for seed, when in finished.items())
    assert codes[-1] == 0
    assert networks(store.root) == networks(undisturbed.root)


def modified(store, seed, steps):
    return store.path(specification(seed, steps=steps).key()).stat().st_mtime_ns


def test_a_run_on_a_loss_without_sequences_has_a_label():
    raw = {"task": {"decays": [0.9]}, "training": {"loss": "proxy"}}
    assert train_run(raw).label() == "relu n=1000, decays 0.9, proxy sgd 5000 steps, seed 0"
