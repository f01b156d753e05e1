"""One training at 1000 neurons, against the same experiment written the plain way."""

from collections import defaultdict
from typing import Any, cast

import torch
from torch.profiler import ProfilerActivity, profile

import rni
from bench.measuring import (
    AUTHORS_BATCH,
    AUTHORS_STEPS,
    DECAYS,
    Lines,
    Ratio,
    alone,
    memory,
    milliseconds,
    ours,
    straightforward,
)
from rni.core.matmul import product
from rni.runs.execution import Result

NEURONS, DURATION = 1000, 3
WHOLE = {  # trainings from start to end
    "default": {},
    "default, low-rank": {"network": {"weights": "lowrank"}},
    "batch 16, 3500 steps": {"training": {"batch": 16, "steps": 3500}},
    "batch 16, 3500 steps, low-rank": {"training": {"batch": 16, "steps": 3500}, "network": {"weights": "lowrank"}},
    "proxy": {"training": {"loss": "proxy", "stop_loss": 1e-9}},
}


def specification(weights: str = "dense", batch: int = 32, **changes: Any) -> rni.TrainRun:
    raw: dict[str, Any] = {
        "task": {"decays": DECAYS[:1]},
        "network": {"neurons": NEURONS, "weights": weights},
        "training": {"batch": batch, "duration": DURATION},
    }
    for table, values in changes.items():
        raw[table] = values if "loss" in values else raw[table] | values  # another loss has other fields
    return cast(rni.TrainRun, rni.parse_run(raw))


def product_rate(rows: int) -> float:
    """float32 operations a second of the product that a step is made of, (rows x n) @ (n x n)."""
    states, weights, out = torch.randn(rows, NEURONS), torch.randn(NEURONS, NEURONS), torch.empty(rows, NEURONS)
    with torch.no_grad():
        return 2e3 * rows * NEURONS**2 / milliseconds(lambda: product(states, weights, out=out))


def operations(batch: int) -> int:
    """What one step needs: T - 1 products forward, back and for the update, and rank-D ones for the first time step."""
    return 2 * NEURONS**2 * (3 * (DURATION - 1) * batch + 2)


def plain_step() -> tuple[float, float]:
    return milliseconds(straightforward(NEURONS), before=1), memory()


def our_step(weights: str, batch: int) -> tuple[float, float]:
    _, step = ours(specification(weights, batch))
    return milliseconds(step, before=60 if weights == "lowrank" else 2), memory()


def reduced_step(steps: int = 2000) -> tuple[float, float]:
    """A linear network on the averaged loss, in the span of its vectors: a whole training, by step."""
    raw = {"task": {"decays": DECAYS[:1]}, "network": {"neurons": NEURONS, "activation": "linear"}}
    spec = rni.parse_run(raw | {"training": {"loss": "averaged", "steps": steps}})
    return milliseconds(lambda: rni.run(spec), before=0) / steps, memory()


def whole_training(changes: dict[str, Any]) -> tuple[float, rni.Analysis, int]:
    spec = specification(**changes)
    results: list[Result] = []
    took = milliseconds(lambda: results.append(rni.run(spec)), before=0, seconds=0.01) / 1e3
    return took, rni.analyze(results[0].network), len(results[0].losses)


def operators(kind: str, batch: int) -> dict[str, float]:
    """Milliseconds of one step by what it computes."""
    step = straightforward(NEURONS, batch) if kind == "plain" else ours(specification(kind, batch))[1]
    count = 3 if batch > 1000 else 100
    for _ in range(count):
        step()
    with profile(activities=[ProfilerActivity.CPU]) as measured:
        for _ in range(count):
            step()
    found: defaultdict[str, float] = defaultdict(float)
    for event in measured.key_averages():
        name = event.key.removeprefix("aten::")
        found[KINDS.get(name, "the rest")] += event.self_cpu_time_total / 1e3 / count
    return found


