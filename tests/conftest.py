import os
import signal
import sys

import pytest
import torch
from hypothesis import settings

import rni
from rni import vectors
from rni.cli import main

settings.register_profile("same", derandomize=True)  # on every machine the same examples; hypothesis's own: "default"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
torch.set_num_threads(1)  # small products are slower on several threads
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would commands
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the commands that tests start: other tests run beside them


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def small(generator):
    """A small network in float64 with weights away from any kink: `small(activation, decays=...)`."""

    def make(f="relu", decays=(0.9, 0.8), neurons=12, radius=0.9, scales=None):
        task = rni.Integration(decays, scales)
        w = radius * torch.randn(neurons, neurons, generator=generator, dtype=torch.float64) / neurons**0.5
        return rni.Network(task, *vectors.independent(neurons, task.channels, generator), w, f)

    return make


@pytest.fixture
def rni_command(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in a folder of its own: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["rni", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return call
