"""What is taken away computes the same."""

import numpy as np
import pytest
import torch
from told import of, there

import rni
from rni import Analysis, InputError, Integration, Network, analyze, vectors
from rni.activations import ACTIVATIONS, RectifiedPower, Sigmoid, Softplus, make
from rni.files import foreign
from rni.files.export import to_arrays, to_onnx, to_torch
from rni.tasks.inputs import white_noise
from rni.weights import Dale, Dense, LowRank

N = 60


def network(f, size=0.9, recurrent=None):
    generator = torch.Generator().manual_seed(0)
    w = size * torch.randn(N, N, generator=generator) / N**0.5 if recurrent is None else recurrent
    return Network(Integration((0.9, 0.8)), *vectors.independent(N, 2, generator), w, f)


SPREAD = torch.linspace(1, 5, N)


@pytest.mark.parametrize(
    ("f", "size"),
    [
        ("linear", 0.9),
        ("relu", 1.3),
        ("tanh", 0.9),
        (Sigmoid(50.0, 0.1), 0.05),
        (make("sigmoid", slope=SPREAD, threshold=SPREAD / 10), 0.3),
        (Softplus(5.0), 0.9),
        (make("softplus", slope=SPREAD), 0.9),
    ],
    ids=repr,
)
def test_onnx_runs_the_same_network_for_500_steps(f, size, tmp_path, generator):
    """In another program, from rest, for any batch and time; sizes below those at which rounding grows to chaos."""
    pytest.importorskip("onnx", reason="needs the extra `export`")
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra `export`")
    net = network(f, size)
    to_onnx(net, tmp_path / "net.onnx")
    session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    for batch, duration in ((3, 500), (1, 1)):
        x = white_noise(batch, duration, 2, generator)
        y, h = session.run(None, {"x": x.numpy()})
        with torch.no_grad():
            states = net(x)[0]
            outputs = net.readout(states)
        for exported, ours in ((y, outputs.numpy()), (h, states.numpy())):
            assert np.abs(exported - ours).max() < 1e-5 * np.abs(ours).max()


def test_onnx_refuses_an_activation_that_it_does_not_have(tmp_path):
    pytest.importorskip("onnx", reason="needs the extra `export`")
    with pytest.raises(InputError) as caught:
        to_onnx(network(RectifiedPower()), tmp_path / "net.onnx")
    assert caught.value.field == "activation"
    assert not list(tmp_path.iterdir())


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(InputError, match=r"rni\[export\]") as caught:
        to_onnx(network("relu"), tmp_path / "net.onnx")
    assert caught.value.field == "onnx"


@pytest.mark.parametrize(
    ("f", "recurrent"),
    [
        ("relu", None),
        (Sigmoid(50.0, 0.1), None),
        (make("sigmoid", slope=SPREAD, threshold=0.2), LowRank(torch.ones(N, 2) / N, torch.ones(N, 2))),
        ("relu", Dale(torch.eye(N) / 2, torch.ones(N))),
    ],
)
def test_arrays_come_back_as_the_network_that_they_were(f, recurrent, tmp_path, generator):
    net = network(f, 0.05, recurrent)
    to_arrays(net, tmp_path / "net.npz")
    back = foreign.read(tmp_path / "net.npz")
    assert isinstance(back, rni.VanillaRNN)
    assert type(back.recurrent) is type(net.recurrent)
    x = white_noise(3, 40, 2, generator)
    torch.testing.assert_close(back.outputs(x), net.outputs(x).detach())
    assert back.task == net.task


SPREAD64 = torch.linspace(1, 5, N, dtype=torch.float64) / 3
FACTORS = torch.linspace(-1, 1, 2 * N, dtype=torch.float64).reshape(N, 2) / N


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", [*ACTIVATIONS.parts, "sigmoid of each", "softplus of each", "rectified_power of each"])
def test_arrays_hold_every_number_of_a_network(name, dtype, tmp_path):
    """Bit for bit, whatever the activation, its parameters and the form of W."""
    each = {
        "sigmoid": make("sigmoid", slope=SPREAD64, threshold=SPREAD64 / 10),
        "softplus": make("softplus", slope=SPREAD64),
    }
    each["rectified_power"] = make("rectified_power", exponent=1 + SPREAD64)
    f = each[name.split()[0]] if " " in name else name
    dense = FACTORS @ FACTORS.T
    for form in (LowRank(FACTORS, 2 * FACTORS, 1e-5, 11), Dale(dense, dense[0].sign()), Dense(dense)):
        net = Network(Integration((0.995, 0.3), (1 / 3, 7.0)), *vectors.independent(N, 2), form.to(dtype), f)
        to_arrays(net, tmp_path / "net.npz")
        back = foreign.read(tmp_path / "net.npz")
        assert isinstance(back, rni.VanillaRNN)
        saved, read = (
            {**weights.tensors(), **dict(function.named_buffers())}
            for weights, function in ((net.recurrent, net.f), (back.recurrent, back.f))
        )
        assert saved.keys() == read.keys()
        assert all(torch.equal(saved[key], read[key]) and saved[key].dtype == read[key].dtype for key in saved)
        assert torch.equal(there(back.decoders), net.decoders)
        assert (back.task, back.dtype, type(back.f)) == (net.task, dtype, type(net.f))
        torch.testing.assert_close(back.input_weights, rni.VanillaRNN.of(net).input_weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["net.pt", "net.safetensors"])
def test_a_state_dict_holds_every_number_of_a_network(name, dtype, tmp_path):
    net = network("tanh").to(dtype)
    to_torch(net, tmp_path / name)
    back = foreign.read(tmp_path / name)
    assert isinstance(back, rni.VanillaRNN)
    assert back.dtype == dtype
    assert torch.equal(back.recurrent.matrix(), net.recurrent.matrix())
    assert torch.equal(there(back.decoders), net.decoders)
    assert torch.equal(back.input_weights, net.recurrent(net.encoders.T).T)


def test_onnx_refuses_what_it_can_not_hold(tmp_path):
    pytest.importorskip("onnx", reason="needs the extra `export`")
    large = torch.zeros(24_000, 1)
    net = Network(Integration(0.9), large, large, LowRank(large, large))
    with pytest.raises(InputError) as caught:
        to_onnx(net, tmp_path / "net.onnx")
    assert (caught.value.field, caught.value.value) == ("neurons", 24_000)
    net = network("relu", recurrent=torch.full((N, N), 1e300, dtype=torch.float64))
    with pytest.raises(InputError) as caught:
        to_onnx(net, tmp_path / "net.onnx")
    assert caught.value.field == "input_weights"
    assert not list(tmp_path.iterdir())


def test_a_state_dict_taken_out_is_analysed_like_the_network(tmp_path, generator):
    net = network("relu")
    x = white_noise(8, 50, 2, generator)
    here = analyze(net, inputs=x)
    for name in ("net.pt", "net.safetensors"):
        to_torch(net, tmp_path / name)
        back = of(Analysis, analyze(foreign.read(tmp_path / name, "relu"), task=net.task, inputs=x))
        assert back.ratio == pytest.approx(here.ratio, rel=1e-4)
        assert back.errors["inputs"][50] == pytest.approx(here.errors["inputs"][50], rel=1e-4)
