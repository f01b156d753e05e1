"""`python docs/table1.py REPORT`: the section on Table 1 of statements.md, from a report of the full profile.

The numbers are kept in docs/table1.json: 100 r and the relative error of the outputs of each training.
"""

import json
import sys
from pathlib import Path

import numpy as np

from rni.papers.fanthomme2021.figures.table1 import ACTIVATIONS, PAPER

HERE = Path(__file__).parent
BEGIN, END = "<!-- table1 -->", "<!-- end of table1 -->"


def read(report: Path) -> dict[str, dict[str, list[float]]]:
    """By cell: 100 r (of root mean squares by the authors' protocol, of mean norms by ours) and errors, by protocol."""
    with np.load(report / "table1.npz") as file:
        rows = {
            "authors": 100 * file["authors_square_ratios"],
            "authors' error": file["authors_errors"],
            "ours": 100 * file["ratios"],
            "our error": file["errors"],
        }
    return {
        " ".join(map(str, cell)): {name: [float(f"{x:.4g}") for x in row[k] if x == x] for name, row in rows.items()}
        for k, cell in enumerate(PAPER)
    }


def table(cells: dict[str, dict[str, list[float]]]) -> str:
    """Markdown: mean and deviation in the paper and by both protocols, with the number of trainings."""
    lines = ["| cell | paper | authors' protocol | its error | our protocol | its error | agrees |", "|" + 7 * "---|"]
    for (activation, loss, channels), (mean, deviation) in PAPER.items():
        cell = cells[f"{activation} {loss} {channels}"]
        found = float(np.mean(cell["authors"]))
        off = abs(found - mean) - 2 * deviation
        errors = (f"{100 * np.mean(cell[name]):.2g} %" for name in ("authors' error", "our error"))
        authors, ours = (_spread(cell[name]) for name in ("authors", "ours"))
        agrees = "yes" if off <= 0 and np.mean(cell["authors' error"]) < 0.2 else f"no, by {off:.2g}"
        row = [authors, next(errors), ours, next(errors), agrees]
        lines.append(
            f"| {ACTIVATIONS[activation]}, {loss}, D = {channels} | {mean:g} ± {deviation:g} | {' | '.join(row)} |"
        )
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    mean, deviation = np.mean(values), np.std(values, ddof=1)
    if mean < 0.001:
        return f"below 0.001 ({len(values)})"
    digits = 1 if mean >= 10 else 2 if mean >= 1 else 4
    return f"{mean:.{digits}f} ± {deviation:.{digits}f} ({len(values)})"


def main(report: str) -> None:
    cells = read(Path(report))
    (HERE / "table1.json").write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
    page = HERE / "statements.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table(cells)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
