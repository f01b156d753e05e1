r"""Leaky networks, $h \leftarrow (1-\alpha)\,h + \alpha f(W(h + xe))$: designed, certified, saved, refused."""

import json

import pytest
import torch
from told import of, train_run

import rni
from rni.designs.certificate import certify
from rni.files import export, native
from rni.losses import AveragedLoss, ProxyLoss
from rni.losses.gradient import PARAMETERS
from rni.networks.accuracy import relative_error
from rni.tasks.inputs import white_noise
from rni.weights import Dense, LowRank

TWO = rni.Integration([0.99, 0.95], [1.0, 2.0])


def leaky(f="tanh", leak=0.3, neurons=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    e, d = rni.vectors.independent(neurons, 2, generator)
    w = torch.randn(neurons, neurons, generator=generator, dtype=torch.float64) / neurons**0.5
    return rni.Network(TWO, e.double(), d.double(), Dense(w), f, leak)


def test_a_leaky_network_follows_its_equation():
    net, x = leaky(), white_noise(3, 5, 2, torch.Generator().manual_seed(1)).double()
    w, e, h = net.recurrent.matrix(), net.encoders, torch.zeros(3, 6, dtype=torch.float64)
    for t, (nu, state) in enumerate(net.steps(x)):
        expected = (h + x[:, t] @ e.T) @ w.T
        h = 0.7 * h + 0.3 * torch.tanh(expected)
        torch.testing.assert_close(nu, expected)
        torch.testing.assert_close(state, h)


@pytest.mark.parametrize("leak", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_designs_are_exact_and_certified_with_any_leak(activation, leak):
    made = rni.design(TWO, 100, activation, leak=leak)
    assert made.network.leak == leak
    assert max(made.error()) < 1e-11
    certificate = certify(made.network)
    assert certificate.rigorous
    assert max(certificate.relative) < 1e-8
    assert max(made.output_residuals + made.current_residuals) < 1e-12


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_smooth_designs_are_as_good_with_a_leak_as_without(activation):
    task = rni.Integration([0.85, 0.8])
    plain, damped = (max(rni.design(task, 400, activation, leak=leak).error()) for leak in (1.0, 0.4))
    assert damped < 1.1 * plain


def test_the_certificate_of_a_leaky_network_holds_for_inputs_that_do_their_worst():
    net = rni.design(TWO, 60, leak=0.2).network
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        of(LowRank, net.recurrent).left.mul_(1 + 1e-4 * torch.randn(60, 2, generator=generator, dtype=torch.float64))
    bounds = torch.tensor(certify(net).bounds, dtype=torch.float64)
    x = torch.sign(torch.randn(64, 50, 2, generator=generator, dtype=torch.float64)).repeat_interleave(20, 1)
    with torch.no_grad():
        error = (net.outputs(x) - net.task.targets(x)).abs().amax((0, 1))
    assert bool((error <= bounds).all())
    assert bool((error > 1e-3 * bounds).all())


@pytest.mark.parametrize("train", ["recurrent", "recurrent+decoders", "all"])
@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_the_gradient_of_a_leaky_network_is_that_of_automatic_differentiation(activation, train):
    net, loss = leaky(activation), rni.BatchLoss(TWO, 5, 4)
    x = loss.draw(torch.Generator().manual_seed(1), torch.float64)
    value, gradient = loss.gradient(net, x, PARAMETERS[train])
    expected = loss.value(net, x)
    expected.backward()
    assert value == pytest.approx(expected.item())
    torch.testing.assert_close(gradient.recurrent(), net.recurrent.value.grad)
    if gradient.decoders is not None:
        torch.testing.assert_close(gradient.decoders, net.decoders.grad)
    if gradient.encoders is not None:
        torch.testing.assert_close(gradient.encoders, net.encoders.grad)


def test_decays_faster_than_the_leak_are_refused():
    with pytest.raises(rni.InputError, match=r"decays: \[0.5, 0.99\]; allowed: above 0.8"):
        rni.design(rni.Integration([0.5, 0.99]), 100, leak=0.2)


@pytest.mark.parametrize("leak", [0.0, -1.0, 1.5, float("nan"), "half", None])
def test_a_leak_outside_of_0_to_1_is_refused(leak):
    with pytest.raises(rni.InputError, match=r"leak: .*; allowed: a number above 0, up to 1"):
        leaky(leak=leak)


@pytest.mark.parametrize("loss", [AveragedLoss(TWO, 4), ProxyLoss(TWO)])
def test_losses_of_the_paper_s_form_refuse_a_leak(loss):
    net = leaky("linear")
    for use in (loss, lambda net: rni.train(net, loss, steps=1)):
        with pytest.raises(rni.InputError) as caught:
            use(net)
        assert (caught.value.field, caught.value.value) == ("leak", 0.3)


def test_a_specification_has_a_leak_for_the_batch_loss_only():
    raw = {"task": {"decays": [0.9]}, "network": {"neurons": 10, "leak": 0.5}}
    assert train_run(raw).build().leak == 0.5
    with pytest.raises(rni.InputError, match=r"network.leak: 0.5; allowed: 1, or the batch loss"):
        rni.parse_run(raw | {"training": {"loss": "proxy"}})


def test_files_keep_the_leak_and_torch_and_onnx_refuse_it(tmp_path):
    net = leaky()
    native.save(net, tmp_path / "net.safetensors")
    again = native.load(tmp_path / "net.safetensors")
    assert again.leak == 0.3
    x = white_noise(2, 20, 2, torch.Generator().manual_seed(1)).double()
    assert torch.equal(again.outputs(x), net.outputs(x))
    with pytest.raises(rni.InputError, match=r"leak: 0.3; allowed: 1, because torch.nn.RNN has none"):
        net.to_torch()
    with pytest.raises(rni.InputError, match=r"leak: 0.3; allowed: 1 in ONNX"):
        export.to_onnx(net, tmp_path / "net.onnx")


def test_silencing_keeps_the_leak_and_polish_makes_a_leaky_network_exact():
    net = rni.design(TWO, 100, leak=0.3).network
    assert net.silenced([1]).leak == 0.3
    generator = torch.Generator().manual_seed(2)
    noise = 1e-3 * torch.randn(100, 100, generator=generator, dtype=torch.float64) / 100
    polished = rni.polish(net.changed(net.recurrent.matrix().detach() + noise))
    x = white_noise(4, 500, 2, generator).double()
    assert float(relative_error(polished.network, x).max()) < 1e-9
    assert polished.network.leak == 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "network", "training", "bar"),
    [
        ("decays = [0.95, 0.9]", "activation = 'relu'", "", 0.05),
        ("decays = [0.8, 0.7]\nscales = [0.1, 0.1]", "activation = 'tanh'", "duration = 10\nlearning_rate = 0.1", 0.1),
    ],
)
def test_a_leaky_integrator_of_the_shell_is_the_same_when_exported_and_analysed_again(
    rni_command, tmp_path, task, network, training, bar
):
    configuration, net, arrays = (tmp_path / name for name in ("net.toml", "net.safetensors", "net.npz"))
    configuration.write_text(
        f"[task]\n{task}\n[network]\nneurons = 200\nleak = 0.5\n{network}\n[training]\nsteps = 4000\n{training}\n",
        encoding="utf-8",
    )
    for command in (["train", configuration, "--out", net], ["export", net, "--to", "arrays", "--out", arrays]):
        code, *_ = rni_command(*map(str, command))
        assert code == 0
    (first, second) = (json.loads(rni_command("analyze", str(path), "--json")[1]) for path in (net, arrays))
    assert first["verdict"] == second["verdict"]
    assert max(max(by_steps["2000"]) for by_steps in first["errors"].values()) < bar
    assert second["decays"] == pytest.approx(first["decays"], rel=1e-6)
    for kind, by_steps in first["errors"].items():
        assert second["errors"][kind]["2000"] == pytest.approx(by_steps["2000"], rel=1e-3)
