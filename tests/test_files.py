import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from safetensors.torch import save as pack
from told import train_run

from rni import InputError, Network, load, read_run, save, vectors
from rni.cli.inputs import read_inputs
from rni.core import tensors as disk
from rni.files import foreign, native
from rni.tasks.inputs import white_noise
from rni.tasks.integration import Integration
from rni.training import Checkpoint
from rni.training.optimizers import GradientDescent
from rni.weights import LowRank


def network(**part):
    raw = {"task": {"decays": [0.9, 0.8], "scales": [1.0, 2.0]}, "network": {"neurons": 20, **part}}
    return train_run(raw).build()


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
    back, specification, losses = native.read(tmp_path / "net.safetensors")
    assert (specification, losses) == ({"seed": 3}, [2.0, 1.0])
    assert type(back.recurrent) is type(net.recurrent)
    assert back.task == net.task
    x = white_noise(3, 10, 2, generator, dtype=net.dtype)
    assert torch.equal(back.outputs(x), net.outputs(x))


def test_factored_weights_stay_factored(tmp_path):
    left, right = torch.randn(20, 2), torch.randn(20, 2)
    net = Network(Integration((0.9, 0.8)), *vectors.independent(20, 2), LowRank(left, right, tolerance=1e-3, room=7))
    save(net, tmp_path / "net.safetensors")
    factors = load(tmp_path / "net.safetensors").recurrent.factors()
    assert factors is not None
    assert torch.equal(factors[0], left)
    names = {"encoders", "decoders", "recurrent_left", "recurrent_right", "tolerance", "room"}
    assert set(load_file(tmp_path / "net.safetensors")) == names


def test_factors_read_from_a_file_are_compressed_as_before(tmp_path):
    left, right = (torch.linalg.qr(torch.randn(20, 3, dtype=torch.float64))[0] for _ in range(2))
    values = torch.tensor([1.0, 1e-2, 1e-4], dtype=torch.float64)
    form = LowRank(left * values, right, tolerance=1e-3, room=7)
    save(Network(Integration(0.9), *vectors.independent(20, 1), form), tmp_path / "net.safetensors")
    back = load(tmp_path / "net.safetensors").recurrent
    assert isinstance(back, LowRank)
    assert (back.tolerance, back.room) == (1e-3, 7)
    back.compress_()
    assert back.left.shape == (20, 2)


