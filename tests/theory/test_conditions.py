import numpy as np
import pytest
import torch

from rni import InputError
from rni.theory.channels import multiplexed
from rni.theory.conditions import LinearSystem, _without_growing, g_coefficients, is_generalizing_integrator
from rni.theory.moments import moments

RNG = np.random.default_rng(0)


def rank_one(neurons=30, decay=0.9, scale=1.5):
    e, d = RNG.normal(size=(2, neurons, 1)) / np.sqrt(neurons)
    left, right = multiplexed(e, d, decay, scale)
    return (left @ right.T).numpy(), e, d, decay, scale


def orthogonal(n):
    return np.linalg.qr(RNG.normal(size=(n, n)))[0]


def test_moments_are_the_sum_of_g_times_powers_of_eigenvalues():
    recurrent = RNG.normal(size=(8, 8)) / 3
    e, d = RNG.normal(size=(2, 8, 2))
    eigenvalues, g = g_coefficients(recurrent, e, d)
    powers = eigenvalues[None, :] ** torch.arange(1, 7)[:, None]
    rebuilt = torch.einsum("qi,icd->qcd", powers, g)
    expected = moments(torch.as_tensor(recurrent), torch.as_tensor(e), torch.as_tensor(d), 6)
    torch.testing.assert_close(rebuilt.real, expected)
    assert rebuilt.imag.abs().max() < 1e-12


def test_g_is_the_papers_product_of_modal_matrices():
    recurrent, e, d = RNG.normal(size=(6, 6)), RNG.normal(size=6), RNG.normal(size=6)
    eigenvalues, modal = np.linalg.eig(recurrent)
    papers = dict(zip(np.round(eigenvalues, 9), (modal.T @ d) * (np.linalg.inv(modal) @ e), strict=True))
    values, g = g_coefficients(recurrent, e, d)
    for value, weight in zip(values.numpy(), g.numpy(), strict=True):
        assert weight.item() == pytest.approx(papers[np.round(value, 9)])


def test_rank_one_integrator_passes_and_wrong_scale_or_decay_does_not():
    recurrent, e, d, decay, scale = rank_one()
    report = is_generalizing_integrator(recurrent, e, d, decay, scale)
    assert report
    assert report.rank == 1
    assert report.moment_error < 1e-12
    assert report.worst.residual < 1e-12
    assert not is_generalizing_integrator(recurrent, e, d, decay, scale * 1.001)
    wrong = is_generalizing_integrator(recurrent, e, d, decay + 0.01, scale)
    assert not wrong
    assert [mode.multiplicity for mode in wrong.modes] == [1, 0]


def test_a_decay_off_by_a_little_is_seen_in_late_moments():
    recurrent, e, d, *_ = rank_one(decay=0.995)
    error = is_generalizing_integrator(recurrent, e, d, 0.9951, 1.5).moment_error
    late = np.arange(1, 1001)
    assert error == pytest.approx(np.abs(0.995**late - 0.9951**late).max(), rel=1e-3)
    assert error > 50 * abs(0.995 - 0.9951)


def test_a_mode_that_the_input_does_not_drive_is_allowed_and_one_it_drives_is_named():
    basis = RNG.normal(size=(3, 3))
    recurrent = basis @ np.diag([0.9, 0.5, -0.3]) @ np.linalg.inv(basis)
    e = basis @ [1.0, 0.0, 0.0]
    d = RNG.normal(size=3)
    assert is_generalizing_integrator(recurrent, e, d, 0.9, d @ e)
    driven = is_generalizing_integrator(recurrent, e + 0.1 * basis[:, 1], d, 0.9, d @ e)
    assert not driven
    assert driven.worst.eigenvalue == pytest.approx(0.5)
    assert driven.worst.weights.item() == pytest.approx(0.1 * d @ basis[:, 1])


