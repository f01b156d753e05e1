"""An analysis does no work twice."""

import sys
from collections import Counter
from pathlib import Path

import pytest

import rni

PACKAGE = str(Path(rni.__file__).parent)


def calls_of_package(function):
    """The number of calls of each function of the package."""
    calls = Counter()

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(("options", "built"), [((), 1), (("--noise", 0.01), 2)])
def test_the_command_reads_its_file_and_builds_its_network_once(options, built, rni_command, tmp_path):
    """A network is checked where it is built. --noise is a new value, which is checked too."""
    rni.save(rni.design(rni.Integration([0.95, 0.9]), neurons=40).network, tmp_path / "net.safetensors")
    rni_command("analyze", "net.safetensors")  # imports
    calls = calls_of_package(lambda: rni_command("analyze", "net.safetensors", *options))
    assert calls["read_tensors"] == 1
    assert calls["Network.__init__"] == 1
    assert calls["VanillaRNN.__post_init__"] == built


def test_an_analysis_computes_each_intermediate_result_once():
    net = rni.design(rni.Integration([0.95, 0.9]), neurons=40).network
    calls = calls_of_package(lambda: rni.analyze(net))
    once = (
        "interpret",
        "observe",
        "principal",
        "fit_integrals",
        "memory",
        "coding",
        "latent",
        "visited",
        "settle",
        "find",
    )
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)
