"""Training against size."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

import rni
from bench.measuring import DECAYS, Lines, Ratio, alone, memory, milliseconds, ours
from rni.analysis import current_ratio, relative_error, svd
from rni.tasks.inputs import bursts, white_noise

SIZES = (1000, 10_000, 100_000, 1_000_000)
BATCH, STEPS = 16, 3000  # enough, with the default warm-up, for a better network than the authors' settings give


@dataclass(frozen=True)
class Measured:
    """Milliseconds a step, the rank of W in the end (0 where it isn't factored), high-water mark in GB."""

    milliseconds: float
    rank: int
    memory: float

    def __str__(self) -> str:
        return f"{self.milliseconds:.3g} | {self.rank or '-'} | {self.memory:.2f}"


def specification(neurons: int, weights: str, channels: int = 1, duration: int = 3, **training: Any):
    raw = {
        "task": {"decays": DECAYS[:channels]},
        "network": {"neurons": neurons, "weights": weights},
        "training": {"batch": BATCH, "steps": STEPS, "duration": duration} | training,
    }
    return cast(rni.TrainRun, rni.parse_run(raw))


def our_steps(neurons: int, weights: str, channels: int = 1, duration: int = 3) -> Measured:
    net, step = ours(specification(neurons, weights, channels, duration))
    took = milliseconds(step, before=60 if weights == "lowrank" else 2)
    factors = net.recurrent.factors()
    return Measured(took, 0 if factors is None else factors[0].shape[1], memory())


def training(neurons: int, channels: int) -> dict[str, Any]:
    """A low-rank training to the end, with r on bursts and errors on bursts and noise."""
    spec = specification(neurons, "lowrank", channels)
    cpu, wall = time.process_time(), time.perf_counter()
    net = rni.run(spec).network
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "memory": memory()}
    generator, spectrum = torch.Generator().manual_seed(1), svd(net.recurrent)
    tests = bursts(128, 200, channels, generator)
    noise = {steps: white_noise(128 * 200 // steps, steps, channels, generator) for steps in (200, 2000)}
    return took | {
        "rank": len(spectrum.values),
        "r": current_ratio(net, spectrum.left[:, :channels], tests),
        "bursts": float(relative_error(net, tests).max()),
        **{f"noise {steps}": float(relative_error(net, x).max()) for steps, x in noise.items()},
        "analysed": memory(),
    }


def scaling() -> Lines:
    yield "| n | D | T | dense, ms a step | - | memory, GB | low-rank, ms a step | rank | memory, GB |"
    yield "|---|---|---|---|---|---|---|---|---|"
    found: dict[int, float] = {}
    for neurons, channels, duration in (
        *((n, 2, 3) for n in (1000, 10_000, 100_000)),
        *((10_000, channels, 3) for channels in (1, 3, 5)),
        *((10_000, 2, duration) for duration in (5, 10)),
    ):
        dense = str(alone(our_steps, neurons, "dense", channels, duration)) if neurons <= 10_000 else "- | - | -"
        factored = alone(our_steps, neurons, "lowrank", channels, duration)
        if (channels, duration) == (2, 3):
            found[neurons] = factored.milliseconds
        yield f"| {neurons} | {channels} | {duration} | {dense} | {factored} |"
    ratio = found[100_000] / found[10_000]
    yield f"\nTime at n = 100 000 / time at n = 10 000: {ratio:.1f} (goal: at most 12; more where the smaller one fits"
    yield "into the cache)."
    yield Ratio("a factored step, n = 100 000 / n = 10 000", ratio)


def to_the_end(neurons: int, channels: int = 2) -> Lines:
    yield "| n | D | processor, s | wall, s | memory, GB | rank | r | bursts | noise | noise, 2000 steps | with r, GB |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    v = alone(training, neurons, channels)
    errors = " | ".join(f"{100 * v[key]:.1f} %" for key in ("bursts", "noise 200", "noise 2000"))
    size = f"{v['cpu']:.0f} | {v['wall']:.0f} | {v['memory']:.2f} | {v['rank']} | {v['r']:.2e}"
    yield f"| {neurons} | {channels} | {size} | {errors} | {v['analysed']:.2f} |"


def without_training(neurons: int, what: str) -> tuple[float, float]:
    """Seconds of designing a network of two channels, or of simulating or analysing it; and GB."""
    doing: dict[str, Callable[[rni.Network], object]] = {
        "simulate": lambda net: net.outputs(white_noise(16, 200, 2, torch.Generator().manual_seed(0)).double()),
        "analyze": rni.analyze,
    }
    begun = time.process_time()
    net = rni.design(rni.Integration(DECAYS[:2]), neurons).network
    if what in doing:
        begun = time.process_time()
        with torch.no_grad():
            doing[what](net)
    return time.process_time() - begun, memory()


def straight_lines(sizes: Sequence[int]) -> Lines:
    kinds = ("design", "simulate", "analyze")
    yield "| n | " + " | ".join(f"{kind}, s | memory, GB" for kind in kinds) + " |"
    yield "|---|" + "---|---|" * len(kinds)
    found: dict[tuple[str, int], float] = {}
    for neurons in sizes:
        cells = []
        for kind in kinds:
            found[kind, neurons], used = alone(without_training, neurons, kind)
            cells.append(f"{found[kind, neurons]:.3g} | {used:.2f}")
        yield f"| {neurons} | {' | '.join(cells)} |"
    for kind in kinds:
        few, many = sizes[-2:]
        yield Ratio(f"{kind}, n = {many} / n = {few}", found[kind, many] / found[kind, few])


def tables(neurons: int = 10_000) -> dict[str, Lines]:
    return {
        f"Steps, ReLU, batch {BATCH}": scaling(),
        f"To the end: ReLU, batch {BATCH}, {STEPS} steps, low-rank": to_the_end(neurons),
        "Without training: two channels, designed (16 sequences of 200 steps are simulated)": straight_lines(SIZES),
    }


TITLE = "Scale"
ABOUT = """Processor time of one thread, each case in a process of its own, whose high-water mark is its memory. Rank
is that of the factored W in the end."""
