"""As many workers as the machine gives us, and threads only where they pay."""

import os

import pytest
import torch

from rni.core import memory
from rni.core.threads import LARGE, cores, fitting
from rni.runs.engine import local

V1 = {"proc/self/cgroup": "5:cpu,cpuacct:/job\n"}
V2 = {"proc/self/cgroup": "0::/batch/job\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        (V2, 8),
        (V2 | {"groups/batch/job/cpu.max": "max 100000\n"}, 8),
        (V2 | {"groups/batch/job/cpu.max": "max 100000\n", "groups/batch/cpu.max": "250000 100000\n"}, 3),
        (V2 | {"groups/batch/job/cpu.max": "20000 100000\n"}, 1),
        (V2 | {"groups/batch/job/cpu.max": "1600000 100000\n"}, 8),
        (V1 | {"groups/cpu/job/cpu.cfs_quota_us": "-1\n", "groups/cpu/job/cpu.cfs_period_us": "100000\n"}, 8),
        (V1 | {"groups/cpu/job/cpu.cfs_quota_us": "200000\n", "groups/cpu/job/cpu.cfs_period_us": "100000\n"}, 2),
    ],
)
def test_cores_are_those_of_the_affinity_and_the_quotas_of_control_groups(tmp_path, monkeypatch, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(memory, "PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert cores() == expected
    assert (fitting(LARGE - 1), fitting(LARGE)) == (1, expected)
    with local() as executor:
        assert executor.workers == expected


def test_an_analysis_runs_on_the_threads_that_it_is_given_and_leaves_no_trace(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from rni import Integration, design, save
    from rni.cli import app

    seen = []
    for package in ("rni.analysis", "rni.analysis.examination"):  # the first imports the name from the second
        monkeypatch.setattr(f"{package}.analyze", lambda *_, **__: seen.append(torch.get_num_threads()))
    save(design(Integration(0.9), 20).network, tmp_path / "net.safetensors")
    before = torch.get_num_threads()
    for flags in ([], ["--threads", "2"]):
        assert CliRunner().invoke(app, ["analyze", str(tmp_path / "net.safetensors"), *flags]).exit_code == 0
    assert (seen, torch.get_num_threads()) == ([1, 2], before)
