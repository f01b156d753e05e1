"""Claims of a paper, whose verdicts are computed from measurements, and its errata."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Verdict = Literal["reproduced", "not reproduced", "not tested in this profile"]
Origin = Literal["paper", "ours"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper, the criterion by which it is judged, and the measured value.

    Parameters
    ----------
    id : str
        The figure's id and a name, such as "fig1.target".
    where : str
        The place in the paper.
    statement : str
        What the paper says. May contain LaTeX between dollar signs, like the other texts.
    criterion : str
        Which measured values `holds` accepts, in words.
    expected : str
        The paper's value, or its statement of the value.
    measured : number or dict of numbers, optional
        A number, or several numbers by name, which are converted to float. None if this profile does not measure it.
    holds : callable
        Decides from `measured` whether the claim is reproduced.
    origin : {"paper", "ours"}
        "ours" if the paper does not make this statement, or not for the case in which it is judged.
    settings : str
        How the trainings differ from the authors' protocol.
    revised : str
        The earlier criterion, if a measurement made us change it, and the reason for the change.
    because : str
        Why the claim does not hold, as far as we know from an experiment or an erratum.
    needs : str
        What a test of the claim needs if this profile does not test it: a number of neurons, networks or training
        steps, and the profile that has them.
    """

    id: str
    where: str
    statement: str
    criterion: str
    expected: str
    measured: float | dict[str, float] | None
    holds: Callable[[Any], bool]
    origin: Origin = "paper"
    settings: str = ""
    revised: str = ""
    because: str = ""
    needs: str = ""

    def __post_init__(self):
        # figures give scalars of numpy and torch
        if isinstance(self.measured, dict):
            object.__setattr__(self, "measured", {name: float(value) for name, value in self.measured.items()})
        elif self.measured is not None:
            object.__setattr__(self, "measured", float(self.measured))

    @property
    def verdict(self) -> Verdict:
        if self.measured is None:
            return "not tested in this profile"
        return "reproduced" if self.holds(self.measured) else "not reproduced"

    @property
    def reason(self) -> str:
        """Why the claim is not reproduced, or what its test needs if this profile does not test it."""
        if self.measured is None:
            return f"needs {self.needs}" if self.needs else ""
        return "" if self.holds(self.measured) else self.because

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as an entry of claims.json. `because` of an untested claim says what its test needs."""
        entry = asdict(self) | {"verdict": self.verdict}
        if self.measured is None:
            entry["because"] = self.reason
        del entry["holds"], entry["needs"]
        return entry


def tally(claims: Iterable[Claim]) -> dict[Origin, dict[Verdict, int]]:
    """Count the claims of each origin that have each verdict."""
    counts = Counter((claim.origin, claim.verdict) for claim in claims)
    return {origin: {v: counts[origin, v] for v in get_args(Verdict)} for origin in get_args(Origin)}


@dataclass(frozen=True)
class Erratum:
    r"""A formula or statement of the paper that does not hold as printed, and its corrected form.

    `printed` and `corrected` are texts with LaTeX between dollar signs; `evidence` says what the test compares.

    Examples
    --------
    >>> from rni.papers.fanthomme2021.errata import ERRATA
    >>> next(erratum.corrected for erratum in ERRATA if erratum.id == "special_scale")
    'integrators at scale $s = d^\\dagger e$'
    """

    id: str
    where: str
    printed: str
    corrected: str
    evidence: str
