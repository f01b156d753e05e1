import pytest
import torch

from rni.theory.conditions import is_generalizing_integrator
from rni.theory.duration import short_sighted_network, shortest_guaranteed_duration
from rni.theory.moments import moments


@pytest.mark.parametrize("duration", [1, 2, 3, 6])
def test_below_rank_plus_one_steps_a_perfect_fit_need_not_generalise(duration):
    network = short_sighted_network(duration, 0.9, 1.3)
    found = moments(*network, duration + 1)[:, 0, 0]
    wanted = 1.3 * 0.9 ** torch.arange(1, duration + 2).double()
    torch.testing.assert_close(found[:-1], wanted[:-1], rtol=1e-9, atol=1e-9)
    assert abs(found[-1] - wanted[-1]) > 1e-7
    assert not is_generalizing_integrator(*network, 0.9, 1.3)
    assert shortest_guaranteed_duration(network.recurrent) == duration + 1


def test_the_guarantee_is_one_step_more_than_the_rank():
    assert shortest_guaranteed_duration(torch.zeros(5, 5)) == 1
    assert shortest_guaranteed_duration(torch.outer(torch.ones(5), torch.arange(5.0))) == 2
