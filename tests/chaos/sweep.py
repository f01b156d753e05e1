"""A sweep killed ten times at random moments, and one that loses one of its two Dask workers: the same table."""

import random
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.chaos import _help, cluster, kills

KILLS = 10


def run(seed: int, folder: Path) -> Iterator[cluster.Row]:
    yield kills.disturbed("sweep", _help.sweep, random.Random(seed), folder, KILLS, [signal.SIGKILL])
    yield worker_killed(folder / "cluster", (folder / "whole" / "out" / "table.csv").read_bytes())


def worker_killed(place: Path, table: bytes) -> cluster.Row:
    what, here = "sweep, one worker of two killed", place / "here"
    here.mkdir(parents=True)
    with cluster.running(place / "dask") as dask:
        for _ in range(2):
            dask.add()
        process = _help.start([*_help.sweep(here), "--scheduler", dask.address])
        cluster.at_work(place, process, 2)
        dask.workers[0].kill()
        dask.workers[0].wait()  # a zombie would count as alive
        code, err = _help.finish(process)
    left = _help.left_over(here)
    good = code == 0 and (here / "out" / "table.csv").read_bytes() == table and not left
    return (
        what,
        1,
        int(not good),
        "the same table" if good else f"{code}, {err.strip().splitlines()[-1:]}, left: {left}",
    )
