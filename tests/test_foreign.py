"""Networks made elsewhere: what is read is what torch computes, and what can't be read is refused in one line."""

import importlib
import pickle
import sys

import numpy as np
import pytest
import torch
from told import refused
from torch import nn

import rni
from rni import InputError, Integration
from rni.core import memory
from rni.files import foreign, layouts, loading, native
from rni.files.recording import Recording
from rni.networks.vanilla import VanillaRNN


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
    ("thing", "field"),
    [
        (nn.GRU(1, 5), "GRU"),
        (nn.GRU(1, 5).state_dict(), "weight_hh_l0"),
        (nn.LSTM(1, 5).state_dict(), "weight_hh_l0"),
        (nn.GRUCell(1, 5).state_dict(), "weight_hh"),
        (nn.RNN(1, 5, num_layers=2), "weight_hh_l1"),
        (nn.RNN(1, 5, bidirectional=True), "weight_ih_l0_reverse"),
        (nn.LSTM(1, 5, proj_size=2).state_dict(), "weight_hr_l0"),
        (nn.ModuleList([nn.RNN(1, 5), nn.RNN(1, 5)]), "ModuleList"),
        (nn.ModuleList([nn.RNN(1, 5), nn.RNN(1, 5)]).state_dict(), "0.weight_hh_l0, 1.weight_hh_l0"),
        (nn.Linear(1, 5), "Linear"),
        ((nn.RNN(1, 5), nn.Linear(5, 1), nn.Linear(5, 2)), "network"),
        (
            nn.ModuleDict({"rnn": nn.RNN(1, 5), "a": nn.Linear(5, 1), "b": nn.Linear(5, 2)}),
            "a.weight, b.weight",
        ),
        (W | {"inputz": 1}, "inputz"),
        (W | {"x" * 60000: 1}, "x" * 30 + "..."),
        (
            {"recurrent": np.zeros((5, 5)), "activation": "relu"},
            "encoders, input_weights",
        ),
        ({"input_weights": np.ones((5, 1)), "activation": "relu"}, "recurrent"),
        (W | {"activation": "cube"}, "activation"),
        ({k: v for k, v in W.items() if k != "activation"}, "activation"),
        (W | {"slope": 2.0}, "slope"),
        (W | {"recurrent": np.full((5, 5), np.nan)}, "recurrent"),
        (W | {"input_weights": np.ones((4, 1))}, "input_weights"),
        (W | {"bias": np.ones(4)}, "bias"),
        (W | {"decays": [0.9, 0.8]}, "decays"),
        (W | {"recurrent": 1j * np.ones((5, 5))}, "recurrent"),
        (W | {"recurrent": "weights"}, "recurrent"),
        ({"activity": np.zeros((2, 9, 3))}, "inputs"),
        ({"activity": np.zeros((2, 9, 3)), "inputs": np.zeros((2, 8, 1))}, "activity, inputs"),
        (
            {"activity": np.full((2, 9, 3), np.nan), "inputs": np.zeros((2, 9, 1))},
            "activity",
        ),
        (5, "network"),
        (
            W | {"recurrent": np.ones((5, 5)), "signs": -np.ones(5)},
            "recurrent",
        ),
        (
            W | {"recurrent_left": np.ones((5, 1))},
            "recurrent, recurrent_left",
        ),
        (W | {"scales": [2.0]}, "decays, scales"),
        (W | {"decays": [[0.9]]}, "decays, scales"),
        (W | {"offset": np.ones(3)}, "offset"),
        (W | {"recurrent": np.zeros((0, 0))}, "recurrent"),
        (W | {"recurrent": np.array([["a"]])}, "recurrent"),
        (W | {"recurrent": np.array([[None]])}, "recurrent"),
        (
            W | {"recurrent": torch.eye(5).to_sparse()},
            "recurrent",
        ),
        (
            W | {"recurrent": torch.eye(5, device="meta")},
            "recurrent",
        ),
        (
            W | {"recurrent": torch.eye(5).to(torch.float8_e4m3fn)},
            "recurrent",
        ),
        (
            W | {"recurrent": torch.zeros(1).expand(10**7, 10**7)},
            "recurrent",
        ),
        (
            W | {"recurrent": np.broadcast_to(0.0, (10**7, 10**7))},
            "recurrent",
        ),
        (W | {"activation": "sigmoid", "slope": np.ones(4)}, "sigmoid.slope"),
        ({5: 1}, "a name"),
        ({"\x1b[31m\n" + "x" * 10**6: 1}, "\x1b[31m\n" + "x" * 24 + "..."),
        ({"a\n.weight_hh": torch.eye(5)}, "a\n.weight_ih"),
        (nn.RNN(1, 5).state_dict() | {f"weight_hh_l{'9' * 5000}": torch.eye(5)}, f"weight_hh_l{'9' * 5000}"),
        (nn.RNN(1, 5).state_dict() | {"bias_hh_l0": torch.ones(1)}, "bias_hh_l0"),
        ({"recurrent": np.zeros((5, 5)), "encoders": np.ones((4, 1)), "activation": "relu"}, "encoders"),
        (
            {"recurrent_left": np.zeros((10**12, 0)), "recurrent_right": np.zeros((10**12, 0)), "encoders": np.ones(5)},
            "encoders",
        ),
    ],
)
def test_what_is_not_supported_is_refused_with_what_is(thing, field):
    with pytest.raises(InputError) as caught:
        foreign.interpret(thing)
    assert refused(caught.value) == field
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


