"""Commands to disturb, and what to look for afterwards."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos import _command

CONFIG = "[task]\ndecays = [0.9, 0.8]\n[network]\nneurons = 40\n[training]\nsteps = 200\n"


def train(folder: Path) -> list[str]:
    """A small training in a folder."""
    (folder / "run.toml").write_text(CONFIG, encoding="utf-8")
    return ["train", str(folder / "run.toml"), "--out", str(folder / "net.safetensors")]


def reproduce(folder: Path, store: Path | None = None) -> list[str]:
    """A small reproduction in a folder."""
    places = ["--store", str(store or folder / "store"), "--out", str(folder / "report")]
    return ["reproduce", "chaos", "--paper", "chaos_paper", *places]


def sweep(folder: Path) -> list[str]:
    """A small sweep in a folder: twelve runs, and what is measured of them."""
    (folder / "base.toml").write_text(CONFIG, encoding="utf-8")
    fields = ["--over", "seed=0..3", "--over", "network.neurons=20,30,40", "--measure", "loss,steps@1,error,ratio"]
    return ["sweep", str(folder / "base.toml"), *fields, "--store", str(folder / "store"), "--out", str(folder / "out")]


def environment(**chaos: Any) -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": root} | {f"CHAOS_{k}": str(v) for k, v in chaos.items()}


def start(arguments: list[str], **chaos: Any) -> subprocess.Popen[str]:
    """The command, as the leader of a process group of its own."""
    return subprocess.Popen(
        [sys.executable, _command.__file__, *arguments],
        env=environment(**chaos),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and standard error, once the command and all its workers are gone."""
    _, err = process.communicate()

    def gone() -> bool:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    until(gone)
    return process.returncode, err


def command(arguments: list[str], **chaos: Any) -> tuple[int, str]:
    return finish(start(arguments, **chaos))


def until(condition: Callable[[], Any]) -> Any:
    while not (found := condition()):
        time.sleep(0.05)
    return found


def results(folder: Path) -> dict[str, bytes]:
    """The bytes that must not depend on what happened: networks, their checksums, claims, tables, measured numbers."""
    wanted = {".safetensors", ".sha256", ".json", ".npz", ".csv"}
    return {str(p.relative_to(folder)): p.read_bytes() for p in files(folder) if p.suffix in wanted}


def left_over(folder: Path) -> list[str]:
    """Files that only a command at work may have."""
    names = (".part", ".checkpoint", ".lock", ".sign", ".whole")
    return [str(p.relative_to(folder)) for p in files(folder) if p.suffix in names or p.parent.name == "status"]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def one_line(err: str) -> bool:
    """Whether a failed command ended with a line for its user, and no traceback."""
    return "Traceback" not in err and err.rstrip().splitlines()[-1].startswith("rni: ")
