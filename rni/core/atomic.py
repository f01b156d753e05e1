"""Files that are whole or not there; whether they can be written, asked before the work; and the errors of the disk.

A file is written beside its place, as `.NAME.HOST-PID-THREAD.part`, and moved there: who wrote it, and whether that
process is still alive, can be told from the name.
"""

import errno
import os
import platform
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rni.core.errors import InputError

SILENT = 60.0  # seconds after which a process of another machine is taken for dead if its file does not change
FIRST_PID_NAMESPACE = "4026531836"  # of the machine itself; a constant of Linux (PROC_PID_INIT_INO)
PART = re.compile(r"\.([^.]*-\d+-\d+)\.part$")
PAGE = bytes(4096)  # a disk that is full takes an empty file still
OF_THE_SYSTEM = {  # what the user can mend; any other OSError is a fault of ours
    getattr(errno, name)
    for name in (
        *("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EIO", "EISDIR", "ENOTDIR", "EEXIST", "ENOENT"),
        *("ENAMETOOLONG", "ELOOP", "ESTALE", "ENOLCK", "EMFILE", "ENFILE", "EBUSY", "ETXTBSY"),
    )
    if hasattr(errno, name)
}


def write_atomically(path: Path, data: bytes) -> None:
    """The file appears whole or not at all, whatever happens in between; an OSError names the file."""
    _move_there(path, data, _write)


def write_quickly(path: Path, data: bytes) -> None:
    """The same, unless the machine itself goes down: for what can be made again, since the disk takes its time."""
    _move_there(path, data, Path.write_bytes)


def _move_there(path: Path, data: bytes, write: Callable[[Path, bytes], object]) -> None:
    _require_file(path)
    part = _part(path.parent, path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part, data)
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def require_writable(path: Path) -> None:
    """Refuse, before the work, a file that could not be written after it. Leaves everything as it is."""
    with _refused(path):
        _require_file(path)
        _try(path.parent, path.name)
    remove_left_over(path.parent)


def require_writable_folder(folder: Path) -> None:
    """Refuse, before the work, a folder in which no file can be written; one that is not there yet will be made."""
    with _refused(folder):
        _try(folder, "")
    remove_left_over(folder)


def require_folder(folder: Path) -> Path:
    """Refuse a folder that is a file, or would be below one; return it, or what is there of the way to it."""
    with _refused(folder):
        there = next((place for place in (folder, *folder.parents) if place.exists()), Path())
        if not there.is_dir():
            raise InputError(f"{there}: not a folder; allowed: a folder, there or to be made")
        return there


def remove_left_over(folder: Path) -> None:
    """Remove what processes that were killed while they wrote left behind."""
    for part in folder.glob(".*.part"):
        with suppress(OSError):
            if (who := PART.search(part.name)) and not alive(who[1], part, 60 * SILENT):
                part.unlink(missing_ok=True)


def me() -> str:
    """HOST-PID-THREAD, for the name of a file that nobody else writes."""
    return f"{_host()}-{os.getpid()}-{threading.get_native_id()}"


def alive(who: str, path: Path, silent: float = SILENT) -> bool:
    """Whether the process HOST-PID-THREAD lives; for another machine, whether its file at `path` is recent."""
    host, _, process = who.rpartition("-")[0].rpartition("-")
    try:
        if host != _host():
            return time.time() - path.stat().st_mtime < silent
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _host() -> str:
    """Name the machine, or the container, within which a process id identifies one process.

    Containers may share a host name, and each of them has a process 1. In a container the number of the PID namespace
    is therefore part of the name.
    """
    host = platform.node().replace(".", "_")
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # pid:[4026531836]
    except OSError:  # not Linux
        return host
    number = namespace.removeprefix("pid:[").removesuffix("]")
    return host if number == FIRST_PID_NAMESPACE else f"{host}_{number}"


def said(error: OSError) -> str:
    """PATH: what is wrong with it."""
    text = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {text}" if error.filename else text


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path}: a folder; allowed: the name of a file")
    if path.exists() and not path.is_file():  # moving a file there would remove the device
        raise InputError(f"{path}: not a regular file; allowed: the name of a file")


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{path}: {why}; allowed: a place that can be written, with room") from None


def _try(folder: Path, name: str) -> None:
    part = _part(require_folder(folder), name)
    try:
        _write(part, PAGE)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _part(folder: Path, name: str) -> Path:
    return folder / f".{name}.{me()}.part"


def _write(part: Path, data: bytes) -> None:
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
