"""The verdict of an analysis: what a network or a recording does, with a sentence of evidence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rni.analysis.behaviour import KEPT, LONGER, START_CORRELATION, Dynamics
from rni.analysis.decays import RECENT, Memory
from rni.analysis.latents import LASTING, LONGEST, SOON
from rni.analysis.stationary import duration

Kind = Literal["integrates", "remembers", "decides", "oscillates", "forgets", "none"]

TOLERANCE = 0.1  # largest relative error of a network that integrates
GOOD = 0.02  # relative error of a well trained network
ROUNDING = 1e-6  # a smaller part is shown as a number, because a percentage would need an exponent
OLD = 0.1  # if a smaller part of what signals hold of the inputs is older than two steps, the inputs are forgotten
MOST = 0.5  # part of what is remembered that must be in the integrals, if their decays are fitted
# The same, if the readout is fitted too. From the many time constants of a random linear network, a fitted readout
# makes an exact integral, which holds less than this of what the currents remember. Trained networks hold more.
MOST_OF_CURRENTS = 0.85
GROWTH = 1e3  # a network of which the currents grow more within a sequence runs away


@dataclass(frozen=True)
class Verdict:
    """What a network does.

    Attributes
    ----------
    kind : str
        "integrates", "remembers", "decides", "oscillates", "forgets", or "none" of these.
    evidence : str
        A sentence with the numbers behind the verdict.

    Examples
    --------
    >>> print(rni.analysis.Verdict("integrates", "relative error 1 %"))
    integrates: relative error 1 %
    """

    kind: Kind
    evidence: str

    def with_evidence(self, clause: str) -> "Verdict":
        """Return the same verdict with another clause of evidence."""
        return Verdict(self.kind, f"{self.evidence}; {clause}")

    def __str__(self) -> str:
        return f"{'does not integrate' if self.kind == 'none' else self.kind}: {self.evidence}"


def judge(
    errors: Mapping[str, Mapping[int, Sequence[float]]],
    decays: Sequence[float],
    memory: Memory,
    *,
    signals: str,
    fitted: bool,
    dynamics: Dynamics | None = None,
    silent: bool = False,
    growth: float = 1.0,
    durations: Sequence[int] = (),
    recent: int = RECENT,
    alone: float = 0.0,
    linearity: float = math.nan,
    largest: float = math.nan,
) -> Verdict:
    r"""Judge what a network, or a recording, does.

    An integrator has errors of at most 10 % on every kind of test, on the shortest sequences. If decays are fitted,
    there must be integrals at all: time constants of more than two steps ($\gamma^2 > 1/e$, so that a readout without
    memory misses more than a third of their variance), which contain most of what the signals remember. A given task
    may have any decays. A network that does not integrate is judged by its states without inputs. A network that
    fails a given task and only keeps its states is "none".

    Parameters
    ----------
    errors : mapping
        Relative errors by kind of test, duration and channel.
    decays : sequence of float
        The effective decays of the signals.
    memory : Memory
        What the signals hold of past inputs.
    signals : str
        The name of the signals: outputs, currents or activity.
    fitted : bool
        Whether the errors are relative to integrals with these decays, and not to a task.
    dynamics : Dynamics, optional
        What happens to the states without inputs. It is not known of a recording.
    silent : bool
        Whether the activity does not depend on the inputs.
    growth : float
        How many times larger currents are at the end of sequences than at their beginning.
    durations : sequence of int
        The longest sequences with errors of at most 10 %, by channel.
    recent : int
        Two steps, or two of the times 1 / leak in which the slowest neuron forgets on its own.
    alone : float
        The time constant of this neuron, $-1/\log(1-\alpha)$. The longest of the fitted integrals must last three times
        as long.
    linearity, largest : float
        The part of the currents that is linear in the integrals, and the largest tested integral, if they are known.

    Examples
    --------
    >>> held = rni.analysis.Memory(older=0.9, integrals=0.99)
    >>> errors = {"bursts": {200: [0.02], 2000: [0.03]}}
    >>> print(rni.analysis.judge(errors, decays=[0.99], memory=held, signals="outputs", fitted=False))
    integrates: relative error 3 % at most, on bursts of 2000 steps; effective decays 0.99
    """
    shortest = {kind: max(by_duration[min(by_duration)]) for kind, by_duration in errors.items()}
    worst = max(shortest, key=lambda kind: shortest[kind])
    steps, longest = min(errors[worst]), max(errors[worst])
    later = max(max(by_duration[longest]) for by_duration in errors.values())
    absent = [c for c, decay in enumerate(decays, 1) if time_constant(decay) <= recent]
    effective = "  ".join(f"{decay:.4g}" for decay in decays)
    if growth > GROWTH:
        return Verdict("none", f"runs away, its {signals} grow {growth:.1e}-fold within {steps} steps")

    # An integrator, whatever else it does.
    kinds = " and ".join(errors)
    how = f"; effective decays {effective}"
    how += "" if math.isnan(linearity) else f", currents {percent(linearity)} linear in them"
    how += "" if math.isnan(largest) else f", integrals up to {largest:.3g}"
    most = MOST_OF_CURRENTS if signals == "currents" else MOST
    held = max(map(time_constant, decays))  # steps
    has_integrals = not fitted or (not absent and memory.integrals >= most and held >= LONGER * alone)
    integrates = has_integrals and shortest[worst] <= TOLERANCE
    if integrates and later <= TOLERANCE:
        return Verdict("integrates", f"relative error {percent(later)} at most, on {kinds} of {longest} steps{how}")
    within = f"to within {percent(TOLERANCE)} for {min(durations, default=steps)} steps"
    within += f"; relative error {percent(later)} for {longest}, on {kinds}"
    if integrates and later <= 1:
        return Verdict("integrates", f"{within}{how}")

    # Why it does not integrate, by its signals.
    older = f"{percent(memory.older)} of what the inputs leave in its {signals} is older than {recent} steps"
    failed = Verdict(
        "none",
        f"relative error {percent(shortest[worst])} on {worst} of {steps} steps; effective decays, from its {signals}: "
        f"{effective}",
    )
    if integrates:
        failed = Verdict("none", f"integrates only {within}{how}")
    elif silent:
        failed = Verdict("forgets", "silent, its activity does not change with its inputs")
    elif memory.older < OLD:
        part = percent(memory.older) if memory.older > 1e-3 else "nothing"
        evidence = f"{part} of what the inputs leave in its {signals} is older than {recent} steps"
        failed = Verdict("forgets", evidence)
    elif fitted and memory.integrals < most:
        part = percent(memory.integrals)
        failed = Verdict("none", f"{older}, but integrals are only {part} of what is remembered")
    elif fitted and absent:
        failed = Verdict("none", f"{older}, but there is no integral of channel {', '.join(map(str, absent))}")
    elif fitted and held < LONGER * alone:
        times = f"{held / alone:.3g} times as long as one of its neurons alone"
        evidence = f"{older}, but its integrals last at most {held:.4g} steps, {times}; effective {effective}"
        failed = Verdict("none", evidence)
    if dynamics is None:
        return failed

    # What it does instead, by its states without inputs.
    seen = behaves(dynamics)
    chaotic = dynamics.chaotic and not dynamics.runs_away
    if seen.kind in ("decides", "oscillates") or chaotic or (seen.kind == "remembers" and fitted):
        return seen
    forgets = seen.kind == "forgets" and fitted and dynamics.own_time > 1
    return Verdict("forgets" if forgets else failed.kind, f"{failed.evidence}; {seen.evidence}")


def behaves(dynamics: Dynamics) -> Verdict:
    """Judge what happens to the states that a network visits when its inputs end."""
    points, dt = dynamics.fixed_points.points, dynamics.fixed_points.dt
    main = points[0].modes if points else ()
    slowest = "  ".join(mode.describe(dt) for mode in main[:2])
    left = f"{percent(dynamics.retained[1])} of the spread of its states"
    long = duration(min(round(LASTING * dynamics.own_time), LONGEST), dt)
    weights = "; feed-forward, W has no loops" if dynamics.feedforward else ""
    weights += "; W is like a random matrix, by its singular values" if dynamics.random else ""

    # States that go on moving.
    if dynamics.runs_away:
        return Verdict("none", f"runs away without inputs{weights}")
    if dynamics.chaotic:
        assert dynamics.lyapunov is not None
        apart = f"neighbouring states part e-fold in {duration(1 / dynamics.lyapunov, dt)}"
        return Verdict("none", f"chaotic, {apart} (Lyapunov exponent {dynamics.lyapunov:.3g} a step){weights}")
    if dynamics.moving >= 0.5:
        if dynamics.period is None:
            return Verdict("none", f"goes on moving without inputs, without a period{weights}")
        around = f" around a point with multipliers {slowest}" if main else ""
        period = duration(dynamics.period, dt)
        return Verdict("oscillates", f"goes on without inputs, period {period},{around}{weights}")
    if main and main[0].period < main[0].time_constant >= LASTING * dynamics.own_time:
        rings = f"rings when inputs end, period {duration(main[0].period, dt)}"
        return Verdict("oscillates", f"{rings}, and dies away in {duration(main[0].time_constant, dt)}{weights}")

    # States that stay, at many points or at a few.
    if dynamics.graded and dynamics.start_correlation >= START_CORRELATION:
        shape = {0: "many points", 1: "a line of slow points", 2: "a plane of slow points"}
        where = shape.get(dynamics.slow, f"slow points in {dynamics.slow} dimensions")
        drift = f"drift at most {percent(dynamics.drift)} of their range a step"
        same = f"correlation of at least {dynamics.start_correlation:.2g} with where they were"
        evidence = f"{where}, multipliers {slowest}; {left} is left after {long}, {same}, {drift}"
        return Verdict("remembers", f"{evidence}{weights}")
    if len(dynamics.attractors) > 1:
        count, part = len(dynamics.attractors), percent(sum(dynamics.attractors))
        leave = next((point.modes[0] for point in points if point.modes[0].multiplier > 1), None)
        between = "" if leave is None else f", between them a point that they leave, multiplier {leave.describe(dt)}"
        return Verdict("decides", f"{count} attractors, where {part} of the visited states end{between}{weights}")

    # States that return to one point.
    if dynamics.retained[1] < KEPT:
        soon = duration(min(round(SOON * dynamics.own_time), LONGEST), dt)
        after = f"{percent(dynamics.retained[0])} left after {soon}"
        evidence = f"without inputs its states return to one point, multipliers {slowest}, {after}{weights}"
        return Verdict("forgets" if dynamics.retained[0] < OLD else "none", evidence)
    moved = f", correlation down to {dynamics.start_correlation:.2g} with where they were" if dynamics.graded else ""
    return Verdict("none", f"without inputs {left} is left after {long}{moved}{weights}")


def time_constant(decay: float) -> float:
    r"""Return $-1 / \log\gamma$, in steps."""
    return math.inf if decay == 1 else -1 / math.log(decay) if decay > 0 else 0.0


def percent(part: float) -> str:
    """Return a text for a part: a percentage, "–" for NaN, and a number such as 1e-14 if the part is rounding."""
    if math.isnan(part):
        return "–"
    return f"{part:.0e}" if 0 < abs(part) < ROUNDING else f"{100 * part:.4g} %"
