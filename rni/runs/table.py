"""The table of a sweep: one row for each run, with the swept fields, the measures, its key, and why it failed."""

import csv
import importlib.util
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rni.core.atomic import write_atomically
from rni.runs.specification import Specification

AT_END = ("key", "failure")


class Row(NamedTuple):
    """A run: its swept fields, what was measured, and where something could not be, why."""

    fields: dict[str, Any]
    specification: Specification | None
    values: dict[str, Any]
    failure: str | None

    @property
    def key(self) -> str | None:
        return self.specification and self.specification.key()

    @property
    def failed(self) -> bool:
        """Whether the run gave no value at all. An impossible combination, which never became a run, did not fail."""
        measured = any(value is not None for value in self.values.values())
        return self.specification is not None and self.failure is not None and not measured


@dataclass(frozen=True)
class Table:
    """Rows in the order of the sweep. fields: the swept ones; drawn: those of random values; notes: what was found."""

    fields: tuple[str, ...]
    measured: tuple[str, ...]
    rows: tuple[Row, ...]
    drawn: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> list[str]:
        """The columns of measured values; at least one for each measure, where all runs failed too."""
        found = dict.fromkeys(name for row in self.rows for name in row.values)
        for name in self.measured:
            if not any(column == name or column.startswith(f"{name}.") for column in found):
                found[name] = None
        return list(found)

    @property
    def columns(self) -> list[str]:
        return [*self.fields, *self.measures, *AT_END]

    def __getitem__(self, name: str) -> list[Any]:
        """A column; None where a row has no such value."""
        if name in AT_END:
            return [getattr(row, name) for row in self.rows]
        return [(row.fields if name in self.fields else row.values).get(name) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of plain values, for `pandas.DataFrame` or `polars.DataFrame`: numbers, or texts."""
        return {name: _alike(self[name]) for name in self.columns}

    def to_csv(self) -> str:
        """As text; lists and tables in JSON, nothing where there is no value."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*([_text(value) for value in self[name]] for name in self.columns), strict=True))
        return lines.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """table.csv, and table.parquet where a library is there for it."""
        write_atomically(folder / "table.csv", self.to_csv().encode())
        if (content := _parquet(self.to_dict())) is None:
            return [folder / "table.csv"]
        write_atomically(folder / "table.parquet", content)
        return [folder / "table.csv", folder / "table.parquet"]


def _text(value: Any) -> str:
    if isinstance(value, list | tuple | dict | bool):
        return json.dumps(value)
    return "" if value is None else str(value)


def _alike(values: list[Any]) -> list[Any]:
    """A column of one kind."""
    there = [value for value in values if value is not None]
    for kind in (bool, int, int | float):
        if all(isinstance(value, kind) and isinstance(value, bool) == (kind is bool) for value in there):
            return [float(value) if kind == int | float and value is not None else value for value in values]
    return [None if value is None else _text(value) for value in values]


def _parquet(columns: dict[str, list[Any]]) -> bytes | None:
    """By polars or pyarrow, whichever is installed: `pip install 'rni[tables]'`."""
    buffer = io.BytesIO()
    if importlib.util.find_spec("polars"):
        import polars  # pyright: ignore[reportMissingImports]

        polars.DataFrame(columns, strict=False).write_parquet(buffer)
    elif importlib.util.find_spec("pyarrow"):
        from pyarrow import parquet, table  # pyright: ignore[reportMissingImports]

        parquet.write_table(table(columns), buffer)
    else:
        return None
    return buffer.getvalue()
