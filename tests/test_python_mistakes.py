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
    decays: '0.9'; allowed: a number or a list of numbers
rni.Integration([0.9, 1.1])
    decays.1: 1.1; allowed: at most 1
rni.Integration([0.9], scales=[1, 2])
    scales: [1.0, 2.0]; allowed: 1, one for each decay
rni.Integration([0.9, 0.8], [1, "a"])
    scales.1: 'a'; allowed: a number

rni.Network(0.9, e, d, torch.zeros(30, 30))
    task: 0.9; allowed: an Integration, such as ...
rni.Network(rni.Integration, e, d, torch.zeros(30, 30))
    task: <class 'rni.tasks.integration.Integration'>; allowed: an Integration, such as ...
rni.Network([0.9, 0.8], e, d, torch.zeros(30, 30))
    task: [0.9, 0.8]; allowed: an Integration, such as ...
rni.Network(task, e.T, d.T, torch.zeros(30, 30))
    encoders: shape (2, 30); allowed: (30, 2)
rni.Network(task, e.numpy(), d.numpy(), np.zeros((30, 30)))
    recurrent: ndarray; allowed: a tensor of real numbers, float32 or float64
rni.Network(task, e, d, np.zeros((30, 30)))
    recurrent: ndarray; allowed: a tensor of real numbers, float32 or float64
rni.Network(task, e, d, [[0.0] * 30] * 30)
    recurrent: list; allowed: a tensor of real numbers, float32 or float64
rni.Network(task, e, d, torch.zeros(30))
    recurrent: shape (30,); allowed: (neurons, neurons)
rni.Network(task, e, d, torch.zeros(20, 20))
    encoders: shape (30, 2); allowed: (20, 2), (neurons, channels)
rni.Network(task, e, d, torch.zeros(30, 30), "rleu")
    activation: 'rleu'; allowed: linear, relu, sigmoid, tanh, softplus, ...; did you mean relu?
rni.Network(task, e, d, torch.zeros(30, 30), "ReLU")
    activation: 'ReLU'; allowed: linear, relu, sigmoid, tanh, softplus, ...; did you mean relu?
rni.Network(task, e, d, torch.zeros(30, 30), torch.nn.ReLU)
    activation: <class 'torch.nn.modules.activation.ReLU'>; allowed: linear, relu, sigmoid, tanh, softplus, ...
rni.Network(task, e, d, torch.zeros(30, 30), rni.activations.ReLU)
    activation: <class 'rni.activations.activations.ReLU'>; allowed: linear, relu, sigmoid, tanh, softplus, ...
rni.Network(task, e, d, torch.zeros(30, 30), leak=0)
    leak: 0; allowed: a number above 0, up to 1
rni.Network(task, e, d, torch.zeros(30, 30), leak=2)
    leak: 2; allowed: a number above 0, up to 1
rni.Network(task, e, d, torch.zeros(30, 30), leak="0.5")
    leak: '0.5'; allowed: a number above 0, up to 1
rni.Network(task, encoders=30, decoders=2, recurrent=torch.zeros(30, 30))
    encoders: int; allowed: a tensor of real numbers, float32 or float64

net(torch.randn(8, 50, 3))
    inputs: shape (8, 50, 3); allowed: (batch, time, 2) with at least one time step
net(torch.randn(8, 2, 50))
    inputs: shape (8, 2, 50); allowed: (batch, time, 2) with at least one time step
net(x, torch.zeros(30))
    initial: shape (30,); allowed: (1, 8, 30), as torch.nn.RNN
net(x, torch.zeros(8, 30))
    initial: shape (8, 30); allowed: (1, 8, 30), as torch.nn.RNN
net.outputs(x[0])
    inputs: shape (50, 2); allowed: (batch, time, 2) with at least one time step
net.outputs(torch.randn(8, 50, 3))
    inputs: shape (8, 50, 3); allowed: (batch, time, 2) with at least one time step
net.currents(x[0])
    inputs: shape (50, 2); allowed: (batch, time, 2) with at least one time step
net.readout(torch.randn(8, 50, 29))
    states: shape (8, 50, 29); allowed: (..., 30), one of each neuron
net.silenced([30])
    neurons: [30]; allowed: indices from 0 to 29, or a truth value for ...
