"""Memory, asked for before it is taken: one line, instead of the allocator's traceback or the kernel's kill."""

import ctypes
import os
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from rni.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None

PROCESSES = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
SMALL = 2**24  # bytes: asking for the free ones takes longer than a small run
TOGETHER = 2**18  # numbers: arrays of that size stay in the cache


def require(needed: float, what: str, allowed: str | Callable[[float], str]) -> None:
    """Refuse what needs more bytes than there are; `needed` is an estimate from below.

    allowed: in words, or the words for the number of bytes that are free.
    """
    if needed > SMALL and needed > (there := available()):
        allowed = allowed if isinstance(allowed, str) else allowed(there)
        size = f"{needed / 1e9:,.1f} GB of memory of {there / 1e9:,.1f} GB that are free"
        raise InputError(f"{what}: needs {size}; allowed: {allowed}")


def in_groups(rows: "Tensor", each: int) -> "tuple[Tensor, ...]":
    """Rows (rows, ...) in groups whose states fit into the cache, where a row takes `each` numbers."""
    return rows.split(max(1, TOGETHER // each))


def keep_freed() -> None:
    """Have the C library keep up to a GB of freed memory for the next arrays.

    By default it gives whatever is larger than 128 kB back to the system, which clears it and hands it out again:
    several times the cost of the arithmetic, for networks of 10 000 neurons and more.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not of this library
        return
    trim, separate = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
    mallopt(trim, 2**30)
    mallopt(separate, 2**25)  # the most that all versions take


def available() -> float:
    """Bytes that this process can still take: of the machine, of its control groups, of its own limit."""
    return max(0.0, min(_of_machine(), _of_process(), *_of_groups()))


def _of_machine() -> float:
    free = _numbers(PROCESSES / "meminfo")  # in kB
    if "MemAvailable:" in free:
        return 1024 * (free["MemAvailable:"] + free.get("SwapFree:", 0))
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (OSError, ValueError):
        return inf


def _of_process() -> float:
    limit = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit < 0:
        return inf
    return limit - 1024 * _numbers(PROCESSES / "self/status").get("VmSize:", 0)


def _of_groups() -> Iterator[float]:
    for version, group in control_groups("memory"):
        limit, usage, cache = {
            1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            2: ("memory.max", "memory.current", "inactive_file"),
        }[version]
        largest, used = text_of(group / limit).strip(), text_of(group / usage).strip()
        if largest.isdigit() and used.isdigit():  # "max" where there is none
            # what files were read into memory makes room
            yield int(largest) - int(used) + _numbers(group / "memory.stat").get(cache, 0)


def control_groups(controller: str) -> Iterator[tuple[int, Path]]:
    """Linux's control groups, version and folder, from the process's own up: containers and batch systems set them."""
    for line in text_of(PROCESSES / "self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            version, root = 2, GROUPS
        elif controller in controllers.split(","):
            version, root = 1, GROUPS / controller
        else:
            continue
        own = root / path.strip("/")
        yield from ((version, group) for group in (own, *own.parents) if group.is_relative_to(root))


def _numbers(path: Path) -> dict[str, int]:
    """Lines of `name number ...` as {name: number}."""
    words = (line.split() for line in text_of(path).splitlines())
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}


def text_of(path: Path) -> str:
    """What a file says; nothing where it is not there."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
