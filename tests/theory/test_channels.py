import numpy as np
import pytest
import torch

from rni import InputError
from rni.theory.channels import channel_residuals, multiplexed
from rni.theory.conditions import is_generalizing_integrator


def vectors(neurons, channels, seed=0):
    return np.random.default_rng(seed).normal(size=(2, neurons, channels)) / np.sqrt(neurons)


def task(channels):
    return np.linspace(0.95, 0.7, channels), np.linspace(1.0, 2.0, channels)


@pytest.mark.parametrize(("neurons", "channels"), [(1, 1), (2, 1), (50, 1), (10, 5), (9, 4), (100, 50), (1000, 10)])
def test_multiplexed_network_is_a_generalizing_integrator_of_rank_d(neurons, channels):
    e, d = vectors(neurons, channels)
    decays, scales = task(channels)
    if neurons == channels:
        scales = (d.T @ e).diagonal()
    left, right = multiplexed(e, d, decays, scales)
    report = is_generalizing_integrator(left @ right.T, e, d, decays, scales)
    assert report
    assert report.rank == channels


def test_the_five_sets_of_conditions_hold_for_the_multiplexed_network_and_fail_for_others():
    e, d = vectors(40, 3)
    decays, scales = task(3)
    left, right = multiplexed(e, d, decays, scales)
    sigma = left.norm(dim=0) * right.norm(dim=0)
    unit_left, unit_right = left / left.norm(dim=0), right / right.norm(dim=0)
    for residual in channel_residuals(sigma, unit_left, unit_right, e, d, decays, scales):
        assert residual.abs().max() < 1e-12
    for broken in (
        channel_residuals(2 * sigma, unit_left, unit_right, e, d, decays, scales)[:2],
        channel_residuals(sigma, unit_left, unit_right, e[:, [1, 0, 2]], d, decays, scales)[1:3],
        channel_residuals(sigma, unit_left[:, [1, 0, 2]], unit_right, e, d, decays, scales)[3:],
    ):
        assert all(residual.abs().max() > 1e-2 for residual in broken)


def test_the_state_is_the_sum_of_the_integrals_along_the_left_vectors():
    e, d = map(torch.as_tensor, vectors(30, 3))
    decays, scales = map(torch.as_tensor, task(3))
    left, right = multiplexed(e, d, decays, scales)
    recurrent, amplitude = left @ right.T, 1 / (d * left).sum(0)
    generator = torch.Generator().manual_seed(0)
    state, integral = torch.zeros(30, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for _ in range(300):
        x = torch.randn(3, dtype=torch.float64, generator=generator)
        state = recurrent @ (state + e @ x)
        integral = decays * (integral + scales * x)
        torch.testing.assert_close(state, left @ (amplitude * integral), rtol=0, atol=1e-10)
        torch.testing.assert_close(d.T @ state, integral, rtol=0, atol=1e-10)


def test_as_many_channels_as_neurons_when_decoders_are_dual_to_encoders():
    e = vectors(8, 8)[0]
    decays, scales = task(8)
    d = np.linalg.inv(e).T * scales
    left, right = multiplexed(e, d, decays, scales)
    assert is_generalizing_integrator(left @ right.T, e, d, decays, scales)


@pytest.mark.parametrize("channels", [1, 3])
def test_decoders_equal_to_encoders_are_no_obstacle(channels):
    e = vectors(20, channels)[0]
    decays, scales = task(channels)
    left, right = multiplexed(e, e, decays, scales)
    assert is_generalizing_integrator(left @ right.T, e, e, decays, scales)


def test_orthogonal_encoders_and_decoders_are_no_obstacle():
    e, d = np.eye(6)[:, :3], np.eye(6)[:, 3:]
    left, right = multiplexed(e, d, *task(3))
    assert is_generalizing_integrator(left @ right.T, e, d, *task(3))


def test_dependent_vectors_are_refused():
    e, d = vectors(20, 3)
    e[:, 2] = e[:, 0] + e[:, 1]
    for field, pair in (("encoders", (e, d)), ("decoders", (d, e))):
        with pytest.raises(InputError) as error:
            multiplexed(*pair, *task(3))
        assert (error.value.field, error.value.value) == (field, 2)  # of rank 2


def test_too_few_neurons_for_generic_vectors_are_refused():
    e, d = vectors(7, 4)
    with pytest.raises(InputError) as error:
        multiplexed(e, d, *task(4))
    assert (error.value.field, error.value.value) == ("encoders", 7)


def test_a_decay_of_zero_is_refused():
    e, d = vectors(7, 2)
    with pytest.raises(InputError) as error:
        multiplexed(e, d, [0.9, 0.0], [1.0, 1.0])
    assert error.value.field == "decays"
