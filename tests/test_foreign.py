"""Networks made elsewhere: what is read is what torch computes, and what can't be read is refused in one line."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn

import rni
from rni import InputError, Integration
from rni.core import memory
from rni.files import foreign, native
from rni.files.recording import Recording
from rni.networks.vanilla import VanillaRNN

SUPPORTED = "allowed: one torch.nn.RNN or RNNCell, one layer, one direction, tanh or relu"


class Model(nn.Module):
    """As people write them: an RNN and a linear readout with names of their own."""

    def __init__(self, kind="tanh", channels=2, neurons=15, outputs=2):
        super().__init__()
        torch.manual_seed(0)
        self.core = nn.RNN(channels, neurons, nonlinearity=kind, batch_first=True)
        self.fc = nn.Linear(neurons, outputs)

    def forward(self, x):
        return self.fc(self.core(x)[0])


@pytest.fixture
def x(generator):
    return torch.randn(4, 30, 2, generator=generator)


def rnn_of(thing, activation=None) -> VanillaRNN:
    found = foreign.interpret(thing, activation)
    assert isinstance(found, VanillaRNN)
    return found


@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_a_torch_model_is_read_with_its_biases_and_its_readout(kind, x):
    model = Model(kind)
    for thing, activation in ((model, None), ((model.core, model.fc), None), (model.state_dict(), kind)):
        torch.testing.assert_close(rnn_of(thing, activation).outputs(x), model(x))


def test_a_cell_is_read_like_a_layer(x):
    cell = nn.RNNCell(2, 15)
    h = torch.zeros(4, 15)
    for step in x.unbind(1):
        h = cell(step, h)
    *_, (_, last) = rnn_of(cell).steps(x)
    torch.testing.assert_close(last, h)


def test_our_own_network_is_the_case_of_inputs_through_w(small, generator):
    net = small("tanh")
    x = torch.randn(4, 30, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(rnn_of(net).outputs(x), net.outputs(x))


def test_arrays_are_read_with_encoders_through_w_or_with_input_weights(small, generator):
    net = small("sigmoid")
    w, e, d = (v.detach().numpy() for v in (net.recurrent.matrix(), net.encoders, net.decoders))
    x = torch.randn(4, 30, 2, generator=generator, dtype=torch.float64)
    arrays = {"recurrent": w, "decoders": d, "activation": np.array("sigmoid"), "slope": 50.0, "threshold": 0.1}
    for inputs in ({"encoders": e}, {"input_weights": w @ e}):
        torch.testing.assert_close(rnn_of(arrays | inputs).outputs(x), net.outputs(x))


def test_a_bias_is_a_threshold(small, generator):
    """h = f(nu + b): what arrives at a neuron is the current, as the paper counts it for sigmoids."""
    w = torch.randn(12, 12, generator=generator) / 12
    arrays = {"recurrent": w, "input_weights": torch.randn(12, 1, generator=generator)}
    inside = rnn_of({**arrays, "slope": 3.0, "threshold": 0.4}, "sigmoid")
    beside = rnn_of({**arrays, "slope": 3.0, "threshold": 0.0, "bias": torch.full((12,), -0.4)}, "sigmoid")
    x = torch.randn(3, 20, 1, generator=generator)
    for (nu, h), (other_nu, other_h) in zip(inside.steps(x), beside.steps(x), strict=True):
        torch.testing.assert_close(nu, other_nu)
        torch.testing.assert_close(h, other_h)


def test_files_of_each_kind_are_read(tmp_path, x):
    model = Model("relu")
    torch.save(model.state_dict(), tmp_path / "net.pt")
    torch.save({"epoch": 3, "state_dict": model.state_dict()}, tmp_path / "checkpoint.pth")
    native.write_tensors(tmp_path / "net.safetensors", model.state_dict(), {})
    for name in ("net.pt", "checkpoint.pth", "net.safetensors"):
        found = foreign.read(tmp_path / name, "relu")
        assert isinstance(found, VanillaRNN)
        torch.testing.assert_close(found.outputs(x), model(x))
    np.savez(tmp_path / "recording.npz", activity=np.zeros((3, 20, 5)), inputs=np.zeros((3, 20, 1)))
    assert isinstance(foreign.read(tmp_path / "recording.npz"), Recording)


def test_a_state_dict_says_nothing_of_the_activation_and_so_does_the_result(x):
    assert "tanh, torch's default" in rnn_of(Model().state_dict()).notes[0]
    assert rnn_of(Model().state_dict(), "tanh").notes == ()
    assert rnn_of(Model()).notes == ()


W = {"recurrent": np.zeros((5, 5)), "input_weights": np.ones((5, 1)), "activation": "relu"}


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (nn.GRU(1, 5), f"GRU: has gates; {SUPPORTED}"),
        (nn.GRU(1, 5).state_dict(), f"weight_hh_l0: shape (15, 5), a GRU; {SUPPORTED}"),
        (nn.LSTM(1, 5).state_dict(), f"weight_hh_l0: shape (20, 5), an LSTM; {SUPPORTED}"),
        (nn.GRUCell(1, 5).state_dict(), "weight_hh: shape (15, 5), a GRU"),
        (nn.RNN(1, 5, num_layers=2), "weight_hh_l1: an RNN of 2 layers or more"),
        (nn.RNN(1, 5, bidirectional=True), "weight_ih_l0_reverse: a bidirectional RNN"),
        (nn.LSTM(1, 5, proj_size=2).state_dict(), "weight_hr_l0: an RNN with projections"),
        (nn.ModuleList([nn.RNN(1, 5), nn.RNN(1, 5)]), "ModuleList: RNN, RNN in it"),
        (nn.ModuleList([nn.RNN(1, 5), nn.RNN(1, 5)]).state_dict(), "0.weight_hh_l0, 1.weight_hh_l0: several RNNs"),
        (nn.Linear(1, 5), "Linear: no RNN in it"),
        ((nn.RNN(1, 5), nn.Linear(5, 1), nn.Linear(5, 2)), "tuple: can't be analysed; allowed: a Network"),
        (
            nn.ModuleDict({"rnn": nn.RNN(1, 5), "a": nn.Linear(5, 1), "b": nn.Linear(5, 2)}),
            "a.weight, b.weight: each could be the readout; allowed: one matrix of shape (outputs, 5)",
        ),
        (W | {"inputz": 1}, "inputz: unknown; allowed: recurrent, "),
        (W | {"x" * 60000: 1}, "x" * 30 + "...: unknown; allowed: recurrent, "),
        (
            {"recurrent": np.zeros((5, 5)), "activation": "relu"},
            "encoders, input_weights: neither, beside recurrent 5x5; allowed: one of the two",
        ),
        ({"input_weights": np.ones((5, 1)), "activation": "relu"}, "recurrent: missing"),
        (W | {"activation": "cube"}, "activation: 'cube'; allowed: linear"),
        ({k: v for k, v in W.items() if k != "activation"}, "activation: missing; allowed: given once, linear"),
        (W | {"slope": 2.0}, "slope: not a parameter of relu"),
        (W | {"recurrent": np.full((5, 5), np.nan)}, "recurrent: NaN or infinite values"),
        (W | {"input_weights": np.ones((4, 1))}, "input_weights: shape (4, 1); allowed: (5, channels)"),
        (W | {"bias": np.ones(4)}, "bias: shape (4,); allowed: (5,)"),
        (W | {"decays": [0.9, 0.8]}, "decays: 2; allowed: 1, one for each input channel"),
        (W | {"recurrent": 1j * np.ones((5, 5))}, "recurrent: complex"),
        (W | {"recurrent": "weights"}, "recurrent: str; allowed: an array of real numbers"),
        ({"activity": np.zeros((2, 9, 3))}, "inputs: missing; allowed: activity with the inputs"),
        ({"activity": np.zeros((2, 9, 3)), "inputs": np.zeros((2, 8, 1))}, "activity, inputs: shapes"),
        (
            {"activity": np.full((2, 9, 3), np.nan), "inputs": np.zeros((2, 9, 1))},
            "activity: 54 of 54 samples are missing",
        ),
        (5, "int: can't be analysed"),
        (
            W | {"recurrent": np.ones((5, 5)), "signs": -np.ones(5)},
            "recurrent: against Dale's law; allowed: each column",
        ),
        (
            W | {"recurrent_left": np.ones((5, 1))},
            "recurrent, recurrent_left: do not make up a matrix; allowed: recurr",
        ),
        (W | {"scales": [2.0]}, "decays, scales: scales alone, or a matrix; allowed: decays (channels,)"),
        (W | {"decays": [[0.9]]}, "decays, scales: scales alone, or a matrix; allowed: decays (channels,)"),
        (W | {"offset": np.ones(3)}, "offset: shape (3,); allowed: ()"),
        (W | {"recurrent": np.zeros((0, 0))}, "recurrent: shape (0, 0); allowed: (neurons, neurons)"),
        (W | {"recurrent": np.array([["a"]])}, "recurrent: str32; allowed: an array of real numbers"),
        (W | {"recurrent": np.array([[None]])}, "recurrent: object; allowed: an array of real numbers"),
        (
            W | {"recurrent": torch.eye(5).to_sparse()},
            "recurrent: a tensor that is sparse, quantized, nested or without data",
        ),
        (
            W | {"recurrent": torch.eye(5, device="meta")},
            "recurrent: a tensor that is sparse, quantized, nested or without data",
        ),
        (
            W | {"recurrent": torch.eye(5).to(torch.float8_e4m3fn)},
            "recurrent: float8_e4m3fn; allowed: an array of real numbers",
        ),
        (
            W | {"recurrent": torch.zeros(1).expand(10**7, 10**7)},
            "recurrent: needs 400,000",
        ),
        (
            W | {"recurrent": np.broadcast_to(0.0, (10**7, 10**7))},
            "recurrent: needs 400,000",
        ),
        (W | {"activation": "sigmoid", "slope": np.ones(4)}, "sigmoid.slope: 4 values; allowed: 1 or 5"),
        ({5: 1}, "a name: int; allowed: text"),
        ({"\x1b[31m\n" + "x" * 10**6: 1}, "\\x1b[31m\\nxxx"),
        ({"a\n.weight_hh": torch.eye(5)}, "a\\n.weight_ih: missing"),
        (nn.RNN(1, 5).state_dict() | {f"weight_hh_l{'9' * 5000}": torch.eye(5)}, "weight_hh_l99999"),
        (nn.RNN(1, 5).state_dict() | {"bias_hh_l0": torch.ones(1)}, "bias_hh_l0: shape (1,); allowed: (5,)"),
        ({"recurrent": np.zeros((5, 5)), "encoders": np.ones((4, 1)), "activation": "relu"}, "encoders: shape (4, 1)"),
        (
            {"recurrent_left": np.zeros((10**12, 0)), "recurrent_right": np.zeros((10**12, 0)), "encoders": np.ones(5)},
            "encoders: shape (5,); allowed: (1000000000000, channels)",
        ),
    ],
)
def test_what_is_not_supported_is_refused_with_what_is(thing, message):
    with pytest.raises(InputError) as caught:
        foreign.interpret(thing)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1500


@pytest.mark.filterwarnings("always")
def test_a_refused_pickle_is_one_line_and_no_warning_beside_it(tmp_path, recwarn):
    (tmp_path / "net.pt").write_bytes(pickle.dumps([Trap()], protocol=4))
    with pytest.raises(InputError, match="can't be read"):
        foreign.read(tmp_path / "net.pt")
    assert not list(recwarn)


def test_numbers_of_any_kind_are_read_as_they_are(x):
    """Python's, half precision, big-endian, read backwards; what belongs together may come in several kinds."""
    w = np.arange(9.0).reshape(3, 3) / 16
    arrays = {"recurrent": w, "encoders": np.ones((3, 2)), "activation": "relu", "decays": [0.995, 0.3]}
    expected = rnn_of(arrays)
    assert expected.task == Integration((0.995, 0.3))
    for same in (w.tolist(), w.astype(">f8"), w.astype("g"), w[::-1].copy()[::-1], np.broadcast_to(w, (3, 3))):
        assert torch.equal(rnn_of(arrays | {"recurrent": same}).recurrent.matrix(), expected.recurrent.matrix())
    for smaller in (w.astype("f2"), torch.tensor(w, dtype=torch.bfloat16), torch.tensor(w).float()):
        found = rnn_of(arrays | {"recurrent": smaller})
        assert found.dtype == torch.float32
        assert torch.equal(found.recurrent.matrix().double(), expected.recurrent.matrix())


