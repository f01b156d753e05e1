"""The store of finished runs: one network file for each, named by the hash of its specification.

    ROOT/ab/abcd….safetensors    the network with its specification and losses; there means finished
    ROOT/ab/abcd….sha256         its checksum, as `sha256sum` writes it; there before the network is
    ROOT/ab/abcd….checkpoint     an unfinished run, to go on from
    ROOT/ab/abcd….lock           held by the process that computes the run
    ROOT/ab/abcd….measures       what was measured of it, as JSON; of a run that diverges only that it does

torch is imported by what needs it, so that listing is quick.
"""

import errno
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path

from rni.core.atomic import me, remove_left_over, require_folder, said, write_quickly
from rni.core.errors import Diverged, InputError
from rni.core.interrupt import held_interrupt
from rni.runs.label import label

try:
    import fcntl
except ImportError:  # Windows: a run that two processes want at once is computed twice, to the same bytes
    fcntl = None

if TYPE_CHECKING:
    from rni.runs.execution import Result
    from rni.runs.specification import Specification
    from rni.training.descent import Callback

log = logging.getLogger(__name__)
MEASURES = 1  # format of what was measured: raise it when a measure comes to mean something else


@dataclass(frozen=True)
class Entry:
    """A finished run on disk; `specification` is None, and `label` says why, where its header can't be read."""

    key: str
    path: Path
    size: int
    modified: float
    label: str
    specification: dict[str, Any] | None


class Store:
    """Finished runs in a folder. Any number of processes may use it at once, and be killed at any moment."""

    def __init__(self, root: Path | None = None):
        root = Path(root) if root is not None else user_cache_path("rni") / "runs"
        require_folder(root)
        self.root = root.absolute()  # the workers of a cluster are in other folders than we

    def path(self, key: str) -> Path:
        """Where the network of a finished run is."""
        return self.root / key[:2] / f"{key}.safetensors"

    def has(self, key: str) -> bool:
        """Whether the run's file is there, which says nothing of its content."""
        path = self.path(key)
        try:  # listing the folder, unlike asking for the file, sees at once what another machine wrote over NFS
            return path.name in os.listdir(path.parent)
        except FileNotFoundError:
            return False

    def get(self, specification: "Specification") -> "Result | None":
        """The finished run, or None; what is damaged or another run's is reported and not used."""
        return self._get(specification, self.path(specification.key()))

    def _get(self, specification: "Specification", path: Path) -> "Result | None":
        try:
            return self._read(specification, path)
        except InputError as error:
            log.warning("%s; the run is computed again", error)
            return None

    def compute(self, specification: "Specification", callbacks: "Sequence[Callback]" = ()) -> "Result":
        """The finished run from the store, or else carried out here and stored.

        Of several processes that want the same run one computes it and the others wait. A killed run goes on from its
        checkpoint. A run that diverges or fails raises, and leaves nothing behind.
        """
        path = self.path(specification.key())
        with suppress(InputError):
            if (result := self._read(specification, path)) is not None:
                self._tidy(path)
                return result
        with locked(path.with_suffix(".lock")):
            return self._get(specification, path) or self._run(specification, path, callbacks)

    def measured(self, key: str) -> dict[str, Any]:
        """What was measured of a run before, by name."""
        try:
            kept = json.loads(self.path(key).with_suffix(".measures").read_bytes())
            return kept["measures"] if kept["format"] == MEASURES else {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):  # not there, or not ours: measured again
            return {}

    def keep(self, key: str, measures: dict[str, Any]) -> None:
        """Keep what was measured, beside what others keep at the same time."""
        path = self.path(key).with_suffix(".measures")
        with locked(path.with_suffix(".lock")):
            content = {"format": MEASURES, "measures": self.measured(key) | measures}
            write_quickly(path, json.dumps(content).encode())

    def entries(self) -> list[Entry]:
        """All finished runs, the newest first."""
        return sorted(map(_entry, self.root.glob("??/*.safetensors")), key=lambda entry: -entry.modified)

    def show(self, prefix: str) -> Entry:
        """The one finished run whose key begins so."""
        pattern = f"{prefix[:2]:?<2}/{prefix}*.safetensors"
        found = list(self.root.glob(pattern)) if re.fullmatch("[0-9a-f]+", prefix) else []
        if len(found) == 1:
            return _entry(found[0])
        what = f"begins {len(found)} runs" if found else f"no such run in {self.root}"
        raise InputError(f"{prefix}: {what}; allowed: the first letters of one key that `rni runs list` shows")

    def remove(self, prefix: str) -> Entry:
        """Remove the one finished run whose key begins so."""
        entry = self.show(prefix)
        try:
            with locked(entry.path.with_suffix(".lock"), wait=False):
                for suffix in (".safetensors", ".sha256", ".checkpoint", ".measures"):
                    entry.path.with_suffix(suffix).unlink(missing_ok=True)
        except BlockingIOError:
            raise InputError(f"{entry.key}: computed at this moment; allowed: a run that nobody computes") from None
        return entry

    def _read(self, specification: "Specification", path: Path) -> "Result | None":
        try:
            content = path.read_bytes()
            expected = path.with_suffix(".sha256").read_text(errors="replace", encoding="utf-8").split()[:1]
        except FileNotFoundError as missing:
            if Path(missing.filename) == path:
                return None
            raise InputError(f"{path}: has no checksum beside it; allowed: a whole run") from None
        if [hashlib.sha256(content).hexdigest()] != expected:
            raise InputError(f"{path}: differs from its checksum; allowed: the file as it was written")

        from rni.files import native
        from rni.runs.execution import Result

        file = native.read(path)
        if file.specification != specification.to_dict():
            raise InputError(f"{path}: is another specification's run; allowed: the one that its name is the hash of")
        return Result(specification, file.network, file.losses)

    def _run(self, specification: "Specification", path: Path, callbacks: "Sequence[Callback]") -> "Result":
        from rni.runs.execution import run

        checkpoint = path.with_suffix(".checkpoint")
        remove_left_over(path.parent)
        begun = checkpoint.exists()
        try:
            result = run(specification, callbacks=callbacks, checkpoint=checkpoint)
        except Diverged:
            checkpoint.unlink(missing_ok=True)  # it would diverge from there once more, at another step
            raise
        except InputError as error:
            if not begun:
                raise
            log.warning("%s; the run begins afresh", error)
            checkpoint.unlink(missing_ok=True)
            result = run(specification, callbacks=callbacks, checkpoint=checkpoint)
        with held_interrupt():  # what is finished is kept
            stored = _write(path, result)
        checkpoint.unlink(missing_ok=True)
        return stored

    def _tidy(self, path: Path) -> None:
        """Remove what a process killed between storing the run and the end of it left, unless one is there now."""
        lock = path.with_suffix(".lock")
        if lock.exists():
            with suppress(OSError), locked(lock, wait=False):
                path.with_suffix(".checkpoint").unlink(missing_ok=True)
                remove_left_over(path.parent)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock between processes; the system lets go of it when the process ends, however it ends.

    Without waiting, raises BlockingIOError where another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("a", encoding="utf-8") as file:
            _flock(file.fileno(), wait)
            if not _still_there(path, file.fileno()):
                continue  # who held it before us has removed the file, and somebody may hold a new one already
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            return


