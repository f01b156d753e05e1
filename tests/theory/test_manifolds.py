import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rni import InputError
from rni.theory.conditions import is_generalizing_integrator
from rni.theory.manifolds import (
    Plane,
    beta_of_scale,
    g_1,
    g_2,
    gamma_matrix,
    intersection,
    plane,
    plane_of,
    rank_one,
    singular_angles,
    undriven_mode,
    unread_mode,
    vertical_null_mode,
    vertical_state,
)
from rni.theory.subspace import null_basis, to_weights

DECAY = 0.9
PLANES = [plane(1, 1, 0.1), plane(1, 0.3, 0.03), plane(0.5, 2, -0.4), plane(1, 1, 1e-9), plane(2, 0.5, 0.95)]


def passes(omega, space: Plane, scale, tolerance=1e-6):
    return is_generalizing_integrator(omega, space.encoder, space.decoder, DECAY, scale, tolerance)


def printed_coordinates(space_norms):
    """alpha_0, beta_0, Z through kappa, l and r as the appendix prints them."""
    e, d, overlap = space_norms
    minus, plus = d**2 - e**2, d**2 + e**2
    kappa = np.sqrt(minus**2 + 4 * overlap**2)
    r_plus, r_minus = np.sqrt(plus + kappa), np.sqrt(plus - kappa)
    base = 2 * overlap * (r_plus - r_minus)
    alpha = -((kappa - minus) * r_minus + (kappa + minus) * r_plus) / base
    beta = ((kappa + minus) * r_minus + (kappa - minus) * r_plus) / base
    return alpha, beta, (overlap * (r_plus - r_minus)) ** 2 / (2 * kappa**2)


@pytest.mark.parametrize("norms", [(1, 1, 0.1), (1, 0.3, 0.03), (0.5, 2, -0.4), (1, 1, 0.8)])
def test_stable_forms_equal_the_printed_closed_forms(norms):
    space = plane(*norms)
    assert (space.alpha_0, space.beta_0, space.z) == pytest.approx(printed_coordinates(norms))


def test_plane_is_the_square_root_of_the_gram_matrix_and_the_reduced_vectors_of_the_subspace():
    e, d = np.random.default_rng(0).normal(size=(2, 40))
    space = plane_of(e, d)
    root = torch.stack(space)
    gram = np.array([[d @ d, d @ e], [d @ e, e @ e]])
    np.testing.assert_allclose((root @ root).numpy(), gram)
    basis = null_basis(e, d)
    torch.testing.assert_close(basis.T @ torch.as_tensor(e), space.encoder)
    torch.testing.assert_close(basis.T @ torch.as_tensor(d), space.decoder)


@pytest.mark.parametrize("space", PLANES[:3])
def test_gamma_has_the_two_eigenvalues_and_its_weights_are_g1_and_g2(space):
    alpha, beta, other = 0.7, -1.3, 0.4
    omega = gamma_matrix(DECAY, other, alpha, beta)
    torch.testing.assert_close(omega @ torch.tensor([1, alpha]).double(), DECAY * torch.tensor([1, alpha]).double())
    torch.testing.assert_close(omega @ torch.tensor([1, beta]).double(), other * torch.tensor([1, beta]).double())
    report = passes(omega, space, 1.0)
    weights = {round(m.eigenvalue.real, 6): m.weights.item().real for m in report.modes}
    assert weights[DECAY] == pytest.approx(g_1(space, alpha, beta))
    assert weights[other] == pytest.approx(g_2(space, alpha, beta))
    assert g_1(space, alpha, beta) + g_2(space, alpha, beta) == pytest.approx(space.overlap)
    factorised = space.z * (alpha - space.alpha_0) * (beta - space.beta_0) / (beta - alpha)
    assert g_1(space, alpha, beta) == pytest.approx(factorised)


@pytest.mark.parametrize("space", PLANES)
@pytest.mark.parametrize("scale", [1e-3, 0.5, 1.0, 10.0])
@pytest.mark.parametrize("angle", [-1.2, 0.3, 1.0, 1.5])
def test_rank_one_manifold_integrates_at_every_scale_and_angle(space, scale, angle):
    omega = rank_one(space, DECAY, scale, angle)
    report = passes(omega, space, scale)
    assert report
    assert report.rank == 1


def test_rank_one_by_angle_is_the_papers_iso_scale_curve():
    space, scale = PLANES[0], 1.3
    for angle in (-1.0, 0.2, 1.1):
        beta = beta_of_scale(space, scale, np.tan(angle))
        assert g_1(space, np.tan(angle), beta) == pytest.approx(scale)
        torch.testing.assert_close(
            rank_one(space, DECAY, scale, angle), gamma_matrix(DECAY, 0.0, np.tan(angle), beta), rtol=1e-9, atol=1e-9
        )


