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
    --verison: no such option; ...; did you mean --version?
rni trian run.toml
    trian: no such command; allowed: train, ...; did you mean train?
rni runs lst
    lst: no such command; allowed: list, ...; did you mean list?
rni help
    help: no such command; allowed: train, ...; see rni --help
rni cite me
    me: unexpected; allowed: see rni cite --help

rni train
    CONFIG.toml: missing; allowed: rni train CONFIG.toml
rni train run.tml
    run.tml: no such file
rni train folder
    folder: a folder; allowed: a TOML configuration
rni train run.toml more.toml
    more.toml: unexpected; allowed: --FIELD VALUE
rni train run.toml --nuerons 50
    nuerons: no such field; allowed: seed, ...; did you mean neurons?
rni train run.toml --network.nuerons 50
    network.nuerons: no such field; ...; did you mean neurons?
rni train run.toml --netwrok.neurons 50
    netwrok.neurons: no such field; allowed: seed,
rni train run.toml -n 50
    -n: unexpected; allowed: --FIELD VALUE
rni train run.toml --neurons
    --neurons: no value; allowed: --neurons VALUE
rni train run.toml --neurons ten
    network.neurons: 'ten'; allowed: a whole number
rni train run.toml --neurons 1
    network.neurons: 1; allowed: 2 or more
rni train run.toml --neurons 50.5
    network.neurons: 50.5; allowed: a whole number
rni train run.toml --activation rleu
    network.activation: 'rleu'; ...; did you mean relu?
rni train run.toml --activation "{name='sigmoid', slop=5}"
    network.activation.slop: no such field; ...; did you mean slope?
rni train run.toml --activation "{slope=5}"
    network.activation: {'slope': 5}; allowed: a name, or a table with a name
rni train run.toml --decays 1.5
    task.decays.0: 1.5; allowed: at most 1
rni train run.toml --decays 0.9 --decays 0.8
    --decays: 0.9, and 0.8 again; allowed: once, with all its numbers
rni train run.toml --loss batch --loss proxy
    --loss: given twice; allowed: once
rni train --decays 0.9 --neurons 50
    CONFIG.toml: missing; allowed: rni train CONFIG.toml
