"""Untrained leaky networks: what their neurons hold by their own leak is no integral and no memory of the network."""

from typing import Any

import pytest
import torch
from told import of
from torch import nn

from rni import Analysis, VanillaRNN, analyze
from rni import activations as activation
from rni.networks.vanilla import Form
from rni.weights import Dense

FORMS: tuple[Form, ...] = ("rate", "current")


def untrained(
    neurons, radius, *, f="tanh", form: Form = "rate", leak: Any = 0.1, channels=1, outputs=0, bias=0.0, seed=0
):
    """Independent normal weights W, scaled to a spectral radius; the readout is random too, or missing."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    w, u, b = normal(neurons, neurons), normal(neurons, channels), bias * normal(neurons)
    w = w * radius / torch.linalg.eigvals(w).abs().max()
    decoders = normal(neurons, outputs) / neurons**0.5 if outputs else None
    return VanillaRNN(Dense(w), u, activation.make(f), b, decoders, leak=leak, form=form)


def tutorial(channels, neurons, *, bias=True, seed=0):
    """The layers of a tutorial's leaky network, with the default weights of `nn.Linear`."""
    torch.manual_seed(seed)
    shapes = {"input2h": (channels, neurons), "h2h": (neurons, neurons), "fc": (neurons, channels)}
    return nn.ModuleDict({name: nn.Linear(*shape, bias=bias) for name, shape in shapes.items()}).state_dict()


def assert_neither_integrates_nor_remembers(found):
    found = of(Analysis, found)
    assert found.verdict.kind not in ("integrates", "remembers"), found.verdict


@pytest.mark.parametrize("radius", [0.2, 0.55, 0.9])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("neurons", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_a_random_leaky_network_neither_integrates_nor_remembers(neurons, form, radius):
    seed = round(100 * radius) + neurons
    assert_neither_integrates_nor_remembers(analyze(untrained(neurons, radius, form=form, seed=seed)))


@pytest.mark.parametrize("leak", [0.02, 0.1, 0.5])
def test_with_recurrent_weights_near_zero_a_network_forgets(leak):
    """It has the decay 1 - leak of every neuron alone."""
    found = of(Analysis, analyze(untrained(30, 1e-9, leak=leak)))
    assert found.fitted_decays == pytest.approx([1 - leak], rel=0.02)
    assert found.verdict.kind == "forgets", found.verdict


@pytest.mark.parametrize("bias", [True, False])
def test_a_tutorials_network_does_not_integrate_before_it_is_trained(bias):
    for form, f in zip(FORMS, ("relu", "tanh"), strict=True):
        for channels in (1, 2):
            layers = tutorial(channels, 50, bias=bias, seed=channels)
            assert_neither_integrates_nor_remembers(analyze(layers, leak=0.1, form=form, activation=f))


def test_decays_are_compared_with_the_slowest_neurons():
    leak = torch.linspace(0.02, 0.5, 40, dtype=torch.float64)
    for form in FORMS:
        assert_neither_integrates_nor_remembers(analyze(untrained(40, 0.5, leak=leak, form=form)))


@pytest.mark.parametrize("form", FORMS)
def test_a_readout_fitted_to_a_random_linear_network_makes_no_integrator_of_it(form):
    """Its many time constants can be combined to an exact integral, which lasts longer than the neurons' own."""
    for seed in range(3):
        assert_neither_integrates_nor_remembers(
            analyze(untrained(100, 0.95, f="linear", form=form, leak=0.2, seed=seed))
        )


def test_nor_does_a_readout_fitted_to_a_random_network_with_one_slow_mode():
    """An integral that lasts three times as long as a neuron alone holds 84 % of what the currents remember."""
    assert_neither_integrates_nor_remembers(analyze(untrained(50, 0.9, form="current", leak=0.05, seed=9113)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_no_kind_of_untrained_network_integrates_or_remembers(seed):
    draw = torch.Generator().manual_seed(seed)

    def pick(*values):
        return values[int(torch.randint(len(values), (1,), generator=draw))]

    channels, form, leak = pick(1, 1, 2, 3), pick(*FORMS), pick(0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    neurons, f = pick(20, 50, 100, 200), pick("tanh", "relu", "softplus")
    if seed % 3 == 0:
        layers = tutorial(channels, neurons, bias=pick(True, False), seed=seed)
        found = analyze(layers, leak=leak, form=form, activation=f)
    else:
        outputs, bias, radius = pick(0, channels), pick(0.0, 0.1), pick(1e-9, 1e-3, 0.2, 0.5, 0.8, 0.95)
        found = analyze(
            untrained(
                neurons, radius, f=f, form=form, leak=leak, channels=channels, outputs=outputs, bias=bias, seed=seed
            )
        )
    assert_neither_integrates_nor_remembers(found)
