"""What is released, as users have it: `python -m tests.dist WHEEL`, in environments of its own, away from here.

The wheel is installed with the newest versions of what it needs and tried: help, a figure, a design, pages. Then with
the oldest that pyproject.toml allows (`--oldest`), and with each extra alone (`--extras`). `--python` names another
interpreter than this one. torch is the one of requirements.txt, so that no libraries of graphics processors come along
where there is a build without them; other Pythons and the oldest versions bring gigabytes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TORCH = next(
    line for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() if line.startswith("torch==")
)
FILES = ("py.typed", "__init__.pyi", "pages/explorer.js", "pages/explorer.LICENSE", "pages/templates/report.html")
COMMANDS = (
    "rni --help",
    "rni cite",
    "rni reproduce fig1 --workers 1 --store runs --out report",
    "rni design --decays 0.99 0.9 --neurons 100 --out net.safetensors",
    "rni analyze net.safetensors --out page.html",
    "rni explore net.safetensors --out explore.html",
    "rni export net.safetensors --to arrays",
)
MADE = ("report/index.html", "report/fig1.svg", "page.html", "explore.html", "net.npz")
OF_EXTRAS = {  # a command that works with the extra, and what it says, or makes, then
    "export": ("python -m rni export net.safetensors --to onnx --out extra.onnx", "extra.onnx"),
    "cluster": (
        "python -m rni reproduce fig1 --scheduler tcp://127.0.0.1:1 --store runs --out report || true",
        "not reached",
    ),
    "bench": ("python -c 'import nengo; print(nengo.Simulator)'", "nengo.simulator"),
    "docs": (
        "python -c 'import myst_nb, furo, sphinx_design, sphinx_copybutton' && python -m sphinx --version",
        "sphinx",
    ),
}
NAMED = ("export", "cluster")  # what is asked for on the command line, and refused with the extra's name without it
SMALL = "training = {steps = 10}\nnetwork = {neurons = 20}\ntask = {decays = [0.9]}\n"


class Environment:
    """A virtual environment of an interpreter in a folder; `base`: another one whose packages it sees."""

    def __init__(self, python: str, folder: Path, base: "Environment | None" = None):
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.bin = folder / "bin"
        (self.packages,) = folder.glob("lib/python3.*/site-packages")
        if base is not None:
            (self.packages / "base.pth").write_text(f"{base.packages}\n", encoding="utf-8")

    def install(self, *what: str) -> None:
        """Not compiled: most of what comes with torch is never imported."""
        self.run(f"pip install --quiet --no-compile --disable-pip-version-check {' '.join(map(repr, what))}", self.bin)

    def run(self, command: str, where: Path) -> str:
        """Its output; away from the sources, with nothing of this process's Python."""
        known = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        known |= {"PATH": f"{self.bin}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, shell=True, cwd=where, env=known, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"dist: {command}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout + done.stderr


def oldest() -> list[str]:
    """numpy==2.0.* for numpy>=2, scipy==1.13.* for scipy>=1.13."""
    pairs = (each.split(">=") for each in PROJECT["dependencies"])
    return [f"{name}=={version if '.' in version else f'{version}.0'}.*" for name, version in pairs]


def tried(environment: Environment, folder: Path) -> None:
    """What a newcomer does."""
    folder.mkdir()
    found = environment.run("python -c 'import rni; print(rni.__file__)'", folder)
    assert str(environment.packages) in found, found
    for name in FILES:
        assert (environment.packages / "rni" / name).exists(), name
    for command in COMMANDS:
        environment.run(command, folder)
        print(f"  {command}")
    for name in MADE:
        assert (folder / name).stat().st_size > 1000, name


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.dist", description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable, help="as python3.13; this one unless given")
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--extras", action="store_true")
    options = parser.parse_args()
    wheel = str(options.wheel.resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        newest = Environment(options.python, folder / "newest")
        print("newest versions,", newest.run("python --version", folder).strip())
        newest.install(TORCH)
        newest.install(wheel)
        tried(newest, folder / "in newest")
        if options.extras:
            here = folder / "in newest"
            (here / "net.toml").write_text(SMALL, encoding="utf-8")
            for extra, (command, shown) in OF_EXTRAS.items():
                if extra in NAMED:
                    without = newest.run(f"{command} || true", here)
                    assert f"rni[{extra}]" in without, without
                one = Environment(options.python, folder / extra, newest)
                one.install(f"{wheel}[{extra}]")
                said = one.run(command, here)
                assert shown in said or (here / shown).exists(), said
                print(f"extra {extra}")
        if options.oldest:
            print("oldest versions:", ", ".join(oldest()))
            old = Environment(options.python, folder / "oldest")
            old.install(*oldest())
            old.install(wheel)
            tried(old, folder / "in oldest")
    print(f"dist: {Path(wheel).name} works")


if __name__ == "__main__":
    main()
