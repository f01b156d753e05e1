import numpy as np
import pytest
import torch

from rni.theory.averaged import averaged_gradient, linear_problem
from rni.theory.moments import moments
from rni.theory.special_cases import OneStepDescent, SameVectorsDescent

RNG = np.random.default_rng(0)
E, D = RNG.normal(size=(2, 12)) * 0.4


def descend(problem, learning_rate, steps):
    recurrent = torch.zeros(12, 12, dtype=torch.float64)
    for _ in range(steps):
        recurrent = recurrent - learning_rate * averaged_gradient(recurrent, problem)
    return recurrent


def one_step(decay=0.9, scale=1.3):
    solution = OneStepDescent(float(np.linalg.norm(E)), float(np.linalg.norm(D)), D @ E, decay, scale)
    return solution, linear_problem(E, D, decay, scale, 1)


def same_vectors(duration, learning_decay=0.9):
    norm = float(np.linalg.norm(E))
    solution = SameVectorsDescent(norm, learning_decay, norm**2, duration)
    return solution, linear_problem(E, E, learning_decay, norm**2, duration)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.99, 1.01])
def test_one_step_trajectory_is_descent_at_any_learning_rate(fraction):
    solution, problem = one_step()
    rate = fraction * solution.stability_limit
    for steps in (0, 1, 7):
        predicted = solution.trajectory(rate, steps)[-1] * np.outer(D, E)
        np.testing.assert_allclose(descend(problem, rate, steps).numpy(), predicted, atol=1e-12)


def test_one_step_descent_is_stable_below_the_limit_and_not_above():
    solution, problem = one_step()
    below = descend(problem, 0.98 * solution.stability_limit, 600)
    np.testing.assert_allclose(below.numpy(), solution.fixed_point * np.outer(D, E), atol=1e-8)
    assert descend(problem, 1.02 * solution.stability_limit, 600).abs().max() > 1e3


def test_one_step_descent_learns_the_scale_and_ends_with_a_decay_of_the_vectors():
    solution, problem = one_step()
    final = moments(descend(problem, 0.5 * solution.stability_limit, 200), problem.encoders, problem.decoders, 5)[
        :, 0, 0
    ]
    assert final[0].item() == pytest.approx(1.3 * 0.9)
    np.testing.assert_allclose((final[1:] / final[:-1]).numpy(), solution.final_decay)


@pytest.mark.parametrize("duration", [1, 2, 3, 8])
def test_polynomial_is_the_descent_of_one_scalar(duration):
    solution, problem = same_vectors(duration)
    for w in (-0.5, 0.0, 0.7):
        recurrent = w * torch.as_tensor(np.outer(E, E))
        slope = averaged_gradient(recurrent, problem).numpy()
        np.testing.assert_allclose(slope, solution.polynomial(w) * np.outer(E, E), atol=1e-10)


@pytest.mark.parametrize("decay", [0.1, 0.5, 0.9, 0.995, 1.0])
def test_the_only_root_at_scale_e_squared_is_the_integrator(decay):
    for duration in [*range(1, 13), 20, 40]:
        np.testing.assert_allclose(SameVectorsDescent(1.7, decay, 1.7**2, duration).roots, [decay / 1.7**2], rtol=1e-6)


@pytest.mark.parametrize("duration", [2, 3, 6])
def test_same_vector_descent_is_stable_up_to_twice_the_inverse_slope(duration):
    solution, problem = same_vectors(duration)
    target = solution.roots[0] * np.outer(E, E)
    start = torch.as_tensor(1.01 * target)

    def distance(rate, steps=500):
        recurrent = start
        for _ in range(steps):
            recurrent = recurrent - rate * averaged_gradient(recurrent, problem)
        return np.abs(recurrent.numpy() - target).max() / np.abs(start.numpy() - target).max()

    assert distance(0.97 * solution.stability_limit) < 1e-4
    assert distance(1.03 * solution.stability_limit) > 1


def test_the_same_vectors_integrate_at_the_square_of_their_norm_and_at_no_other_scale():
    w, e = 0.9 / (E @ E) * np.outer(E, E), torch.as_tensor(E[:, None])
    found = moments(torch.as_tensor(w), e, e, 5)[:, 0, 0].numpy()
    np.testing.assert_allclose(found, (E @ E) * 0.9 ** np.arange(1, 6))
    for factor in (0.5, 2.0):  # the first moment can be had by another w, and then the second is wrong
        found = moments(torch.as_tensor(factor * w), e, e, 2)[:, 0, 0].numpy()
        assert found[0] == pytest.approx(factor * (E @ E) * 0.9)
        assert found[1] != pytest.approx(factor * (E @ E) * 0.9**2, rel=0.1)
