"""One command, one page: `python -m bench [PART ...]`, training, scale, ..., writes the parts into bench/RESULTS.md."""

import argparse
import re
from pathlib import Path

from bench import design, dynamics, explore, paper, release, scale, sweep, training
from bench.measuring import machine

PARTS = {
    "training": training,
    "scale": scale,
    "design": design,
    "paper": paper,
    "explore": explore,
    "dynamics": dynamics,
    "sweep": sweep,
    "release": release,
}
RESULTS = Path(__file__).parent / "RESULTS.md"
HEAD = (
    "# Measured speed\n\n`make bench` writes this page; `python -m bench PART ...` measures some parts of it again.\n"
)


def measured(name: str) -> str:
    """A part's text, shown line by line as it comes."""
    part, lines = PARTS[name], []

    def add(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    add(f"## {part.TITLE}\n\n{part.ABOUT}\n\n{machine()}.")
    for title, rows in part.tables().items():
        add(f"\n### {title}\n")
        for row in rows:
            add(row)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; by default all")
    chosen = parser.parse_args().part or list(PARTS)
    for name in chosen:
        if name not in PARTS:
            parser.error(f"{name}: no such part; allowed: {', '.join(PARTS)}")
    for name in chosen:
        text = RESULTS.read_text() if RESULTS.exists() else ""
        sections = {part.split("\n")[0]: part for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]}
        sections[f"## {PARTS[name].TITLE}"] = measured(name)
        ordered = [sections[f"## {each.TITLE}"] for each in PARTS.values() if f"## {each.TITLE}" in sections]
        RESULTS.write_text("\n".join([HEAD, *(section.rstrip() + "\n" for section in ordered)]))


if __name__ == "__main__":
    main()
