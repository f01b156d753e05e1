import pickle

import pytest
import torch
from safetensors.torch import load_file

from rni import InputError, Network, Specification, files, load, save, vectors
from rni.activation import Sigmoid
from rni.task import Integration, white_noise
from rni.weights import LowRank


def network(**part):
    raw = {"task": {"decays": [0.9, 0.8], "scales": [1.0, 2.0]}, "network": {"neurons": 20, **part}}
    return Specification.parse(raw).build()


@pytest.mark.parametrize(
    "part",
    [
        {"activation": {"name": "sigmoid", "slope": 7.0}, "initial_radius": 0.5},
        {"activation": {"name": "sigmoid", "threshold": {"mean": 0.0, "deviation": 1.0}}, "initial_radius": 0.5},
        {"weights": "dale", "initial_radius": 0.5},
        {"precision": "float64", "activation": "linear", "initial_radius": 0.5},
    ],
)
def test_a_network_comes_back_as_it_was(tmp_path, generator, part):
    net = network(**part)
    save(net, tmp_path / "net.safetensors", {"seed": 3}, losses=[2.0, 1.0])
    back, specification, losses = files.read(tmp_path / "net.safetensors")
    assert (specification, losses) == ({"seed": 3}, [2.0, 1.0])
    assert type(back.recurrent) is type(net.recurrent)
    assert back.task == net.task
    x = white_noise(3, 10, 2, generator, dtype=net.dtype)
    assert torch.equal(back.outputs(x), net.outputs(x))


def test_factored_weights_stay_factored(tmp_path):
    left, right = torch.randn(20, 2), torch.randn(20, 2)
    net = Network(Integration((0.9, 0.8)), *vectors.independent(20, 2), LowRank(left, right))
    save(net, tmp_path / "net.safetensors")
    factors = load(tmp_path / "net.safetensors").recurrent.factors()
    assert factors is not None
    assert torch.equal(factors[0], left)
    assert set(load_file(tmp_path / "net.safetensors")) == {"encoders", "decoders", "recurrent_left", "recurrent_right"}


@pytest.fixture
def path(tmp_path):
    save(network(weights="dale", initial_radius=0.5), tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


def change(path, header=None, **tensors):
    old, found = files.read_tensors(path)
    files.write_tensors(path, {k: v for k, v in (old | tensors).items() if v is not None}, found | (header or {}))


def nan(path):
    decoders = torch.ones(20, 2)
    decoders[3, 1] = float("nan")
    change(path, decoders=decoders)


def truncate(path):
    path.write_bytes(path.read_bytes()[:500])


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "truncated, or not safetensors"),
        (empty, "truncated, or not safetensors"),
        (lambda path: path.write_bytes(pickle.dumps([1])), "a pickle"),
        (lambda path: torch.save({"a": torch.zeros(2)}, path), "a pickle"),
        (lambda path: change(path, {"format": "rni-network/99"}), "format 'rni-network/99'; allowed: 'rni-network/1'"),
        (nan, "decoders has NaN or infinite values"),
        (lambda path: change(path, encoders=torch.zeros(20, 3)), r"encoders: shape \(20, 3\); allowed: \(20, 2\)"),
        (lambda path: change(path, recurrent=torch.zeros(20, 19)), r"recurrent: shape \(20, 19\)"),
        (lambda path: change(path, recurrent=None), "KeyError 'recurrent'"),
        (lambda path: change(path, {"activation": {"name": "cube"}}), "activation: 'cube'; allowed: linear"),
        (lambda path: change(path, {"activation": {"name": "relu", "slope": 2}}), "slope: not a parameter of relu"),
        (lambda path: change(path, {"decays": [0.9, 7]}), "decays.*between 0 and 1"),
        (lambda path: change(path, {"decays": "?"}), r"decays: '\?'; allowed: one or more numbers"),
        (lambda path: change(path, recurrent=torch.ones(20, 20)), "against Dale's law"),
        (lambda path: path.unlink(), "no such file"),
    ],
)
def test_a_damaged_file_is_refused_with_what_is_wrong(path, damage, message):
    damage(path)
    with pytest.raises(InputError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_file_can_not_hold_is_refused(tmp_path):
    e, d = vectors.independent(4, 1)
    net = Network(Integration(0.9), e, d, torch.zeros(4, 4), torch.sin)
    with pytest.raises(InputError, match="allowed in a file: linear, relu"):
        save(net, tmp_path / "net.safetensors")
    net = Network(Integration(0.9), e, d, torch.zeros(4, 4), Sigmoid())
    with pytest.raises(InputError, match="silenced"):
        save(net.silenced([0]), tmp_path / "net.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("broken", ["os.fsync", "pathlib.Path.replace"])
def test_a_failed_write_leaves_the_old_file(path, monkeypatch, broken):
    before = path.read_bytes()

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(broken, full)
    with pytest.raises(OSError, match="disk full"):
        save(network(), path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
