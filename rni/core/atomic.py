"""Atomic file writes, checks that a file can be written before hours of work, and texts of system errors.

A file is first written under a temporary name, `.NAME.TAG.part`, and then renamed, so that a reader sees the old file
or the new one and never a half of it. The tag names the process that writes.
"""

import errno
import hashlib
import os
import platform
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import get_native_id

from rni.core.errors import InputError

DAYS = 7  # a temporary file of another machine or container is removed when it is older
PAGE = bytes(4096)  # an empty file can be written on a full disk, a page cannot
OF_THE_SYSTEM = {  # what a user can repair; any other OSError is a fault of rni
    getattr(errno, name)
    for name in (
        *("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EIO", "EISDIR", "ENOTDIR", "EEXIST", "ENOENT"),
        *("ENAMETOOLONG", "ELOOP", "ESTALE", "ENOLCK", "EMFILE", "ENFILE", "EBUSY", "ETXTBSY"),
    )
    if hasattr(errno, name)
}


def write_atomically(path: Path, data: bytes, *, flush: bool = True) -> None:
    """Replace a file by one with the given content, or leave it as it is.

    The file keeps its permissions. If `path` is a symbolic link, the file that the link points to is replaced.

    Parameters
    ----------
    path : Path
        The file. Its folder is created if it does not exist.
    data : bytes
        The whole content.
    flush : bool
        Whether to wait until the disk has the content. Without it, the file may be damaged if the machine loses power.

    Raises
    ------
    OSError
        If the file cannot be written. The error names the file.
    """
    _require_file(path)
    target = Path(os.path.realpath(path))
    part = temporary_path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            file.write(data)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def require_writable(path: Path) -> None:
    """Raise an error, before the work, if a file could not be written after it. No file is changed."""
    with _as_input_error(path):
        _require_file(path)
        target = Path(os.path.realpath(path))
        _write_page(require_folder(target.parent), target.name)


def require_writable_folder(folder: Path) -> None:
    """Raise an error, before the work, if no file could be written into a folder. The folder need not exist yet."""
    with _as_input_error(folder):
        _write_page(require_folder(folder), "")


def require_folder(folder: Path) -> Path:
    """Return the innermost part of a path that exists, or raise an error if that part is not a folder."""
    with _as_input_error(folder):
        existing = next((place for place in (folder, *folder.parents) if place.exists()), Path())
        if not existing.is_dir():
            raise InputError(
                str(existing), None, "a folder, or a path where one can be created", problem="not a folder"
            )
        return existing


def temporary_path(path: Path) -> Path:
    """Return the name under which this process writes a file, or a folder, before it renames it to `path`."""
    return path.with_name(f".{path.name}.{process_tag()}.part")


def remove_left_over(folder: Path) -> None:
    """Remove the temporary files, and folders, of processes that have ended.

    Whether a process has ended can be asked only within one PID namespace (a machine since its last start, or a
    container). What was written elsewhere is removed when it is older than `DAYS`, because clocks may differ.
    """
    for part in folder.glob(".*.part"):
        with suppress(OSError, ValueError):
            namespace, process, _ = part.name.split(".")[-2].split("-")
            if namespace == _namespace():
                if _is_alive(int(process)):
                    continue
            elif time.time() - part.stat().st_mtime < DAYS * 86_400:
                continue
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def process_tag() -> str:
    """Return NAMESPACE-PROCESS-THREAD, a part of a file name that no other thread uses."""
    return f"{_namespace()}-{os.getpid()}-{get_native_id()}"


def os_error_text(error: OSError) -> str:
    """Return `PATH: what is wrong with it`."""
    text = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {text}" if error.filename else text


@cache
def _namespace() -> str:
    """Return a name of the set of processes within which a process id names one process.

    On Linux this is a boot of a machine and a PID namespace: containers on one machine have a process 1 each.
    """
    names = [platform.node()]
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        names = [boot, os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("".join(names).encode()).hexdigest()[:12]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _require_file(path: Path) -> None:
    if path.exists() and not path.is_file():  # a rename would replace a device by a file
        problem = "a folder" if path.is_dir() else "not a regular file"
        raise InputError(str(path), None, "the name of a file", problem=problem)


@contextmanager
def _as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = error.strerror or str(error)
        raise InputError(str(path), None, "a place that can be written, with room", problem=problem) from None


def _write_page(folder: Path, name: str) -> None:
    part = temporary_path(folder / (name or "test"))
    try:
        with part.open("wb") as file:
            file.write(PAGE)
            file.flush()
            os.fsync(file.fileno())
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    remove_left_over(folder)
