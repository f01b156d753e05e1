import pytest
import torch

from rni import InputError
from rni.analysis import PopulationVectors, population_vectors, populations
from rni.analysis.population import NAMES
from rni.plots.style import POPULATIONS


def test_the_vectors_of_a_known_code_are_found(generator):
    positive, negative = (torch.rand(20, generator=generator, dtype=torch.float64) for _ in range(2))
    positive[:8], negative[5:12] = 0, 0
    y = torch.randn(500, generator=generator, dtype=torch.float64)
    activity = y.clamp(min=0)[:, None] * positive + (-y).clamp(min=0)[:, None] * negative
    found = population_vectors(activity, y)
    torch.testing.assert_close(found.positive, positive)
    torch.testing.assert_close(found.negative, negative)
    assert populations(found, 1e-3).tolist() == [1] * 5 + [3] * 3 + [0] * 4 + [2] * 8


@pytest.mark.parametrize(
    ("activity", "integral", "field", "value"),
    [
        (torch.ones(5, 3), torch.ones(4), "integral", (4,)),
        (torch.ones(5, 3), torch.ones(5), "integral", None),  # of one sign
        (torch.full((2, 3), float("nan")), torch.tensor([1.0, -1.0]), "activity", None),
    ],
)
def test_samples_that_cannot_be_used_are_refused(activity, integral, field, value):
    with pytest.raises(InputError) as caught:
        population_vectors(activity, integral)
    assert (caught.value.field, caught.value.value) == (field, value)


def test_figures_and_analyses_name_the_same_populations():
    assert tuple(POPULATIONS) == NAMES


@pytest.mark.parametrize("neurons", [10, 1000])
def test_the_threshold_falls_with_the_size_of_coefficients(neurons):
    """1e-3 of 1000 neurons, whose coefficients are as n^(-1/2); what is at the threshold is not above it."""
    least = 1e-3 * (1000 / neurons) ** 0.5
    positive, negative = torch.zeros(2, neurons, dtype=torch.float64)
    above = torch.tensor(1.01, dtype=torch.float64) * least
    positive[:3], negative[1:4] = above, torch.stack([0.98 * above, above, above])
    assert populations(PopulationVectors(positive, negative))[:5].tolist() == [0, 0, 2, 1, 3]
    assert populations(PopulationVectors(positive, negative), float(above)).tolist() == [3] * neurons
