"""The store of finished runs: a folder that any number of processes, containers and machines may use at once.

    ROOT/ab/abcd.../network.safetensors   the network with its specification and losses
    ROOT/ab/abcd.../header                what computed it, its label, its specification, and the network's checksum
    ROOT/ab/abcd....measures              measures of the network; of a run that diverges, only that it does
    ROOT/ab/abcd....checkpoint            an unfinished run
    ROOT/ab/abcd....lock                  held by a process that computes the run

The name of an entry is the key of its run. An entry is written as a folder with a temporary name, which is then
renamed. A rename is atomic, and it fails if the entry exists already: the first finished result stays, the second is
discarded. So locks only save work. Without them, a run may be computed twice, and nothing is lost.

`header` and `.measures` are lines of text: a checksum, and JSON. torch is imported only by what computes or reads
networks.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from rni.core.atomic import (
    remove_left_over,
    require_folder,
    require_writable_folder,
    temporary_path,
    write_atomically,
)
from rni.core.errors import Diverged, InputError
from rni.core.interrupt import held_interrupt

if TYPE_CHECKING:
    from rni.runs.execution import Result
    from rni.runs.run import Run
    from rni.training.descent import Callback

log = logging.getLogger(__name__)

MEASURES = 2  # version of the measures: raise it when a measure gives another value for the same network
BEAT = 30.0  # seconds after which the holder of a lock changes the time of the lock file
STOPPED = 300.0  # seconds without such a change after which others no longer wait for the holder
NETWORK, HEADER = "network.safetensors", "header"


@dataclass(frozen=True)
class Entry:
    """A finished run on disk. If its header is damaged, `label` says so, and `specification` and `origin` are empty."""

    key: str
    path: Path
    size: int
    finished: float
    label: str
    specification: dict[str, Any]
    origin: dict[str, str]


class Busy(Exception):
    """Another process computes the run."""


class Store:
    """The finished runs in a folder.

    Parameters
    ----------
    root : Path, optional
        The folder, by default `rni/runs` in the user's cache folder.
    """

    def __init__(self, root: Path | None = None):
        root = Path(root) if root is not None else user_cache_path("rni") / "runs"
        require_folder(root)
        self.root = root.absolute()  # workers of a cluster have other current folders

    def require_writable(self) -> None:
        """Raise an error, before the work, if nothing could be stored."""
        try:
            require_writable_folder(self.root)
        except InputError as error:
            allowed = "a folder for finished runs that can be written, by --store DIR (in Python: store=)"
            raise InputError("store", self.root, allowed, problem=f"{self.root}: {error.problem}") from None

    def path(self, key: str) -> Path:
        """Return the path of the network of a finished run."""
        return self._folder(key) / NETWORK

    def has(self, key: str) -> bool:
        """Return whether a run is finished. Its files are not read."""
        return bool(self.finished([key]))

    def finished(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys whose runs are finished."""
        wanted = set(keys)
        found: set[str] = set()
        for prefix in {key[:2] for key in wanted}:
            with suppress(FileNotFoundError, NotADirectoryError):
                # Over NFS, listing a folder shows new files of other machines sooner than asking for one of them.
                found |= wanted & set(os.listdir(self.root / prefix))
        return found

    def get(self, specification: "Run") -> "Result | None":
        """Return a finished run, or None. A damaged entry, or one of another run, is reported and not used."""
        try:
            return self._read(specification)
        except FileNotFoundError:
            return None
        except InputError as error:
            log.warning("%s; the run is computed again", error)
            return None

    def compute(self, specification: "Run", callbacks: "Sequence[Callback]" = (), *, wait: bool = True) -> "Result":
        """Return the finished run from the store, or compute and store it.

        If another process computes the same run, wait for it, or raise `Busy` with `wait=False`. A killed run resumes
        from its checkpoint. A run that diverges or fails raises an error and is not stored.
        """
        folder = self._folder(specification.key())
        with suppress(InputError, FileNotFoundError):  # whatever is wrong is reported when the lock is held
            result = self._read(specification)
            self._tidy(folder)
            return result
        with locked(folder.with_suffix(".lock"), wait=wait) as beat:
            return self.get(specification) or self._run(specification, folder, [*callbacks, lambda *_: beat()])

    def measured(self, key: str) -> dict[str, Any]:
        """Return what was measured of a run before, by name. A damaged file is reported and not used."""
        path = self._folder(key).with_suffix(".measures")
        try:
            content = _read_checked(path)
        except FileNotFoundError:
            return {}
        except InputError as error:
            log.warning("%s; the run is measured again", error)
            return {}
        return content["measures"] if content["version"] == MEASURES else {}

    def keep(self, key: str, measures: dict[str, Any]) -> None:
        """Add measures of a run to those that are stored."""
        path = self._folder(key).with_suffix(".measures")
        remove_left_over(path.parent)
        _write_checked(path, {"version": MEASURES, "measures": self.measured(key) | measures})

    def entries(self) -> list[Entry]:
        """Return all finished runs, the newest first."""
        folders = []
        for place in os.listdir(self.root) if self.root.is_dir() else []:
            if len(place) == 2 and os.path.isdir(os.path.join(self.root, place)):
                folders += [
                    os.path.join(self.root, place, name) for name in os.listdir(self.root / place) if "." not in name
                ]
        return sorted(map(_entry, folders), key=lambda entry: -entry.finished)

    def origins(self, keys: Iterable[str]) -> list[dict[str, str]]:
        """Return the versions and processors that computed some finished runs."""
        return [_entry(self._folder(key)).origin for key in keys]

    def show(self, prefix: str) -> Entry:
        """Return the one finished run whose key begins with `prefix`."""
        matching = []
        if re.fullmatch("[0-9a-f]+", prefix):
            matching = [path for path in self.root.glob(f"{prefix[:2]:?<2}/{prefix}*") if not path.suffix]
        if len(matching) == 1:
            return _entry(matching[0])
        problem = f"begins the keys of {len(matching)} runs" if matching else f"no such run in {self.root}"
        allowed = "the first letters of one key that `rni runs list` shows"
        raise InputError("key", prefix, allowed, problem=f"{prefix}, {problem}")

    def remove(self, prefix: str) -> Entry:
        """Remove the one finished run whose key begins with `prefix`."""
        entry = self.show(prefix)
        try:
            with locked(entry.path.with_suffix(".lock"), wait=False):
                for suffix in (".checkpoint", ".measures"):
                    entry.path.with_suffix(suffix).unlink(missing_ok=True)
                _remove_folder(entry.path)
        except Busy:
            raise InputError(
                "key", entry.key, "a run that no process computes", problem="computed at this moment"
            ) from None
        return entry

    def _folder(self, key: str) -> Path:
        return self.root / key[:2] / key

    def _read(self, specification: "Run") -> "Result":
        """Read a finished run and compare it with its checksum. FileNotFoundError if there is none."""
        folder = self._folder(specification.key())
        _verify(folder, specification.to_dict())

        from rni.files import native
        from rni.runs.execution import Result
        from rni.runs.run import references

        file = native.read(folder / NETWORK, allow=list(references(specification.to_dict())))
        return Result(specification, file.network, file.losses)

    def _run(self, specification: "Run", folder: Path, callbacks: "Sequence[Callback]") -> "Result":
        """Compute a run, resuming from its checkpoint if there is one, and store it."""
        from rni.runs.execution import run

        checkpoint = folder.with_suffix(".checkpoint")
        remove_left_over(folder.parent)
        is_resumed = checkpoint.exists()
        try:
            result = run(specification, callbacks=callbacks, checkpoint=checkpoint)
        except Diverged:
            checkpoint.unlink(missing_ok=True)  # the checkpoint would make it diverge again, at another step
            raise
        except InputError as error:
            if not is_resumed:
                raise
            log.warning("%s; the run starts afresh", error)
            checkpoint.unlink(missing_ok=True)
            result = run(specification, callbacks=callbacks, checkpoint=checkpoint)
        with held_interrupt():  # a finished run is kept
            stored = _write(folder, result)
        checkpoint.unlink(missing_ok=True)
        return stored

    def _tidy(self, folder: Path) -> None:
        """Remove the files of a process that was killed after it had stored the run."""
        if folder.with_suffix(".lock").exists():
            with suppress(OSError, Busy), locked(folder.with_suffix(".lock"), wait=False):
                folder.with_suffix(".checkpoint").unlink(missing_ok=True)
                remove_left_over(folder.parent)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[Callable[[], None]]:
    """Hold a lock between processes, and yield a function that its holder calls now and then.

    The operating system releases the lock when the process ends, however it ends. The caller continues without the lock
    if the file system has no locks, or if the holder was stopped: if it has not called that function for `STOPPED`
    seconds. The times of the lock file are compared with each other only, so that clocks of machines may differ.

    Raises
    ------
    Busy
        If another process holds the lock and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, fallback_to_soft=False)
    last_beat, changed = 0.0, time.monotonic()
    while not lock.is_locked:
        try:
            lock.acquire(timeout=1.0 if wait else 0.0, poll_interval=0.1)
        except Timeout:
            if not wait:
                raise Busy(path) from None
            with suppress(OSError):
                if (beat_time := path.stat().st_mtime) != last_beat:
                    last_beat, changed = beat_time, time.monotonic()
            if time.monotonic() - changed > STOPPED:
                log.warning("%s: its holder has been stopped for %.0f s; the run is computed twice", path, STOPPED)
                break
        except OSError as error:
            log.warning("%s: no lock (%s); a run may be computed twice", path, error.strerror or error)
            break

    beaten = time.monotonic()

    def beat() -> None:
        nonlocal beaten
        if time.monotonic() - beaten > BEAT:
            beaten = time.monotonic()
            with suppress(OSError):
                os.utime(path)

    try:
        yield beat
    finally:
        if lock.is_locked:
            with suppress(OSError):
                path.unlink(missing_ok=True)  # before the release: who waits for this file then opens a new one
            lock.release()


def _write(folder: Path, result: "Result") -> "Result":
    """Store a run and return it as it is read back. A network that cannot be read back is not stored.

    If there is an entry already, it stays, unless it is damaged.
    """
    from rni.files import native
    from rni.runs.execution import Result
    from rni.runs.numerics import origin
    from rni.runs.run import references

    part = temporary_path(folder)
    specification = result.specification
    allow = list(references(specification.to_dict()))  # the code has just been run
    try:
        part.mkdir(parents=True)
        native.save(result.network, part / NETWORK, specification.to_dict(), result.losses)
        stored = native.read(part / NETWORK, allow)
        content = (part / NETWORK).read_bytes()
        header = {
            "label": specification.label(),
            "origin": origin(),
            "finished": time.time(),
            "size": len(content),
            "network": hashlib.sha256(content).hexdigest(),
            "specification": specification.to_dict(),
        }
        _write_checked(part / HEADER, header)
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            try:
                _verify(folder, header["specification"])
                stored = native.read(folder / NETWORK, allow)  # another process was first
            except InputError:
                damaged = temporary_path(folder.with_suffix(".damaged"))
                folder.rename(damaged)
                part.rename(folder)
                _remove_folder(damaged)
                folder.with_suffix(".measures").unlink(missing_ok=True)
    finally:
        with suppress(OSError):
            _remove_folder(part)
    return Result(specification, stored.network, stored.losses)


def _verify(folder: Path, specification: dict[str, Any]) -> None:
    """Compare an entry with its checksums. FileNotFoundError if there is none, InputError if it is damaged."""
    os.stat(folder)
    try:
        header = _read_checked(folder / HEADER)
        content = (folder / NETWORK).read_bytes()
    except FileNotFoundError as error:
        raise InputError(str(error.filename), None, "a whole entry", problem="missing") from None
    if hashlib.sha256(content).hexdigest() != header["network"]:
        raise InputError(str(folder / NETWORK), None, "the file as it was written", problem="another checksum")
    if header["specification"] != specification:
        raise InputError(str(folder), None, "the run that its name is the key of", problem="another run")


def _entry(folder: Path | str) -> Entry:
    try:
        header = _read_checked(os.path.join(folder, HEADER))
        about = (header["size"], header["finished"], header["label"], header["specification"], header["origin"])
    except (InputError, OSError) as error:
        about = (0, 0.0, f"damaged: {error}", {}, {})
    return Entry(os.path.basename(folder), Path(folder), *about)


def _write_checked(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content).encode()
    write_atomically(path, hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n", flush=False)


def _read_checked(path: Path | str) -> dict[str, Any]:
    """Read a file of `_write_checked`. InputError if it is not as it was written."""
    with open(path, "rb") as file:
        digest, _, text = file.read().partition(b"\n")
    if hashlib.sha256(text.removesuffix(b"\n")).hexdigest().encode() != digest:
        raise InputError(str(path), None, "the file as it was written", problem="another checksum")
    return json.loads(text)


def _remove_folder(folder: Path) -> None:
    """Remove a folder and its files. It gets a temporary name first, so that nobody sees a half of an entry."""
    with suppress(FileNotFoundError):
        part = folder if folder.suffix == ".part" else folder.rename(temporary_path(folder))
        shutil.rmtree(part)
