"""What a network or a recording does, in one word, and the sentence of evidence for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rni.analysis.effective import RECENT, Memory

Kind = Literal["integrates", "remembers", "decides", "oscillates", "forgets", "none"]

TOLERANCE = 0.1  # relative error up to which a network counts as integrating
OLD = 0.1  # part of what is held that must be older than two steps: less, and the inputs are forgotten
MOST = 0.5  # part of what is remembered that must be in the integrals, where their decays are fitted
GROWTH = 1e3  # from the beginning to the end of a sequence: more, and the network runs away


@dataclass(frozen=True)
class Verdict:
    """kind: integrates, remembers, decides, oscillates, forgets or none of these. evidence: a sentence with numbers."""

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
) -> Verdict:
    r"""An integrator has errors of at most 10 % on every kind of test, at the shortest duration, by channel.

    errors: relative errors by kind of test, duration and channel. decays: the effective ones of the `signals` (outputs,
    currents or activity). fitted: whether the errors are relative to integrals with these decays, not to a task's. Then
    there must be integrals at all: time constants of more than two steps ($\gamma^2 > 1/e$, so that a readout without
    memory would miss more than a third of their variance), and most of what the signals remember in them; a task may
    have any decays. durations: the longest sequences with errors up to 10 %, by channel.
    """
    shortest = {kind: max(by_duration[min(by_duration)]) for kind, by_duration in errors.items()}
    kind = max(shortest, key=lambda each: shortest[each])
    steps, longest = min(errors[kind]), max(errors[kind])
    later = max(max(by_duration[longest]) for by_duration in errors.values())
    absent = [c for c, decay in enumerate(decays, 1) if forgotten(decay)]
    present = not fitted or (not absent and memory.integrals >= MOST)
    for_steps = f"to within {percent(TOLERANCE)} for {min(durations, default=steps)} steps"
    if growth > GROWTH:
        return Verdict("none", f"runs away, its {signals} grow {growth:.1e}-fold within {steps} steps")
    if present and shortest[kind] <= TOLERANCE:
        kinds = " and ".join(errors)
        if later > TOLERANCE:
            found = f"{for_steps}; relative error {percent(later)} for {longest}, on {kinds}"
            return Verdict("integrates", found) if later <= 1 else Verdict("none", f"integrates only {found}")
        return Verdict("integrates", f"relative error {percent(later)} at most, on {kinds} of {longest} steps")
    if silent:
        return Verdict("forgets", "silent, its activity does not change with its inputs")
    if memory.older < OLD:
        part = percent(memory.older) if memory.older > 1e-3 else "nothing"
        return Verdict("forgets", f"{part} of what the inputs leave in its {signals} is older than {RECENT} steps")
    remembers = f"{percent(memory.older)} of what the inputs leave in its {signals} is older than {RECENT} steps"
    if fitted and memory.integrals < MOST:
        return Verdict("none", f"{remembers}, but integrals are only {percent(memory.integrals)} of what is remembered")
    if fitted and absent:
        return Verdict("none", f"{remembers}, but there is no integral of channel {', '.join(map(str, absent))}")
    effective = "  ".join(f"{decay:.4g}" for decay in decays)
    return Verdict(
        "none",
        f"relative error {percent(shortest[kind])} on {kind} of {steps} steps; effective decays, from its {signals}: "
        f"{effective}",
    )


def time_constant(decay: float) -> float:
    r"""$-1 / \log\gamma$, in steps."""
    return math.inf if decay == 1 else -1 / math.log(decay) if decay > 0 else 0.0


def forgotten(decay: float) -> bool:
    """Whether an integral of this decay is gone before it counts as remembered."""
    return time_constant(decay) <= RECENT


def percent(part: float) -> str:
    """A part as people read it; – for what there is not."""
    return "–" if math.isnan(part) else f"{100 * part:.4g} %"
