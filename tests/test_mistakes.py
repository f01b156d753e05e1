"""Deliberate mistakes at the command line: each is one line that says what to do, exit code 2, and changes nothing."""

import pickle
import re
import shlex
import sys

import numpy as np
import pytest
import torch
from torch import nn

import rni
from rni.cli import main
from rni.core.tensors import write_tensors
from rni.pages import snapshots
from rni.training import checkpoint

MISTAKES = """
rni --verison
    --verison; did you mean --version?
rni trian run.toml
    trian; did you mean train?
rni runs lst
    lst; did you mean list?
rni help
    help
rni cite me
    me

rni train
    CONFIG.toml
rni train run.tml
    run.tml
rni train folder
    folder
rni train run.toml more.toml
    more.toml
rni train run.toml --nuerons 50
    nuerons; did you mean neurons?
rni train run.toml --network.nuerons 50
    network.nuerons; did you mean neurons?
rni train run.toml --netwrok.neurons 50
    netwrok.neurons
rni train run.toml -n 50
    -n
rni train run.toml --neurons
    --neurons
rni train run.toml --neurons ten
    neurons
rni train run.toml --neurons 1
    neurons
rni train run.toml --neurons 50.5
    neurons
rni train run.toml --activation rleu
    network.activation; did you mean relu?
rni train run.toml --activation "{name='sigmoid', slop=5}"
    network.activation.slop; did you mean slope?
rni train run.toml --activation "{slope=5}"
    network.activation
rni train run.toml --decays 1.5
    task.decays.0
rni train run.toml --decays 0.9 --decays 0.8
    --decays
rni train run.toml --loss batch --loss proxy
    --loss
rni train --decays 0.9 --neurons 50
    CONFIG.toml
rni train run.toml --activation "{name="
    {name=
rni train run.toml --decays 0.9 high
    high
rni train run.toml --decays
    --decays
rni train run.toml --decays []
    task.decays
rni train run.toml --decays 0.9 --scales 1 2
    task.scales
rni train run.toml --loss bach
    training.loss; did you mean batch?
rni train run.toml --loss averaged
    training.loss
rni train run.toml --points 64
    training.loss.points
rni train run.toml --batch 0
    training.loss.batch
rni train run.toml --optimizer rmsprop
    training.optimizer
rni train run.toml --learning-rate fast
    training.learning_rate
rni train run.toml --learning-rate -0.1
    training.learning_rate
rni train run.toml --steps -3
    training.steps
rni train run.toml --precision half
    network.precision
rni train run.toml --seed -1
    seed
rni train run.toml --train encoders
    training.train
rni train run.toml --weights sparse
    network.weights
rni train run.toml --weights "{name='dale', inhibitory=2}"
    network.weights.inhibitory
rni train run.toml --snapshots few
    --snapshots
rni train run.toml --out net.pt
    --out
rni train run.toml --out run.toml
    --out
rni train run.toml --out folder.safetensors
    folder.safetensors
rni train run.toml --out run.toml/net.safetensors
    run.toml
rni train run.toml
    network.safetensors
rni train broken.toml
    broken.toml
rni train empty.toml
    task.decays
rni train latin.toml
    latin.toml
rni train "run.toml "
    run.toml
rni train run.toml --quiet
    quiet
rni train run.toml --neurons --steps 5
    --neurons
rni train run.toml --neurons=
    neurons
rni train run.toml --neurons 10000000
    neurons
rni train run.toml --out=
    .
rni train run.toml --decays "0.9;0.8"
    task.decays
rni train run.toml --decays nan
    task.decays.0
rni train run.toml --task.decays.0 0.9
    task.decays.0
rni train run.toml --learning-rate inf
    training.learning_rate
rni train run.toml --steps 1e3
    training.steps
rni train run.toml --seed 1.5
    seed
rni train run.toml --activation ReLU
    network.activation; did you mean relu?
rni train run.toml --precision 64
    network.precision
rni train run.toml --threads 0
    training.threads
rni train run.toml --snapshots -1 --out n.safetensors
    --snapshots
rni train run.toml --vectors orthonormal --neurons 2 --decays 0.9 0.8 0.7
    neurons
rni train net.safetensors
    net.safetensors
rni train rnn.pt
    rnn.pt
rni train x.npy
    x.npy

rni design
    --decays
rni design --decays
    --decays
rni design 0.9 0.8
    0.9 0.8
rni design --decays 0.9,x
    --decays
rni design --decays 1.2
    --decays
rni design --decays 0 --out d.safetensors
    decays
rni design --decays 0.9 --neurons 0
    --neurons
rni design --decays 0.9 --decays 0.8
    --decays
rni design --decays 0.9 --nuerons 50
    --nuerons; did you mean --neurons?
rni design --decays 0.9 --activation tan
    --activation; did you mean tanh?
rni design --decays 0.9 --bounds 3 --out d.safetensors
    --bounds
rni design --decays 0.9 --bounds 1 2 --activation tanh
    --bounds
rni design --decays 0.995 --activation sigmoid --neurons 200 --out d.safetensors
    --bounds
rni design --decays 0.995 --activation sigmoid --neurons 200 --bounds 1 --out d.safetensors
    design
rni design --decays 0.9 0.8 --neurons 3 --out d.safetensors
    --neurons
rni design --decays 0.9 0.8 --scales 0 1 --out d.safetensors
    scales
rni design --decays 0,9
    --decays
rni design --decays 0.9 --leak 2
    --leak
rni design --polish rnn.pt --out d.safetensors
    rnn.pt
rni design --polish net.safetensors --neurons 5
    --polish
rni design --polish net.safetensors --out net.safetensors
    --out
rni design net.safetensors
    net.safetensors

rni analyze
    NET
rni analyze none.pt
    none.pt
rni analyze folder
    folder
rni analyze run.toml
    run.toml
rni analyze empty.safetensors
    empty.safetensors
rni analyze half.safetensors
    half.safetensors
rni analyze half.npz
    half.npz
rni analyze gru.pt
    gru.pt
rni analyze lstm.pt
    lstm.pt
rni analyze deep.pt
    deep.pt
rni analyze linear.pt
    linear.pt
rni analyze module.pt
    module.pt
rni analyze list.pt
    list.pt
rni analyze notes.txt
    notes.txt
rni analyze noinputs.npz
    noinputs.npz
rni analyze pictures.npz
    pictures.npz
rni analyze objects.npz
    objects.npz
rni analyze net.pkl
    net.pkl
rni analyze x.npy
    x.npy
rni analyze run.checkpoint
    run.checkpoint
rni analyze model.onnx
    model.onnx
rni analyze model.h5
    model.h5
rni analyze data.mat
    data.mat
rni analyze net.safetensors --inputs three.npy
    three.npy
rni analyze net.safetensors --inputs nan.npy
    nan.npy
rni analyze net.safetensors --inputs notes.txt
    notes.txt
rni analyze net.safetensors --decays 0.9
    decays
rni analyze net.safetensors --decays 0.9 1.5
    --decays
rni analyze net.safetensors --scales 2
    --scales
rni analyze net.safetensors --activation tanh
    activation
rni analyze net.safetensors --json=yes
    --json
rni analyze net.safetensors --out page.pdf
    --out
rni analyze rnn.pt --robustness
    --robustness

rni analyze net.safetensors --leak 0.5
    leak
rni analyze rnn.pt --leak 3
    rnn.pt
rni analyze rnn.pt --activation foo
    rnn.pt
rni analyze rnn.pt --map recurrent=zzz
    rnn.pt
rni analyze rnn.pt --dt 0.1 --tau 0
    rnn.pt
rni analyze recording.npz --decays 0.9
    task

rni simulate net.safetensors
    --inputs
rni simulate net.safetensors --inputs x.npy
    --out
rni simulate net.safetensors --inputs flat.npy --out y.npy
    flat.npy
rni simulate net.safetensors --inputs text.npy --out y.npy
    text.npy
rni simulate net.safetensors --inputs x.npy --out y.csv
    --out
rni simulate net.safetensors --inputs x.npy --out x.npy
    --out
rni simulate net.safetensors --inputs recording.npz --out y.npy
    recording.npz
rni simulate run.toml --inputs x.npy --out y.npy
    run.toml
rni simulate recording.npz --inputs x.npy --out y.npy
    recording.npz
rni export net.safetensors --to onxx
    --to; did you mean onnx?
rni export net.safetensors --to onnx --out net.pt
    --out
rni export net.safetensors --out net.safetensors
    --out
rni export net.safetensors
    net.pt
rni export rnn.pt
    rnn.pt

rni explore net.safetensors --decays 0.9
    --decays
rni explore --out page.pdf
    --out
rni explore two.snapshots.safetensors
    two.snapshots.safetensors
rni export rnn.safetensors --out rnn.onnx --to onnx
    rnn.safetensors
rni explore run.toml
    run.toml
rni theory --decay 2
    --decay
rni theory --duration 1
    duration
rni theory --neurons 5
    --neurons
rni theory --capacity
    --capacity
rni theory net.safetensors
    net.safetensors
rni theory rnn.pt
    rnn.pt
rni theory --capacity --channels 0
    channels
rni sweep net.safetensors --over seed=0..1 --measure error --out s
    net.safetensors
rni sweep run.toml --over nuerons=1,2 --measure error --out s
    over.nuerons; did you mean neurons?
rni sweep run.toml --over seed=5..0 --measure error --out s
    over.seed
rni sweep run.toml --over neurons=10,20 --measure eror --out s
    measure; did you mean error?
rni reproduce FIG1
    FIG1; did you mean fig1?
rni reproduce fig1,fig99
    fig99
rni reproduce fig99
    fig99; did you mean fig9?
rni reproduce --profile papr
    --profile; did you mean paper?
rni reproduce fig1 --workers 0
    --workers
rni reproduce fig1 --workers 2 --scheduler tcp://x
    --scheduler
rni reproduce fig1 --out run.toml
    run.toml
rni runs list --store run.toml
    run.toml
rni runs show zz --store none
    zz
rni runs remove --store none
    remove
"""
TABLE = re.findall(r"^rni (.+)\n    (.+)$", MISTAKES, re.MULTILINE)
WORDS_OF_OTHERS = ("Traceback", "Error", "pydantic", "codec", "deserializ", "Run", "Integration.", "should")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One of each: configurations, networks, arrays, and what other programs write."""
    place = tmp_path_factory.mktemp("mistakes")
    (place / "run.toml").write_text(
        "[task]\ndecays = [0.9, 0.8]\n[network]\nneurons = 30\n[training]\nsteps = 3\n", encoding="utf-8"
    )
    (place / "broken.toml").write_text("[task\ndecays = 0.9", encoding="utf-8")
    (place / "latin.toml").write_bytes(b"# caf\xe9\n[task]\ndecays = [0.9]\n")
    (place / "notes.txt").write_text("hello\n", encoding="utf-8")
    for name in ("empty.toml", "empty.safetensors"):
        (place / name).touch()
    for name in ("folder", "folder.safetensors"):
        (place / name).mkdir()
    net = rni.design(rni.Integration([0.9, 0.8]), 40).network
    for name in ("net.safetensors", "network.safetensors"):
        rni.save(net, place / name)
    whole = (place / "net.safetensors").read_bytes()
    (place / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    torch.manual_seed(0)
    torch.save(nn.RNN(2, 12).state_dict(), place / "net.pt")
    layers = {"rnn": nn.RNN(2, 12), "gru": nn.GRU(2, 12), "lstm": nn.LSTM(2, 12), "deep": nn.RNN(2, 12, num_layers=2)}
    for name, layer in (layers | {"linear": nn.Linear(2, 2)}).items():
        torch.save(layer.state_dict(), place / f"{name}.pt")
    torch.save(layers["rnn"], place / "module.pt")
    torch.save([1, 2], place / "list.pt")
    arrays = {"x": np.zeros((5, 2)), "flat": np.zeros(4), "three": np.zeros((5, 3)), "nan": np.full((5, 2), np.nan)}
    for name, array in (arrays | {"text": np.array([["a", "b"]])}).items():
        np.save(place / f"{name}.npy", array)
    np.savez(place / "recording.npz", activity=np.zeros((4, 50, 5)), inputs=np.zeros((4, 50, 1)))
    np.savez(place / "noinputs.npz", activity=np.zeros((4, 50, 5)))
    np.savez(place / "pictures.npz", picture=np.zeros((3, 3)))
    np.savez(place / "objects.npz", activity=np.array([{}], dtype=object), inputs=np.zeros((4, 50, 1)))
    (place / "net.pkl").write_bytes(pickle.dumps([1, 2]))
    (place / "half.npz").write_bytes((place / "recording.npz").read_bytes()[:100])
    tensors = {"rnn.safetensors": {}, "run.checkpoint": {"format": checkpoint.FORMAT}}
    for name, header in (tensors | {"two.snapshots.safetensors": {"format": snapshots.FORMAT}}).items():
        write_tensors(place / name, layers["rnn"].state_dict(), header)
    (place / "model.onnx").write_bytes(b"\x08\x07\x12\x07pytorch")
    (place / "model.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (place / "data.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(100))
    return place


def content(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(("line", "said"), TABLE, ids=[line for line, _ in TABLE])
def test_a_mistake_is_one_line_that_says_what_to_do(folder, monkeypatch, capsys, line, said):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["rni", *shlex.split(line)])
    before = content(folder)
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert err.startswith("rni: ")
    assert err.count("\n") == 1
    subject, _, hint = said.partition("; ")
    assert subject in err.removeprefix("rni: ").partition("; allowed")[0]
    assert hint in err
    assert not [word for word in WORDS_OF_OTHERS if word in err]
    assert content(folder) == before


def test_there_are_eighty_mistakes_and_more():
    assert len({line for line, _ in TABLE}) >= 80
