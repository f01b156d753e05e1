"""A paper and its figures. This module loads neither torch nor numpy, so that listing the figures is quick."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rni.core.errors import InputError, nearest
from rni.core.registry import import_reference
from rni.papers.claims import Claim, Erratum

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from rni.networks.network import Network
    from rni.runs.execution import Result
    from rni.runs.run import Run

Measured = dict[str, Any]
"""Numbers and numpy arrays by name. They are saved with the figure."""


class Results(Protocol):
    """Results of finished runs, by run."""

    def __getitem__(self, specification: "Run", /) -> "Result": ...


@dataclass(frozen=True)
class Profile:
    """The size of a reproduction.

    Parameters
    ----------
    name : str
    neurons : int
        The number of neurons of a network, where the paper does not ask for another number.
    quick : bool
        Whether trainings and measurements are shortened.
    full : bool
        Whether there are as many repetitions as in the paper where fewer of them give the same verdict.
    """

    name: str
    neurons: int
    quick: bool
    full: bool = False

    def seeds(self, paper: int, few: int | None = None, quick: int = 2) -> int:
        """Return the number of repetitions.

        Parameters
        ----------
        paper : int
            The paper's number.
        few : int, optional
            A smaller number that gives the same verdict. The full profile does not use it.
        quick : int
            The largest number in the quick profile.
        """
        if self.quick:
            return min(paper, quick)
        return paper if few is None or self.full else few


PROFILES = {
    "quick": Profile("quick", neurons=300, quick=True),
    "paper": Profile("paper", neurons=1000, quick=False),
    "full": Profile("full", neurons=1000, quick=False, full=True),
}


class Row(NamedTuple):
    """A row of a table. The rows that a table is about are `strong`; the others are there for comparison."""

    name: str
    cells: Sequence[str]
    strong: bool = False


class Table(NamedTuple):
    """A table of texts; `corner` says what its numbers are."""

    corner: str
    columns: Sequence[str]
    rows: Sequence[Row]


def no_runs(profile: Profile) -> "Iterable[Run]":
    """Return the runs of a figure that needs none."""
    return ()


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    A figure is a module of the paper's subpackage `figures` that defines the following names. `measure` does not draw,
    so that tests can check claims without a picture.

    CAPTION : str
        The caption in our own words. May contain LaTeX between dollar signs.
    runs(profile) -> runs
        The trainings that the figure needs. A figure without trainings does not define it.
    measure(results, profile) -> dict
        Computes numbers and arrays from the results of these runs.
    claims(measured) -> list of Claim
    draw(measured) -> matplotlib figure
    table(measured) -> Table
        Optional: the report shows this table instead of the picture.
    COMPUTES : bool
        Optional: True if `measure` takes long although the figure has few runs or none. It is then started first.
    """

    id: str
    title: str
    section: str
    caption: str
    measure: Callable[[Results, Profile], Measured]
    claims: Callable[[Measured], Iterable[Claim]]
    draw: "Callable[[Measured], Drawing]"
    runs: "Callable[[Profile], Iterable[Run]]" = no_runs
    table: Callable[[Measured], Table] | None = None
    computes: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper that can be reproduced.

    Parameters
    ----------
    module : str
        The name of the package that defines the constant PAPER. Worker processes import the paper by this name.
    title : str
        The title of the report.
    citation : str
        Authors, journal and year.
    link : str
        Where to find the paper.
    summary : str
        A paragraph that introduces the report.
    sections : mapping
        For each section, the titles of its figures by id, in the order of the paper.
    errata : sequence of Erratum
    network : callable, optional
        Returns a network for the interactive page of the report, and its name.
    """

    module: str
    title: str
    citation: str
    link: str
    summary: str
    sections: Mapping[str, Mapping[str, str]]
    errata: Sequence[Erratum] = ()
    network: "Callable[[], tuple[Network, str]] | None" = None

    def titles(self) -> dict[str, str]:
        """Return the title of each figure by its id, in the order of the paper."""
        return {id: title for figures in self.sections.values() for id, title in figures.items()}

    def select(self, ids: Iterable[str]) -> list[str]:
        """Return the given ids in the order of the paper, or all ids if none are given.

        Raises
        ------
        InputError
            If the paper has no figure of this id.
        """
        known = self.titles()
        for id in ids:
            if id not in known:
                raise InputError("figure", id, ", ".join(known), hint=nearest(id, known))
        return [id for id in known if not ids or id in ids]

    def figure(self, id: str) -> Figure:
        """Import one figure."""
        module = import_module(f"{self.module}.figures.{id}")
        section = next(name for name, figures in self.sections.items() if id in figures)
        return Figure(
            id,
            self.sections[section][id],
            section,
            module.CAPTION,
            module.measure,
            module.claims,
            module.draw,
            getattr(module, "runs", no_runs),
            getattr(module, "table", None),
            getattr(module, "COMPUTES", False),
        )


def load_paper(module: str) -> Paper:
    """Import the paper that a package defines. Packages in the current folder are found as well.

    Raises
    ------
    InputError
        If the package cannot be imported, or if its PAPER is missing or is not a `Paper`.
    """
    paper = import_reference(f"{module}:PAPER", "paper")
    if not isinstance(paper, Paper):
        raise InputError("paper", module, "a package whose PAPER is a rni.papers.Paper")
    return paper