def _flock(descriptor: int, wait: bool) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        log.warning("locks: %s; a run that two processes want at once is computed twice", said(error))


def _write(path: Path, result: "Result") -> "Result":
    """Write a run and return it as it is read back, so that a run is the same to its user before and after storing.

    The checksum comes first: once the network is there, everything is. What can't be read back is not stored. Where the
    machine goes down before the checksum is on its disk, it differs, and the run is computed again.
    """
    from rni.files import native
    from rni.runs.execution import Result

    whole = path.with_name(f".{path.name}.{me()}.part")
    try:
        native.save(result.network, whole, result.specification.to_dict(), result.losses)
        stored = native.read(whole)
        digest = hashlib.sha256(whole.read_bytes()).hexdigest()
        write_quickly(path.with_suffix(".sha256"), f"{digest}  {path.name}\n".encode())
        whole.replace(path)
    finally:
        with suppress(OSError):
            whole.unlink(missing_ok=True)
    return Result(result.specification, stored.network, stored.losses)


def _still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _entry(path: Path) -> Entry:
    stat = path.stat()
    specification = None
    try:
        specification = _header(path).get("specification")
        described = label(specification or {})
    except (InputError, OSError) as error:
        described = f"unreadable: {str(error).splitlines()[0]}"
    except (KeyError, TypeError, ValueError, AttributeError):
        specification, described = None, "unreadable: not a run of this version"
    return Entry(path.stem, path, stat.st_size, stat.st_mtime, described, specification)


def _header(path: Path) -> dict:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("rni", "{}"))
            return header if isinstance(header, dict) else {}
    except (SafetensorError, RecursionError) as error:
        raise InputError(f"truncated, or not safetensors ({error})") from None
