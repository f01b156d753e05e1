"""Deliberate mistakes in Python: each is one line that names the thing, what was given, and what is allowed."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rni
from rni.core.tensors import write_tensors

MISTAKES = """
rni.Integration("0.9")
    decays
rni.Integration([0.9, 1.1])
    decays.1
rni.Integration([0.9], scales=[1, 2])
    scales
rni.Integration([0.9, 0.8], [1, "a"])
    scales.1

rni.Network(0.9, e, d, torch.zeros(30, 30))
    task
rni.Network(rni.Integration, e, d, torch.zeros(30, 30))
    task
rni.Network([0.9, 0.8], e, d, torch.zeros(30, 30))
    task
rni.Network(task, e.T, d.T, torch.zeros(30, 30))
    encoders
rni.Network(task, e.numpy(), d.numpy(), np.zeros((30, 30)))
    recurrent
rni.Network(task, e, d, np.zeros((30, 30)))
    recurrent
rni.Network(task, e, d, [[0.0] * 30] * 30)
    recurrent
rni.Network(task, e, d, torch.zeros(30))
    recurrent
rni.Network(task, e, d, torch.zeros(20, 20))
    encoders
rni.Network(task, e, d, torch.zeros(30, 30), "rleu")
    activation; did you mean relu?
rni.Network(task, e, d, torch.zeros(30, 30), "ReLU")
    activation; did you mean relu?
rni.Network(task, e, d, torch.zeros(30, 30), torch.nn.ReLU)
    activation
rni.Network(task, e, d, torch.zeros(30, 30), rni.activations.ReLU)
    activation
rni.Network(task, e, d, torch.zeros(30, 30), leak=0)
    leak
rni.Network(task, e, d, torch.zeros(30, 30), leak=2)
    leak
rni.Network(task, e, d, torch.zeros(30, 30), leak="0.5")
    leak
rni.Network(task, encoders=30, decoders=2, recurrent=torch.zeros(30, 30))
    encoders

net(torch.randn(8, 50, 3))
    inputs
net(torch.randn(8, 2, 50))
    inputs
net(x, torch.zeros(30))
    initial
net(x, torch.zeros(8, 30))
    initial
net.outputs(x[0])
    inputs
net.outputs(torch.randn(8, 50, 3))
    inputs
net.currents(x[0])
    inputs
net.readout(torch.randn(8, 50, 29))
    states
net.silenced([30])
    neurons
net.silenced([-1])
    neurons

rni.Network.from_torch(torch.nn.LSTM(2, 30), torch.nn.Linear(30, 2), task)
    rnn
rni.Network.from_torch(torch.nn.RNN(3, 30, bias=False), torch.nn.Linear(30, 3, bias=False), task)
    encoders
rni.Network.from_torch(torch.nn.RNN(2, 30, bias=False), torch.nn.Linear(20, 2, bias=False), task)
    decoders

task.targets(torch.randn(8, 50, 3))
    inputs
task.targets([[1.0, 2.0]])
    inputs

rni.vectors.independent(0, 2)
    neurons
rni.vectors.independent(30, 0)
    channels
rni.vectors.independent(30, -1)
    channels
rni.vectors.independent(30, 2, 0)
    generator
rni.vectors.independent(30, 2, np.random.default_rng(0))
    generator
rni.vectors.independent(30, 2, encoder_norm=-1)
    norms
rni.vectors.independent(30, 2, encoder_norm=[1, 2, 3])
    norms
rni.vectors.overlapping(30, 2, overlap=2)
    overlap
rni.vectors.overlapping(30, 2, overlap=-1)
    overlap
rni.vectors.orthonormal(3, 2)
    neurons
rni.vectors.on_supports(30, 2, kind="smae")
    kind
rni.vectors.on_supports(30, 2, fraction=2)
    fraction
rni.vectors.on_supports(3, 2)
    neurons

rni.train(net, loss, steps=-1)
    steps
rni.train(net, loss, steps=2.5)
    steps
rni.train(net, loss, steps="10")
    steps
rni.train(net, loss, learning_rate=-0.1, steps=2)
    learning_rate
rni.train(net, loss, learning_rate=0, steps=2)
    learning_rate
rni.train(net, loss, learning_rate="fast", steps=2)
    learning_rate
