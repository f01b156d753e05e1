"""SIGKILL and SIGTERM at random moments; the same command again and again ends with the bytes of an undisturbed one.

A moment is an act on a file: a checkpoint, a network, a status, a page opened, half written, moved or removed.
"""

import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.chaos import _help

KILLS = 20
ACTS = {  # about as many as each of them has
    "train": {"parent": 100},
    "reproduce": {"parent": 30, "worker": 100},
    "sweep": {"parent": 20, "worker": 100},
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM)


def run(seed: int, folder: Path) -> list[tuple[str, int, int, str]]:
    kinds = {"train": _help.train, "reproduce": _help.reproduce}
    return [disturbed(name, make, random.Random(seed), folder / name) for name, make in kinds.items()]


def disturbed(
    name: str,
    make: Callable[[Path], list[str]],
    moments: random.Random,
    folder: Path,
    wanted: int = KILLS,
    signals: Sequence[signal.Signals] = SIGNALS,
) -> tuple[str, int, int, str]:
    """Kill until there were enough of them; whenever a command ends by itself, look at what it made and begin anew."""
    (folder / "whole").mkdir(parents=True)
    code, err = _help.command(make(folder / "whole"))
    assert code == 0, err
    expected = _help.results(folder / "whole")
    kills = failures = finished = 0
    remarks = []
    while kills < wanted or finished == 0:
        place = folder / f"{finished}"
        place.mkdir(exist_ok=True)
        chaos, marks = {}, folder / f"struck-{kills}"
        if kills < wanted:
            marks.unlink(missing_ok=True)
            who = moments.choice([*ACTS[name]])
            chaos = {
                "AT": moments.randrange(1, ACTS[name][who]),
                "WHO": who,
                "SIGNAL": int(moments.choice(signals)),
                "FOLDER": place,
                "STRUCK": marks,
            }
        code, err = _help.command(make(place), **chaos)
        hit = bool(chaos) and marks.exists()
        kills += hit
        if code == 0:
            found, left = _help.results(place), _help.left_over(place)
            wrong = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
            if wrong or left:
                failures += 1
                remarks.append(f"differ: {wrong[:3]}, left: {left[:3]}")
            finished += 1
        elif not hit or (chaos["SIGNAL"] == signal.SIGTERM and not _help.one_line(err)):
            failures += 1
            remarks.append(f"{chaos}: {code}, {err.strip().splitlines()[-1:]}")
    remarks.insert(0, f"ended {finished} times with the bytes of an undisturbed one")
    return f"{name}, killed", kills, failures, "; ".join(remarks)
