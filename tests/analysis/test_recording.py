"""What can be said of networks and recordings of which only samples, or only the weights, are known."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from rni import InputError, Integration, Network, Recording, analyze, vectors
from rni.analysis import (
    RecordingAnalysis,
    error_by_duration,
    fit_integrals,
    fit_readout,
    longest_duration,
    outliers,
    principal,
    relative_error,
)
from rni.tasks.inputs import bursts, white_noise
from rni.weights import LowRank


@pytest.fixture
def x(generator):
    return white_noise(40, 150, 2, generator, dtype=torch.float64)


def test_decays_and_gains_of_exact_integrals_are_found_exactly(x):
    z = Integration((0.95, 0.6)).targets(x)
    mixed = z @ torch.tensor([[2.0, 0.3, -1.0], [0.1, 1.0, 0.5]], dtype=torch.float64) + 0.7 * x[..., :1] + 3
    fit = fit_integrals(mixed, x)
    assert fit.decays.tolist() == pytest.approx([0.95, 0.6], abs=1e-6)
    assert fit.gains.T.tolist()[0] == pytest.approx([2.0, 0.3, -1.0], abs=1e-4)
    assert fit.explained == pytest.approx(1)


def test_a_perfect_integrator_has_decay_one_and_one_without_memory_none(x):
    integrating = Integration(1.0).targets(x[..., :1])
    fit = fit_integrals(torch.cat([integrating, x[..., 1:]], 2), x)
    assert fit.decays[0] == 1
    assert fit.decays[1] < 0.01
    assert fit.gains[:, 1].tolist() == [0, 0]


@pytest.mark.parametrize("f", [torch.relu, torch.tanh, lambda nu: torch.sigmoid(5 * (nu - 0.1)), lambda nu: nu + nu**3])
def test_decays_are_found_through_any_activation(f, generator):
    """Bussgang: a nonlinearity keeps the best linear predictor of Gaussian integrals; 12000 samples give 1 %."""
    x = white_noise(80, 150, 2, generator, dtype=torch.float64)
    z = Integration((0.95, 0.8)).targets(x)
    activity = f(z @ torch.randn(2, 100, generator=generator, dtype=torch.float64) / 3)
    assert fit_integrals(activity, x).decays.tolist() == pytest.approx([0.95, 0.8], rel=0.01)


def test_correlated_channels_are_told_apart(x):
    x = x @ torch.tensor([[1.0, 0.9], [0.0, 0.4]], dtype=torch.float64)
    fit = fit_integrals(Integration((0.9, 0.7)).targets(x), x)
    assert fit.decays.tolist() == pytest.approx([0.9, 0.7], abs=1e-5)


def test_outliers_stand_before_the_largest_gap():
    assert outliers(torch.tensor([3.0, 2.5, 0.1, 0.09, 0.08])) == 2
    assert outliers(torch.tensor([3.0, 0.0, 0.0])) == 1
    assert outliers(torch.zeros(4)) == 0


def test_participation_counts_directions(generator):
    samples = torch.randn(20000, 2, generator=generator) @ torch.randn(2, 30, generator=generator).double().float()
    found = principal(samples)
    assert found.components == 2
    assert 1 < found.participation < 2.001
    even = principal(torch.linalg.qr(torch.randn(500, 5, generator=generator)).Q)
    assert even.participation == pytest.approx(5, rel=0.02)
    assert found.ratio(samples, 2) < 1e-5


def test_the_error_by_duration_ends_with_the_relative_error(small, generator):
    net = small("tanh")
    x = bursts(5, 30, 2, generator)
    with torch.no_grad():
        curve = error_by_duration(net.outputs(x.double()), net.task.targets(x.double()))
    torch.testing.assert_close(curve[-1], relative_error(net, x))
    assert longest_duration(torch.tensor([[0.2, 0.0], [0.05, 0.01], [0.3, 0.1]]), 0.1) == (2, 3)
    assert longest_duration(torch.tensor([[0.2, math.inf]]), 0.1) == (0, 0)


def test_a_readout_is_found_where_there_is_one(generator):
    h = torch.randn(300, 20, generator=generator, dtype=torch.float64)
    d = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    decoders, offset = fit_readout(h, h @ d + 1)
    torch.testing.assert_close(decoders, d, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(offset, torch.ones(2).double(), rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def drifting():
    """A linear integrator of decay 0.95 and scale 2 that was meant to have decay 0.9 and scale 1."""
    e, d = vectors.orthonormal(30, 1, torch.Generator().manual_seed(1))
    net = Network(Integration(0.9), e, d, LowRank(2 * d + e, 0.95 * e), "linear")
    return net


def test_effective_decay_and_scale_are_those_of_what_it_does_not_of_what_it_should(drifting: Network):
    analysis = analyze(drifting)
    assert analysis.decays == (0.9,)
    assert analysis.fitted_decays == pytest.approx([0.95], abs=1e-6)
    assert analysis.fitted_scales == pytest.approx([2], rel=1e-4)
    assert analysis.durations == (0,)
    assert (analysis.outliers, analysis.components) == (1, 1)
    assert analysis.linearity < 0.99  # of the integrals that it should have
    meant = analyze(drifting, task=Integration(0.95, 2.0))
    assert meant.durations == (2000,)
    assert meant.linearity == pytest.approx(1)


def test_a_slow_drift_ends_the_integration_at_the_time_that_theory_says(generator):
    """y = sum (gamma x) against the target with decay gamma': the error on white noise has a closed form."""
    e, d = vectors.orthonormal(30, 1, generator)
    net = Network(Integration(1.0), e, d, LowRank(d + e, 0.99 * e), "linear")
    found = analyze(net, inputs=white_noise(2000, 30, 1, generator)).durations[0]
    k = np.arange(1, 31)
    error = np.cumsum(np.cumsum((0.99**k - 1) ** 2)) / np.cumsum(k)
    assert found == pytest.approx(int((np.sqrt(error) <= 0.1).sum()), abs=2)


