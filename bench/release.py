"""What is released: how large, of how many files, and how long it takes to begin."""

import importlib.util
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from bench.measuring import Lines

TITLE = "Release"
ABOUT = (
    "Wheel and sdist as `make dist` builds them. The start: processor time of a fresh process beyond that of Python "
    "itself, the least of five, files read before; most of it is torch's own where torch is needed."
)
ROOT = Path(__file__).parent.parent
STARTS = {
    "`import rni`": "import rni",
    "`rni --help`": "import sys; sys.argv = ['rni', '--help']; from rni.cli import main; main()",
    "`import torch`, for comparison": "import torch",
    "`import rni.task`": "import rni.task",
    "a first network: `rni.design`, 100 neurons": "import rni; rni.design(rni.Integration(0.9), neurons=100)",
}


def sizes() -> Lines:
    yield "| file | kB | files in it |"
    yield "|---|---|---|"
    if importlib.util.find_spec("build") is None:
        yield "| build is not installed | | |"
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
        for path in sorted(Path(folder).iterdir()):
            yield f"| {path.name} | {path.stat().st_size / 1e3:.0f} | {files(path)} |"


def files(path: Path) -> int:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return len(wheel.infolist())
    with tarfile.open(path) as sdist:
        return sum(each.isfile() for each in sdist)


def seconds(code: str) -> float:
    """Of processor time, of a fresh process, of user and system."""
    timed = f"import atexit, os, sys\natexit.register(lambda: print(sum(os.times()[:2]), file=sys.stderr))\n{code}"
    done = subprocess.run([sys.executable, "-c", timed], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stderr.split()[-1])


def starts() -> Lines:
    yield "| what | processor, s |"
    yield "|---|---|"
    bare = min(seconds("") for _ in range(5))
    for name, code in STARTS.items():
        yield f"| {name} | {min(seconds(code) for _ in range(5)) - bare:.2f} |"


def tables() -> dict[str, Lines]:
    return {"Size": sizes(), "Start": starts()}