net.silenced([-1])
    neurons: [-1]; allowed: indices from 0 to 29, or a truth value for ...

rni.Network.from_torch(torch.nn.LSTM(2, 30), torch.nn.Linear(30, 2), task)
    rnn: LSTM with 1 layers; allowed: a torch.nn.RNN with one layer and one ...
rni.Network.from_torch(torch.nn.RNN(3, 30, bias=False), torch.nn.Linear(30, 3, bias=False), task)
    encoders: shape (30, 3); allowed: (30, 2), (neurons, channels)
rni.Network.from_torch(torch.nn.RNN(2, 30, bias=False), torch.nn.Linear(20, 2, bias=False), task)
    decoders: shape (20, 2); allowed: (30, 2), (neurons, channels)

task.targets(torch.randn(8, 50, 3))
    inputs: shape (8, 50, 3); allowed: (..., time, 2), as the task
task.targets([[1.0, 2.0]])
    inputs: list; allowed: a tensor or an array of real numbers

rni.vectors.independent(0, 2)
    neurons: 0; allowed: a whole number from 1 on
rni.vectors.independent(30, 0)
    channels: 0; allowed: a whole number from 1 on
rni.vectors.independent(30, -1)
    channels: -1; allowed: a whole number from 1 on
rni.vectors.independent(30, 2, 0)
    generator: 0; allowed: a torch.Generator, such as ...
rni.vectors.independent(30, 2, np.random.default_rng(0))
    generator: Generator; allowed: a torch.Generator, such as ...
rni.vectors.independent(30, 2, encoder_norm=-1)
    norms: -1; allowed: a positive number, or 2 of them, one for ...
rni.vectors.independent(30, 2, encoder_norm=[1, 2, 3])
    norms: [1, 2, 3]; allowed: a positive number, or 2 of them, one for ...
rni.vectors.overlapping(30, 2, overlap=2)
    overlap: 2; allowed: a number from 0 to 1
rni.vectors.overlapping(30, 2, overlap=-1)
    overlap: -1; allowed: a number from 0 to 1
rni.vectors.orthonormal(3, 2)
    neurons: 3; allowed: at least 4 for 2 such channels
rni.vectors.on_supports(30, 2, kind="smae")
    kind: 'smae'; allowed: same, overlap, disjoint, encoders, decoders
rni.vectors.on_supports(30, 2, fraction=2)
    fraction: 2; allowed: from 0.5 (1 / channels) to 1
rni.vectors.on_supports(3, 2)
    neurons: 3; allowed: at least 4 for 2 such channels

rni.train(net, loss, steps=-1)
    steps: -1; allowed: a whole number from 0 on
rni.train(net, loss, steps=2.5)
    steps: 2.5; allowed: a whole number from 0 on
rni.train(net, loss, steps="10")
    steps: '10'; allowed: a whole number from 0 on
rni.train(net, loss, learning_rate=-0.1, steps=2)
    learning_rate: -0.1; allowed: a number above 0
rni.train(net, loss, learning_rate=0, steps=2)
    learning_rate: 0; allowed: a number above 0
rni.train(net, loss, learning_rate="fast", steps=2)
    learning_rate: 'fast'; allowed: a number above 0
rni.train(net, loss, learning_rate=float("nan"), steps=2)
    learning_rate: nan; allowed: a number above 0
rni.train(net, loss, optimizer="amad", steps=2)
    optimizer: 'amad'; allowed: 'sgd', 'adam', an optimizer of rni.training ...
rni.train(net, loss, optimizer="rmsprop", steps=2)
    optimizer: 'rmsprop'; allowed: 'sgd', 'adam', an optimizer of rni.training ...
rni.train(net, loss, optimizer=torch.optim.LBFGS, steps=2)
    optimizer: LBFGS; allowed: one that steps on dense gradients, without a ...
rni.train(net, loss, optimizer=torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=.1), steps=2)
    optimizer: SGD without recurrent; allowed: one made for all that is trained, or the ...
rni.train(net, loss, schedule="linear", steps=2)
    schedule: 'linear'; allowed: 'constant', 'warmup', 'cosine'
