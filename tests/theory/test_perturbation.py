import numpy as np
import pytest
import torch

from rni.theory.channels import multiplexed
from rni.theory.perturbation import expected_perturbation, moment_perturbation, random_bulk

DURATION, RADIUS = 4, 0.8


def spreads(neurons, draws, channels=1):
    """Measured and predicted spread of the moments' perturbation around an integrator, (T, channels, channels)."""
    generator = torch.Generator().manual_seed(neurons)
    e, d = torch.randn(2, neurons, channels, dtype=torch.float64, generator=generator) / neurons**0.5
    left, right = multiplexed(e, d, np.linspace(0.9, 0.8, channels), np.ones(channels))
    recurrent = left @ right.T
    samples = [
        moment_perturbation(recurrent, random_bulk(neurons, RADIUS, generator), e, d, DURATION) for _ in range(draws)
    ]
    measured = torch.stack(samples).square().mean(0).sqrt()
    return measured, expected_perturbation(recurrent, e, d, RADIUS, DURATION)


@pytest.mark.parametrize("channels", [1, 2])
def test_predicted_spread_is_the_measured_one(channels):
    measured, predicted = spreads(250, 300, channels)
    torch.testing.assert_close(measured, predicted, rtol=0.15, atol=0)


def test_perturbation_of_every_moment_falls_as_the_inverse_root_of_the_number_of_neurons():
    sizes = [125, 250, 500, 1000]
    measured = torch.stack([spreads(n, 60)[0][:, 0, 0] for n in sizes]).numpy()
    slope = np.polyfit(np.log(sizes), np.log(measured).mean(1), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


def test_bulk_has_the_asked_spectral_radius():
    bulk = random_bulk(400, RADIUS, torch.Generator().manual_seed(0))
    assert torch.linalg.eigvals(bulk).abs().max().item() == pytest.approx(RADIUS, rel=0.1)
