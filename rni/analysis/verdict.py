"""What a network or a recording does, in one word, and the sentence of evidence for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rni.analysis.behaviour import KEPT, Dynamics
from rni.analysis.effective import RECENT, Memory
from rni.analysis.stationary import duration
from rni.analysis.visited import LASTING, SOON

Kind = Literal["integrates", "remembers", "decides", "oscillates", "forgets", "none"]

TOLERANCE = 0.1  # relative error up to which a network counts as integrating
GOOD = 0.02  # relative error of a well trained network
ROUNDING = 1e-6  # below it, a percentage needs an exponent, and the number is shown itself
OLD = 0.1  # part of what is held that must be older than two steps: less, and the inputs are forgotten
MOST = 0.5  # part of what is remembered that must be in the integrals, where their decays are fitted
GROWTH = 1e3  # from the beginning to the end of a sequence: more, and the network runs away


@dataclass(frozen=True)
class Verdict:
    """kind: integrates, remembers, decides, oscillates, forgets or none of these. evidence: a sentence with numbers.

    >>> print(rni.analysis.Verdict("integrates", "relative error 1 %"))
    integrates: relative error 1 %
    """

    kind: Kind
    evidence: str

    def __str__(self) -> str:
        return f"{'does not integrate' if self.kind == 'none' else self.kind}: {self.evidence}"


def judge(
    errors: Mapping[str, Mapping[int, Sequence[float]]],
    decays: Sequence[float],
    memory: Memory,
    *,
    signals: str,
    fitted: bool,
    silent: bool = False,
    growth: float = 1.0,
    durations: Sequence[int] = (),
    recent: int = RECENT,
    linearity: float = math.nan,
    largest: float = math.nan,
) -> Verdict:
    r"""An integrator has errors of at most 10 % on every kind of test, at the shortest duration, by channel.

    errors: relative errors by kind of test, duration and channel. decays: the effective ones of the `signals` (outputs,
    currents or activity). fitted: whether the errors are relative to integrals with these decays, not to a task's. Then
    there must be integrals at all: time constants of more than two steps ($\gamma^2 > 1/e$, so that a readout without
    memory would miss more than a third of their variance), and most of what the signals remember in them; a task may
    have any decays. durations: the longest sequences with errors up to 10 %, by channel. recent: two steps, or two of
    the times $1/\alpha$ in which leaky neurons forget on their own. linearity: of the currents in the integrals, and
    the `largest` integral that was tested, which the evidence tells if they are known.

    >>> held = rni.analysis.Memory(older=0.9, integrals=0.99)
    >>> errors = {"bursts": {200: [0.02], 2000: [0.03]}}
    >>> print(rni.analysis.judge(errors, decays=[0.99], memory=held, signals="outputs", fitted=False))
    integrates: relative error 3 % at most, on bursts of 2000 steps; effective decays 0.99
    """
    shortest = {kind: max(by_duration[min(by_duration)]) for kind, by_duration in errors.items()}
    kind = max(shortest, key=lambda each: shortest[each])
    steps, longest = min(errors[kind]), max(errors[kind])
    later = max(max(by_duration[longest]) for by_duration in errors.values())
    absent = [c for c, decay in enumerate(decays, 1) if forgotten(decay, recent)]
    present = not fitted or (not absent and memory.integrals >= MOST)
    for_steps = f"to within {percent(TOLERANCE)} for {min(durations, default=steps)} steps"
    effective = "  ".join(f"{decay:.4g}" for decay in decays)
    if growth > GROWTH:
        return Verdict("none", f"runs away, its {signals} grow {growth:.1e}-fold within {steps} steps")
    if present and shortest[kind] <= TOLERANCE:
        kinds = " and ".join(errors)
        linear = "" if math.isnan(linearity) else f", currents {percent(linearity)} linear in them"
        how = f"; effective decays {effective}{linear}" + (
            "" if math.isnan(largest) else f", integrals up to {largest:.3g}"
        )
        if later > TOLERANCE:
            found = f"{for_steps}; relative error {percent(later)} for {longest}, on {kinds}"
            return Verdict("integrates", found + how) if later <= 1 else Verdict("none", f"integrates only {found}")
        return Verdict("integrates", f"relative error {percent(later)} at most, on {kinds} of {longest} steps{how}")
    if silent:
        return Verdict("forgets", "silent, its activity does not change with its inputs")
    if memory.older < OLD:
        part = percent(memory.older) if memory.older > 1e-3 else "nothing"
        return Verdict("forgets", f"{part} of what the inputs leave in its {signals} is older than {recent} steps")
    remembers = f"{percent(memory.older)} of what the inputs leave in its {signals} is older than {recent} steps"
    if fitted and memory.integrals < MOST:
        return Verdict("none", f"{remembers}, but integrals are only {percent(memory.integrals)} of what is remembered")
    if fitted and absent:
        return Verdict("none", f"{remembers}, but there is no integral of channel {', '.join(map(str, absent))}")
    return Verdict(
        "none",
        f"relative error {percent(shortest[kind])} on {kind} of {steps} steps; effective decays, from its {signals}: "
        f"{effective}",
    )


def named(found: Verdict, dynamics: Dynamics, *, fitted: bool) -> Verdict:
    """What `judge` found, in the light of what becomes of the network's states without inputs.

    An integrator is one whatever else it does, and one that fails a given task and remembers is still none.
    """
    if found.kind == "integrates" or found.evidence.startswith("runs away"):
        return found
    seen = behaves(dynamics)
    chaotic = seen.evidence.startswith("chaotic")
    if seen.kind in ("decides", "oscillates") or chaotic or (seen.kind == "remembers" and fitted):
        return seen
    forgets = seen.kind == "forgets" and fitted and dynamics.own_time > 1
    return Verdict("forgets" if forgets else found.kind, f"{found.evidence}; {seen.evidence}")


def behaves(dynamics: Dynamics) -> Verdict:
    """What becomes of the states that a network visits when its inputs end."""
    points, dt = dynamics.fixed_points.points, dynamics.fixed_points.dt
    main = points[0].modes if points else ()
    slowest = "  ".join(mode.describe(dt) for mode in main[:2])
    left = f"{percent(dynamics.retained[1])} of the spread of its states"
    long = duration(round(LASTING * dynamics.own_time), dt)
    like = "".join(
        text
        for holds, text in (
            (dynamics.feedforward, "; feed-forward, W has no loops"),
            (dynamics.random, "; W is like a random matrix, by its singular values"),
        )
        if holds
    )
    if dynamics.leaves + dynamics.grows >= 0.5:
        return Verdict("none", f"runs away without inputs{like}")
    if dynamics.chaotic:
        assert dynamics.lyapunov is not None
        apart = f"neighbouring states part e-fold in {duration(1 / dynamics.lyapunov, dt)}"
        return Verdict("none", f"chaotic, {apart} (Lyapunov exponent {dynamics.lyapunov:.3g} a step){like}")
    if dynamics.moving >= 0.5:
        if dynamics.period is None:
            return Verdict("none", f"goes on moving without inputs, without a period{like}")
        around = f" around a point with multipliers {slowest}" if main else ""
        return Verdict("oscillates", f"goes on without inputs, period {duration(dynamics.period, dt)},{around}{like}")
    if main and main[0].period < main[0].time_constant >= LASTING * dynamics.own_time:
        rings = f"rings when inputs end, period {duration(main[0].period, dt)}"
        return Verdict("oscillates", f"{rings}, and dies away in {duration(main[0].time_constant, dt)}{like}")
    if dynamics.graded:
        shape = {0: "many points", 1: "a line of slow points", 2: "a plane of slow points"}
        places = shape.get(dynamics.slow, f"slow points in {dynamics.slow} dimensions")
        drift = f"drift at most {percent(dynamics.drift)} of their range a step"
        text = f"{places}, multipliers {slowest}; {left} is left after {long}, {drift}"
        return Verdict("remembers", f"{text}{like}")
    if len(dynamics.attractors) > 1:
        count, part = len(dynamics.attractors), percent(sum(dynamics.attractors))
        leave = next((point.modes[0] for point in points if point.modes[0].multiplier > 1), None)
        between = "" if leave is None else f", between them a point that they leave, multiplier {leave.describe(dt)}"
        return Verdict("decides", f"{count} attractors, where {part} of the visited states end{between}{like}")
    if dynamics.retained[1] < KEPT:
        after = f"{percent(dynamics.retained[0])} left after {duration(round(SOON * dynamics.own_time), dt)}"
        text = f"without inputs its states return to one point, multipliers {slowest}, {after}{like}"
        return Verdict("forgets" if dynamics.retained[0] < OLD else "none", text)
    return Verdict("none", f"without inputs {left} is left after {long}{like}")


def time_constant(decay: float) -> float:
    r"""$-1 / \log\gamma$, in steps."""
    return math.inf if decay == 1 else -1 / math.log(decay) if decay > 0 else 0.0


def forgotten(decay: float, recent: int = RECENT) -> bool:
    """Whether an integral of this decay is gone before it counts as remembered."""
    return time_constant(decay) <= recent


def percent(part: float) -> str:
    """A part as people read it; – for what there is not, and rounding as the number that it is, 1e-14."""
    if math.isnan(part):
        return "–"
    return f"{part:.0e}" if 0 < abs(part) < ROUNDING else f"{100 * part:.4g} %"
