"""The paper's representation is not the only one."""

import pytest
import torch

import rni
from rni.papers.fanthomme2021.bent import bent


def linear_part(net, x):
    """The part of the currents' variance that a linear map of the integrals explains."""
    currents = net.currents(x).detach().flatten(0, 1)
    z = (net.task.targets(x) / torch.tensor(net.task.scales) / torch.tensor(net.task.decays)).flatten(0, 1)
    residual = currents - z @ torch.linalg.lstsq(z, currents, driver="gelsd").solution
    return 1 - float(residual.square().sum() / currents.square().sum())


@pytest.mark.parametrize(("decays", "neurons"), [([0.9], 40), ([0.95, 0.9], 100), ([0.95, 0.9, 0.8, 0.99], 200)])
def test_there_are_exact_integrators_whose_currents_are_not_linear_in_the_integrals(decays, neurons, generator):
    task = rni.Integration(decays, torch.linspace(1, 2, len(decays)).tolist())
    x = torch.randn(8, 500, len(decays), generator=generator).double()
    bends = {}
    for bend in (0.0, 0.5, 0.9):
        net = bent(task, neurons, bend)
        assert float(rni.analysis.relative_error(net, x).max()) < 1e-11
        bends[bend] = 1 - linear_part(net, x)
    assert bends[0.0] < 1e-12
    assert 0.005 < bends[0.5] < bends[0.9]
    assert torch.linalg.matrix_rank(net.recurrent.matrix()) == len(decays) + 1


def test_the_same_integrals_have_different_currents_after_different_pasts():
    net = bent(rni.Integration(0.5), 40, 0.9)
    x = torch.tensor([[4.0, 1.0], [-4.0, 5.0], [0.0, 3.0]]).double()[:, :, None]  # z = 3 at the end of each
    torch.testing.assert_close(net.outputs(x)[:, -1], torch.full((3, 1), 1.5).double())
    currents = net.currents(x)[:, -1].detach()
    assert (currents[0] - currents[2]).norm() > 0.01 * currents[0].norm()


def test_a_bend_that_would_grow_and_too_few_neurons_are_refused():
    with pytest.raises(rni.InputError, match="bend"):
        bent(rni.Integration(0.9), bend=1.0)
    with pytest.raises(rni.InputError, match="at least 9"):
        bent(rni.Integration([0.9, 0.8]), 8)
