"""The command line with a small figure of six runs, `chaos`, and a fault in it, told by environment variables.

Workers run the top of this file too.

CHAOS_AT=K, CHAOS_WHO=parent|worker, CHAOS_SIGNAL=N: the process gets the signal at its K-th act on a file in
CHAOS_FOLDER, once, which leaves the file CHAOS_STRUCK; a file that is written then is left half. CHAOS_SIZE=BYTES: no
file can grow beyond that. CHAOS_LOG=FILE: a line for each run that is begun, with its key. CHAOS_STOPPED=SECONDS: how
long the holder of a lock is waited for when it is stopped.
"""

import os
import signal
import sys
from pathlib import Path

from matplotlib.figure import Figure as Drawing
from told import train_run

from rni.papers import Claim, Measured, Paper, Profile, Results
from rni.runs import execution, store
from rni.runs.run import TrainRun
from rni.training.checkpoint import Checkpoint

FOLDER = os.environ.get("CHAOS_FOLDER", "")
AT = int(os.environ.get("CHAOS_AT", "0"))
MINE = os.environ.get("CHAOS_WHO") == ("parent" if __name__ == "__main__" else "worker")
WRITES = os.O_WRONLY | os.O_RDWR
acts = asked = 0


def struck() -> bool:
    """Whether this is the moment, which comes once."""
    global acts
    acts += 1
    if not (MINE and acts == AT):
        return False
    try:
        Path(os.environ["CHAOS_STRUCK"]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def strike() -> None:
    os.kill(os.getpid(), int(os.environ["CHAOS_SIGNAL"]))


def hook(event: str, arguments: tuple) -> None:
    writes = event in ("os.rename", "os.remove") or (event == "open" and arguments[2] & WRITES)
    if writes and str(arguments[0]).startswith(FOLDER) and struck():
        strike()


def fsync(descriptor: int) -> None:
    if struck():
        if os.environ["CHAOS_SIGNAL"] == str(int(signal.SIGKILL)):
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        strike()
    original_fsync(descriptor)


def due(self: Checkpoint) -> bool:
    """Every few steps instead of every half minute."""
    global asked
    asked += 1
    return asked % (10 if sys.argv[1:2] == ["train"] else 30) == 0


def run(specification, *, callbacks=(), checkpoint=None):
    with open(os.environ["CHAOS_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{specification.key()}\n")
    return original_run(specification, callbacks=callbacks, checkpoint=checkpoint)


def runs(profile: Profile) -> list[TrainRun]:
    small = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 40}, "training": {"steps": 300}}
    return [train_run(small | {"seed": seed}) for seed in range(6)]


def measure(found: Results, profile: Profile) -> Measured:
    return {"loss": sum(found[each].losses[-1] for each in runs(profile))}


def claims(measured: Measured) -> list[Claim]:
    judged = {"criterion": "below 1", "expected": "small", "holds": lambda loss: loss < 1}
    return [Claim(id="chaos.loss", where="", statement="", measured=measured["loss"], **judged)]


def draw(measured: Measured) -> Drawing:
    return Drawing()


CAPTION = ""
PAPER = Paper("chaos_paper", "Chaos", "", "", "", {"": {"chaos": "Chaos"}})
sys.modules["chaos_paper"] = sys.modules["chaos_paper.figures.chaos"] = sys.modules[__name__]
Checkpoint.due = due
original_fsync, original_run = os.fsync, execution.run
if AT:
    sys.addaudithook(hook)
    os.fsync = fsync
store.STOPPED = float(os.environ.get("CHAOS_STOPPED", store.STOPPED))
if "CHAOS_LOG" in os.environ:
    execution.run = run
if "CHAOS_SIZE" in os.environ:
    import resource

    size = int(os.environ["CHAOS_SIZE"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

if __name__ == "__main__":
    from rni.cli import main

    main()
