import numpy as np
import pytest
import torch

from rni.theory.averaged import averaged_gradient, averaged_hessian, averaged_loss, linear_problem
from rni.theory.moments import moments
from rni.theory.subspace import null_basis, reduced_problem, to_omega, to_weights


def vectors(neurons, channels, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(neurons, channels)), rng.normal(size=(neurons, channels))


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_basis_is_the_vectors_times_the_symmetric_inverse_root_of_their_gram_matrix(channels):
    encoders, decoders = vectors(30, channels)
    stacked = np.hstack([decoders, encoders])
    values, rotation = np.linalg.eigh(stacked.T @ stacked)
    papers = stacked @ rotation @ np.diag(values**-0.5) @ rotation.T
    np.testing.assert_allclose(null_basis(encoders, decoders).numpy(), papers, atol=1e-12)


@pytest.mark.parametrize(
    ("encoders", "decoders", "rank"),
    [
        (np.eye(5)[:, :1], np.eye(5)[:, :1], 1),
        (np.eye(5)[:, :2], np.eye(5)[:, 1:3], 3),
        (vectors(3, 2)[0], vectors(3, 2)[1], 3),
    ],
    ids=["e equals d", "one vector shared by two channels", "more vectors than neurons"],
)
def test_dependent_vectors_give_a_smaller_orthonormal_basis(encoders, decoders, rank):
    basis = null_basis(encoders, decoders)
    assert basis.shape[1] == rank
    torch.testing.assert_close(basis.T @ basis, torch.eye(rank, dtype=torch.float64))
    torch.testing.assert_close(basis @ (basis.T @ torch.as_tensor(encoders)), torch.as_tensor(encoders))


@pytest.mark.parametrize("channels", [1, 2])
def test_omega_has_the_moments_loss_gradient_and_hessian_of_the_whole_network(channels):
    encoders, decoders = vectors(9, channels)
    problem = linear_problem(encoders, decoders, np.linspace(0.9, 0.8, channels), np.ones(channels), 4)
    basis = null_basis(encoders, decoders)
    small = reduced_problem(problem, basis)
    omega = torch.as_tensor(np.random.default_rng(1).normal(size=(2 * channels, 2 * channels)))
    recurrent = to_weights(omega, basis)

    torch.testing.assert_close(to_omega(recurrent, basis), omega)
    torch.testing.assert_close(
        moments(omega, small.encoders, small.decoders, 5), moments(recurrent, problem.encoders, problem.decoders, 5)
    )
    torch.testing.assert_close(averaged_loss(omega, small), averaged_loss(recurrent, problem))
    # the gradient has no component outside the subspace: it is the reduced gradient, and descent never leaves
    torch.testing.assert_close(
        to_weights(averaged_gradient(omega, small), basis), averaged_gradient(recurrent, problem)
    )
    restricted = torch.einsum(
        "ia,jb,ijkl,kc,ld->abcd", basis, basis, averaged_hessian(recurrent, problem), basis, basis
    )
    torch.testing.assert_close(averaged_hessian(omega, small), restricted)


def test_descent_from_zero_on_omega_follows_descent_on_all_weights():
    encoders, decoders = (v / np.linalg.norm(v, axis=0) for v in vectors(60, 2))
    problem = linear_problem(encoders, decoders, [0.95, 0.9], [1.0, 1.0], 3)
    basis = null_basis(encoders, decoders)
    small = reduced_problem(problem, basis)
    recurrent, omega = torch.zeros(60, 60, dtype=torch.float64), torch.zeros(4, 4, dtype=torch.float64)
    for _ in range(1000):
        recurrent = recurrent - 0.02 * averaged_gradient(recurrent, problem)
        omega = omega - 0.02 * averaged_gradient(omega, small)
    torch.testing.assert_close(to_weights(omega, basis), recurrent, atol=1e-11, rtol=0)
