"""The free memory, which is checked before a large allocation, and settings of the allocator."""

import ctypes
import os
import resource
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from rni.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

PROCESSES = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
SMALL = 2**24  # bytes; asking for the free memory takes longer than a small run
TOGETHER = 2**18  # numbers; arrays of that size stay in the cache
MEMORY_FILES = {  # the limit, the usage, and what of it is a cache that the kernel gives back; by version
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def require(needed: float, field: str, allowed: str | Callable[[float], str]) -> None:
    """Raise an InputError if `needed` bytes, an estimate from below, are not free.

    `allowed` says what would fit, or is a function that says it for the number of bytes that are free.
    """
    if needed > SMALL and needed > (free := available()):
        allowed = allowed if isinstance(allowed, str) else allowed(free)
        problem = f"needs {needed / 1e9:,.1f} GB of memory of {free / 1e9:,.1f} GB that are free"
        raise InputError(field, needed, allowed, problem=problem)


def in_groups(rows: "Tensor", each: int) -> "tuple[Tensor, ...]":
    """Split rows (rows, ...) into groups whose states fit into the cache, if a row takes `each` numbers."""
    return rows.split(max(1, TOGETHER // each))


def keep_freed() -> None:
    """Let the C library keep up to a GB of freed memory for the next arrays.

    By default it returns each array of more than 128 kB to the system, which clears the memory before it is used again.
    For networks of 10 000 neurons this takes several times as long as the arithmetic.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
    mallopt(trim_threshold, 2**30)
    mallopt(mmap_threshold, 2**25)  # the largest value that all versions accept


def available() -> float:
    """Return the bytes that this process can still allocate: of the machine, its control groups and its own limit."""
    free = [inf]
    of_machine = _numbers(PROCESSES / "meminfo")  # in kB
    if "MemAvailable:" in of_machine:
        free.append(1024 * (of_machine["MemAvailable:"] + of_machine.get("SwapFree:", 0)))
    else:
        free.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if (limit := resource.getrlimit(resource.RLIMIT_AS)[0]) >= 0:
        free.append(limit - 1024 * _numbers(PROCESSES / "self/status").get("VmSize:", 0))

    for version, group in control_groups("memory"):
        limit_file, usage_file, cache = MEMORY_FILES[version]
        limit, used = text_of(group / limit_file).strip(), text_of(group / usage_file).strip()
        if limit.isdigit() and used.isdigit():  # "max" if there is no limit
            free.append(int(limit) - int(used) + _numbers(group / "memory.stat").get(cache, 0))
    return max(0.0, min(free))


def control_groups(controller: str) -> Iterator[tuple[int, Path]]:
    """Yield version and folder of the control groups of Linux that contain this process, from the innermost one."""
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


def text_of(path: Path) -> str:
    """Return the content of a file, or an empty text if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _numbers(path: Path) -> dict[str, int]:
    """Return the lines `NAME NUMBER ...` of a file as {name: number}."""
    words = (line.split() for line in text_of(path).splitlines())
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}