def test_rank_one_takes_many_angles_at_once():
    angles = torch.linspace(0.1, 1.0, 5)
    many = rank_one(PLANES[0], DECAY, 1.0, angles)
    one = torch.stack([rank_one(PLANES[0], DECAY, 1.0, a) for a in angles])
    torch.testing.assert_close(many, one)


@given(
    st.floats(0.2, 3),
    st.floats(0.2, 3),
    st.floats(0.01, 0.95),
    st.sampled_from([-1, 1]),
    st.floats(-1, 1),
    st.floats(0, np.pi),
)
@example(1.0, 1.0, 0.5, -1, 1.2e-38, 0.0)  # powers of 2 beyond whole numbers balance it
@settings(max_examples=40, deadline=None)
def test_both_rank_two_manifolds_integrate_at_the_overlap_and_at_no_other_scale(e, d, cosine, sign, other, angle):
    space = plane(e, d, sign * e * d * cosine)
    along_encoder, across_decoder = singular_angles(space)
    for omega, singular in (
        (unread_mode(space, DECAY, other, angle), across_decoder),
        (undriven_mode(space, DECAY, other, angle), along_encoder),
    ):
        if abs(np.sin(angle - singular)) > 1e-2:
            assert passes(omega, space, space.overlap)
            assert not passes(omega, space, space.overlap + 0.1)


@pytest.mark.parametrize("space", [p for p in PLANES if abs(p.overlap) > 1e-3])
@pytest.mark.parametrize("other", [-0.7, 0.0, 0.5, DECAY])
def test_intersection_is_on_both_manifolds(space, other):
    omega = intersection(space, DECAY, other)
    along_encoder, across_decoder = singular_angles(space)
    torch.testing.assert_close(omega, unread_mode(space, DECAY, other, along_encoder))
    torch.testing.assert_close(omega, undriven_mode(space, DECAY, other, across_decoder))
    torch.testing.assert_close(omega, gamma_matrix(DECAY, other, space.beta_0, space.alpha_0))
    assert passes(omega, space, space.overlap)


@pytest.mark.parametrize("space", [PLANES[0], PLANES[2], PLANES[4]])
@pytest.mark.parametrize("scale", [0.2, 1.7])
def test_special_cases_are_integrators_and_limits_of_the_generic_one(space, scale):
    upright = vertical_state(space, DECAY, scale)
    assert passes(upright, space, scale)
    torch.testing.assert_close(upright, rank_one(space, DECAY, scale, np.pi / 2))
    other = vertical_null_mode(space, DECAY, scale)
    assert passes(other, space, scale)
    alpha = (other[1, 0] / other[0, 0]).item()
    torch.testing.assert_close(other, rank_one(space, DECAY, scale, np.arctan(alpha)))
    assert abs(beta_of_scale(space, scale, alpha)) > 1e10


def test_orthogonal_vectors_have_infinite_coordinates_and_finite_integrators():
    space = plane(1, 1, 0)
    assert (space.alpha_0, space.beta_0, space.z) == (-np.inf, np.inf, 0)
    assert passes(rank_one(space, DECAY, 1.0, 0.5), space, 1.0)
    with pytest.raises(InputError) as error:
        vertical_state(space, DECAY, 1.0)
    assert (error.value.field, error.value.value) == ("overlap", 0)


def test_integrator_of_the_plane_integrates_in_the_whole_network():
    e, d = np.random.default_rng(1).normal(size=(2, 200)) / np.sqrt(200)
    omega = rank_one(plane_of(e, d), DECAY, 1.5, 0.8)
    assert is_generalizing_integrator(to_weights(omega, null_basis(e, d)), e, d, DECAY, 1.5)


def test_overlap_larger_than_the_norms_allow_is_refused():
    with pytest.raises(InputError) as error:
        plane(1, 1, 1.2)
    assert (error.value.field, error.value.value) == ("overlap", 1.2)


def test_gamma_times_the_identity_integrates_at_the_overlap():
    space = plane(1.2, 0.8, 0.3)
    assert passes(0.9 * np.eye(2), space, space.overlap)
    assert not passes(0.9 * np.eye(2), space, 2 * space.overlap)


def test_a_rank_one_omega_is_the_printed_product_of_two_unit_vectors():
    alpha, beta = 0.7, -1.3
    sigma = 0.9 * np.sqrt((alpha**2 + 1) * (beta**2 + 1)) / (beta - alpha)
    x, y = np.array([1, alpha]) / np.sqrt(alpha**2 + 1), np.array([beta, -1]) / np.sqrt(beta**2 + 1)
    np.testing.assert_allclose(gamma_matrix(0.9, 0.0, alpha, beta), sigma * np.outer(x, y), atol=1e-14)
