"""What the parts of the benchmark share. Ratios are of one run, because machines are shared and noisy."""

import multiprocessing
import os
import platform
import re
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch

import rni
from rni.core.memory import text_of
from rni.core.rng import stream


class Ratio(NamedTuple):
    """Of two things measured in one run: what the history keeps."""

    name: str
    value: float


Lines = Iterator[str | Ratio]  # of a table, and ratios among them
DECAYS = (0.995, 0.993, 0.99, 0.992, 0.994)
AUTHORS_BATCH, AUTHORS_STEPS = 4096, 5000


def machine() -> str:
    """What the numbers are measured on."""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{platform.machine()}, {os.cpu_count()} cores, {versions}"


def load() -> float:
    """Processes that compute at this time, the mean of a minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def memory() -> float:
    """The high-water mark of this process, GB; the system's own count has that of the parent in it before the start."""
    told = re.search(r"VmHWM:\s+(\d+) kB", text_of(Path("/proc/self/status")))
    if told:
        return 1024 * int(told[1]) / 1e9
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def milliseconds(step: Callable[[], object], before: int = 2, seconds: float = 3.0) -> float:
    """Of processor time a call, the mean over some seconds: other work on the machine changes it little."""
    for _ in range(before):
        step()
    count, begun = 0, time.process_time()
    while time.process_time() - begun < seconds:
        step()
        count += 1
    return 1e3 * (time.process_time() - begun) / count


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's value, from a fresh process on one thread: its memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return pool.submit(function, *arguments).result()


def straightforward(neurons: int, batch: int = AUTHORS_BATCH, duration: int = 3) -> Callable[[], None]:
    """A step of the paper's training written the plain way: autograd, a Python loop over time, W as a parameter."""
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

    return step


def ours(specification: rni.TrainRun) -> tuple[rni.Network, Callable[[], None]]:
    """A network and one step of its training: draw, forward, backward, update."""
    net, loss, generator = specification.build(), specification.loss(), stream(specification.seed, "training")
    descent = rni.training.GradientDescent()
    rate = 0.1 * descent.defaults(loss, net)[0]

    def step() -> None:
        _, gradient = loss.gradient(net, loss.draw(generator))
        descent.step(net, gradient, rate)

    return net, step
