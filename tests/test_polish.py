"""Trained networks made exact, and how far that moves them."""

import pytest
import torch

import rni
from rni import vectors


def trained(activation="relu", decays=(0.95,), neurons=150, steps=400, **training):
    raw = {"task": {"decays": decays}, "network": {"neurons": neurons, "activation": activation}}
    return rni.run(rni.parse_run(raw | {"training": {"steps": steps, **training}})).network


@pytest.mark.parametrize(("activation", "decays"), [("relu", (0.95,)), ("relu", (0.95, 0.9)), ("linear", (0.9, 0.8))])
def test_a_polished_network_is_exact_certified_and_near(activation, decays):
    net = trained(activation, decays)
    polished = rni.polish(net)
    assert max(polished.after) < 1e-10 < 1e-4 < max(polished.before)
    assert polished.certificate().rigorous
    assert max(polished.certificate().relative) < 1e-6
    torch.testing.assert_close(polished.network.encoders, net.encoders.double(), rtol=0, atol=0)
    torch.testing.assert_close(polished.network.decoders, net.decoders.double(), rtol=0, atol=0)
    w, moved = net.recurrent.matrix().double(), polished.network.recurrent.matrix()
    assert polished.distance == pytest.approx(float(((moved - w).norm() / w.norm()).detach()))
    other = rni.design(net.task, net.neurons, activation, encoders=net.encoders, decoders=net.decoders).network
    assert polished.distance < float(((other.recurrent.matrix() - w).norm() / w.norm()).detach())


def test_what_is_exact_already_stays_where_it_is():
    designed = rni.design(rni.Integration([0.9]), 60)
    polished = rni.polish(designed.network)
    assert polished.distance < 1e-10
    assert max(polished.before) < 1e-10


def test_noise_on_an_exact_network_is_taken_back(generator):
    """The nearest exact one is no further away than the one that the noise was put on."""
    exact = rni.design(rni.Integration([0.9]), 80).network
    w = exact.recurrent.matrix().detach()
    noise = 0.01 * float(w.square().mean().sqrt()) * torch.randn(80, 80, generator=generator).double()
    noisy = rni.Network(exact.task, exact.encoders.detach(), exact.decoders.detach(), w + noise, "relu")
    polished = rni.polish(noisy)
    assert max(polished.after) < 1e-10
    assert polished.distance <= 1.01 * float(noise.norm() / w.norm())


@pytest.mark.parametrize(
    ("net", "field"),
    [
        (
            lambda g: rni.Network(rni.Integration(0.9), *vectors.independent(9, 1, g), torch.eye(9), "tanh"),
            "activation",
        ),
        (lambda g: rni.Network(rni.Integration(0.9), *vectors.independent(9, 1, g), torch.zeros(9, 9)), "network"),
        (lambda g: rni.Network(rni.Integration([0.9, 0.8]), *vectors.independent(5, 2, g), torch.eye(5)), "neurons"),
    ],
)
def test_what_can_not_be_polished_is_refused(net, field, generator):
    with pytest.raises(rni.InputError) as error:
        rni.polish(net(generator))
    assert error.value.field == field


def test_command_line_polishes_a_network_file(rni_command):
    rni.save(trained(steps=50), "net.safetensors")
    code, out, _ = rni_command("design", "--polish", "net.safetensors", "--out", "exact.safetensors")
    assert code == 0
    assert "certified below" in out
    assert max(rni.polish(rni.load("exact.safetensors")).before) < 1e-9
    code, _, err = rni_command("design", "--polish", "net.safetensors", "--neurons", 5)
    assert (code, err.count("\n")) == (2, 1)


def test_command_line_says_how_many_integrals_neurons_hold(rni_command):
    code, out, _ = rni_command("theory", "--capacity", "--neurons", 1000)
    assert code == 0
    assert "relu    at most 31 channels" in out
    assert "relu    at least 650 neurons" in rni_command("theory", "--capacity", "--channels", 25)[1]
    for wrong in (["--capacity"], ["--capacity", "--neurons", 0], ["--neurons", 5]):
        code, _, err = rni_command("theory", *wrong)
        assert (code, err.count("\n")) == (2, 1)
        assert wrong[0].removeprefix("--") in err or "neurons" in err


def test_a_network_next_to_an_exact_one_has_a_bound_where_w_contracts():
    task = rni.Integration([0.9, 0.8])
    vectors, _ = torch.linalg.qr(torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    exact = rni.design(task, 50, "linear", encoders=vectors, decoders=vectors).network
    noise = torch.randn(50, 50, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    net = exact.changed(exact.recurrent.matrix().detach() + 1e-4 * noise)
    polished = rni.polish(net)
    bounds = torch.tensor(polished.trained_bounds(), dtype=torch.float64)
    signs = torch.randn(200, 40, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64).sign()
    x = signs.repeat_interleave(10, 1)
    with torch.no_grad():
        error = (net.outputs(x) - task.targets(x)).abs().amax((0, 1))
    assert bool((error < bounds).all())
    assert bool((bounds < 300 * error).all())


def test_relu_networks_amplify_in_some_direction_so_that_there_is_no_such_bound():
    polished = rni.polish(rni.design(rni.Integration(0.9), 60).network)
    assert polished.norm > 1
    assert polished.trained_bounds() == (torch.inf,)


def test_analyze_shows_the_way_to_an_exact_integrator(rni_command, tmp_path):
    rni.save(rni.design(rni.Integration(0.9), 60).network, tmp_path / "net.safetensors")
    code, out, _ = rni_command("analyze", tmp_path / "net.safetensors", "--exact")
    assert code == 0
    assert "next to it, an exact integrator:" in out
    assert "W moved by" in out
