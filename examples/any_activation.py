"""Integrators of two channels with activations of all kinds, trained on the proxy loss: the same path for each of them.

A homogeneous activation of another degree than 1, such as max(nu, 0)^2 in all neurons, can't integrate through linear
currents: its outputs grow as the square of the integrals. Different exponents in different neurons can.
"""

import torch

from rni import Integration, Network, ProxyLoss, train
from rni.activations import make
from rni.analysis import relative_error
from rni.tasks.inputs import bursts
from rni.training import Adam
from rni.weights import Dense, random_matrix
from rni.weights.vectors import independent


def main(neurons: int = 300, steps: int = 800) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    task = Integration([0.8, 0.75])
    per_neuron = torch.rand(neurons, generator=generator)
    activations = {
        "tanh": make("tanh"),
        "softplus": make("softplus"),
        "sigmoid, thresholds 0.05 to 0.15": make("sigmoid", threshold=0.05 + 0.1 * per_neuron),
        "rectified powers 1.05 to 2": make("rectified_power", exponent=1.05 + 0.95 * per_neuron),
        "a callable, sin": make(torch.sin),
        "a callable, ELU": make(torch.nn.functional.elu),
    }
    errors = {}
    for name, f in activations.items():
        encoders, decoders = independent(neurons, task.channels, generator)
        start = random_matrix(neurons, 0.5 if f.name == "rectified_power" else 0.0, generator)  # no slope at 0
        net = Network(task, encoders, decoders, Dense(start.float()), f)
        options = {"optimizer": Adam(), "learning_rate": 0.6 / neurons, "schedule": "cosine"}
        train(net, ProxyLoss(task, points=64), steps=steps, generator=generator, **options)
        errors[name] = float(relative_error(net, bursts(32, 400, 2, generator)).max())
        print(f"{name:<34} relative error on bursts {errors[name]:.1%}")
    return errors


if __name__ == "__main__":
    main()
