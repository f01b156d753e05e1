"""A rate that is stable at the fastest minimum need not be one at which descent from W = 0 converges."""

import numpy as np
import torch

from rni.theory import averaged_gradient, averaged_loss, fastest_convergence, linear_problem, plane
from rni.training.stability import settling_rate


def descend(space, rate, steps=1500):
    problem, omega, losses = linear_problem(space.encoder, space.decoder, 0.995, 1.0, 3), torch.zeros(2, 2).double(), []
    for _ in range(steps):
        losses.append(averaged_loss(omega, problem).item())
        omega = omega - rate * averaged_gradient(omega, problem)
    return losses


def test_descent_from_zero_converges_up_to_the_measured_rate_and_not_at_the_next_below_the_limit_of_the_minimum():
    space = plane(1, 1, 0.0)
    rate = fastest_convergence(space, 0.995, 1.0, 3).learning_rate
    settling = settling_rate(space, 0.995, 1.0, 3, rate * np.linspace(0.1, 2.5, 49))
    assert settling.refused is not None
    assert settling.refused < 2 * rate
    assert settling.loss < 1e-12
    assert descend(space, settling.rate)[-1] < 1e-12
    assert min(descend(space, settling.refused)[-300:]) > 1e-6


def test_no_rate_settles_where_all_are_too_large():
    settling = settling_rate(plane(1, 1, 0.0), 0.995, 1.0, 3, np.array([1.0, 2.0]))
    assert settling == (0.0, 1.0, 1.0)