rni.train(net, loss, train="encoders", steps=2)
    train: 'encoders'; allowed: 'recurrent', 'recurrent+decoders', ...; did you mean decoders?
rni.train(net, loss, train="W", steps=2)
    train: 'W'; allowed: 'recurrent', 'recurrent+decoders', ...
rni.train(net, loss, generator=0, steps=2)
    generator: 0; allowed: a torch.Generator, such as ...
rni.train(net, loss, generator=np.random.default_rng(0), steps=2)
    generator: Generator; allowed: a torch.Generator, such as ...
rni.train(net, loss, stop_loss=-1, steps=2)
    stop_loss: -1; allowed: 0 or more
rni.train(net, loss, callbacks=print, steps=2)
    callbacks: <built-in function print>; allowed: a list of functions of (step, loss, network)
rni.train(net, loss, callbacks=[3], steps=2)
    callbacks: [3]; allowed: a list of functions of (step, loss, network)
rni.train(net, loss, checkpoint="run.checkpoint", steps=2)
    checkpoint: 'run.checkpoint'; allowed: rni.training.Checkpoint(Path(...))
rni.train(net, loss, checkpoint=Path("run.checkpoint"), steps=2)
    checkpoint: PosixPath; allowed: rni.training.Checkpoint(Path(...))
rni.train(net, "proxy", steps=2)
    loss: 'proxy'; allowed: a loss (...BatchLoss...), or a function of the network
rni.train(net, rni.ProxyLoss, steps=2)
    loss: <class ...ProxyLoss'>; allowed: a loss ...
rni.train(net, rni.BatchLoss, steps=2, learning_rate=.1)
    loss: <class ...BatchLoss'>; allowed: a loss ...
rni.train(net, task, steps=2)
    loss: Integration...; allowed: a loss ...