KINDS = {"mm": "products", "addmm": "products", "addmm_": "products", "mv": "products"}
KINDS["mkldnn::_linear_pointwise"] = "products"
KINDS |= dict.fromkeys(("linalg_qr", "_linalg_svd", "linalg_svd", "linalg_cholesky_ex"), "QR and SVD")
KINDS |= dict.fromkeys(("randn", "normal_", "rand", "uniform_"), "drawing")


def against_the_plain_way() -> Lines:
    yield "| step | ms | of the product's rate | memory, GB | steps | in all, s | faster |"
    yield "|---|---|---|---|---|---|---|"
    plain = alone(plain_step)
    whole = plain[0] * AUTHORS_STEPS / 1e3

    def row(name: str, measured: tuple[float, float], steps: int, batch: int = 0) -> Lines:
        took, used = measured
        rate = f"{1e3 * operations(batch) / took / alone(product_rate, batch):.0%}" if batch else "-"
        total = took * steps / 1e3
        yield f"| {name} | {took:.3g} | {rate} | {used:.2f} | {steps} | {total:.3g} | {whole / total:.0f} |"
        if measured is not plain:
            yield Ratio(f"plain / {name}", whole / total)

    yield from row(f"plain PyTorch, batch {AUTHORS_BATCH}", plain, AUTHORS_STEPS, AUTHORS_BATCH)
    yield from row(
        f"dense, batch {AUTHORS_BATCH}", alone(our_step, "dense", AUTHORS_BATCH), AUTHORS_STEPS, AUTHORS_BATCH
    )
    for batch, steps in ((32, 5000), (16, 3500)):
        yield from row(f"dense, batch {batch}", alone(our_step, "dense", batch), steps, batch)
        yield from row(f"low-rank, batch {batch}", alone(our_step, "lowrank", batch), steps)
    yield from row("reduced (linear network, averaged loss)", alone(reduced_step), AUTHORS_STEPS)


def to_the_end() -> Lines:
    yield "| training | steps | s | faster than the plain way | r | error, 200 steps | error, 2000 steps |"
    yield "|---|---|---|---|---|---|---|"
    whole = alone(plain_step)[0] * AUTHORS_STEPS / 1e3
    for name, changes in WHOLE.items():
        took, analysis, steps = alone(whole_training, changes)
        errors = " | ".join(f"{100 * analysis.errors['white noise'][d][0]:.2g} %" for d in (200, 2000))
        yield f"| {name} | {steps} | {took:.3g} | {whole / took:.0f} | {analysis.ratio:.2e} | {errors} |"
        yield Ratio(f"plain / whole training, {name}", whole / took)


def one_step() -> Lines:
    kinds = ("products", "QR and SVD", "drawing", "the rest")
    yield "| step, ms | " + " | ".join(kinds) + " | in all |"
    yield "|---|---|---|---|---|---|"
    cases = (("plain", AUTHORS_BATCH), ("dense", AUTHORS_BATCH), ("dense", 32), ("lowrank", 32), ("lowrank", 16))
    for kind, batch in cases:
        found = alone(operators, kind, batch)
        parts = " | ".join(f"{found.get(each, 0):.3g}" for each in kinds)
        yield f"| {kind}, batch {batch} | {parts} | {sum(found.values()):.3g} |"


def tables() -> dict[str, Lines]:
    return {
        "A step, against the plain way at the authors' settings": against_the_plain_way(),
        "Where a step's time goes": one_step(),
        "Whole trainings; the paper reports r = 1.3e-2 +- .2e-2": to_the_end(),
    }


TITLE = "Training"
ABOUT = """ReLU, one channel, decay 0.995, 1000 neurons, sequences of 3 steps, plain descent from W = 0. The plain way:
autograd, a loop over time, a fresh batch of 4096, 5000 steps, as the authors take. Processor time of one thread, each
row from a process of its own. The product's rate is that of one (batch x n) @ (n x n), as networks take it. Errors are
relative, on white noise."""