@pytest.fixture
def path(tmp_path):
    save(network(weights="dale", initial_radius=0.5), tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


def change(path, header=None, **tensors):
    old, found = disk.read_tensors(path)
    disk.write_tensors(path, {k: v for k, v in (old | tensors).items() if v is not None}, found | (header or {}))


def raw_header(path, text):
    path.write_bytes(pack(disk.read_tensors(path)[0], {"rni": text}))


def nan(path):
    decoders = torch.ones(20, 2)
    decoders[3, 1] = float("nan")
    change(path, decoders=decoders)


INTEGRATION = {"name": "integration"}


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
        (lambda path: torch.save({"a": torch.zeros(2)}, path), "a file of torch.save"),
        (lambda path: change(path, {"format": "rni-network/99"}), "format: 'rni-network/99'; allowed: 'rni-network/3'"),
        (nan, "decoders: NaN or infinite values"),
        (lambda path: change(path, encoders=torch.zeros(20, 3)), r"encoders: shape \(20, 3\); allowed: \(20, 2\)"),
        (lambda path: change(path, recurrent=torch.zeros(20, 19)), r"recurrent: shape \(20, 19\)"),
        (lambda path: change(path, recurrent=None), "signs: do not make up a matrix; allowed: recurrent; or"),
        (lambda path: change(path, {"activation": {"name": "cube"}}), "activation: 'cube'; allowed: linear"),
        (
            lambda path: change(path, {"activation": {"name": "relu", "slope": 2}}),
            "slope: no such field; allowed: none",
        ),
        (lambda path: change(path, {"task": INTEGRATION | {"decays": [0.9, 7]}}), "decays.1: 7"),
        (lambda path: change(path, {"task": INTEGRATION | {"decays": "?"}}), r"decays: '\?'"),
        (lambda path: change(path, {"task": {"name": "?"}}), r"task: '\?'"),
        (lambda path: change(path, recurrent=torch.ones(20, 20)), "against Dale's law"),
        (lambda path: change(path, {"task": INTEGRATION | {"decays": [10**400, 1]}}), "decays.0: 1000"),
        (lambda path: change(path, {"activation": {"name": ["relu"]}}), r"activation: \['relu'\]"),
        (lambda path: change(path, {"activation": {"name": "sigmoid", "slope": None}}), "slope: None"),
        (lambda path: change(path, {"activation": {"name": "sigmoid", "slope": float("inf")}}), "slope: inf"),
        (lambda path: change(path, {"specification": 5}), "specification, losses: not a table and a list"),
        (lambda path: change(path, losses=torch.zeros(2, 2)), "specification, losses: not a table and a list"),
        (lambda path: change(path, encoders=torch.ones(20, 2, dtype=torch.complex64)), "encoders: complex64"),
        (lambda path: change(path, recurrent_left=torch.ones(20, 1)), "do not make up a matrix"),
        (lambda path: change(path, recurrent=torch.zeros(0, 0)), r"recurrent: shape \(0, 0\)"),
        (lambda path: raw_header(path, "[1, 2]"), "truncated, or not safetensors"),
        (lambda path: raw_header(path, "[" * 100_000), "truncated, or not safetensors"),
        (
            lambda path: raw_header(path, '{"format": "\\u001b[31m\\n' + 10**5 * "x" + '"}'),
            r"format: '\\x1b\[31m\\nxxx",
        ),
        (lambda path: (path.unlink(), path.mkdir()), "a folder; allowed: a file that can be read"),
        (lambda path: path.unlink(), "no such file"),
    ],
)
def test_a_damaged_file_is_refused_with_what_is_wrong(path, damage, message):
    damage(path)
    with pytest.raises(InputError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_a_network_in_other_numbers_is_read_in_those_that_hold_them(path, dtype):
    recurrent = torch.diag(torch.arange(20)).to(dtype)
    change(path, recurrent=recurrent, signs=torch.ones(20, dtype=torch.int8))
    found = load(path).recurrent.matrix()
    assert found.dtype in (torch.float32, torch.float64)
    assert torch.equal(found.double(), recurrent.double())


def test_what_a_file_can_not_hold_is_refused(tmp_path):
    e, d = vectors.independent(4, 1)
    net = Network(Integration(0.9), e, d, torch.zeros(4, 4), lambda nu: nu)
    with pytest.raises(InputError) as error:
        save(net, tmp_path / "net.safetensors")
    assert error.value.field == "activation"
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


def test_a_file_that_may_not_be_read_is_refused(path, monkeypatch):
    def denied(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", denied)
    for read in (load, foreign.read, lambda path: read_inputs(path, 2)):
        with pytest.raises(InputError, match=r"net\.safetensors: Permission denied; allowed: a file that can be read"):
            read(path)
    with pytest.raises(InputError, match=r"net\.safetensors: Permission denied; allowed: a TOML configuration"):
        read_run(path)


def test_a_damaged_checkpoint_is_refused(path, tmp_path):
    """Of the right run, but with other tensors in it."""
    net = load(path)
    checkpoint = Checkpoint(tmp_path / "half.checkpoint", "key")
    checkpoint.save(net, GradientDescent(), torch.Generator(), [1.0])
    for name, value in (("network.encoders", torch.zeros(3, 3)), ("generator", torch.zeros(5)), ("losses", None)):
        change(checkpoint.path, **{name: value})
        with pytest.raises(InputError, match=r"half\.checkpoint: damaged .*; allowed: a whole one"):
            checkpoint.resume(net, GradientDescent(), torch.Generator())
        checkpoint.save(net, GradientDescent(), torch.Generator(), [1.0])
