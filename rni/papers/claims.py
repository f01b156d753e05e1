"""Claims of the paper: data with a criterion, and a verdict that is computed, never written down."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Verdict = Literal["reproduced", "not reproduced", "not tested in this profile"]
Origin = Literal["paper", "ours"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper says and how it is judged.

    `criterion` says in words what `holds` decides from the measured value; `expected` is the paper's value or statement
    of it. `measured` is a number, or a few by name; None where this profile does not measure it. `where` is the place
    in the paper. `origin` is "ours" where the statement, or the case it is judged in, is not the paper's. `settings`
    says what differs from the authors' protocol, `revised` what the criterion was before a measurement moved it, and
    why it moved; `because` says why a claim does not hold, as far as we know, by an experiment or an erratum. All are
    empty where there is nothing to say. `needs` is what decides a claim that this profile does not measure: a number of
    neurons, networks or training steps, and the profile that has them.
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
        """As it stands in claims.json: where a claim is not tested, `because` says what its test needs."""
        entry = asdict(self) | {"verdict": self.verdict}
        if self.measured is None:
            entry["because"] = self.reason
        del entry["holds"], entry["needs"]
        return entry


def tally(claims: Iterable[Claim]) -> dict[Origin, dict[Verdict, int]]:
    """How many claims of each origin have each verdict."""
    found = Counter((claim.origin, claim.verdict) for claim in claims)
    return {origin: {v: found[origin, v] for v in get_args(Verdict)} for origin in get_args(Origin)}
