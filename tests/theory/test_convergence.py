import numpy as np
import pytest
import torch

from rni import InputError
from rni.theory.averaged import averaged_gradient, averaged_hessian, averaged_loss, linear_problem
from rni.theory.convergence import (
    Convergence,
    advise,
    condition_number,
    fastest_convergence,
    hessian_spectrum,
    recipe_cosine,
)
from rni.theory.manifolds import intersection, plane, rank_one, undriven_mode, unread_mode

DECAY, DURATION = 0.995, 3
# the paper's settings for the time to converge: |e|, |d|, overlap
SETTINGS = [(1, 1, 0.1), (1, 0.3, 0.1), (0.3, 1, 0.1), (1, 1, 0.0), (1, 1, 0.8), (0.5, 2, 0.1), (2, 0.5, 0.1)]


def setting(encoder_norm, decoder_norm, mixture):
    return plane(encoder_norm, decoder_norm, encoder_norm * decoder_norm * recipe_cosine(mixture))


def problem_of(space, scale, duration=DURATION):
    return linear_problem(space.encoder, space.decoder, DECAY, scale, duration)


@pytest.mark.parametrize("norms", SETTINGS)
def test_spectrum_is_that_of_the_exact_hessian_with_one_null_direction(norms):
    space = setting(*norms)
    omega = rank_one(space, DECAY, 0.7, 1.0)
    dense = torch.linalg.eigvalsh(averaged_hessian(omega, problem_of(space, 0.7)).reshape(4, 4)).flip(0)
    torch.testing.assert_close(hessian_spectrum(omega, space, DECAY, 0.7, DURATION), dense[:3], rtol=1e-6, atol=1e-9)
    assert abs(dense[3]) < 1e-12 * dense[0]


def test_inputs_of_a_tenth_of_the_variance_have_a_tenth_of_the_curvature():
    space = setting(1, 1, 0.1)
    omega = rank_one(space, DECAY, 0.7, 1.0)
    white, weak = (hessian_spectrum(omega, space, DECAY, 0.7, DURATION, size * torch.eye(3)) for size in (1, 0.1))
    torch.testing.assert_close(weak, 0.1 * white)