rni train run.toml --activation "{name="
    {name=: no table; allowed: {name = 'sigmoid', slope = 50}
rni train run.toml --decays 0.9 high
    high: unexpected; allowed: --FIELD VALUE
rni train run.toml --decays
    --decays: no value; allowed: --decays VALUE
rni train run.toml --decays []
    task.decays: []; allowed: at least 1
rni train run.toml --decays 0.9 --scales 1 2
    task.scales: [1.0, 2.0]; allowed: 1, one for each decay
rni train run.toml --loss bach
    training.loss: 'bach'; ...; did you mean batch?
rni train run.toml --loss averaged
    training.loss: 'averaged'; allowed: 'batch' or 'proxy' for the activation 'relu'
rni train run.toml --points 64
    training.loss.points: no such field; allowed: duration, batch
rni train run.toml --batch 0
    training.loss.batch: 0; allowed: 1 or more
rni train run.toml --optimizer rmsprop
    training.optimizer: 'rmsprop'; allowed: 'sgd' or 'adam'
rni train run.toml --learning-rate fast
    training.learning_rate: 'fast'; allowed: a number
rni train run.toml --learning-rate -0.1
    training.learning_rate: -0.1; allowed: above 0
rni train run.toml --steps -3
    training.steps: -3; allowed: 0 or more
rni train run.toml --precision half
    network.precision: 'half'; allowed: 'float32' or 'float64'
rni train run.toml --seed -1
    seed: -1; allowed: 0 or more
rni train run.toml --train encoders
    training.train: 'encoders'; allowed: 'recurrent', ... or 'all'
rni train run.toml --weights sparse
    network.weights: 'sparse'; allowed: dense, dale, lowrank
rni train run.toml --weights "{name='dale', inhibitory=2}"
    network.weights.inhibitory: 2; allowed: at most 1
rni train run.toml --snapshots few
    --snapshots: 'few'; allowed: a whole number
rni train run.toml --out net.pt
    --out: 'net.pt'; allowed: a name that ends in .safetensors
rni train run.toml --out run.toml
    --out: 'run.toml'; allowed: a name that ends in .safetensors
rni train run.toml --out folder.safetensors
    folder.safetensors: a folder; allowed: the name of a file
rni train run.toml --out run.toml/net.safetensors
    run.toml: not a folder; allowed: a folder, there or to be made
rni train run.toml
    network.safetensors: there already; allowed: --out ..., or --force
rni train broken.toml
    broken.toml: ... (at line 1, column 6); allowed: a TOML configuration
rni train empty.toml
    task.decays: missing; allowed: a value
rni train latin.toml
    latin.toml: not text; allowed: a TOML configuration
rni train "run.toml "
    run.toml : no such file
rni train run.toml --quiet
    quiet: no such field; allowed: seed,
rni train run.toml --neurons --steps 5
    --neurons: no value; allowed: --neurons VALUE
rni train run.toml --neurons=
    network.neurons: ''; allowed: a whole number
rni train run.toml --neurons 10000000
    network.neurons: 10000000; allowed: at most 1000000
rni train run.toml --out=
    .: a folder; allowed: the name of a file
rni train run.toml --decays "0.9;0.8"
    task.decays: '0.9;0.8'; allowed: a number or a list of numbers
rni train run.toml --decays nan
    task.decays.0: nan; allowed: a finite number
rni train run.toml --task.decays.0 0.9
    task.decays.0: no such field; allowed: task.decays, which is [0.9, 0.8]
rni train run.toml --learning-rate inf
    training.learning_rate: inf; allowed: a finite number
rni train run.toml --steps 1e3
    training.steps: 1000.0; allowed: a whole number
rni train run.toml --seed 1.5
    seed: 1.5; allowed: a whole number
rni train run.toml --activation ReLU
    network.activation: 'ReLU'; ...; did you mean relu?
rni train run.toml --precision 64
    network.precision: 64; allowed: 'float32' or 'float64'
rni train run.toml --threads 0
    training.threads: 0; allowed: 1 or more
rni train run.toml --snapshots -1 --out n.safetensors
    --snapshots: '-1'; allowed: 0 or more
rni train run.toml --vectors orthonormal --neurons 2 --decays 0.9 0.8 0.7
    network.neurons: 2; allowed: at least 6 for 3 such channels
rni train net.safetensors
    net.safetensors: a network file; taken by rni analyze; allowed: a configuration
rni train rnn.pt
    rnn.pt: a file of torch.save; taken by rni analyze
rni train x.npy
    x.npy: an array, ...; taken by rni simulate NET.safetensors --inputs

rni design
    --decays: missing; allowed: a value
rni design --decays
    --decays: no value; allowed: --decays VALUE
rni design 0.9 0.8
    0.9 0.8: unexpected; allowed: --decays 0.9 0.8
rni design --decays 0.9,x
    --decays: '0.9,x'; allowed: numbers, e.g. 0.95,0.9
rni design --decays 1.2
    --decays.0: 1.2; allowed: at most 1
rni design --decays 0 --out d.safetensors
    decays: [0.0] ...
rni design --decays 0.9 --neurons 0
    --neurons: 0; allowed: 2 or more
rni design --decays 0.9 --decays 0.8
    --decays: 0.9, and 0.8 again; allowed: once, with all its numbers
rni design --decays 0.9 --nuerons 50
    --nuerons: no such option; ...; did you mean --neurons?
rni design --decays 0.9 --activation tan
    --activation: 'tan'; ...; did you mean tanh?
rni design --decays 0.9 --bounds 3 --out d.safetensors
    --bounds: [3.0]
rni design --decays 0.9 --bounds 1 2 --activation tanh
    --bounds: [1.0, 2.0]; allowed: 1 positive numbers
rni design --decays 0.995 --activation sigmoid --neurons 200 --out d.safetensors
    --bounds: integrals of channel 1 up to 199; allowed: well below 5.32
rni design --decays 0.995 --activation sigmoid --neurons 200 --bounds 1 --out d.safetensors
    design: ... what may help: smaller decays (0.995 adds up some 200 steps, ...), other bounds than 1, ... the 5.3
rni design --decays 0.9 0.8 --neurons 3 --out d.safetensors
    --neurons: no exact solution found for 3 of them; allowed: more neurons, at least 6 for 2 channels
rni design --decays 0.9 0.8 --scales 0 1 --out d.safetensors
    scales: [0.0, 1.0]
rni design --decays 0,9
    --decays.1: 9.0; allowed: at most 1
rni design --decays 0.9 --leak 2
    --leak: 2.0; allowed: at most 1
rni design --polish rnn.pt --out d.safetensors
    rnn.pt: a file of torch.save; taken by rni analyze; allowed: a network
rni design --polish net.safetensors --neurons 5
    --polish: 'neurons'; allowed: only --out
rni design --polish net.safetensors --out net.safetensors
    --out: 'net.safetensors', which is read by the same command
rni design net.safetensors
    net.safetensors: unexpected; allowed: see rni design --help

rni analyze
    NET: missing; allowed: rni analyze NET
rni analyze none.pt
    none.pt: no such file
rni analyze folder
    folder: a folder; allowed: a file that can be read
rni analyze run.toml
    run.toml: a configuration; taken by rni train; allowed: NET.safetensors
rni analyze empty.safetensors
    empty.safetensors: an empty file; allowed: NET.safetensors
rni analyze half.safetensors
    half.safetensors: truncated, or not safetensors
rni analyze half.npz
    half.npz: not an .npz file of numbers; allowed: arrays written by numpy
rni analyze gru.pt
    gru.pt: weight_hh_l0: shape (36, 12), a GRU; ... recording (.npz)
rni analyze lstm.pt
    lstm.pt: weight_hh_l0: shape (48, 12), an LSTM; ... recording (.npz)
rni analyze deep.pt
    deep.pt: weight_hh_l1: an RNN of 2 layers or more; allowed: one
rni analyze linear.pt
    linear.pt: weight: unknown; allowed: recurrent, ... in it: weight 2x2, bias 2
rni analyze module.pt
    module.pt: holds more than tensors, perhaps a whole module; allowed: a state
rni analyze list.pt
    list.pt: a list; allowed: a state dict
rni analyze notes.txt
    notes.txt: a text; allowed: NET.safetensors
rni analyze noinputs.npz
    noinputs.npz: inputs: missing; allowed: activity with the inputs
rni analyze pictures.npz
    pictures.npz: picture: unknown; allowed: recurrent, ... for a recording
rni analyze objects.npz
    objects.npz: inputs: not enough; allowed: recurrent, ...; not read, because pickled: activity
rni analyze net.pkl
    net.pkl: ...; allowed: an .npz file, as numpy.savez(path, **arrays) writes it
rni analyze x.npy
    x.npy: an array, as numpy.save writes it; taken by rni simulate
rni analyze run.checkpoint
    run.checkpoint: the checkpoint of a training; taken by rni train, where the same command is given again; allowed:
rni analyze model.onnx
    model.onnx: an ONNX graph; allowed: NET.safetensors
rni analyze model.h5
    model.h5: an HDF5 file; allowed: NET.safetensors
rni analyze data.mat
    data.mat: a damaged MATLAB file; allowed: MATLAB's version 5 or 7
rni analyze net.safetensors --inputs three.npy
    three.npy: float64 of shape (5, 3); ... (time, 2)
rni analyze net.safetensors --inputs nan.npy
    nan.npy: NaN or infinite values; allowed: finite numbers
rni analyze net.safetensors --inputs notes.txt
    notes.txt: a text; allowed: an array, X.npy
rni analyze net.safetensors --decays 0.9
    decays: 1; allowed: 2, one for each input channel
rni analyze net.safetensors --decays 0.9 1.5
    --decays.1: 1.5; allowed: at most 1
rni analyze net.safetensors --scales 2
    --scales: given without --decays
rni analyze net.safetensors --activation tanh
    activation: 'tanh' for a Network; allowed: none
rni analyze net.safetensors --json=yes
    --json: a value; allowed: --json, alone
rni analyze net.safetensors --out page.pdf
    --out: 'page.pdf'; allowed: a name that ends in .html
rni analyze rnn.pt --robustness
    --robustness: 'rnn.pt'

rni analyze net.safetensors --leak 0.5
    leak: 0.5 for a Network; allowed: none, it has its own
rni analyze rnn.pt --leak 3
    rnn.pt: leak: 3; allowed: above 0 and up to 1
rni analyze rnn.pt --activation foo
    rnn.pt: activation: 'foo'; allowed: linear, relu,
rni analyze rnn.pt --map recurrent=zzz
    rnn.pt: map: recurrent=zzz; allowed: of this file weight_ih_l0 12x2
rni analyze rnn.pt --dt 0.1 --tau 0
    rnn.pt: tau: 0.0; allowed: above 0
rni analyze recording.npz --decays 0.9
    task: given for a recording; allowed: none

rni simulate net.safetensors
    --inputs: missing; allowed: rni simulate --inputs X.npy
rni simulate net.safetensors --inputs x.npy
    --out: missing; allowed: rni simulate --out Y.npy
rni simulate net.safetensors --inputs flat.npy --out y.npy
    flat.npy: float64 of shape (4,); allowed: finite numbers
rni simulate net.safetensors --inputs text.npy --out y.npy
    text.npy: <U1 of shape (1, 2); allowed: finite numbers
rni simulate net.safetensors --inputs x.npy --out y.csv
    --out: 'y.csv'; allowed: a name that ends in .npy
rni simulate net.safetensors --inputs x.npy --out x.npy
    --out: 'x.npy', which is read by the same command; allowed: another
rni simulate net.safetensors --inputs recording.npz --out y.npy
    recording.npz: arrays, ...; taken by rni analyze
rni simulate run.toml --inputs x.npy --out y.npy
    run.toml: a configuration; taken by rni train; allowed: a network file
rni simulate recording.npz --inputs x.npy --out y.npy
    recording.npz: arrays, ...; taken by rni analyze; allowed: a network
rni export net.safetensors --to onxx
    --to: 'onxx'; allowed: torch, onnx, arrays; did you mean onnx?
rni export net.safetensors --to onnx --out net.pt
    --out: 'net.pt'; allowed: a name that ends in .onnx
rni export net.safetensors --out net.safetensors
    --out: 'net.safetensors', which is read by the same command
rni export net.safetensors
    net.pt: there already; allowed: --out with another name, or --force
rni export rnn.pt
    rnn.pt: a file of torch.save; taken by rni analyze; allowed: a network

rni explore net.safetensors --decays 0.9
    --decays: given with net.safetensors; allowed: one network file
rni explore --out page.pdf
    --out: 'page.pdf'; allowed: a name that ends in .html
rni explore two.snapshots.safetensors
    two.snapshots.safetensors: snapshots of a training; taken by rni explore, beside its network; allowed: a network
rni export rnn.safetensors --out rnn.onnx --to onnx
    rnn.safetensors: a safetensors file of tensors; taken by rni analyze; allowed: a network file
rni explore run.toml
    run.toml: a configuration; taken by rni train; allowed: a network file
rni theory --decay 2
    --decay: 2.0; allowed: above 0, up to 1
rni theory --duration 1
    duration: 1; allowed: 3
rni theory --neurons 5
    --neurons: 5
rni theory --capacity
    --capacity: one of two is needed
rni theory net.safetensors
    net.safetensors: activation 'relu'
rni theory rnn.pt
    rnn.pt: a file of torch.save; taken by rni analyze
rni theory --capacity --channels 0
    channels: 0; allowed: a whole number
rni sweep net.safetensors --over seed=0..1 --measure error --out s
    net.safetensors: a network file; taken by rni analyze; allowed: a configuration
rni sweep run.toml --over nuerons=1,2 --measure error --out s
    over.nuerons: no such field; ...; did you mean neurons?
rni sweep run.toml --over seed=5..0 --measure error --out s
    over.seed: '5..0'; allowed: a range that is not empty
rni sweep run.toml --over neurons=10,20 --measure eror --out s
    measure: 'eror'; allowed: loss, ...; did you mean error?
rni reproduce FIG1
    FIG1: no such figure; ...; did you mean fig1?
rni reproduce fig1,fig99
    fig99: no such figure; allowed: fig1,
rni runs prune --size 5 --store none
    --size: '5'; allowed: a number with a unit of kB, MB, GB
rni runs prune --older -1
    --older: '-1'; allowed: 0 or more
rni reproduce fig99
    fig99: no such figure; allowed: fig1, ...; did you mean fig9?
rni reproduce --profile papr
    --profile: 'papr'; allowed: quick, paper, full; did you mean paper?
rni reproduce fig1 --workers 0
    --workers: '0'; allowed: 1 or more
rni reproduce fig1 --workers 2 --scheduler tcp://x
    --scheduler: given with --workers; allowed: one of the two
rni reproduce fig1 --out run.toml
    run.toml: not a folder; allowed: a folder
rni runs list --store run.toml
    run.toml: not a folder; allowed: a folder
rni runs show zz --store none
    zz: no such run in ...; allowed: the first letters of one key
rni runs remove --store none
    remove: nothing named; allowed: KEY..., or --all
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
    rest = err.removeprefix("rni: ")
    for part in said.split("..."):
        assert part.strip() in rest
        rest = rest[rest.index(part.strip()) :]
    assert not [word for word in WORDS_OF_OTHERS if word in err]
    assert content(folder) == before


def test_there_are_eighty_mistakes_and_more():
    assert len({line for line, _ in TABLE}) >= 80
