"""Large networks are computed by parts, some sequences and some neurons at a time: the numbers are the same."""

import pytest
import torch
from told import of

import rni
from rni.activations import make
from rni.core import memory
from rni.networks.vanilla import VanillaRNN
from rni.tasks.inputs import white_noise
from rni.weights import Dense, LowRank

X = white_noise(5, 20, 2, torch.Generator().manual_seed(1)).double()


@pytest.fixture
def by_parts(monkeypatch):
    """Parts of two sequences of 40 neurons, or of 16 neurons of five sequences."""
    monkeypatch.setattr(memory, "TOGETHER", 80)


def factored(f="relu", **options):
    generator = torch.Generator().manual_seed(0)
    left, right, u, d = torch.randn(4, 40, 2, generator=generator, dtype=torch.float64).unbind()
    w, bias, a = LowRank(left / 20, right), 0.1 * left[:, 0], torch.tensor([0.5, -0.5]).double()
    return VanillaRNN(w, u, rni.activations.make(f), bias, d, a, **options)


def followed(net):
    """Outputs from states that are all there, with W formed."""
    whole = VanillaRNN(Dense(net.recurrent.matrix()), **{k: v for k, v in vars(net).items() if k != "recurrent"})
    return whole.readout(whole.run(X))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"f": "tanh", "form": "current"},
        {"f": "tanh", "form": "current", "reads": "state"},
        {"f": "tanh", "form": "current", "reads": "unbiased"},
        {"initial": torch.linspace(0, 1, 40).double()},
        {"leak": 0.3},
        {"leak": torch.linspace(0.2, 1, 40).double()},
        {"noise": 0.1},
        {"f": make("sigmoid", threshold=torch.linspace(0, 0.2, 40))},
        {"f": lambda nu: (nu - torch.linspace(0, 1, 40)).clamp(min=0)},
    ],
)
def test_outputs_of_factored_networks_by_parts_are_those_of_the_whole(by_parts, options):
    net = factored(**options)
    with torch.no_grad():
        torch.testing.assert_close(net.outputs(X), followed(net))


def test_a_network_is_simulated_by_parts_from_any_initial_state(by_parts):
    net = rni.design(rni.Integration([0.9, 0.8]), 40).network
    start = torch.rand(1, 5, 40, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():
        for initial in (None, start):
            torch.testing.assert_close(net.outputs(X, initial), net.readout(net(X, initial)[0]))


def test_an_analysis_by_parts_is_that_of_the_whole(monkeypatch):
    net = rni.design(rni.Integration([0.9, 0.8]), 40).network
    with torch.no_grad():
        of(LowRank, net.recurrent).left.mul_(
            1 + 0.1 * torch.randn(40, 2, generator=torch.Generator().manual_seed(0)).double()
        )
    wholly = rni.analyze(net, inputs=X)
    monkeypatch.setattr(memory, "TOGETHER", 80)
    found = rni.analyze(net, inputs=X)
    for name in ("ratio", "principal_ratio", "linearity", "fitted_decays", "mixing"):
        assert getattr(found, name) == pytest.approx(getattr(wholly, name), rel=1e-6), name
    assert found.errors["inputs"][20] == pytest.approx(wholly.errors["inputs"][20])
    assert found.dynamics.retained == pytest.approx(wholly.dynamics.retained)
