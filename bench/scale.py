"""Training against size: `python -m bench.scale [NEURONS]`, a page of markdown.

Every case runs in a process of its own, on one thread: its memory is the high-water mark of that process, and its time
is the processor's, which other work on the machine changes little. Ratios are of one run. The last table trains
NEURONS neurons to the end (by default 10000; 100000 take a quarter of an hour).
"""

import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

import rni
from rni.analysis import current_ratio, relative_error, svd
from rni.task import bursts, white_noise
from rni.training import GradientDescent

DECAYS = (0.995, 0.993, 0.99, 0.992, 0.994)
AUTHORS_BATCH, AUTHORS_STEPS = 4096, 5000
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
    return rni.Specification.parse(raw)


def memory() -> float:
    """The high-water mark of this process, GB."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def time_steps(step: Callable[[], object], before: int, seconds: float = 3.0) -> float:
    """Milliseconds of processor time a call, the mean over some seconds."""
    for _ in range(before):
        step()
    count, begun = 0, time.process_time()
    while time.process_time() - begun < seconds:
        step()
        count += 1
    return 1e3 * (time.process_time() - begun) / count


def our_steps(neurons: int, weights: str, channels: int = 1, duration: int = 3, batch: int = BATCH) -> Measured:
    """One step of the default training: draw, forward, backward, update."""
    spec = specification(neurons, weights, channels, duration, batch=batch)
    net, loss, generator, descent = spec.build(), spec.loss(), spec.stream("training"), GradientDescent()
    rate = 0.1 * (spec.training.learning_rate or 0)

    def step() -> None:
        _, gradient = loss.gradient(net, loss.draw(generator))
        descent.step(net, gradient, rate)

    milliseconds = time_steps(step, before=60 if weights == "lowrank" else 2)
    factors = net.recurrent.factors()
    return Measured(milliseconds, 0 if factors is None else factors[0].shape[1], memory())


def straightforward_steps(neurons: int, duration: int = 3, batch: int = AUTHORS_BATCH) -> Measured:
    """The same experiment written the plain way: autograd, a Python loop over time, W as a parameter."""
    encoder, decoder = (vector[:, 0].float() for vector in rni.vectors.independent(neurons, 1))
    weights = torch.zeros(neurons, neurons, requires_grad=True)
    sgd = torch.optim.SGD([weights], lr=0.5)

    def step() -> None:
        x = torch.randn(batch, duration)
        h, target = torch.zeros(batch, neurons), torch.zeros(batch)
        error = torch.zeros(())
        for t in range(duration):
            h = ((h + x[:, t, None] * encoder) @ weights.T).clamp(min=0)
            target = DECAYS[0] * (target + x[:, t])
            error = error + (h @ decoder - target).square().mean()
        sgd.zero_grad()
        (error / duration**3).backward()
        sgd.step()

    return Measured(time_steps(step, before=1), 0, memory())


def reduced_steps(neurons: int, steps: int = 2000) -> Measured:
    """A linear network on the averaged loss, in the span of its vectors: a whole training, by step."""
    raw = {"task": {"decays": DECAYS[:1]}, "network": {"neurons": neurons, "activation": "linear"}}
    spec = rni.Specification.parse(raw | {"training": {"loss": "averaged", "steps": steps}})
    begun = time.process_time()
    rni.run(spec)
    return Measured(1e3 * (time.process_time() - begun) / steps, 2, memory())


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


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's value, from a fresh process on one thread."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return pool.submit(function, *arguments).result()


def against_the_plain_way(neurons: int = 1000) -> Iterator[str]:
    yield "| training | ms a step | rank | memory, GB | steps | in all, s | faster |"
    yield "|---|---|---|---|---|---|---|"
    plain = alone(straightforward_steps, neurons)
    whole = plain.milliseconds * AUTHORS_STEPS / 1e3
    yield f"| plain PyTorch, batch {AUTHORS_BATCH} | {plain} | {AUTHORS_STEPS} | {whole:.0f} | 1 |"
    cases: dict[str, tuple[Measured, int]] = {
        f"dense, batch {BATCH}": (alone(our_steps, neurons, "dense"), STEPS),
        f"low-rank, batch {BATCH}": (alone(our_steps, neurons, "lowrank"), STEPS),
        f"dense, batch {AUTHORS_BATCH}": (alone(our_steps, neurons, "dense", 1, 3, AUTHORS_BATCH), AUTHORS_STEPS),
        "reduced (linear network, averaged loss)": (alone(reduced_steps, neurons), AUTHORS_STEPS),
    }
    for name, (ours, steps) in cases.items():
        took = ours.milliseconds * steps / 1e3
        yield f"| {name} | {ours} | {steps} | {took:.3g} | {whole / took:.0f} |"


def scaling() -> Iterator[str]:
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
    yield f"\nTime at n = 100 000 / time at n = 10 000: {found[100_000] / found[10_000]:.1f} (goal: at most 12)."


def to_the_end(neurons: int, channels: int = 2) -> Iterator[str]:
    yield "| n | D | processor, s | wall, s | memory, GB | rank | r | bursts | noise | noise, 2000 steps | with r, GB |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    v = alone(training, neurons, channels)
    errors = " | ".join(f"{100 * v[key]:.1f} %" for key in ("bursts", "noise 200", "noise 2000"))
    size = f"{v['cpu']:.0f} | {v['wall']:.0f} | {v['memory']:.2f} | {v['rank']} | {v['r']:.2e}"
    yield f"| {neurons} | {channels} | {size} | {errors} | {v['analysed']:.2f} |"


def main(neurons: int = 10_000) -> None:
    parts = {
        "1000 neurons, ReLU, D = 1, T = 3, against the plain way at the authors' settings": against_the_plain_way(),
        f"Scaling, ReLU, batch {BATCH}": scaling(),
        f"To the end: ReLU, batch {BATCH}, {STEPS} steps, low-rank": to_the_end(neurons),
    }
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    threads = f"one thread, load {load:.1f}, torch {torch.__version__}"
    print(f"# Scale\n\n{platform.machine()}, {os.cpu_count()} cores, {threads}.")
    for title, rows in parts.items():
        print(f"\n## {title}\n")
        for row in rows:
            print(row, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
