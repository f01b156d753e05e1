"""`python -m tests.chaos [NAME ...] [--seed S] [--out docs/chaos.md]`: run the experiments and write the table."""

import argparse
import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

from rni.core.atomic import write_atomically
from tests import chaos


def main() -> None:
    names = [module.name for module in pkgutil.iter_modules(chaos.__path__) if not module.name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("names", nargs="*", choices=[*names, []], metavar="NAME", help=", ".join(names))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for name in given.names or names:
        with tempfile.TemporaryDirectory(prefix=f"rni-{name}-") as folder:
            for row in importlib.import_module(f"{chaos.__name__}.{name}").run(given.seed, Path(folder)):
                rows.append((name, *row))
                print("  ".join(map(str, rows[-1])), flush=True)
    if given.out:
        write_atomically(given.out, page(rows, given.seed).encode())
    sys.exit(any(failures for _, _, _, failures, _ in rows))


def page(rows: list[tuple[str, str, int, int, str]], seed: int) -> str:
    lines = [f"| {name} | {what} | {cases} | {failures} | {remark} |" for name, what, cases, failures, remark in rows]
    head = (
        "# Faults made on purpose\n\n"
        f"Written by `make chaos` (seed {seed}). A failure is a case that did not end as the experiment says it must:\n"
        "see the modules in `tests/chaos`.\n\n"
        "| experiment | what | cases | failures | remark |\n|---|---|---|---|---|\n"
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
