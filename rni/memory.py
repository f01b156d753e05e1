"""Memory, asked for before it is taken: one line, instead of the allocator's traceback or the kernel's kill."""

import os
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path

from rni.errors import InputError

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None

PROCESSES = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
SMALL = 2**24  # bytes: asking for the free ones takes longer than a small run


def require(needed: float, what: str, allowed: str | Callable[[float], str]) -> None:
    """Refuse what needs more bytes than there are; `needed` is an estimate from below.

    allowed: in words, or the words for the number of bytes that are free.
    """
    if needed > SMALL and needed > (there := available()):
        allowed = allowed if isinstance(allowed, str) else allowed(there)
        size = f"{needed / 1e9:,.1f} GB of memory of {there / 1e9:,.1f} GB that are free"
        raise InputError(f"{what}: needs {size}; allowed: {allowed}")


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
    """Linux's control groups of both versions, from the process's own up: a container or a batch system sets them."""
    for line in _text(PROCESSES / "self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, usage, cache = GROUPS, "memory.max", "memory.current", "inactive_file"
        elif controllers == "memory":
            root, cache = GROUPS / "memory", "total_inactive_file"
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        own = root / path.strip("/")
        for group in (own, *(parent for parent in own.parents if parent.is_relative_to(root))):
            largest, used = _text(group / limit).strip(), _text(group / usage).strip()
            if largest.isdigit() and used.isdigit():  # "max" where there is none
                # what files were read into memory makes room
                yield int(largest) - int(used) + _numbers(group / "memory.stat").get(cache, 0)


def _numbers(path: Path) -> dict[str, int]:
    """Lines of `name number ...` as {name: number}."""
    words = (line.split() for line in _text(path).splitlines())
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