rni.train(net, loss, learning_rate=float("nan"), steps=2)
    learning_rate
rni.train(net, loss, optimizer="amad", steps=2)
    optimizer
rni.train(net, loss, optimizer="rmsprop", steps=2)
    optimizer
rni.train(net, loss, optimizer=torch.optim.LBFGS, steps=2)
    optimizer
rni.train(net, loss, optimizer=torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=.1), steps=2)
    optimizer
rni.train(net, loss, schedule="linear", steps=2)
    schedule
rni.train(net, loss, train="encoders", steps=2)
    train; did you mean decoders?
rni.train(net, loss, train="W", steps=2)
    train
rni.train(net, loss, generator=0, steps=2)
    generator
rni.train(net, loss, generator=np.random.default_rng(0), steps=2)
    generator
rni.train(net, loss, stop_loss=-1, steps=2)
    stop_loss
rni.train(net, loss, callbacks=print, steps=2)
    callbacks
rni.train(net, loss, callbacks=[3], steps=2)
    callbacks
rni.train(net, loss, checkpoint="run.checkpoint", steps=2)
    checkpoint
rni.train(net, loss, checkpoint=Path("run.checkpoint"), steps=2)
    checkpoint
rni.train(net, "proxy", steps=2)
    loss
rni.train(net, rni.ProxyLoss, steps=2)
    loss
rni.train(net, rni.BatchLoss, steps=2, learning_rate=.1)
    loss
rni.train(net, task, steps=2)
    loss
rni.train(loss, net, steps=2)
    network
rni.train(net, rni.ProxyLoss(rni.Integration(0.9)), steps=2)
    task
rni.train(net, rni.BatchLoss(rni.Integration([0.9, 0.7])), steps=2)
    task
rni.train(net, rni.AveragedLoss(task), steps=2)
    loss
rni.train(net, rni.ReLUProxyLoss(task), steps=2)
    task
rni.train(torch.nn.RNN(2, 30), loss, steps=2)
    network
rni.train(rni.design(task, 30), loss, steps=2)
    network
rni.train("net.safetensors", loss, steps=2)
    network
rni.train(net, rni.BatchLoss(task, inputs=lambda b, t, c, g: torch.randn(b, c, t)), steps=2)
    inputs
rni.train(net, rni.BatchLoss(task, inputs=lambda b, t, c, g: "x"), steps=2)
    inputs
rni.train(net, rni.BatchLoss(task, inputs=lambda b, t, c, g: [[1]]), steps=2)
    inputs
rni.train(net, rni.BatchLoss(task, inputs=lambda: torch.randn(32, 3, 2)), steps=2)
    inputs
rni.train(frozen, loss, steps=2)
    train
rni.train(leaky, rni.ProxyLoss(task), steps=2)
    leak

rni.BatchLoss(0.9)
    task
rni.BatchLoss([0.9, 0.8])
    task
rni.BatchLoss(task, duration=0)
    duration
rni.BatchLoss(task, duration=3.5)
    duration
rni.BatchLoss(task, batch=0)
    batch
rni.BatchLoss(task, batch="32")
    batch
rni.BatchLoss(task, covariance=torch.eye(4))
    covariance
rni.BatchLoss(task, covariance=-torch.eye(3))
    covariance
rni.BatchLoss(task, sampling="random")
    sampling

rni.ProxyLoss(0.9)
    task
rni.ProxyLoss(task, points=0)
    points
rni.ProxyLoss(task, points=2.5)
    points
rni.ProxyLoss(task, bounds=-1)
    bounds
rni.ProxyLoss(task, bounds=[1, 2, 3])
    bounds

rni.ReLUProxyLoss(0.9)
    task
rni.ReLUProxyLoss(task)
    task

rni.AveragedLoss(0.9)
    task
rni.AveragedLoss(task, duration=0)
    duration

loss(net, torch.randn(8, 50))
    inputs
loss(net, "x")
    inputs
loss(torch.nn.RNN(2, 30))
    network

rni.BatchLoss(task)(net, torch.randn(8, 50, 3))
    inputs
rni.BatchLoss(task)(net, torch.randn(0, 50, 2))
    inputs

rni.design(0.9, 30)
    task
rni.design([0.9, 0.8], 30)
    task