def test_null_direction_is_tangent_to_the_iso_scale_curve():
    space, step = setting(1, 1, 0.1), 1e-5
    tangent = (rank_one(space, DECAY, 0.7, 1 + step) - rank_one(space, DECAY, 0.7, 1 - step)) / (2 * step)
    hessian = averaged_hessian(rank_one(space, DECAY, 0.7, 1.0), problem_of(space, 0.7))
    assert torch.einsum("ijkl,kl->ij", hessian, tangent).abs().max() < 1e-6


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_descent_near_the_predicted_minimum_converges_at_the_predicted_rate(scale):
    space = setting(1, 1, 0.1)
    predicted = fastest_convergence(space, DECAY, scale, DURATION)
    assert predicted.condition_number < 500
    problem = problem_of(space, scale)
    omega = predicted.omega + 1e-5 * torch.randn(2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    steps = int(4 * predicted.condition_number)
    losses = []
    for _ in range(2 * steps):
        losses.append(averaged_loss(omega, problem).item())
        omega = omega - predicted.learning_rate * averaged_gradient(omega, problem)
    measured = (losses[-1] / losses[steps]) ** (0.5 / (len(losses) - 1 - steps))
    assert 1 / (1 - measured) == pytest.approx(predicted.condition_number, rel=0.05)


def test_descent_is_stable_below_twice_the_best_learning_rate_and_not_above():
    space = setting(1, 1, 0.1)
    predicted = fastest_convergence(space, DECAY, 1.0, DURATION)
    problem = problem_of(space, 1.0)
    final = {}
    for factor in (1.95, 2.05):
        omega = predicted.omega + 1e-6
        for _ in range(300):
            omega = omega - factor * predicted.learning_rate * averaged_gradient(omega, problem)
        final[factor] = averaged_loss(omega, problem).item()
    assert final[1.95] < 1e-16 < 1e-4 < final[2.05]


@pytest.mark.parametrize("norms", SETTINGS)
@pytest.mark.parametrize("scale", [1e-3, 0.05, 1.0, 10.0])
def test_reported_minimum_is_the_minimum_of_a_fine_scan_down_to_small_scales(norms, scale):
    space = setting(*norms)
    best = fastest_convergence(space, DECAY, scale, DURATION).condition_number
    angles = torch.linspace(0, torch.pi, 20_001, dtype=torch.float64)
    scan = condition_number(angles, space, DECAY, scale, DURATION).nan_to_num(torch.inf).min().item()
    assert 0.98 * scan < best < (1 + 1e-6) * scan


@pytest.mark.parametrize("norms", SETTINGS)
def test_time_grows_as_the_inverse_square_of_a_small_scale(norms):
    space = setting(*norms)
    unit = norms[0] * norms[1] * min(1.0, recipe_cosine(norms[2]) or 1.0)
    first, second = (fastest_convergence(space, DECAY, s * unit, DURATION).condition_number for s in (2e-3, 1e-3))
    assert second / first == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_only_the_cosine_and_the_scale_in_units_of_the_norms_matter(scale):
    unit = fastest_convergence(plane(1, 1, 0.3), DECAY, scale, DURATION)
    for encoder_norm, decoder_norm in ((2, 0.5), (0.3, 1), (3, 2)):
        gain = encoder_norm * decoder_norm
        other = fastest_convergence(plane(encoder_norm, decoder_norm, 0.3 * gain), DECAY, scale * gain, DURATION)
        assert other.condition_number == pytest.approx(unit.condition_number, rel=1e-4)
        assert other.learning_rate * gain**2 == pytest.approx(unit.learning_rate, rel=5e-3)


def test_covariance_of_the_inputs_changes_the_prediction():
    space = setting(1, 1, 0.1)
    white = fastest_convergence(space, DECAY, 1.0, DURATION)
    same = fastest_convergence(space, DECAY, 1.0, DURATION, torch.eye(3))
    persistent = fastest_convergence(space, DECAY, 1.0, DURATION, 0.5 + 0.5 * torch.eye(3))
    assert same.condition_number == pytest.approx(white.condition_number)
    assert persistent.condition_number > 1.5 * white.condition_number


@pytest.mark.parametrize("duration", [3, 5])
@pytest.mark.parametrize("norms", [(1, 1, 0.4), (0.5, 2, 0.1)])
def test_at_the_overlap_two_directions_are_null_off_the_intersection_and_three_on_it(norms, duration):
    space = setting(*norms)
    scale = space.overlap

    def null_directions(omega):
        eigenvalues = torch.linalg.eigvalsh(averaged_hessian(omega, problem_of(space, scale, duration)).reshape(4, 4))
        return int((eigenvalues.abs() < 1e-11 * eigenvalues.max()).sum())

    for other in (0.0, 0.3, -0.6):
        assert null_directions(unread_mode(space, DECAY, other, 0.4)) == 2
        assert null_directions(undriven_mode(space, DECAY, other, 0.4)) == 2
        assert null_directions(intersection(space, DECAY, other)) == 3


def test_convergence_is_not_exponential_at_the_overlap():
    space = setting(1, 1, 0.4)
    at = fastest_convergence(space, DECAY, space.overlap, DURATION)
    near = fastest_convergence(space, DECAY, 1.001 * space.overlap, DURATION)
    assert at.condition_number == np.inf
    assert near.condition_number > 1e6
    assert at.learning_rate == pytest.approx(near.learning_rate, rel=1e-2)


def test_advice_warns_of_scales_near_zero_and_near_the_overlap():
    space = setting(1, 1, 0.4)
    advice = advise(space, DECAY, 1.5, DURATION)
    assert 1 < advice.best_scale < 3
    assert advice.convergence.condition_number >= advice.best_time

    def avoided(s):
        return any(low <= s <= high for low, high in advice.avoid)

    assert avoided(0.002)
    assert avoided(space.overlap)
    assert not avoided(advice.best_scale)
    assert not avoided(1.5)


def test_mixing_encoder_into_decoder_gives_a_larger_cosine_than_the_mixture():
    e, d = torch.randn(2, 200_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    e, d = e / e.norm(), d / d.norm()
    mixed = 0.8 * e + 0.2 * d
    assert (mixed @ e / mixed.norm()).item() == pytest.approx(recipe_cosine(0.8), abs=1e-3)
    assert recipe_cosine(0.8) == pytest.approx(0.970, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        ((plane(1, 1, 0.1), 0.9, 1.0, 2), "duration", 2),
        ((plane(1, 1, 0.1), 0.9, 0.0, 3), "scale", 0),
        ((plane(1, 1, 0.1), 0.0, 1.0, 3), "decay", 0),
        ((plane(1, 1, 1.0), 0.9, 0.5, 3), "overlap", pytest.approx(1)),
    ],
)
def test_settings_without_a_convergence_time_are_refused(arguments, field, value):
    with pytest.raises(InputError) as error:
        fastest_convergence(*arguments)
    assert (error.value.field, error.value.value) == (field, value)


@pytest.mark.parametrize("sign", [1, -1])
def test_advice_is_taken_from_scales_all_over_and_close_to_the_overlap(sign, monkeypatch):
    """With another time to converge, |s - 3| + 1 in units of |d||e| = 2, so that the best and the slow are known."""

    def known(space, decay, scale, duration):
        looked_at.append(scale)
        return Convergence(0.0, torch.zeros(2, 2), abs(abs(scale) / 2 - 3) + 1, 1.0)

    looked_at = []
    monkeypatch.setattr("rni.theory.convergence.fastest_convergence", known)
    advice = advise(plane(1, 2, 0.5), DECAY, sign * 4.0, DURATION, slower=2.0)
    around = 0.5 * np.logspace(-3, -0.5, 12)
    grid = [2 * np.logspace(-3, 1, 81), 0.5 + around, 0.5 - around, [0.5]]
    sizes = np.sort(np.concatenate(grid if sign > 0 else grid[:1]))
    np.testing.assert_allclose(looked_at, [*sign * sizes, sign * 4.0])
    times = np.abs(sizes / 2 - 3) + 1
    assert advice.convergence.condition_number == 2
    assert advice.best_time == pytest.approx(times.min())
    assert advice.best_scale == pytest.approx(sign * sizes[times.argmin()])
    slow = sizes[times > 2 * times.min()]
    runs = np.array([[slow[0], slow[slow < 6].max()], [slow[slow > 6].min(), slow[-1]]])
    np.testing.assert_allclose(advice.avoid, sign * runs)


def test_steps_shrink_the_distance_by_the_condition_number():
    found = Convergence(0.0, torch.zeros(2, 2), 8.0, 2.0)
    assert (found.condition_number, found.learning_rate, found.contraction) == (4, 0.125, 0.75)
    assert Convergence(0.0, torch.zeros(2, 2), 8.0, 0.0).condition_number == np.inf


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_parallel_vectors_are_refused_whatever_their_size(unit):
    with pytest.raises(InputError) as error:
        fastest_convergence(plane(unit, 1, unit), DECAY, unit, DURATION)
    assert error.value.field == "overlap"
    near = plane(unit, 1, unit * (1 - 1e-6))
    assert fastest_convergence(near, DECAY, 2 * unit, DURATION).largest > 0
