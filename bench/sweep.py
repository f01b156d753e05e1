"""What a sweep costs beside its trainings: 2000 runs of 20 neurons in one go, and a store of 10 000 runs."""

import hashlib
import resource
import tempfile
import time
from pathlib import Path

import rni
from bench.measuring import Lines, Ratio, alone, memory
from rni.runs.engine import Here, local
from rni.runs.execution import run
from rni.runs.store import Store
from rni.runs.sweep import Sweep
from rni.runs.sweeping import carry_out

TITLE = "Sweeps"
ABOUT = (
    "In processor time, of the command and its two workers together, because other work on the machine changes that "
    "little; waiting for the disk is not in it. Overhead a run: that of a sweep, less that of the start of the "
    "workers, less that of the same trainings in one process without a store. It is drawing up, sending, locking, "
    "writing network and measures, reading back and checking."
)
BASE = {"task": {"decays": [0.9]}, "network": {"neurons": 20}, "training": {"steps": 20}}
RUNS, TRAINED, STORED, WORKERS = 2000, 300, 10_000, 2


def training_alone() -> float:
    """Seconds a run takes by itself."""
    specifications = [rni.parse_run(BASE | {"seed": 10**6 + seed}) for seed in range(TRAINED)]
    run(specifications[0])
    begun = time.process_time()
    for specification in specifications:
        run(specification)
    return (time.process_time() - begun) / TRAINED


def swept(root: Path, runs: int) -> tuple[float, float, float]:
    """Seconds of a sweep, of the same one again, and the memory that the first one took in this process, GB."""
    plan = Sweep(over={"seed": f"0..{runs - 1}"}, measure=("loss", "steps"))
    before, begun = memory(), _seconds()
    with local(WORKERS) as executor:
        first = carry_out(plan, BASE, executor, root)
    middle, grown = _seconds(), memory() - before
    again = carry_out(plan, BASE, Here(), root)
    assert first.to_csv() == again.to_csv()
    return middle - begun, _seconds() - middle, grown


def _seconds() -> float:
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def sweeps() -> Lines:
    yield "| what | |"
    yield "|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        start, *_ = alone(swept, Path(folder) / "few", 2)
        each = alone(training_alone)
        begun = time.perf_counter()
        first, again, grown = alone(swept, Path(folder) / "many", RUNS)
        wall = time.perf_counter() - begun
    yield f"| {RUNS} runs of 20 neurons, 20 steps, {WORKERS} workers, by the clock | {wall:.0f} s |"
    yield f"| the training itself, a run | {1e3 * each:.1f} ms |"
    yield f"| overhead, a run | {1e3 * ((first - start) / RUNS - each):.1f} ms |"
    yield Ratio("overhead of a sweep / training, a run of 20 neurons", ((first - start) / RUNS - each) / each)
    yield f"| the same sweep again, nothing computed or measured, a run | {1e3 * again / RUNS:.2f} ms |"
    yield f"| memory of the parent for it, beyond the most that its imports took | {1e3 * grown:.0f} MB |"


def stores() -> Lines:
    yield "| what | |"
    yield "|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        path = store.path(store.compute(rni.parse_run(BASE)).specification.key())
        for number in range(STORED - 1):
            copy = store.path(hashlib.sha256(str(number).encode()).hexdigest()[:32])
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
        begun = time.process_time()
        found = len(store.entries())
        yield f"| list {found} runs | {time.process_time() - begun:.2f} s |"
        begun = time.process_time()
        store.show(path.stem[:12])
        yield f"| find one of them by its key | {1e3 * (time.process_time() - begun):.1f} ms |"


def tables() -> dict[str, Lines]:
    return {"Many small runs": sweeps(), "A store of many runs": stores()}
