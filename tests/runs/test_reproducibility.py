"""Same specification, same bits: in one process, in two at once, and with any number of threads."""

import hashlib
import os
import subprocess
import sys

import pytest
import torch

from rni import Specification, run

RAW = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 300}, "training": {"steps": 40, "batch": 32}}
SCRIPT = """
import sys, torch, json
torch.set_num_threads(int(sys.argv[2]))
sys.path.insert(0, sys.argv[1])
from test_reproducibility import RAW, fingerprint
print(fingerprint(json.loads(sys.argv[3])))
"""


def fingerprint(training):
    net = run(Specification.parse(RAW | {"training": RAW["training"] | training})).network
    weights = b"".join(tensor.detach().numpy().tobytes() for tensor in net.parameters())
    return hashlib.sha256(weights).hexdigest()


@pytest.mark.parametrize("training", ['{"optimizer": "sgd"}', '{"optimizer": "adam", "train": "all"}'])
def test_two_processes_at_once_and_this_one_agree_whatever_their_threads(training):
    import json

    here = os.path.dirname(__file__)
    command = [sys.executable, "-c", SCRIPT, here]
    environment = {key: value for key, value in os.environ.items() if key != "MKL_CBWR"}
    others = [
        subprocess.Popen([*command, threads, training], stdout=subprocess.PIPE, text=True, env=environment)
        for threads in ("1", "2")
    ]
    mine = [fingerprint(json.loads(training)) for _ in range(2)]
    theirs = [process.communicate()[0].strip() for process in others]
    assert len({*mine, *theirs}) == 1, (torch.get_num_threads(), mine, theirs)