rni.design(task, neurons=0)
    neurons
rni.design(task, neurons=-3)
    neurons
rni.design(task, 30, "rleu")
    activation; did you mean relu?
rni.design(task, 30, activation="tanhh")
    activation; did you mean tanh?
rni.design(task, 30, bounds=1)
    bounds
rni.design(task, 30, encoders=e.T, decoders=d.T)
    encoders
rni.design(task, 30, leak=3)
    leak
rni.design(task, 30, seed="a")
    seed
rni.design(task, 30, seed=-1)
    seed

rni.certify(task)
    network
rni.certify("net.safetensors")
    network

rni.polish(task)
    network
rni.polish("net.safetensors")
    network

rni.analyze("net.safetensors")
    network
rni.analyze(Path("net.safetensors"))
    network
rni.analyze("nothing.pt")
    network
rni.analyze(None)
    network
rni.analyze(3)
    network
rni.analyze(rni.Network)
    network
rni.analyze(torch.nn.RNN)
    network
rni.analyze(torch.nn.LSTM(2, 30))
    LSTM
rni.analyze(torch.nn.GRU(2, 30))
    GRU
rni.analyze(torch.nn.Linear(2, 3))
    Linear
rni.analyze(torch.nn.RNN(2, 30, num_layers=2))
    weight_hh_l1
rni.analyze(torch.nn.RNN(2, 30, bidirectional=True))
    weight_ih_l0_reverse
rni.analyze(np.zeros((30, 30)))
    network
rni.analyze(torch.zeros(30, 30))
    network
rni.analyze([1, 2, 3])
    arrays
rni.analyze({})
    nothing
rni.analyze({"W": np.zeros((30, 30))})
    W
rni.analyze(net, inputs=torch.randn(8, 50, 3))
    inputs
rni.analyze(net, inputs=torch.full((8, 50, 2), torch.nan))
    inputs
rni.analyze(net, inputs=torch.randn(0, 50, 2))
    inputs
rni.analyze(net, inputs=[1, 2])
    inputs
rni.analyze(net, decays=0.9)
    decays
rni.analyze(net, decays=[0.9, 1.2])
    decays.1
rni.analyze(net, decays="0.9")
    decays
rni.analyze(net, task=[0.9, 0.8])
    task
rni.analyze(net, task=rni.Integration(0.9))
    decays
rni.analyze(net, scales=[1, 2])
    scales
rni.analyze(net, activation="tanh")
    activation
rni.analyze(net, seed="a")
    seed
rni.analyze(net, seed=-1)
    seed
rni.analyze(net, decay=[.9, .8])
    decay; did you mean decays?
rni.analyze(nannet)
    recurrent
rni.analyze(rni.Network(task, e, d, 5 * torch.eye(30)))
    network
rni.analyze(rni.design(task, 30))
    network
rni.analyze(torch.nn.RNN(2, 30), leak=3)
    leak
rni.analyze(torch.nn.RNN(2, 30), dt=-1)
    dt
rni.analyze(torch.nn.RNN(2, 30), form="rates")
    form
rni.analyze((torch.nn.RNN(2, 30), torch.nn.Linear(29, 2)))
    readout
rni.analyze((torch.nn.RNN(2, 30),))
    network
rni.analyze({"activity": np.zeros((4, 50, 5)), "inputs": np.zeros((4, 40, 1))})
    activity, inputs
rni.analyze({"activity": np.full((4, 50, 5), np.nan), "inputs": np.random.randn(4, 50, 1)})
    activity
rni.analyze(found).shape
    network

rni.fixed_points("net.safetensors")
    network
rni.fixed_points(task)
    network

rni.load("nothing.safetensors")
    nothing.safetensors
rni.load("folder")
    folder
rni.load("run.toml")
    run.toml
rni.load("rnn.pt")
    rnn.pt
rni.load("x.npy")
    x.npy
rni.load("recording.npz")
    recording.npz
rni.load("half.safetensors")
    half.safetensors
rni.load("rnn.safetensors")
    rnn.safetensors
rni.load("notes.txt")
    notes.txt
rni.load(3)
    path
rni.load(None)
    path
rni.load(net)
    path
rni.load("net.safetensors", "cuda")
    allow

rni.read("run.toml")
    run.toml