rni.train(loss, net, steps=2)
    network: ProxyLoss; allowed: a Network (of a design its .network, of a ...
rni.train(net, rni.ProxyLoss(rni.Integration(0.9)), steps=2)
    task: Integration(decays=(0.9,), scales=(1.0,)) of the ...; allowed: the same
rni.train(net, rni.BatchLoss(rni.Integration([0.9, 0.7])), steps=2)
    task: Integration(decays=(0.9, 0.7), scales=(1.0, 1.0)) of ...; allowed: the same
rni.train(net, rni.AveragedLoss(task), steps=2)
    loss: 'averaged'; allowed: 'batch' or 'proxy' for the activation 'relu'
rni.train(net, rni.ReLUProxyLoss(task), steps=2)
    task: 2 channels; allowed: 1 for the exact ReLU proxy, or ProxyLoss
rni.train(torch.nn.RNN(2, 30), loss, steps=2)
    network: RNN; allowed: a Network (of a design its .network, of a ...
rni.train(rni.design(task, 30), loss, steps=2)
    network: Design; allowed: a Network (of a design its .network, of a ...
rni.train("net.safetensors", loss, steps=2)
    network: 'net.safetensors'; allowed: a Network (of a design its .network, of a ...
rni.train(net, rni.BatchLoss(task, inputs=lambda b, t, c, g: torch.randn(b, c, t)), steps=2)
    inputs: shape (32, 2, 3); allowed: (32, 3, 2), (batch, duration, channels)
rni.train(net, rni.BatchLoss(task, inputs=lambda b, t, c, g: "x"), steps=2)
    inputs: 'x'; allowed: a function that returns a tensor
rni.train(net, rni.BatchLoss(task, inputs=lambda b, t, c, g: [[1]]), steps=2)
    inputs: shape (1, 1); allowed: (32, 3, 2), (batch, duration, channels)
rni.train(net, rni.BatchLoss(task, inputs=lambda: torch.randn(32, 3, 2)), steps=2)
    inputs: <lambda>(); allowed: a function of (batch, duration, channels, ...
rni.train(frozen, loss, steps=2)
    train: 'recurrent', but none of it requires a gradient; allowed: after requires_grad_()
rni.train(leaky, rni.ProxyLoss(task), steps=2)
    leak: 0.5; allowed: 1, or the batch loss, or `net.without_leak()` ...

rni.BatchLoss(0.9)
    task: 0.9; allowed: an Integration, such as ...
rni.BatchLoss([0.9, 0.8])
    task: [0.9, 0.8]; allowed: an Integration, such as ...
rni.BatchLoss(task, duration=0)
    duration: 0; allowed: 1 or more
rni.BatchLoss(task, duration=3.5)
    duration: 3.5; allowed: a whole number
rni.BatchLoss(task, batch=0)
    batch: 0; allowed: 1 or more
rni.BatchLoss(task, batch="32")
    batch: '32'; allowed: a whole number
rni.BatchLoss(task, covariance=torch.eye(4))
    covariance: shape (4, 4); allowed: (3, 3) or (3, 2, 3, 2) ...
rni.BatchLoss(task, covariance=-torch.eye(3))
    covariance: negative eigenvalues
rni.BatchLoss(task, sampling="random")
    sampling: 'random'; allowed: 'even' or 'independent'

rni.ProxyLoss(0.9)
    task: 0.9; allowed: an Integration, such as ...
rni.ProxyLoss(task, points=0)
    points: 0; allowed: 1 or more
rni.ProxyLoss(task, points=2.5)
    points: 2.5; allowed: a whole number
rni.ProxyLoss(task, bounds=-1)
    bounds: [-1.0]; allowed: 2 positive numbers, one for each channel
rni.ProxyLoss(task, bounds=[1, 2, 3])
    bounds: [1.0, 2.0, 3.0]; allowed: 2 positive numbers, one for each channel

rni.ReLUProxyLoss(0.9)
    task: 0.9; allowed: an Integration, such as ...
rni.ReLUProxyLoss(task)
    task: 2 channels; allowed: 1 for the exact ReLU proxy, or ProxyLoss

rni.AveragedLoss(0.9)
    task: 0.9; allowed: an Integration, such as ...
rni.AveragedLoss(task, duration=0)
    duration: 0; allowed: 1 or more

loss(net, torch.randn(8, 50))
    inputs: shape (8, 50); allowed: (point, 2), with at least one point
loss(net, "x")
    inputs: str; allowed: a tensor or an array of real numbers
loss(torch.nn.RNN(2, 30))
    network: RNN; allowed: a Network (of a design its .network, of a ...

rni.BatchLoss(task)(net, torch.randn(8, 50, 3))
    inputs: shape (8, 50, 3); allowed: (sequence, time, 2), with at least one ...
rni.BatchLoss(task)(net, torch.randn(0, 50, 2))
    inputs: shape (0, 50, 2); allowed: (sequence, time, 2), with at least one ...

rni.design(0.9, 30)
    task: 0.9; allowed: an Integration, such as ...
rni.design([0.9, 0.8], 30)
    task: [0.9, 0.8]; allowed: an Integration, such as ...
rni.design(task, neurons=0)
    neurons: 0; allowed: a whole number from 2
rni.design(task, neurons=-3)
    neurons: -3; allowed: a whole number from 2
rni.design(task, 30, "rleu")
    activation: 'rleu'; allowed: linear, relu, sigmoid, tanh, softplus, ...; did you mean relu?
rni.design(task, 30, activation="tanhh")
    activation: 'tanhh'; allowed: linear, relu, sigmoid, tanh, softplus, ...; did you mean tanh?
rni.design(task, 30, bounds=1)
    bounds: 1 ...
rni.design(task, 30, encoders=e.T, decoders=d.T)
    encoders: shape (2, 30); allowed: (30, 2)
rni.design(task, 30, leak=3)
    leak: 3; allowed: a number above 0, up to 1
rni.design(task, 30, seed="a")
    seed: 'a'
rni.design(task, 30, seed=-1)
    seed: -1

rni.certify(task)
    network: Integration; allowed: a Network (of a design its .network, of a ...
rni.certify("net.safetensors")
    network: 'net.safetensors'; allowed: a Network (of a design its .network, of a ...

rni.polish(task)
    network: Integration; allowed: a Network (of a design its .network, of a ...
rni.polish("net.safetensors")
    network: 'net.safetensors'; allowed: a Network (of a design its .network, of a ...

rni.analyze("net.safetensors")
    str: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(Path("net.safetensors"))
    PosixPath: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze("nothing.pt")
    str: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(None)
    NoneType: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(3)
    int: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(rni.Network)
    type: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(torch.nn.RNN)
    type: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(torch.nn.LSTM(2, 30))
    LSTM: has gates; allowed: one torch.nn.RNN or RNNCell, one layer, one ...
rni.analyze(torch.nn.GRU(2, 30))
    GRU: has gates; allowed: one torch.nn.RNN or RNNCell, one layer, one ...
rni.analyze(torch.nn.Linear(2, 3))
    Linear: no RNN in it; allowed: one torch.nn.RNN or RNNCell, one layer, one ...
rni.analyze(torch.nn.RNN(2, 30, num_layers=2))
    weight_hh_l1: an RNN of 2 layers or more; allowed: one torch.nn.RNN or RNNCell, one layer, one ...
rni.analyze(torch.nn.RNN(2, 30, bidirectional=True))
    weight_ih_l0_reverse: a bidirectional RNN; allowed: one torch.nn.RNN or RNNCell, one layer, one ...
rni.analyze(np.zeros((30, 30)))
    ndarray: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(torch.zeros(30, 30))
    Tensor: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze([1, 2, 3])
    arrays of shapes (), (), (); allowed: a SimpleRNN's kernel (inputs, n), recurrent ...
rni.analyze({})
    nothing: not enough; allowed: recurrent, recurrent_left, recurrent_right, ...
rni.analyze({"W": np.zeros((30, 30))})
    W: unknown; allowed: recurrent, recurrent_left, recurrent_right, ...
rni.analyze(net, inputs=torch.randn(8, 50, 3))
    inputs: shape (8, 50, 3); allowed:
rni.analyze(net, inputs=torch.full((8, 50, 2), torch.nan))
    inputs: NaN or infinite values; allowed: finite numbers
rni.analyze(net, inputs=torch.randn(0, 50, 2))
    inputs: shape (0, 50, 2); allowed:
rni.analyze(net, inputs=[1, 2])
    inputs: shape (2,); allowed:
rni.analyze(net, decays=0.9)
    decays: 1; allowed: 2, one for each input channel
rni.analyze(net, decays=[0.9, 1.2])
    decays.1: 1.2; allowed: at most 1
rni.analyze(net, decays="0.9")
    decays: '0.9'; allowed: a number or a list of numbers
rni.analyze(net, task=[0.9, 0.8])
    task: [0.9, 0.8]; allowed: an Integration, such as ...
rni.analyze(net, task=rni.Integration(0.9))
    decays: 1; allowed: 2, one for each input channel
rni.analyze(net, scales=[1, 2])
    scales: given without decays
rni.analyze(net, activation="tanh")
    activation: 'tanh' for a Network; allowed: none, it has its own
rni.analyze(net, seed="a")
    seed: 'a'; allowed: a whole number from 0 on
rni.analyze(net, seed=-1)
    seed: -1; allowed: a whole number from 0 on
rni.analyze(net, decay=[.9, .8])
    decay: no such option; allowed: task, decays, scales, inputs, activation, ...; did you mean decays?
rni.analyze(nannet)
    recurrent: NaN or infinite values; allowed: finite numbers
rni.analyze(rni.Network(task, e, d, 5 * torch.eye(30)))
    network: runs away within 200 steps of N(0, 1) inputs; allowed: activity that stays finite, perhaps on ...
rni.analyze(rni.design(task, 30))
    Design: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze(torch.nn.RNN(2, 30), leak=3)
    leak: 3; allowed: above 0 and up to 1
rni.analyze(torch.nn.RNN(2, 30), dt=-1)
    dt: -1.0; allowed: above 0
rni.analyze(torch.nn.RNN(2, 30), form="rates")
    form: 'rates'; allowed: rate, current
rni.analyze((torch.nn.RNN(2, 30), torch.nn.Linear(29, 2)))
    readout: Linear of 29 neurons beside RNN; allowed: (RNN, Linear), of as many neurons
rni.analyze((torch.nn.RNN(2, 30),))
    tuple: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.analyze({"activity": np.zeros((4, 50, 5)), "inputs": np.zeros((4, 40, 1))})
    activity, inputs: shapes (4, 50, 5), (4, 40, 1); allowed: the same trials and times, (trials, time, ...
rni.analyze({"activity": np.full((4, 50, 5), np.nan), "inputs": np.random.randn(4, 50, 1)})
    activity: 1000 of 1000 samples are missing (NaN) or infinite; allowed: finite numbers, so leave out ...
rni.analyze(found).shape
    Analysis: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...

rni.fixed_points("net.safetensors")
    str: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...
rni.fixed_points(task)
    Integration: can't be analysed; allowed: a Network (of a file: rni.load(path), of a design: its `network`), ...

rni.load("nothing.safetensors")
    nothing.safetensors: no such file
rni.load("folder")
    folder: a folder; allowed: a file that can be read
rni.load("run.toml")
    run.toml: a configuration
rni.load("rnn.pt")
    rnn.pt: a file of torch.save
rni.load("x.npy")
    x.npy: an array, as numpy.save writes it
rni.load("recording.npz")
    recording.npz: arrays, as numpy.savez writes them
rni.load("half.safetensors")
    half.safetensors: truncated, or not safetensors
rni.load("rnn.safetensors")
    rnn.safetensors: format None; allowed: 'rni-network/3'
rni.load("notes.txt")
    notes.txt: truncated, or not safetensors
rni.load(3)
    path: 3; allowed: the name of a file
rni.load(None)
    path: None; allowed: the name of a file
rni.load(net)
    path: Network; allowed: the name of a file
rni.load("net.safetensors", "cuda")
    allow: 'cuda'; allowed: a list of places of activations, ...

rni.read("run.toml")
    run.toml: a configuration
rni.read("nothing.pt")
    nothing.pt: no such file
rni.read("x.npy")
    x.npy: an array, as numpy.save writes it
rni.read("folder")
    folder: a folder; allowed: a file that can be read
rni.read(None)
    path: None; allowed: the name of a file

rni.save("out.safetensors", net)
    network: 'out.safetensors'; allowed: a Network (of a design its .network, of a ...
rni.save(net, "folder")
    folder: a folder; allowed: the name of a file
rni.save(net, "none/net.pt")
    path: 'none/net.pt'; allowed: a name that ends in .safetensors (other ...
rni.save(net, "net.pt")
    path: 'net.pt'; allowed: a name that ends in .safetensors (other ...
rni.save(net, "run.toml/x.safetensors")
    run.toml: not a folder; allowed: a folder, there or to be made
rni.save(torch.nn.RNN(2, 30), "out.safetensors")
    network: RNN; allowed: a Network (of a design its .network, of a ...
rni.save(rni.Network(task, e, d, torch.zeros(30, 30), lambda v: v.relu()), "out.safetensors")
    activation: <function <lambda> ...; allowed: ... module, ...

rni.run({"task": {"decays": [0.9]}})
    specification: dict; allowed: a Run, as ...
rni.run("run.toml")
    specification: 'run.toml'; allowed: a Run, as ...

rni.TrainRun()
    task: missing; allowed: a value, it has no default
rni.TrainRun("run.toml")
    Specification: 'run.toml'; allowed: fields by name, seed=..., kind=..., ...
rni.parse_run({})
    task: missing; allowed: a value, it has no default
rni.parse_run({"task": {"decays": [1.9]}})
    task.decays.0: 1.9; allowed: at most 1
rni.parse_run({"task": {"decays": [0.9]}, "network": {"nuerons": 30}})
    network.nuerons: no such field; allowed: neurons, activation, vectors, weights, leak, ...; did you mean neurons?
rni.parse_run({"decays": [0.9]})
    task: missing; allowed: a value, it has no default
rni.parse_run("run.toml")
    specification: 'run.toml'; allowed: a table
rni.parse_run(None)
    specification: None; allowed: a table
rni.read_run("nothing.toml")
    nothing.toml: no such file
rni.read_run("net.safetensors")
    net.safetensors: not text; allowed: a TOML configuration
rni.read_run("run.toml", {"nuerons": 3})
    nuerons: no such field; allowed: seed, decays, scales, neurons, activation, ...; did you mean neurons?

rni.run_all([{"task": {"decays": [0.9]}}], workers=0)
    specification: dict; allowed: a Run, as ...
rni.run_all([spec], workers=-1)
    workers: -1; allowed: a whole number from 1 on
rni.run_all([spec], workers=1.5)
    workers: 1.5; allowed: a whole number from 1 on
rni.run_all([spec], store="run.toml", workers=0)
    run.toml: not a folder; allowed: a folder, there or to be made

rni.sweep({"task": {"decays": [0.9]}}, over={"nuerons": [1, 2]}, measure="error")
    over.nuerons: no such field; allowed: seed, decays, scales, neurons, activation, ...; did you mean neurons?

rni.explore("net.safetensors", "page.html")
    network: 'net.safetensors'; allowed: a Network (of a design its .network, of a ...
rni.explore(net, "page.pdf")
    path: 'page.pdf'; allowed: a name that ends in .html
rni.explore(task, "page.html")
    network: Integration; allowed: a Network (of a design its .network, of a ...
rni.inputs.white_noise(0, 10, 2)
    batch: 0; allowed: a whole number from 1 on
rni.inputs.white_noise(4, 10.5, 2)
    duration: 10.5; allowed: a whole number from 1 on
rni.inputs.white_noise(4, 10, 2, 0)
    generator: 0; allowed: a torch.Generator, such as ...
rni.inputs.pulses(4, 10, 2, probability=5)
    probability: 5; allowed: a number between 0 and 1
rni.inputs.bursts(4, 100, 2, length=-5)
    length: -5; allowed: a whole number from 1 on
rni.inputs.bursts(4, 100, 2, density=7)
    density: 7; allowed: a number between 0 and 1
rni.inputs.bursts(4, 100, 2, starts=-1)
    starts: -1; allowed: a number between 0 and 1
rni.inputs.correlated_noise(4, 2, torch.ones(5))
    covariance: shape (5,); allowed: (5, 5) or (5, 2, 5, 2)

rni.weights.Dense(np.zeros((3, 3)))
    recurrent: ndarray; allowed: a tensor of floating-point numbers, ...
rni.weights.Dense(torch.zeros(3))
    recurrent: shape (3,); allowed: (neurons, neurons)
rni.weights.LowRank(torch.zeros(30, 2), torch.zeros(20, 2))
    recurrent_left, recurrent_right: shapes (30, 2) and (20, 2); allowed: both (neurons, rank)
rni.weights.LowRank(30, 2)
    recurrent_left: int; allowed: a tensor of floating-point numbers, ...
rni.weights.Dale(torch.zeros(30, 30), torch.zeros(30))
    signs: shape (30,); allowed: a tensor (30,), each +1 or -1
rni.weights.Dale(torch.zeros(30, 30), 0.2)
    signs: 0.2; allowed: a tensor (30,), each +1 or -1
rni.weights.random_matrix(30, radius=-1)
    radius: -1; allowed: a finite number, 0 or more
rni.weights.random_matrix(0, radius=1)
    neurons: 0; allowed: a whole number from 1 on
rni.weights.random_matrix(30.5, radius=1)
    neurons: 30.5; allowed: a whole number from 1 on

rni.activations.make("swish")
    activation: 'swish'; allowed: linear, relu, sigmoid, tanh, softplus, ...
rni.activations.Sigmoid("steep")
    slope: 'steep'; allowed: a number

rni.plot.outputs(x, x[:, :, :1])
    outputs: shape (8, 50, 2); allowed: 2 dimensions of numbers

found.save("page.pdf")
    path: 'page.pdf'; allowed: a name that ends in .json

rni.Recording(np.zeros((4, 50, 5)), np.zeros((4, 40, 1)))
    activity, inputs: shapes (4, 50, 5), (4, 40, 1); allowed: the same trials and times, (trials, time, ...

net.forward(x, x)
    initial: shape (8, 50, 2); allowed: (1, 8, 30), as torch.nn.RNN
"""
TABLE = re.findall(r"^(\S.*)\n    (.+)$", MISTAKES, re.MULTILINE)
NAMES = """
rni.Netwrok
    rni has no Netwrok; did you mean Network?
rni.analyse(net)
    rni has no analyse; did you mean analyze?
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
    assert_said(str(refused.value), said)
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
    assert "allowed in a script: below `if __name__ == '__main__':`" in done.stderr
