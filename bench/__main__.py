"""One command, one table: `python -m bench`. Ratios are measured in one run, because machines are shared and noisy."""

import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import rni
from rni.losses import BatchLoss
from rni.training import GradientDescent

NEURONS, DURATION, AUTHORS_STEPS = 1000, 3, 5000
TASK = rni.Integration(0.995)
RUNS: dict[str, dict[str, object]] = {
    "training, constant rate 0.0185, batch 32, 5000 steps": {"learning_rate": 0.0185},
    "training, defaults (warm-up, batch 32, 5000 steps)": {},
    "training, warm-up, batch 16, 5000 steps": {"batch": 16},
    "training, warm-up, batch 16, 3500 steps": {"batch": 16, "steps": 3500},
}
RESULTS = Path(__file__).parent / "RESULTS.md"


def seconds(action: Callable[[], object], repeats: int) -> float:
    """The median time of one call, after a warm-up."""
    action()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return sorted(times)[repeats // 2]


def matrix_product_rate(batch: int = 1024) -> float:
    """float32 operations a second of this machine's own (batch x n) @ (n x n)."""
    states, weights = torch.randn(batch, NEURONS), torch.randn(NEURONS, NEURONS)
    out = torch.empty(batch, NEURONS)
    return 2 * batch * NEURONS**2 / seconds(lambda: torch.mm(states, weights, out=out), 40)


def network() -> rni.Network:
    vectors = rni.vectors.independent(NEURONS, 1, torch.Generator().manual_seed(0))
    return rni.Network(TASK, *vectors, torch.zeros(NEURONS, NEURONS))


def our_step(batch: int) -> float:
    """Seconds for one step of plain descent: draw, forward, backward, update."""
    net, loss, descent, generator = network(), BatchLoss(TASK, DURATION, batch), GradientDescent(), torch.Generator()

    def step() -> None:
        _, gradient = loss.gradient(net, loss.draw(generator))
        descent.step(net, gradient, 0.0185)

    return seconds(step, 40)


def operations(batch: int) -> int:
    """What one step needs: T - 1 products forward, back and for the update, and rank-D ones for the first time step."""
    return 2 * NEURONS**2 * (3 * (DURATION - 1) * batch + 2 * TASK.channels)


def straightforward_step(batch: int = 4096) -> float:
    """The same experiment written the plain way: autograd, a Python loop over time, a fresh batch."""
    encoder, decoder = (vector[:, 0].float() for vector in rni.vectors.independent(NEURONS, 1))
    weights = torch.zeros(NEURONS, NEURONS, requires_grad=True)
    sgd = torch.optim.SGD([weights], lr=0.5)

    def step() -> None:
        x = torch.randn(batch, DURATION)
        h, target = torch.zeros(batch, NEURONS), torch.zeros(batch)
        error = torch.zeros(())
        for t in range(DURATION):
            h = ((h + x[:, t, None] * encoder) @ weights.T).clamp(min=0)
            target = 0.995 * (target + x[:, t])
            error = error + (h @ decoder - target).square().mean()
        sgd.zero_grad()
        (error / DURATION**3).backward()
        sgd.step()

    return seconds(step, 5)


def training_run(training: dict[str, object]) -> tuple[float, rni.Analysis]:
    specification = rni.Specification.parse({"task": {"decays": TASK.decays}, "training": training})
    begun = time.perf_counter()
    result = rni.run(specification)
    return time.perf_counter() - begun, rni.analyze(result.network)


HEADER = """# Measured speed

`make bench` writes this page. ReLU, one channel, decay 0.995, 1000 neurons, sequences of 3 steps, plain descent from
W = 0. The straightforward implementation (autograd, loop over time, a fresh batch of 4096, 5000 steps, as the authors
take) is timed over 5 steps and scaled up; the ratios are to that. The paper reports r = 1.3e-2 +- 0.2e-2. Errors are
relative, on white noise of 200 and 2000 steps.

{machine}, {cores} cores, {threads} threads, Python {python}, torch {torch}.

| what | time | against |
|---|---|---|
"""


def table() -> str:
    rate = matrix_product_rate()
    plain = straightforward_step()
    dense = our_step(1024)
    whole = plain * AUTHORS_STEPS
    fraction = operations(1024) / dense / rate
    rows = [
        f"| matrix product, 1024 x 1000 x 1000, float32 | {rate / 1e9:.0f} GFLOP/s | |",
        f"| straightforward PyTorch, batch 4096 | {1e3 * plain:.0f} ms a step, {whole / 60:.0f} min in all | 1 |",
        f"| dense descent, batch 1024 | {1e3 * dense:.1f} ms a step | {fraction:.0%} of that rate |",
    ]
    for name, training in RUNS.items():
        took, analysis = training_run(training)
        errors = ", ".join(f"{100 * analysis.errors['white noise'][d][0]:.1f} %" for d in (200, 2000))
        rows.append(f"| {name} | {took:.1f} s | {whole / took:.0f} times; r = {analysis.ratio:.2e}, error {errors} |")
    return HEADER.format(
        machine=platform.processor() or platform.machine(),
        cores=os.cpu_count(),
        threads=torch.get_num_threads(),
        python=platform.python_version(),
        torch=torch.__version__,
    ) + "\n".join([*rows, ""])


if __name__ == "__main__":
    text = table()
    sys.stdout.write(text)
    RESULTS.write_text(text)
