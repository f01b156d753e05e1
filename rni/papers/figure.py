"""What a figure of the paper is made of: one module a figure in `rni.papers.fanthomme2021.figures`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from matplotlib.figure import Figure as Drawing

from rni.papers.claims import Claim
from rni.papers.profile import PROFILES as PROFILES
from rni.papers.profile import Profile as Profile
from rni.runs.execution import Result
from rni.runs.specification import Specification

Measured = dict[str, Any]  # numbers and numpy arrays by name: what is saved beside the figure


class Runs(Protocol):
    """Finished runs by specification."""

    def __getitem__(self, specification: Specification, /) -> Result: ...


class Row(NamedTuple):
    """A row of a table: its name, its cells, and whether it is what the table is about or stands for comparison."""

    name: str
    cells: Sequence[str]
    strong: bool = False


class Table(NamedTuple):
    """Text under columns; `corner` names what the numbers are."""

    corner: str
    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Figure:
    """A figure (or table): the runs it needs, what it measures from them, the claims that follow, how it is drawn.

    `id` is fig1, ..., fig19 or table1; `order` is its place in the paper; `section` is the paper's heading that it
    stands under; `caption` is in our own words and may use LaTeX between dollar signs. Measuring knows nothing of
    drawing, so that claims are tested without a picture. The report shows the `table` in place of the picture, where
    there is one. Whether measuring `computes` more than what the runs left: such a figure is measured first.
    """

    id: str
    order: int
    title: str
    section: str
    caption: str
    measure: Callable[[Runs, Profile], Measured]
    claims: Callable[[Measured], Sequence[Claim]]
    draw: Callable[[Measured], Drawing]
    runs: Callable[[Profile], Sequence[Specification]] = field(default=lambda profile: ())
    table: Callable[[Measured], Table] | None = None
    computes: bool = False
