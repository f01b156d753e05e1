"""A training beside other work: it takes its share of the machine's time, and does not wait for itself."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import rni
from bench.measuring import DECAYS, Lines, Ratio, alone, load
from rni.core.threads import cores

BESIDE, THREADS, BATCHES = (0, 2, 4), (1, 2), (16, 32, 64)
TITLE = "A busy machine"
ABOUT = """A training (ReLU, one channel, dense, batch 32) alone, and beside processes that do nothing but compute. With
L busy threads in all on C cores its share of them makes it L / C times slower, if L is more than C: allowed is one and
a half times that. What else ran on the machine is in the load before each row, and spoils the row where it is not
small."""


def trained(neurons: int, steps: int, threads: int, batch: int = 32) -> tuple[float, float]:
    """Seconds by the clock and of processor time."""
    raw = {"task": {"decays": DECAYS[:1]}, "network": {"neurons": neurons}}
    spec: Any = rni.parse_run(raw | {"training": {"batch": batch, "steps": steps, "threads": threads}})
    rni.run(replace(spec, training=replace(spec.training, steps=1)))
    clock, processor = time.perf_counter(), time.process_time()
    rni.run(spec)
    return time.perf_counter() - clock, time.process_time() - processor


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that compute as long as it is entered."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_compute, daemon=True) for _ in range(count)]
    for each in others:
        each.start()
    try:
        yield
    finally:
        for each in others:
            each.terminate()
            each.join()


def _compute() -> None:
    started_by = os.getppid()
    while os.getppid() == started_by:  # and no longer, where that one was killed
        sum(range(10**6))


def beside(neurons: int, steps: int) -> Lines:
    yield "| threads | beside | load before | clock, s | processor, s | times its own alone | allowed, 1.5 L / C |"
    yield "|---|---|---|---|---|---|---|"
    for threads in THREADS:
        own = float("nan")
        for others in BESIDE:
            before = load()
            with busy(others):
                clock, processor = alone(trained, neurons, steps, threads)
            own = own if others else clock
            allowed = 1.5 * max(1.0, (threads + others) / cores())
            times = f"{clock:.3g} | {processor:.3g} | {clock / own:.2f} | {allowed:.2f}"
            yield f"| {threads} | {others} | {before:.1f} | {times} |"
            if others:
                yield Ratio(
                    f"a training on {threads} threads beside {others} busy processes / allowed", clock / own / allowed
                )
    yield f"\nC = {cores()}; L counts the threads of the training and the processes beside it."


def second_thread(neurons: int, steps: int) -> Lines:
    yield "| batch | one thread, s | two threads, s | faster | processor time of two / of one |"
    yield "|---|---|---|---|---|"
    for batch in BATCHES:
        (one, alone_used), (two, both_used) = (alone(trained, neurons, steps, threads, batch) for threads in (1, 2))
        yield f"| {batch} | {one:.3g} | {two:.3g} | {one / two:.2f} | {both_used / alone_used:.2f} |"
        yield Ratio(f"one thread / two threads, batch {batch}", one / two)
    yield "\nA run takes one thread, so that runs fill the cores, unless `training.threads` says otherwise."


def tables(neurons: int = 1000, steps: int = 1000) -> dict[str, Lines]:
    return {
        f"n = {neurons}, {steps} steps": beside(neurons, steps),
        f"A second thread, n = {neurons}, {steps // 2} steps": second_thread(neurons, steps // 2),
    }
