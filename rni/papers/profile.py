"""How large a reproduction is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """How large a reproduction is: `neurons` and seeds of the normal run, and whether long measurements are made.

    full: with all of the paper's repetitions also where a few decide as well.
    """

    name: str
    neurons: int
    quick: bool
    full: bool = False

    def seeds(self, paper: int, few: int | None = None, quick: int = 2) -> int:
        """Repetitions: the paper's number, or `few` where these decide as well, but in the full profile; `quick` at
        most in that one."""
        if self.quick:
            return min(paper, quick)
        return paper if few is None or self.full else few


PROFILES = {
    "quick": Profile("quick", neurons=300, quick=True),
    "paper": Profile("paper", neurons=1000, quick=False),
    "full": Profile("full", neurons=1000, quick=False, full=True),
}
