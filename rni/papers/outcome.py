"""What became of a figure."""

from dataclasses import dataclass, field

from rni.papers.claims import Claim
from rni.papers.figure import Figure, Measured
from rni.plots.style import Picture
from rni.runs.specification import Specification


@dataclass
class Outcome:
    """What became of a figure: its measurements and claims, or the reason why there are none.

    `picture` says how its drawing stands on a page. `training` has the processor time, in seconds, of the runs that no
    figure before it asked for, `seconds` that of measuring.
    """

    figure: Figure
    specifications: list[Specification]
    measured: Measured = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    picture: Picture | None = None
    training: float = 0.0
    seconds: float = 0.0
    failure: str = ""