def test_unseen_unstable_mode_does_not_hide_the_verdict():
    recurrent = np.diag([0.9, 3.0])
    assert is_generalizing_integrator(recurrent, [1.0, 0.0], [2.0, 1.0], 0.9, 2.0)
    assert not is_generalizing_integrator(recurrent, [1.0, 1e-3], [2.0, 1.0], 0.9, 2.0)


@pytest.mark.parametrize(("driven", "read"), [(True, True), (True, False), (False, True)])
def test_growing_modes_are_seen_where_they_are_driven_and_read(driven, read):
    """Among modes that are not orthogonal to each other; without them, the other moments are the same."""
    rng = np.random.default_rng(1)
    right, values = rng.normal(size=(5, 5)), np.array([0.9, 0.5, -0.3, 1.5, 1.2])
    left = np.linalg.inv(right)
    inputs, outputs = right @ rng.normal(size=(5, 2)), rng.normal(size=(2, 5)) @ left
    inputs -= 0 if driven else right[:, 3:] @ (left[3:] @ inputs)
    outputs -= 0 if read else (outputs @ right[:, 3:]) @ left[3:]
    kept, seen = _without_growing(LinearSystem(right * values @ left, inputs, outputs), lambda value: abs(value) <= 1)
    assert seen == (driven and read)
    for q in range(4):
        slow = (outputs @ right[:, :3]) * values[:3] ** q @ (left[:3] @ inputs)
        power = np.linalg.matrix_power(kept.transition, q)
        np.testing.assert_allclose(kept.outputs @ power @ kept.inputs, slow, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_each_mode_has_the_weight_of_its_channel(scale):
    for mode in is_generalizing_integrator(*rank_one(scale=scale)).modes:
        assert mode.residual < 1e-9


@pytest.mark.parametrize("reading", [1e-3, 1e-8, 1e-20])
def test_an_unstable_mode_that_is_read_at_all_is_no_integrator(reading):
    report = is_generalizing_integrator(np.diag([0.9, 1.2]), [1.0, 1.0], [1.0, reading], 0.9, 1.0)
    assert not report
    assert report.moment_error == np.inf
    assert report.worst.eigenvalue == pytest.approx(1.2)
    rotation = orthogonal(20)
    recurrent = rotation @ np.diag([0.9, 1.2, *RNG.uniform(-0.5, 0.5, 18)]) @ rotation.T
    first, second = rotation[:, 0], rotation[:, 1]
    assert is_generalizing_integrator(recurrent, first, first + second, 0.9, 1.0)
    assert not is_generalizing_integrator(recurrent, first + 1e-10 * second, first + second, 0.9, 1.0)


def test_small_weights_that_large_ones_make_up_for_are_seen():
    recurrent = np.diag([0.9, 0, 0, 0])
    recurrent[2, 1], recurrent[3, 2] = 8e-10, 1e9
    report = is_generalizing_integrator(recurrent, [1.0, 1.0, 0, 0], [1.0, 0, 0, 1.0], 0.9, 1.0)
    assert not report
    assert report.moment_error == pytest.approx(0.8)
    assert report.rank == 3


def test_each_channel_is_judged_at_its_own_scale():
    e, d, scales = np.eye(2), np.diag([1.0, 1e-7]), [1.0, 1e-7]
    assert is_generalizing_integrator(np.diag([0.9, 0.8]), e, d, [0.9, 0.8], scales)
    missing = is_generalizing_integrator(np.diag([0.9, 0.0]), e, d, [0.9, 0.8], scales)
    assert not missing
    assert missing.moment_error == pytest.approx(0.8)


def test_numbers_in_single_precision_are_judged_by_their_precision():
    e, d = RNG.normal(size=(2, 100, 2)) / 10
    left, right = multiplexed(e, d, [0.995, 0.9], 1.0)
    trained = (left @ right.T).numpy() + 3e-8 * RNG.normal(size=(100, 100))
    single = trained.astype(np.float32), e.astype(np.float32), d.astype(np.float32)
    report = is_generalizing_integrator(*single, [0.995, 0.9], 1.0)
    assert report
    assert report.rank == 2
    assert report.tolerance == pytest.approx(np.finfo(np.float32).eps ** 0.5)
    assert not is_generalizing_integrator(trained, e, d, [0.995, 0.9], 1.0)
    assert not is_generalizing_integrator(*single, [0.994, 0.9], 1.0)


def test_slow_decays_are_followed_until_their_moments_differ_most():
    error = is_generalizing_integrator([[0.99998]], [1.0], [1.0], 0.99999, 1.0).moment_error
    assert error == pytest.approx(0.25, rel=0.1)  # x - x^2, x = exp(-1e-5 q), is at most 1/4


@pytest.mark.parametrize("seed", range(40))
def test_verdict_is_that_of_the_moments_themselves(seed):
    rng = np.random.default_rng(seed)
    n, channels = 6, int(rng.integers(1, 3))
    decays, scales = rng.uniform(0.3, 1, channels), 10.0 ** rng.uniform(-8, 8, channels)
    radius = rng.choice([0.5, 0.99, 1.3])
    # in any other basis than its own rounding would drive and read the mode that grows
    basis = rng.normal(size=(n, n)) if radius < 1 else np.eye(n)
    eigenvalues = np.concatenate([decays, radius * rng.uniform(-1, 1, n - channels - 1), [radius]])
    inverse = np.linalg.inv(basis)
    e, d = basis[:, :channels], inverse.T[:, :channels] * scales
    d = d + 10.0 ** rng.choice([-30.0, -12, -4, 0]) * inverse.T[:, -1:] * scales
    e = e + rng.choice([0.0, 1.0]) * basis[:, -1:]
    recurrent = basis @ np.diag(eigenvalues) @ inverse
    w, state, target = (np.asarray(a, dtype=np.longdouble) for a in (recurrent, e, np.diag(scales)))
    largest = 0.0
    for _ in range(400):
        state, target = w @ state, target * decays
        largest = max(largest, float((np.abs(d.T @ state - target) / scales[:, None]).max()))
    report = is_generalizing_integrator(recurrent, e, d, decays, scales)
    if not 1e-8 < largest < 1e-4:  # in between the tolerance decides
        assert bool(report) == (largest < 1e-6)
    if largest < 0.1 and report:
        assert report.moment_error == pytest.approx(largest, rel=1e-3, abs=1e-10)


@pytest.mark.parametrize("size", [2, 3])
def test_jordan_block_passes_only_if_its_nilpotent_part_is_not_read(size):
    jordan = 0.9 * np.eye(size) + np.diag(np.ones(size - 1), 1)
    rotation = orthogonal(size)
    recurrent = rotation @ jordan @ rotation.T
    first, last = rotation[:, 0], rotation[:, -1]
    assert is_generalizing_integrator(recurrent, first, 2 * first, 0.9, 2.0)
    defective = is_generalizing_integrator(recurrent, first + last, 2 * first, 0.9, 2.0)
    assert not defective
    assert defective.worst.multiplicity == size
    assert defective.worst.residual > 0.1


def test_nilpotent_weights_fail_when_the_first_moment_sees_them():
    recurrent = np.array([[0.9, 0, 0], [0, 0, 1], [0, 0, 0]])
    e, d = np.array([1.0, 0, 1]), np.array([1.0, 0, 0])
    assert is_generalizing_integrator(recurrent, e, d, 0.9, 1.0)
    seen = is_generalizing_integrator(recurrent, e, d + np.array([0, 1, 0]), 0.9, 1.0)
    assert not seen
    assert seen.worst.eigenvalue == pytest.approx(0)
    assert seen.worst.weights.item() == pytest.approx(1)


def test_equal_decays_share_one_eigenvalue_whose_weights_are_the_scales():
    e, d = RNG.normal(size=(2, 20, 3))
    left, right = multiplexed(e, d, [0.9, 0.9, 0.7], [1.0, 2.0, 3.0])
    report = is_generalizing_integrator(left @ right.T, e, d, [0.9, 0.9, 0.7], [1.0, 2.0, 3.0])
    assert report
    modes = {round(mode.eigenvalue.real, 6): mode for mode in report.modes}
    assert (modes[0.9].multiplicity, modes[0.7].multiplicity) == (2, 1)
    np.testing.assert_allclose(modes[0.9].weights, np.diag([1.0, 2.0, 0.0]), atol=1e-10)
    np.testing.assert_allclose(modes[0.7].weights, np.diag([0.0, 0.0, 3.0]), atol=1e-10)


def test_cross_talk_between_channels_fails():
    e, d = RNG.normal(size=(2, 20, 2))
    left, right = multiplexed(e, d, [0.9, 0.7], [1.0, 1.0])
    e[:, 1] += 0.01 * e[:, 0]
    assert not is_generalizing_integrator(left @ right.T, e, d, [0.9, 0.7], [1.0, 1.0])


def test_no_weights_integrate_with_decay_zero_only():
    zero, e = np.zeros((4, 4)), np.ones(4)
    assert is_generalizing_integrator(zero, e, e, 0.0, 1.0)
    assert not is_generalizing_integrator(zero, e, e, 0.5, 1.0)


@pytest.mark.parametrize("integrates", [True, False])
def test_a_thousand_neurons_of_full_rank(integrates):
    neurons = 1000
    bulk = 0.5 * RNG.normal(size=(neurons, neurons)) / np.sqrt(neurons)
    e, d = RNG.normal(size=(2, neurons)) / np.sqrt(neurons)
    # a rank-one correction makes e an eigenvector with the decay, so that no other mode is driven
    recurrent = bulk + np.outer(0.9 * e - bulk @ e, e) / (e @ e)
    report = is_generalizing_integrator(recurrent, e, d, 0.9 if integrates else 0.8, d @ e)
    assert report.rank == neurons
    assert bool(report) == integrates


def test_a_thousand_neurons_of_low_rank_with_rounding_noise():
    recurrent, e, d, decay, scale = rank_one(neurons=1000)
    noisy = recurrent + 1e-14 * RNG.normal(size=recurrent.shape)
    report = is_generalizing_integrator(noisy, e, d, decay, scale)
    assert report
    assert report.rank == 1


def test_equal_decays_split_by_a_small_perturbation_are_still_one_mode():
    e, d = RNG.normal(size=(2, 200, 2)) / np.sqrt(200)
    left, right = multiplexed(e, d, [0.9, 0.9], [1.0, 1.0])
    perturbed = (left @ right.T).numpy() + 1e-3 * RNG.normal(size=(200, 200)) / np.sqrt(200)
    report = is_generalizing_integrator(perturbed, e, d, [0.9, 0.9], [1.0, 1.0], tolerance=1e-2)
    assert report
    assert report.worst.residual < 1e-2


def test_a_decay_for_every_channel_is_asked_for():
    e = np.eye(4)[:, :3]
    with pytest.raises(InputError) as error:
        is_generalizing_integrator(np.eye(4), e, e, [0.9, 0.8], 1.0)
    assert (error.value.field, error.value.value) == ("decays", [0.9, 0.8])


def test_every_polynomial_without_constant_term_takes_its_value_at_gamma():
    w, e, d, decay, scale = rank_one()
    eigenvalues, g = g_coefficients(w, e, d)
    for _ in range(5):
        q = np.polynomial.Polynomial([0.0, *RNG.normal(size=4)])
        total = (g[:, 0, 0] * torch.as_tensor(q(eigenvalues.numpy()))).sum()
        assert total.real.item() == pytest.approx(scale * q(decay))
