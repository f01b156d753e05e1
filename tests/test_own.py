"""What users bring along: inputs, losses and activations of their own."""

import json
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import rni
from rni.losses.gradient import PARAMETERS
from rni.pages import write_page
from rni.tasks.inputs import bursts
from rni.training.optimizers import Adam

ONE = rni.Integration([0.9])


def network(f: str | Callable[[Tensor], Tensor] = "relu", neurons=20):
    return rni.Network(ONE, *rni.vectors.independent(neurons, 1, torch.Generator().manual_seed(0)), zeros(neurons), f)


def zeros(neurons):
    return torch.zeros(neurons, neurons, dtype=torch.float64)


def swish(currents):
    return currents * torch.sigmoid(currents)


class Doubled(rni.activations.Activation):
    def __call__(self, current):
        return 2 * current


def test_a_plain_function_is_a_loss_and_learns_what_the_batch_loss_learns():
    x = rni.inputs.white_noise(32, 3, 1, torch.Generator().manual_seed(1)).double()
    losses, nets = {}, {}
    for kind, loss in {
        "own": lambda net: (net.outputs(x) - ONE.targets(x)).square().sum() / 32,
        "ours": rni.BatchLoss(ONE, 3, inputs=lambda *_: x),
    }.items():
        nets[kind] = network()
        losses[kind] = rni.train(nets[kind], loss, learning_rate=0.05, steps=50)
    assert losses["own"] == pytest.approx(losses["ours"])
    assert losses["own"][-1] < 0.2 * losses["own"][0]
    torch.testing.assert_close(nets["own"].recurrent.matrix(), nets["ours"].recurrent.matrix())


@pytest.mark.parametrize("train", ["recurrent", "decoders", "all"])
def test_automatic_and_written_gradients_agree(train):
    net = network("tanh")
    with torch.no_grad():
        net.recurrent.matrix().copy_(torch.randn(20, 20, generator=torch.Generator().manual_seed(3)) / 5)
    batch = rni.BatchLoss(ONE, 4)
    x = batch.draw(torch.Generator().manual_seed(2), torch.float64)
    own = rni.CustomLoss(lambda net, x: batch.value(net, x), inputs=lambda generator: x)
    (value, found), (expected, written) = (loss.gradient(net, x, PARAMETERS[train]) for loss in (own, batch))
    assert value == pytest.approx(expected)
    torch.testing.assert_close(found.recurrent(), written.recurrent())
    for part in ("decoders", "encoders"):
        torch.testing.assert_close(getattr(found, part), getattr(written, part))


def test_adam_takes_a_loss_of_ones_own():
    net = network()
    x = rni.inputs.white_noise(32, 3, 1, torch.Generator().manual_seed(1)).double()
    loss = rni.CustomLoss(lambda net: (net.outputs(x) - ONE.targets(x)).square().sum())
    losses = rni.train(net, loss, optimizer=Adam(), steps=30)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    "loss", [lambda net: 1.0, lambda net: torch.zeros(2), lambda net: torch.tensor(1.0), lambda: 1.0, "batch", ONE]
)
def test_what_is_no_loss_is_refused(loss):
    with pytest.raises(rni.InputError) as caught:
        rni.train(network(), loss, learning_rate=0.1, steps=1)
    assert caught.value.field == "loss"


def test_a_loss_of_ones_own_needs_a_rate_and_weights_that_torch_can_differentiate():
    with pytest.raises(rni.InputError) as caught:
        rni.train(network(), lambda net: net.decoders.sum())
    assert caught.value.field == "learning_rate"
    net = rni.design(ONE, 20).network
    with pytest.raises(rni.InputError) as caught:
        rni.train(net, lambda net: net.decoders.sum(), learning_rate=0.1, steps=1)
    assert (caught.value.field, caught.value.problem) == ("weights", "LowRank")


def test_inputs_of_ones_own_are_drawn_anew_at_each_step():
    loss = rni.BatchLoss(ONE, 200, 4, inputs=bursts)
    generator = torch.Generator().manual_seed(0)
    first, second = loss.draw(generator), loss.draw(generator)
    assert first.shape == (4, 200, 1)
    assert not torch.equal(first, second)
    assert 0 < loss.default_learning_rate() < rni.BatchLoss(ONE, 200, 4).default_learning_rate()


def test_inputs_of_a_wrong_shape_are_refused():
    with pytest.raises(rni.InputError) as caught:
        rni.BatchLoss(ONE, inputs=lambda *_: torch.zeros(3)).draw()
    assert (caught.value.field, caught.value.problem) == ("inputs", "shape (3,)")


@pytest.mark.parametrize("f", [swish, torch.sin, Doubled()])
def test_a_file_names_the_code_of_an_activation_and_imports_it_only_with_permission(f, tmp_path):
    net = network(f)
    rni.save(net, tmp_path / "net.safetensors")
    name = net.f.config()["name"]
    with pytest.raises(rni.InputError) as error:
        rni.load(tmp_path / "net.safetensors")
    assert name in str(error.value)
    again = rni.load(tmp_path / "net.safetensors", allow=[name])
    nu = torch.linspace(-1, 1, 5, dtype=torch.float64)
    torch.testing.assert_close(again.f(nu), net.f(nu))


def test_a_network_says_what_it_is():
    assert repr(network()) == (
        "Network(20 neurons, ReLU(), Dense, Integration(decays=(0.9,), scales=(1.0,)), torch.float64)"
    )


def test_a_file_has_its_losses(tmp_path):
    rni.save(network(), tmp_path / "net.safetensors", losses=[2.0, 1.0])
    assert rni.read(tmp_path / "net.safetensors").losses == [2.0, 1.0]


def test_an_analysis_is_asked_for_saved_and_drawn_in_python(tmp_path):
    net = rni.design(rni.Integration([0.9, 0.8]), 40).network
    rnn, readout = net.to_torch()
    found = rni.analyze((rnn, readout), decays=[0.9, 0.8])
    assert found.verdict.kind == "integrates"
    write_page(found, tmp_path / "page.html")
    found.save(tmp_path / "numbers.json")
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8") or "<img" in (
        tmp_path / "page.html"
    ).read_text(encoding="utf-8")
    assert json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))["decays"] == [0.9, 0.8]
    assert len(found.plot().axes) == 2
    assert repr(found) == str(found)
    assert re.fullmatch(
        r'<pre>.*</pre><img src="data:image/png;base64,[^"]+" alt="[^"]*against[^"]*">', found._repr_html_(), re.DOTALL
    )
    for write in (found.save, lambda path: write_page(found, path)):
        with pytest.raises(rni.InputError) as caught:
            write(tmp_path / "page.pdf")
        assert (caught.value.field, caught.value.value) == ("path", str(tmp_path / "page.pdf"))
    with pytest.raises(rni.InputError) as caught:
        rni.analyze(net, scales=[1.0, 1.0])
    assert (caught.value.field, caught.value.value) == ("scales", [1.0, 1.0])
