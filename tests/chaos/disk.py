"""No room for files of random sizes, and on a small disk: one line, nothing damaged, the same command goes on."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.chaos import _help

SIZES = 10


def run(seed: int, folder: Path) -> list[tuple[str, int, int, str]]:
    rows = [limited("train", _help.train, seed, folder / "train")]
    rows.append(limited("reproduce", _help.reproduce, seed, folder / "reproduce"))
    rows.append(small_disk(seed, folder / "disk"))
    return rows


def limited(name: str, make: Callable[[Path], list[str]], seed: int, folder: Path) -> tuple[str, int, int, str]:
    """RLIMIT_FSIZE: writing beyond it is refused, as on a full disk, after what fits."""
    (folder / "whole").mkdir(parents=True)
    code, err = _help.command(make(folder / "whole"))
    assert code == 0, err
    expected = _help.results(folder / "whole")
    largest = max(map(len, expected.values()))
    sizes, failures, lines = random.Random(seed), [], set()
    for case in range(SIZES):
        place, size = folder / str(case), int(largest ** sizes.uniform(0, 1))
        place.mkdir()
        code, err = _help.command(make(place), SIZE=size)
        damaged = {key for key, data in _help.results(place).items() if expected.get(key) != data}
        if code not in (1, 2) or not _help.one_line(err) or (damaged and code == 2):
            failures.append(f"{size}: {code}, {sorted(damaged)[:2]}, {err.strip().splitlines()[-1:]}")
        lines.add(code)
        code, err = _help.command(make(place))
        if code or _help.results(place) != expected or _help.left_over(place):
            failures.append(f"{size}, again: {code}, {_help.left_over(place)[:3]} {err.strip().splitlines()[-1:]}")
    remark = "; ".join([f"exit codes {sorted(lines)}, then the bytes of an undisturbed one", *failures])
    return f"{name}, no file above a random size", SIZES, len(failures), remark


def small_disk(seed: int, folder: Path) -> tuple[str, int, int, str]:
    """A file system with room for a part of the report; then with room for all."""
    what = "reproduce on a disk that is too small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        return what, 0, 0, "not permitted to mount here"
    try:
        code, err = _help.command(_help.reproduce(folder))
        ended = [(code, err)]
        failures = code not in (1, 2) or not _help.one_line(err)
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        ended.append(_help.command(_help.reproduce(folder)))
        failures += ended[-1][0] != 0 or bool(_help.left_over(folder))
        return what, 2, failures, "; ".join(f"{code}: {err.strip().splitlines()[-1]}" for code, err in ended)
    finally:
        subprocess.run(["umount", folder], check=True)