def test_names_that_are_left_aside_are_shown_without_their_escapes():
    noted = rnn_of(nn.RNN(1, 5).state_dict() | {"\x1b[2J\n": torch.ones(3)}, "tanh").notes
    assert noted == ("not part of the analysis: \\x1b[2J\\n",)


def test_a_file_that_unpacks_to_more_than_there_is_room_for_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", recurrent=np.zeros((2000, 2000)))
    monkeypatch.setattr(memory, "available", lambda: 10**6)
    with pytest.raises(InputError, match=r"bomb\.npz: needs 0\.0 GB of memory"):
        foreign.read(tmp_path / "bomb.npz")


def test_what_has_an_activation_of_its_own_takes_no_other(small):
    for thing in (small(), Model()):
        with pytest.raises(InputError, match=r"activation: 'tanh' for a .*; allowed: none, it has its own"):
            foreign.interpret(thing, "tanh")


class Trap:
    """Unpickling it would leave a mark."""

    def __reduce__(self):
        return exec, ("raise SystemExit('unpickled')",)


def test_nothing_in_a_file_is_ever_run(tmp_path):
    torch.save({"weight_hh_l0": Trap()}, tmp_path / "net.pt")
    torch.save(Model(), tmp_path / "model.pt")
    np.savez(tmp_path / "net.npz", recurrent=np.array([Trap()], dtype=object))
    for name, message in (
        ("net.pt", "holds more than tensors, perhaps a whole module; allowed: a state dict"),
        ("model.pt", "holds more than tensors, perhaps a whole module; allowed: a state dict"),
        ("net.npz", "not an .npz file of numbers; allowed: arrays written by numpy.savez"),
    ):
        with pytest.raises(InputError) as caught:
            foreign.read(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: {message}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("net.pt", b"hello", r"can't be read \(\w+\); allowed: a state dict"),
        ("net.pt", b"", r"can't be read"),
        ("net.npz", b"hello", "not an .npz file of numbers"),
        ("net.safetensors", b"hello", "truncated, or not safetensors"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        foreign.read(tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        foreign.read(tmp_path / "none.pt")


def test_a_readout_for_something_else_is_left_aside_and_this_is_said(x):
    analysis = rni.analyze(Model("tanh", channels=2, outputs=5), inputs=x)
    assert analysis.readout == "fitted"
    assert analysis.notes == ("its readout has 5 outputs for 2 channels: another was fitted",)


def test_the_task_can_be_given(x):
    assert rni.analyze(Model(), task=Integration((0.9, 0.8)), inputs=x).decays == (0.9, 0.8)
