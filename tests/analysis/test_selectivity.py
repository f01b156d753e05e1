"""Current coordinates, selectivity vectors, mixed selectivity and statistics of angles, on arrays."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from rni import InputError
from rni.analysis import (
    angles,
    current_coordinates,
    explained,
    harmonics,
    linear_map,
    mixing,
    rectified_selectivity,
    selectivity_vectors,
)


@pytest.fixture
def manifold(generator):
    """Currents on a known three-dimensional manifold: (currents, directions, R, integrals)."""
    directions = torch.linalg.qr(torch.randn(40, 3, generator=generator, dtype=torch.float64)).Q
    matrix = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    integrals = 1 + torch.randn(200, 3, generator=generator, dtype=torch.float64)
    return integrals @ matrix.T @ directions.T, directions, matrix, integrals


def test_the_map_from_integrals_to_coordinates_is_found(manifold):
    currents, directions, matrix, integrals = manifold
    found = linear_map(current_coordinates(currents, directions), integrals)
    torch.testing.assert_close(found.matrix, matrix)
    torch.testing.assert_close(found.explained, torch.ones(3, dtype=torch.float64))


def test_a_curved_manifold_is_explained_in_part(manifold):
    currents, directions, _, integrals = manifold
    curved = current_coordinates(currents, directions).square()
    _, residuals, *_ = np.linalg.lstsq(integrals.numpy(), curved.numpy())
    expected = 1 - residuals / curved.square().sum(0).numpy()
    np.testing.assert_allclose(linear_map(curved, integrals).explained, expected)
    assert expected.max() < 0.9


def test_the_selectivity_of_a_neuron_is_its_current_for_each_integral(manifold):
    currents, directions, matrix, integrals = manifold
    vectors = selectivity_vectors(matrix, directions)
    slow = [[sum(matrix[k, c] * directions[i, k] for k in range(3)) for c in range(3)] for i in range(40)]
    torch.testing.assert_close(vectors, torch.tensor(slow))
    torch.testing.assert_close(linear_map(currents, integrals).matrix, vectors)


def test_selectivity_is_recovered_from_rectified_recordings(manifold):
    currents, directions, matrix, integrals = manifold
    vectors = selectivity_vectors(matrix, directions)
    activity = currents.clamp(min=0)
    torch.testing.assert_close(rectified_selectivity(activity, integrals), vectors)
    assert float(explained(activity, (integrals @ vectors.T).clamp(min=0)).min()) == pytest.approx(1)
    assert float(explained(activity, integrals @ vectors.T).min()) < 0.9


def test_noise_on_recordings_averages_out(generator):
    vectors = torch.randn(30, 2, generator=generator, dtype=torch.float64)
    integrals = torch.randn(5000, 2, generator=generator, dtype=torch.float64)
    noise = torch.randn(5000, 30, generator=generator, dtype=torch.float64)
    error = rectified_selectivity((integrals @ vectors.T).clamp(min=0) + noise, integrals) - vectors
    assert float(error.square().mean().sqrt()) < 1.2 * (2 / 5000) ** 0.5  # half of the samples determine s
    assert float(error.abs().max()) < 5 * (2 / 5000) ** 0.5


def test_a_silent_neuron_selects_nothing(manifold):
    *_, integrals = manifold
    assert not rectified_selectivity(torch.zeros(200, 1, dtype=torch.float64), integrals).any()


@pytest.mark.parametrize("function", [linear_map, rectified_selectivity])
@pytest.mark.parametrize(
    ("samples", "integrals", "wrong", "value"),
    [
        (torch.ones(5, 3), torch.ones(4, 2), "samples", (5, 3)),
        (torch.ones(5, 3), torch.ones(5), "integrals", (5,)),
        (torch.ones(5, 3), torch.ones(5, 2), "integrals", 1),  # rank
        (torch.full((2, 3), float("nan")), torch.eye(2), "samples", None),
        (torch.ones(2, 3), torch.tensor([[1.0, 0.0], [0.0, float("inf")]]), "integrals", None),
    ],
)
def test_samples_that_cannot_be_used_are_refused(function, samples, integrals, wrong, value):
    with pytest.raises(InputError) as caught:
        function(samples, integrals)
    name = "values" if function is linear_map else "activity"
    assert caught.value.field == (name if wrong == "samples" else wrong)
    assert caught.value.value == value


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("samples", [3, 500])
def test_the_linear_map_is_that_of_a_singular_value_decomposition(generator, spread, samples):
    integrals = torch.randn(samples, 3, generator=generator, dtype=torch.float64)
    integrals[:, 2] = integrals[:, 0] + spread * integrals[:, 2]  # nearly along two directions
    values = torch.randn(samples, 40, generator=generator, dtype=torch.float64)
    line = linear_map(values, integrals)
    expected = torch.linalg.lstsq(integrals, values, driver="gelsd").solution
    rounding = 1e-14 / spread  # times the condition number
    torch.testing.assert_close(line.matrix.T, expected, rtol=0, atol=rounding * float(expected.abs().max()))
    residual = values - integrals @ expected
    torch.testing.assert_close(line.explained, 1 - residual.square().sum(0) / values.square().sum(0), rtol=0, atol=1e-9)


def test_integrals_along_too_few_directions_are_refused_up_to_rounding(generator):
    integrals = torch.randn(500, 3, generator=generator, dtype=torch.float64)
    integrals[:, 2] = integrals[:, 0] - integrals[:, 1] * (1 + 1e-15)
    with pytest.raises(InputError, match="rank 2"):
        linear_map(integrals, integrals)


def test_arrays_of_other_shapes_are_refused():
    for function, arrays, field, value in [
        (current_coordinates, (torch.ones(5, 3), torch.ones(4, 2)), "directions", (4, 2)),
        (selectivity_vectors, (torch.ones(2, 2), torch.ones(4, 3)), "directions", (4, 3)),
        (angles, (torch.ones(5, 3),), "vectors", (5, 3)),
        (mixing, (torch.ones(5, 1),), "vectors", (5, 1)),
        (harmonics, (torch.ones(5, 2),), "angles", (5, 2)),
        (harmonics, (torch.tensor([1.0, float("nan")]),), "angles", None),
    ]:
        with pytest.raises(InputError) as caught:
            function(*arrays)
        assert (caught.value.field, caught.value.value) == (field, value)


def test_currents_may_have_trials_and_times(generator):
    currents = torch.randn(4, 7, 5, generator=generator).double()
    directions = torch.randn(5, 2, generator=generator).double()
    found = current_coordinates(currents, directions)
    torch.testing.assert_close(found[3, 6], torch.stack([currents[3, 6] @ column for column in directions.T]))
    for arrays in ((currents[0], directions[:, 0]), (currents[..., :4], directions)):
        with pytest.raises(InputError) as caught:
            current_coordinates(*arrays)
        assert caught.value.field == "directions"


def test_only_samples_in_which_a_neuron_is_active_count(generator):
    """The active ones of the fit, in the end; of one iteration, those of the regression before."""
    integrals = torch.randn(60, 2, generator=generator).double()
    activity = torch.randn(60, 5, generator=generator).double().clamp(min=0)

    def fit(active):
        parts = zip(active.T, activity.T, strict=True)
        return torch.stack([torch.linalg.lstsq(integrals[on], h[on, None]).solution[:, 0] for on, h in parts])

    first = fit(activity > 0)
    torch.testing.assert_close(rectified_selectivity(activity, integrals, 0), first)
    torch.testing.assert_close(rectified_selectivity(activity, integrals, 1), fit(integrals @ first.T > 0))
    ended = rectified_selectivity(activity, integrals)
    torch.testing.assert_close(fit(integrals @ ended.T > 0), ended)


def test_mixing_of_three_channels_and_p_values_of_few_angles():
    index, mean = mixing(torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 1.0]]).double())
    assert index.tolist() == pytest.approx([(4 / 2 - 1) / 2, (36 / 18 - 1) / 2])
    assert float(mean) == pytest.approx(0.5)
    found = harmonics(torch.tensor([0.1, 0.4, 2.0]).double(), (1, 3))
    for k, length, phase, p in zip((1, 3), *found, strict=True):
        vector = np.exp(1j * k * np.array([0.1, 0.4, 2.0])).mean()
        assert complex(length * np.exp(1j * float(phase))) == pytest.approx(complex(vector))
        assert float(p) == pytest.approx(math.exp(math.sqrt(1 + 12 + 36 * (1 - abs(vector) ** 2)) - 7))


def test_angles_go_around_once():
    vectors = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    torch.testing.assert_close(angles(vectors), torch.arange(4, dtype=torch.float64) * math.pi / 2)


@pytest.mark.parametrize("channels", [2, 5])
def test_mixing_is_0_for_one_channel_and_1_for_all_alike(channels):
    assert not mixing(3 * torch.eye(channels)).neurons.any()
    signs = 1 - 2 * (torch.arange(channels) % 2)
    torch.testing.assert_close(mixing(0.1 * signs[None].double()).mean, torch.tensor(1.0, dtype=torch.float64))


def test_mixing_of_evenly_spread_directions():
    theta = torch.arange(400, dtype=torch.float64) * 2 * math.pi / 400
    spread = mixing(torch.stack([theta.cos(), theta.sin()], 1))
    assert float(spread.mean) == pytest.approx(math.sqrt(2) - 1)


def test_neurons_without_selectivity_have_no_weight_in_the_mean():
    vectors = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    index, mean = mixing(vectors)
    assert index.isnan().tolist() == [True, False, False]
    assert float(mean) == pytest.approx(2 / 6)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_harmonics_find_preferred_directions_and_their_place(order):
    rng = np.random.default_rng(order)
    place = 0.3
    theta = place + (rng.vonmises(0, 1.0, 4000) + 2 * np.pi * rng.integers(order, size=4000)) / order
    lengths, phases, p = harmonics(torch.from_numpy(theta))
    k = order - 1
    assert float(lengths[k]) == pytest.approx(0.4464, abs=0.03)  # Bessel I1(1) / I0(1)
    assert float(phases[k]) / order == pytest.approx(place, abs=0.05)
    assert float(p[k]) < 1e-50
    assert all(float(p[j]) > 1e-4 for j in range(4) if (j + 1) % order)


def test_p_values_are_uniform_for_uniform_angles():
    rng = np.random.default_rng(0)
    p = torch.stack([harmonics(torch.from_numpy(rng.uniform(0, 2 * np.pi, 20))).p_values for _ in range(1000)])
    for column in p.T:
        assert stats.kstest(column.numpy(), "uniform").pvalue > 1e-3
