"""The table of a sweep: one row for each run, with the swept fields, the measures, its key, and why it failed."""

import csv
import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rni.core.atomic import write_atomically

if TYPE_CHECKING:
    from rni.runs.run import Run

LAST_COLUMNS = ("key", "failure")


@dataclass(frozen=True)
class Row:
    """A run: its swept fields, its measures, and why it, or one of its measures, failed."""

    fields: dict[str, Any]
    specification: "Run | None"
    values: dict[str, Any]
    failure: str | None

    @cached_property
    def key(self) -> str | None:
        return self.specification and self.specification.key()

    @property
    def failed(self) -> bool:
        """Whether the run has no measure at all. An impossible combination, which never became a run, did not fail."""
        measured = any(value is not None for value in self.values.values())
        return self.specification is not None and self.failure is not None and not measured


@dataclass(frozen=True)
class Table:
    """The rows of a sweep, in its order.

    Attributes
    ----------
    fields, drawn : tuple of str
        The swept fields, and those of them with random values.
    measured : tuple of str
        The measures that were asked for.
    notes : tuple of str
        What the reader of the table should know, such as runs that different versions computed.
    """

    fields: tuple[str, ...]
    measured: tuple[str, ...]
    rows: tuple[Row, ...]
    drawn: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> list[str]:
        """The columns of measures. Each measure has at least one, even if all runs failed."""
        found = dict.fromkeys(name for row in self.rows for name in row.values)
        for name in self.measured:
            if not any(column == name or column.startswith(f"{name}.") for column in found):
                found[name] = None
        return list(found)

    @property
    def columns(self) -> list[str]:
        return [*self.fields, *self.measures, *LAST_COLUMNS]

    def __getitem__(self, name: str) -> list[Any]:
        """Return a column. It has None in rows without such a value."""
        if name in LAST_COLUMNS:
            return [getattr(row, name) for row in self.rows]
        return [(row.fields if name in self.fields else row.values).get(name) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns, for `pandas.DataFrame` or `polars.DataFrame`. A column has numbers, or it has texts."""
        return {name: _of_one_type(self[name]) for name in self.columns}

    def to_csv(self) -> str:
        """Return the table as CSV. Lists and tables are written as JSON, and a missing value as an empty field."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*([_text(value) for value in self[name]] for name in self.columns), strict=True))
        return lines.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """Write table.csv into a folder."""
        write_atomically(folder / "table.csv", self.to_csv().encode())
        return [folder / "table.csv"]


def _text(value: Any) -> str:
    if isinstance(value, list | tuple | dict | bool):
        return json.dumps(value)
    return "" if value is None else str(value)


def _of_one_type(values: list[Any]) -> list[Any]:
    """Convert a column to numbers of one type, or to texts if that is impossible."""
    known = [value for value in values if value is not None]
    types = {type(value) for value in known}
    if types <= {bool} or types <= {int}:
        return values
    if types <= {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else _text(value) for value in values]
