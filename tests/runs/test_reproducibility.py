"""Same specification, same bits: in one process, in several at once, and on any number of threads.

MKL_CBWR=COMPATIBLE makes MKL's rounding hang on the number of threads on any processor, as it does on some anyway.
"""

import hashlib
import json
import os
import subprocess
import sys

import torch

from rni import parse_run, run
from rni.core.threads import threads

TWO, ONE = {"decays": [0.9, 0.8]}, {"decays": [0.9]}
BATCH, PROXY = {"steps": 20, "batch": 16}, {"steps": 20, "loss": "proxy"}
RUNS = {
    "dense": {"task": TWO, "network": {"neurons": 300, "initial_radius": 0.5}, "training": BATCH},
    "adam": {"task": TWO, "network": {"neurons": 300}, "training": BATCH | {"optimizer": "adam", "train": "all"}},
    "lowrank": {"task": TWO, "network": {"neurons": 1000, "weights": "lowrank"}, "training": BATCH},
    "proxy": {"task": TWO, "network": {"neurons": 1000}, "training": PROXY},
    "two points": {"task": ONE, "network": {"neurons": 5000, "weights": "lowrank"}, "training": PROXY},
    "averaged": {
        "task": TWO,
        "network": {"neurons": 300, "activation": "linear", "vectors": "orthonormal"},
        "training": {"steps": 20, "loss": "averaged"},
    },
}
SCRIPT = """
import sys, torch, json
sys.path.insert(0, sys.argv[1])
from test_reproducibility import RUNS, fingerprint
for count in sys.argv[2:]:
    torch.set_num_threads(int(count))
    print(json.dumps({name: fingerprint(raw) for name, raw in RUNS.items()}))
"""


def fingerprint(raw):
    net = run(parse_run(raw)).network
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in net.parameters())).hexdigest()


def fingerprints(*counts, **environment):
    """Of all runs, by a process of its own, with so many threads one after the other."""
    command = [sys.executable, "-c", SCRIPT, os.path.dirname(__file__), *map(str, counts)]
    variables = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")} | environment
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)


def test_any_number_of_threads_and_processes_gives_the_same_bits():
    others = [fingerprints(*counts, MKL_CBWR="COMPATIBLE") for counts in ((1,), (2, 3))]
    one, two, three = (json.loads(line) for process in others for line in process.communicate()[0].splitlines())
    assert one == two == three


def test_a_run_leaves_the_number_of_threads_as_it_was():
    with threads(2):
        fingerprint(RUNS["dense"])
        assert torch.get_num_threads() == 2


def test_the_number_of_threads_is_part_of_the_specification():
    from told import train_run

    default = train_run(RUNS["dense"])
    two = train_run(RUNS["dense"] | {"training": BATCH | {"threads": 2}})
    assert default.training.threads == 1
    assert default.key() != two.key()