def test_names_of_pickled_members_are_shown_without_their_escapes(tmp_path):
    hostile = "\x1b[2J\x1b]0;title\x07"
    np.savez(tmp_path / "net.npz", **{**W, hostile: np.array(None)})
    noted = foreign.read(tmp_path / "net.npz")
    assert isinstance(noted, VanillaRNN)
    assert hostile.encode("unicode_escape").decode() in noted.notes[-1]
    assert all(note.isprintable() for note in noted.notes)
    np.savez(tmp_path / "net.npz", recurrent=np.eye(5), **{hostile: np.array(None)})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError) as caught:
        foreign.read(tmp_path / "net.npz", "relu")
    assert str(caught.value).isprintable()
    assert hostile.encode("unicode_escape").decode() in str(caught.value)


def test_names_that_a_map_leaves_aside_are_shown_without_their_escapes():
    names = {"recurrent": "J", "input_weights": "B"}
    net = foreign.interpret({"J": np.eye(3), "B": np.ones((3, 1)), "\x1b[2J": np.ones(3)}, "relu", names=names)
    assert isinstance(net, VanillaRNN)
    assert all(note.isprintable() for note in net.notes)


LAYOUT = """
from rni.files.layouts import LAYOUTS, FoundArrays, Layout


@LAYOUTS.register("spikes lab")
class SpikesLab(Layout):
    def recognises(self, names):
        return {"synapses", "drive"} <= set(names)

    def read(self, tensors):
        arrays = {"recurrent": tensors.take("synapses").T, "input_weights": tensors.take("drive")}
        arrays |= tensors.readout(len(arrays["recurrent"]))
        return FoundArrays("the spikes lab", arrays, {"leak": (0.1, "as in the paper"), "activation": ("tanh", "")})
"""


def test_a_layout_is_one_file_outside_of_the_package(tmp_path, monkeypatch):
    (tmp_path / "spikes_lab.py").write_text(LAYOUT, encoding="utf-8")
    w, u, d = np.diag([0.9, 0.8, 0.7]) + np.eye(3, k=1), np.ones((3, 1)), np.ones((2, 3))
    np.savez(tmp_path / "net.npz", synapses=w.T, drive=u, reader=d, epochs=5)
    own = {name: layout for name, layout in layouts.LAYOUTS.parts.items() if layout.__module__.startswith("rni.")}
    monkeypatch.setattr(layouts.LAYOUTS, "parts", own)  # without those that other tests registered
    monkeypatch.delitem(sys.modules, "spikes_lab", raising=False)
    with pytest.raises(InputError):
        foreign.read(tmp_path / "net.npz")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("spikes_lab")
    net = foreign.read(tmp_path / "net.npz")
    assert isinstance(net, VanillaRNN)
    assert (net.leak, net.f.name) == (0.1, "tanh")
    assert net.recurrent.matrix().tolist() == w.tolist()
    assert net.decoders is not None
    assert net.decoders.tolist() == d.T.tolist()
    assert net.notes == (
        "read as the weights of the spikes lab",
        "not part of the analysis: epochs",
        "leak 0.1, as in the paper",
        "form rate, as none was given: h <- (1 - leak) h + leak f(W h + U x + b)",
    )


def test_a_network_file_is_read_once(tmp_path, small, monkeypatch):
    rni.save(small(), tmp_path / "net.safetensors")
    opened = []
    read = loading.read_tensors
    monkeypatch.setattr(loading, "read_tensors", lambda path: opened.append(path) or read(path))
    monkeypatch.setattr(native, "read_tensors", loading.read_tensors)
    assert isinstance(foreign.read(tmp_path / "net.safetensors"), VanillaRNN)
    assert len(opened) == 1


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
