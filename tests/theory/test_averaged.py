import numpy as np
import pytest
import torch

from rni import InputError
from rni.theory.averaged import (
    averaged_gradient,
    averaged_hessian,
    averaged_hessian_product,
    averaged_loss,
    linear_problem,
    moment_jacobian,
)
from rni.theory.channels import multiplexed


def random_problem(neurons=7, channels=2, duration=4, correlated=True, seed=0):
    rng = np.random.default_rng(seed)
    covariance = None
    if correlated:
        factor = rng.normal(size=(duration * channels, duration * channels))
        covariance = (factor @ factor.T).reshape(duration, channels, duration, channels)
    vectors = rng.normal(size=(2, neurons, channels)) / np.sqrt(neurons)
    decays, scales = np.linspace(0.9, 0.6, channels), np.linspace(1.0, 1.4, channels)
    problem = linear_problem(vectors[0], vectors[1], decays, scales, duration, covariance)
    return problem, rng.normal(size=(neurons, neurons)) / np.sqrt(neurons)


CASES = [
    pytest.param({"channels": 1, "correlated": False}, id="one channel, white noise"),
    pytest.param({"channels": 1}, id="one channel, correlated"),
    pytest.param({"channels": 3, "duration": 3}, id="three correlated channels"),
    pytest.param({"channels": 2, "duration": 1}, id="sequences of one step"),
]


def test_averaged_loss_is_the_mean_squared_error_over_inputs():
    problem, recurrent = random_problem(channels=2, duration=3, correlated=False)
    recurrent = torch.as_tensor(recurrent)
    samples = 400_000
    inputs = torch.randn(samples, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    state, target, error = torch.zeros(samples, 7, dtype=torch.float64), torch.zeros(samples, 2), 0.0
    for t in range(3):
        state = (state + inputs[:, t] @ problem.encoders.T) @ recurrent.T
        target = problem.decays * (target + problem.scales * inputs[:, t])
        error = error + (state @ problem.decoders - target).square().sum(1).mean()
    assert averaged_loss(recurrent, problem).item() == pytest.approx(float(error), rel=1e-2)


@pytest.mark.parametrize("case", CASES)
def test_gradient_equals_automatic_differentiation(case):
    problem, recurrent = random_problem(**case)
    automatic = torch.func.grad(lambda w: averaged_loss(w, problem))(torch.as_tensor(recurrent))
    torch.testing.assert_close(averaged_gradient(recurrent, problem), automatic)


@pytest.mark.parametrize("case", CASES)
def test_hessian_equals_automatic_differentiation_away_from_minima(case):
    problem, recurrent = random_problem(**case)
    automatic = torch.autograd.functional.hessian(lambda w: averaged_loss(w, problem), torch.as_tensor(recurrent))
    torch.testing.assert_close(averaged_hessian(recurrent, problem), automatic)


@pytest.mark.parametrize("case", CASES)
def test_hessian_vector_product_equals_the_dense_hessian(case):
    problem, recurrent = random_problem(**case)
    direction = torch.randn(7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    dense = torch.einsum("ijkl,kl->ij", averaged_hessian(recurrent, problem), direction)
    torch.testing.assert_close(averaged_hessian_product(recurrent, direction, problem), dense)


def test_hessian_at_a_minimum_is_the_papers_product_of_moment_derivatives():
    problem, _ = random_problem(channels=2)
    left, right = multiplexed(problem.encoders, problem.decoders, problem.decays, problem.scales)
    recurrent = left @ right.T
    assert averaged_loss(recurrent, problem) < 1e-24
    jacobian = moment_jacobian(recurrent, problem)
    papers = 2 * torch.einsum("qapb,qcaij,pcbkl->ijkl", problem.chi, jacobian, jacobian)
    torch.testing.assert_close(averaged_hessian(recurrent, problem), papers, rtol=1e-9, atol=1e-9)


def test_hessian_product_works_for_a_thousand_neurons():
    problem, recurrent = random_problem(neurons=1000, channels=2, duration=3)
    direction = np.outer(recurrent[0], recurrent[1])
    step = 1e-6
    difference = averaged_gradient(recurrent + step * direction, problem) - averaged_gradient(
        recurrent - step * direction, problem
    )
    exact = averaged_hessian_product(recurrent, direction, problem)
    torch.testing.assert_close(difference / (2 * step), exact, rtol=1e-5, atol=1e-7)


def test_encoders_and_decoders_of_different_shapes_are_refused():
    with pytest.raises(InputError) as error:
        linear_problem(np.ones(5), np.ones((5, 2)), 0.9, 1.0, 3)
    assert (error.value.field, error.value.value, error.value.allowed) == ("decoders", (5, 2), "(5, 1)")


@pytest.mark.parametrize("case", CASES)
def test_the_correlation_of_any_inputs_is_symmetric_and_positive_definite(case):
    problem, _ = random_problem(**case)
    size = problem.chi.shape[0] * problem.chi.shape[1]
    chi = problem.chi.reshape(size, size)
    torch.testing.assert_close(chi, chi.T)
    assert torch.linalg.eigvalsh(chi)[0] > 0


def test_inputs_that_never_vary_at_the_first_step_leave_a_direction_open():
    covariance = torch.diag(torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64))
    chi = linear_problem(np.ones(2), np.ones(2), 0.9, 1.0, 3, covariance).chi[:, 0, :, 0]
    assert torch.linalg.eigvalsh(chi)[0].abs() < 1e-12
