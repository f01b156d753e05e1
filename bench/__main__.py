"""One command, one page: `python -m bench [PART ...]`, training, scale, ..., writes the parts into bench/RESULTS.md."""

import argparse
import re
from pathlib import Path

from bench import busy, design, dynamics, explore, history, paper, release, scale, sweep, training
from bench.measuring import Ratio, load, machine

PARTS = {
    "training": training,
    "busy": busy,
    "scale": scale,
    "design": design,
    "paper": paper,
    "explore": explore,
    "dynamics": dynamics,
    "sweep": sweep,
    "release": release,
}
RESULTS, BEFORE, TRIED = (Path(__file__).parent / name for name in ("RESULTS.md", "before.md", "tried.md"))
HEAD = (
    "# Measured speed\n\n`make bench` writes this page; `python -m bench PART ...` measures some parts of it again.\n"
)


def measured(name: str) -> tuple[str, dict[str, float]]:
    """A part's text, shown line by line as it comes, and its ratios."""
    part, lines, ratios = PARTS[name], [], {}

    def add(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    add(f"## {part.TITLE}\n\n{part.ABOUT}\n\n{machine()}, load {load():.1f}.")
    for title, rows in part.tables().items():
        add(f"\n### {title}\n")
        for row in rows:
            if isinstance(row, Ratio):
                ratios[row.name] = row.value
            else:
                add(row)
    return "\n".join(lines) + "\n", ratios


def write(new: dict[str, str]) -> None:
    """The page, with sections by title that take the place of those before; what is written by hand ends it."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    sections = {part.split("\n")[0]: part for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]}
    sections |= {f"## {title}": section for title, section in new.items()}
    ordered = [sections[f"## {each.TITLE}"] for each in PARTS.values() if f"## {each.TITLE}" in sections]
    ordered += filter(None, [BEFORE.read_text(encoding="utf-8"), history.section(), TRIED.read_text(encoding="utf-8")])
    RESULTS.write_text("\n".join([HEAD, *(section.rstrip() + "\n" for section in ordered)]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; by default all")
    chosen = parser.parse_args().part or list(PARTS)
    for name in chosen:
        if name not in PARTS:
            parser.error(f"{name}: no such part; allowed: {', '.join(PARTS)}")
    found: dict[str, float] = {}
    try:
        for name in chosen:
            text, ratios = measured(name)
            found |= ratios
            write({PARTS[name].TITLE: text})
    finally:  # what was measured before Ctrl-C too
        if found:
            history.append(found)
            write({})


if __name__ == "__main__":
    main()