rni.read("nothing.pt")
    nothing.pt
rni.read("x.npy")
    x.npy
rni.read("folder")
    folder
rni.read(None)
    path

rni.save("out.safetensors", net)
    network
rni.save(net, "folder")
    folder
rni.save(net, "none/net.pt")
    path
rni.save(net, "net.pt")
    path
rni.save(net, "run.toml/x.safetensors")
    run.toml
rni.save(torch.nn.RNN(2, 30), "out.safetensors")
    network
rni.save(rni.Network(task, e, d, torch.zeros(30, 30), lambda v: v.relu()), "out.safetensors")
    activation

rni.run({"task": {"decays": [0.9]}})
    run
rni.run("run.toml")
    run

rni.TrainRun()
    task
rni.TrainRun("run.toml")
    task
rni.parse_run({})
    task
rni.parse_run({"task": {"decays": [1.9]}})
    task.decays.0
rni.parse_run({"task": {"decays": [0.9]}, "network": {"nuerons": 30}})
    network.nuerons; did you mean neurons?
rni.parse_run({"decays": [0.9]})
    task
rni.parse_run("run.toml")
    run
rni.parse_run(None)
    run
rni.read_run("nothing.toml")
    nothing.toml
rni.read_run("net.safetensors")
    net.safetensors
rni.read_run("run.toml", {"nuerons": 3})
    nuerons; did you mean neurons?

rni.run_all([{"task": {"decays": [0.9]}}], workers=0)
    run
rni.run_all([spec], workers=-1)
    workers
rni.run_all([spec], workers=1.5)
    workers
rni.run_all([spec], store="run.toml", workers=0)
    run.toml

rni.sweep({"task": {"decays": [0.9]}}, over={"nuerons": [1, 2]}, measure="error")
    over.nuerons; did you mean neurons?

rni.explore("net.safetensors", "page.html")
    network
rni.explore(net, "page.pdf")
    path
rni.explore(task, "page.html")
    network
rni.inputs.white_noise(0, 10, 2)
    batch
rni.inputs.white_noise(4, 10.5, 2)
    duration
rni.inputs.white_noise(4, 10, 2, 0)
    generator
rni.inputs.pulses(4, 10, 2, probability=5)
    probability
rni.inputs.bursts(4, 100, 2, length=-5)
    length
rni.inputs.bursts(4, 100, 2, density=7)
    density
rni.inputs.bursts(4, 100, 2, starts=-1)
    starts
rni.inputs.correlated_noise(4, 2, torch.ones(5))
    covariance

rni.weights.Dense(np.zeros((3, 3)))
    recurrent
rni.weights.Dense(torch.zeros(3))
    recurrent
rni.weights.LowRank(torch.zeros(30, 2), torch.zeros(20, 2))
    recurrent_left, recurrent_right
rni.weights.LowRank(30, 2)
    recurrent_left
rni.weights.Dale(torch.zeros(30, 30), torch.zeros(30))
    signs
rni.weights.Dale(torch.zeros(30, 30), 0.2)
    signs
rni.weights.random_matrix(30, radius=-1)
    radius
rni.weights.random_matrix(0, radius=1)
    neurons
rni.weights.random_matrix(30.5, radius=1)
    neurons

rni.activations.make("swish")
    activation
rni.activations.Sigmoid("steep")
    slope

rni.plot.outputs(x, x[:, :, :1])
    outputs

found.save("page.pdf")
    path

rni.Recording(np.zeros((4, 50, 5)), np.zeros((4, 40, 1)))
    activity, inputs

net.forward(x, x)
    initial
"""
TABLE = re.findall(r"^(\S.*)\n    (.+)$", MISTAKES, re.MULTILINE)
NAMES = """
rni.Netwrok
    module 'rni' has no attribute 'Netwrok'; did you mean Network?
rni.analyse(net)
    module 'rni' has no attribute 'analyse'; did you mean analyze?
