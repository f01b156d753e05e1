import pytest
import torch

import rni
from rni.analysis import robustness
from rni.analysis.perturbations import lesioned, noisy_outputs, noisy_weights
from rni.tasks.inputs import bursts


@pytest.fixture
def net():
    return rni.design(rni.Integration([0.95, 0.9]), 200).network


def test_errors_grow_with_every_disturbance(net):
    report = robustness(net, duration=100, trajectories=4, draws=2)
    assert report.undisturbed < 1e-11
    assert str(report).startswith("relative error over 100 steps")
    for errors in (report.weights, report.neurons, report.state):
        assert list(errors) == [0.01, 0.03, 0.1]
        assert report.undisturbed < errors[0.01] < errors[0.03] < errors[0.1]


def test_without_disturbance_the_network_is_itself(net, generator):
    x = bursts(2, 50, 2, generator).double()
    plain = net.outputs(x).detach()
    for disturbed in (noisy_weights(net, 0.0, generator).outputs(x), noisy_outputs(net, x, 0.0, generator)):
        torch.testing.assert_close(disturbed.detach(), plain, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(lesioned(net, 0.0, generator).outputs(x).detach(), plain, rtol=0, atol=0)


def test_noise_has_the_size_it_is_said_to_have(net, generator):
    w = net.recurrent.matrix().detach()
    noise = noisy_weights(net, 0.03, generator).recurrent.matrix().detach() - w
    assert float(noise.norm() / w.norm()) == pytest.approx(0.03, rel=0.02)
    assert int((lesioned(net, 0.05, generator).decoders == 0).all(1).sum()) == 10


def test_noise_of_the_state_is_fed_back(net, generator):
    """After one pulse and then no input, noise keeps on moving the integral instead of only blurring the readout."""
    x = torch.zeros(64, 40, 2).double()
    x[:, 0] = 1
    y = noisy_outputs(net, x, 0.05, generator)
    away = (y - net.task.targets(x))[..., 0]
    relative = away.std(dim=0) / net.task.targets(x)[0, :, 0]
    assert float(relative[30:].mean()) > 2 * float(relative[0])


def test_the_same_seed_gives_the_same_report(net):
    options = {"levels": (0.05,), "duration": 30, "trajectories": 2, "draws": 2}
    assert robustness(net, seed=1, **options) == robustness(net, seed=1, **options)


def test_levels_are_fractions(net):
    with pytest.raises(rni.InputError) as caught:
        robustness(net, (1.5,))
    assert (caught.value.field, caught.value.value) == ("levels", (1.5,))


def test_the_report_is_the_mean_of_the_largest_errors_over_draws(net):
    """Draw k has the seed 1000 seed + k + 1, and the inputs have 1000 seed."""
    found = robustness(net, (0.0, 0.05), duration=20, trajectories=2, draws=2, seed=3)
    x = bursts(2, 20, 2, torch.Generator().manual_seed(3000)).double()
    targets = net.task.targets(x)

    def error(outputs):
        return float(((outputs.detach() - targets).square().sum((0, 1)) / targets.square().sum((0, 1))).sqrt().max())

    draws = [3001, 3002]
    assert found.weights[0.05] == pytest.approx(
        sum(error(noisy_weights(net, 0.05, torch.Generator().manual_seed(k)).outputs(x)) for k in draws) / 2
    )
    assert found.neurons[0.05] == pytest.approx(
        sum(error(lesioned(net, 0.05, torch.Generator().manual_seed(k)).outputs(x)) for k in draws) / 2
    )
    assert found.state[0.05] == pytest.approx(
        sum(error(noisy_outputs(net, x, 0.05, torch.Generator().manual_seed(k))) for k in draws) / 2
    )
    for errors in (found.weights, found.neurons, found.state):
        assert errors[0.0] == pytest.approx(found.undisturbed, abs=1e-12)
    with pytest.raises(rni.InputError) as caught:
        robustness(net, (1.0,))
    assert caught.value.field == "levels"


def test_full_matrices_that_do_not_fit_into_memory_are_refused(net, monkeypatch):
    asked = []
    monkeypatch.setattr("rni.core.memory.require", lambda needed, *words: asked.append(needed))
    robustness(net, (), duration=2, trajectories=1)
    assert asked == [4 * 8 * 200**2]
    monkeypatch.setattr("rni.analysis.perturbations.LARGEST", 200)
    robustness(net, (), duration=2, trajectories=1)
    monkeypatch.setattr("rni.analysis.perturbations.LARGEST", 199)
    with pytest.raises(rni.InputError) as caught:
        robustness(net, ())
    assert (caught.value.field, caught.value.value) == ("neurons", 200)