def trained_by_adam(kind: str, decay: float, size: float = 0.3) -> tuple[nn.RNN, nn.Linear]:
    """torch's own RNN with its biases, trained as people do."""
    torch.manual_seed(0)
    rnn, readout = nn.RNN(1, 20, nonlinearity=kind, batch_first=True), nn.Linear(20, 1)
    optimizer = torch.optim.Adam([*rnn.parameters(), *readout.parameters()], 0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)
    for _ in range(300):
        x = size * torch.randn(32, 15, 1)
        loss = (readout(rnn(x)[0]) - Integration(decay).targets(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return rnn, readout


@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_what_a_torch_rnn_was_trained_to_integrate_is_found(kind, generator):
    rnn, readout = trained_by_adam(kind, 0.85)
    x = 0.3 * white_noise(64, 200, 1, generator)
    analysis = analyze((rnn, readout), inputs=x)
    assert analysis.fitted_decays == pytest.approx([0.85], rel=0.02)
    assert analysis.fitted_scales == pytest.approx([1], rel=0.03)
    assert analysis.durations == (200,)
    without = analyze(rnn, inputs=x)
    assert (without.readout, without.fitted_scales) == ("fitted", None)
    assert without.fitted_decays == pytest.approx([0.85], rel=0.03)
    assert without.errors["inputs"][200][0] < 0.1


def test_a_silent_network_has_numbers_too():
    """W = 0, before any training: no output, so the error is 1; what can't be measured is null."""
    e, d = vectors.independent(12, 2)
    found = json.loads(analyze(Network(Integration((0.9, 0.8)), e, d, torch.zeros(12, 12))).to_json())
    assert found["errors"]["bursts"]["200"] == [1, 1]
    assert (found["durations"], found["outliers"]) == ([0, 0], 0)
    assert (found["ratio"], found["linearity"], found["mixing"]) == (None, None, None)


def test_a_recording_shows_decays_dimension_and_selectivity(generator):
    """200 neurons, rectified, noisy: half code channel 1 only, half channel 2 only."""
    x = white_noise(30, 150, 2, generator, dtype=torch.float64)
    s = torch.zeros(2, 200, dtype=torch.float64)
    s[0, :100], s[1, 100:] = (torch.randn(100, generator=generator, dtype=torch.float64) for _ in range(2))
    h = (Integration((0.9, 0.7)).targets(x) @ s).relu()
    h += 0.1 * torch.randn(h.shape, generator=generator, dtype=torch.float64)
    analysis = analyze(Recording(h, x))
    assert isinstance(analysis, RecordingAnalysis)
    assert analysis.decays == pytest.approx([0.9, 0.7], rel=0.02)
    assert min(analysis.shares) > 10 * analysis.chance
    assert max(analysis.errors) < 0.1
    assert analysis.mixing is not None
    assert analysis.mixing < 0.01
    assert json.loads(analysis.to_json())["trials"] == 30


def test_activity_that_has_nothing_of_the_inputs_is_at_chance(generator):
    x = white_noise(30, 150, 1, generator)
    analysis = analyze(Recording(torch.randn(30, 150, 40, generator=generator), x))
    assert isinstance(analysis, RecordingAnalysis)
    assert analysis.shares[0] < 3 * analysis.chance < 0.01


def test_a_readout_is_judged_on_trials_that_it_was_not_fitted_on(generator):
    """100 neurons of noise can be fitted to 120 samples of anything, and say nothing of the next 120."""
    x = white_noise(4, 60, 1, generator)
    analysis = analyze(Recording(torch.randn(4, 60, 100, generator=generator), x))
    assert analysis.errors[0] > 1


def test_one_trial_is_enough_if_it_is_long(generator):
    x = white_noise(1, 3000, 1, generator)
    h = Integration(0.9).targets(x) @ torch.randn(1, 10, generator=generator)
    analysis = analyze(Recording(h[0], x[0]))
    assert isinstance(analysis, RecordingAnalysis)
    assert analysis.decays == pytest.approx([0.9], abs=1e-4)
    assert analysis.errors[0] < 1e-3


def test_populations_of_a_recording_are_those_that_were_put_in(generator):
    """Whatever the unit of activity: a tenth of the usual response on the other side counts, a hundredth does not."""
    x = white_noise(20, 150, 1, generator)
    z = Integration(0.9).targets(x)
    other = torch.cat([torch.zeros(10), torch.full((10,), 0.01), torch.full((20,), 0.1)])
    h = z.relu() + (-z).relu() * other
    h[..., :5] = (-z).relu()
    for unit in (1e-3, 1e3):
        analysis = analyze(Recording(unit * h, x))
        assert analysis.populations == {"+": 15 / 40, "-": 5 / 40, "shared": 20 / 40, "null": 0.0}


@pytest.mark.parametrize(
    ("call", "field", "value"),
    [
        (lambda: analyze(Recording(torch.ones(2, 9, 3), torch.randn(2, 9, 1))), "activity", None),  # constant
        (lambda: analyze(Recording(torch.randn(1, 3, 3), torch.randn(1, 3, 1))), "activity", 3),  # samples
        (
            lambda: analyze(Recording(torch.zeros(2, 9, 3), torch.zeros(2, 9, 1)), task=Integration(0.9)),
            "task",
            Integration(0.9),
        ),
        (lambda: analyze(nn.RNN(2, 5), inputs=torch.zeros(3, 9, 1)), "inputs", (3, 9, 1)),
        (lambda: analyze(nn.RNN(2, 5), task=Integration(0.9)), "decays", (0.9,)),
        (
            lambda: analyze({"recurrent": 1e9 * torch.eye(3), "input_weights": torch.ones(3, 1), "activation": "relu"}),
            "network",
            None,  # runs away
        ),
    ],
)
def test_samples_without_information_are_refused(call, field, value):
    with pytest.raises(InputError) as caught:
        call()
    assert (caught.value.field, caught.value.value) == (field, value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Recording(torch.full((2, 9, 3), math.nan), torch.zeros(2, 9, 1)), "54 of 54 samples are missing"),
        (lambda: Recording(torch.zeros(2, 9, 3), torch.zeros(2, 8, 1)), "the same trials and times"),
        (lambda: Recording(torch.zeros(9), torch.zeros(9)), r"activity: shape \(9,\); allowed: \(trials, time, n\)"),
    ],
)
def test_recordings_without_samples_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