"""
DIVERGED = "training diverged at step 0: loss nan ... allowed: finite weights and inputs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of each kind."""
    place = tmp_path_factory.mktemp("mistakes")
    (place / "run.toml").write_text(
        "[task]\ndecays = [0.9, 0.8]\n[network]\nneurons = 30\n[training]\nsteps = 3\n", encoding="utf-8"
    )
    (place / "notes.txt").write_text("hello\n", encoding="utf-8")
    (place / "folder").mkdir()
    rni.save(rni.design(rni.Integration([0.9, 0.8]), 40).network, place / "net.safetensors")
    whole = (place / "net.safetensors").read_bytes()
    (place / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    torch.save(nn.RNN(2, 12).state_dict(), place / "rnn.pt")
    write_tensors(place / "rnn.safetensors", nn.RNN(2, 12).state_dict(), {})
    np.save(place / "x.npy", np.zeros((5, 2)))
    np.savez(place / "recording.npz", activity=np.zeros((4, 50, 5)), inputs=np.zeros((4, 50, 1)))
    return place


@pytest.fixture(scope="module")
def examined():
    net = rni.design(rni.Integration([0.9, 0.8]), 30).network
    return rni.analyze(net)


@pytest.fixture
def names(folder, examined, monkeypatch):
    """What a newcomer has at hand."""
    monkeypatch.chdir(folder)
    task = rni.Integration([0.9, 0.8])
    e, d = vectors = rni.vectors.independent(30, 2, torch.Generator().manual_seed(0))
    net = rni.Network(task, e, d, torch.zeros(30, 30), "relu")
    nannet = copy.deepcopy(net)
    nannet.recurrent.matrix().data.fill_(torch.nan)
    return {
        **{"rni": rni, "torch": torch, "np": np, "Path": Path, "copy": copy},
        **{"task": task, "vectors": vectors, "e": e, "d": d, "net": net, "nannet": nannet, "found": examined},
        "frozen": copy.deepcopy(net).requires_grad_(False),
        "leaky": rni.Network(task, e, d, torch.zeros(30, 30), "relu", leak=0.5),
        "loss": rni.ProxyLoss(task),
        "x": torch.randn(8, 50, 2),
        "spec": rni.read_run("run.toml"),
    }


def assert_said(text, wanted):
    for part in wanted.split("..."):
        assert part.strip() in text
        text = text[text.index(part.strip()) :]


@pytest.mark.parametrize(("line", "said"), TABLE, ids=[line for line, _ in TABLE])
def test_a_mistake_is_one_line_that_says_what_to_do(names, folder, line, said):
    before = sorted(folder.rglob("*"))
    with pytest.raises(rni.InputError) as refused:
        eval(line, names)
    subject, _, hint = said.partition("; ")
    error = refused.value
    assert subject in (error.field, error.file) or subject in str(error).partition("; allowed")[0]
    assert hint in str(error)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("line", "said"), re.findall(r"^(\S.*)\n    (.+)$", NAMES, re.MULTILINE))
def test_a_name_that_is_misspelt_is_guessed(names, line, said):
    with pytest.raises(AttributeError) as refused:
        eval(line, names)
    assert str(refused.value) == said


def test_weights_that_are_not_numbers_are_not_trained(names):
    with pytest.raises(rni.Diverged) as refused:
        rni.train(names["nannet"], names["loss"], steps=2)
    assert_said(str(refused.value), DIVERGED)


def test_numbers_of_other_kinds_are_taken(names):
    """NumPy's, whole ones, of another precision, without a batch: no mistakes."""
    net, x = names["net"], names["x"]
    for given in (x.numpy(), x.double(), x.round().long()):
        assert torch.allclose(net(given)[0], net(torch.as_tensor(given).float())[0])
    assert torch.equal(names["task"].targets(x.numpy()), names["task"].targets(x))
    assert net.readout(np.zeros((8, 30))).shape == (8, 2)
    assert net.silenced(torch.ones(30, dtype=torch.bool)).decoders.abs().max() == 0


def test_there_are_forty_mistakes_and_more():
    assert len({line for line, _ in TABLE}) >= 40


def test_a_script_without_a_main_guard_is_told_of_it(tmp_path):
    """Each worker reads the script, and would start workers of its own."""
    import subprocess
    import sys

    (tmp_path / "script.py").write_text(
        "import rni\n"
        'rni.run_all([rni.parse_run({"task": {"decays": 0.9}, "network": {"neurons": 20}})],\n'
        '            workers=1, store="runs")\n',
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "allowed: a script whose main part is below `if __name__ == '__main__':`" in done.stderr
