"""What does not fit into memory is refused before it is begun, with what would fit."""

import pytest
import torch
from told import train_run

from rni import InputError, Integration, Network, run, vectors
from rni.analysis import robustness
from rni.core import memory
from rni.weights import LowRank

GB = 10**9


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: float(GB))


def specification(network=(), training=()):
    return train_run({"task": {"decays": [0.9]}, "network": dict(network), "training": dict(training)})


@pytest.mark.parametrize(
    ("network", "training", "message"),
    [
        (
            {"neurons": 1_000_000},
            {},
            "network.neurons: 1000000, with dense weights: needs 12,000.0 GB of memory of 1.0 GB that are free; "
            'allowed: up to 9128, or weights = "lowrank"',
        ),
        ({"neurons": 10_000, "weights": "dale"}, {}, "network.neurons: 10000, with dale weights: needs 1.2 GB"),
        ({"neurons": 7000, "initial_radius": 0.5}, {}, "network.neurons: 7000, with dense weights: needs 1.2 GB"),
        ({"neurons": 1000}, {"batch": 100_000}, "training.loss.batch: 100000: needs 7.2 GB"),
        (
            {"neurons": 1000},
            {"loss": "proxy", "points": 10**6, "bounds": [3]},
            "training.loss.points: 1000000: needs 12.0 GB",
        ),
        ({"neurons": 10**6, "weights": "lowrank"}, {"batch": 500}, "training.loss.batch: 500: needs 36.0 GB"),
    ],
)
def test_a_run_that_does_not_fit_is_refused_before_it_begins(little, network, training, message):
    with pytest.raises(InputError) as caught:
        run(specification(network, training))
    assert str(caught.value).startswith(message)


def test_what_is_said_to_fit_does(little):
    specification({"neurons": 9128}).require_memory()
    with pytest.raises(InputError, match="up to 9128"):
        specification({"neurons": 9129}).require_memory()
    specification({"neurons": 1_000_000, "weights": "lowrank"}, {"batch": 2}).require_memory()


def test_a_factored_network_too_large_for_its_matrix_is_not_formed(little):
    factor = torch.zeros(20_000, 1)
    net = Network(Integration(0.9), *vectors.independent(20_000, 1), LowRank(factor, factor))
    for form in (net.to_torch, net.recurrent.matrix, lambda: robustness(net)):
        with pytest.raises(InputError, match=r"neurons: 20000: needs .* GB of memory of 1\.0 GB that are free"):
            form()


def tree(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


MACHINE = {"proc/meminfo": "MemTotal: 99 kB\nMemAvailable:   8000000 kB\nSwapFree: 1000000 kB\n"}
OWN = {"proc/self/cgroup": "3:cpu:/x\n0::/batch/job\n", "groups/batch/job/memory.max": "max\n"}
V2 = {"groups/batch/memory.max": "5000000", "groups/batch/memory.current": "3000000"}
V1 = {
    "proc/self/cgroup": "4:memory:/somewhere/else\n0::/\n",  # a container sees the path that its host gave
    "groups/memory/memory.limit_in_bytes": "5000000",
    "groups/memory/memory.usage_in_bytes": "3000000",
    "groups/memory/memory.stat": "cache 7\ntotal_inactive_file 1000000\n",
}


@pytest.mark.parametrize(
    ("files", "available"),
    [
        (MACHINE, 9_000_000 * 1024),
        (MACHINE | OWN, 9_000_000 * 1024),
        (MACHINE | OWN | V2, 2_000_000),
        (MACHINE | OWN | V2 | {"groups/batch/memory.stat": "anon 5\ninactive_file 500000\n"}, 2_500_000),
        (MACHINE | V1, 3_000_000),
    ],
)
def test_memory_is_what_the_machine_and_every_control_group_leave(tmp_path, monkeypatch, files, available):
    tree(tmp_path, files)
    monkeypatch.setattr(memory, "PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    assert memory.available() == available


def test_memory_is_known_without_linux(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PROCESSES", tmp_path)
    assert memory.available() > 0
