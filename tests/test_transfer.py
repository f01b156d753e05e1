"""A head on fixed states: convex, for any rule; what a linear code can't do, a mixed one can."""

import pytest
import torch

from rni import InputError, Integration
from rni.tasks.inputs import white_noise
from rni.training.transfer import Head, accuracy, boundary_distance, context, fit_head, transfer

TASK = Integration([0.8, 0.75, 0.75])


def test_the_head_is_the_papers_formula(generator):
    u, h = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((7,), (5, 7)))
    u *= 0.02  # outputs that are not all 0 or 1
    expected = 1 / (1 + torch.exp(-50 * (h @ u - 0.1)))
    torch.testing.assert_close(Head(u)(h), expected)


def test_the_context_decides_which_integral_counts():
    y = torch.tensor([[1.0, -1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]])
    assert context(y).tolist() == [True, False, False, True]


def test_the_fit_is_the_minimum_of_cross_entropy(generator):
    h = torch.randn(400, 5, generator=generator, dtype=torch.float64)
    labels = (h[:, 0] + torch.randn(400, generator=generator, dtype=torch.float64) > 0.3).double()
    ridge = 1e-3
    head = fit_head(h, labels, slope=2.0, threshold=0.3, ridge=ridge)
    u = head.u.clone().requires_grad_()
    p = torch.sigmoid(2.0 * (h @ u - 0.3))
    loss = -(labels * p.log() + (1 - labels) * (1 - p).log()).mean() + ridge * (2.0 * u).square().sum()
    (slope,) = torch.autograd.grad(loss, u)
    assert float(slope.abs().max()) < 1e-5


def mixed(inputs):
    """Rectified random combinations of the integrals: what an ideal integrator's states look like."""
    directions = torch.randn(3, 100, generator=torch.Generator().manual_seed(2))
    return (TASK.targets(inputs) @ directions).clamp(min=0)


@pytest.mark.parametrize("rule", [context, lambda y: y[..., 0] * y[..., 1] > 0, lambda y: y.norm(dim=-1) > 2])
def test_mixed_activity_can_decide_any_rule_that_the_integrals_themselves_can_not(rule, generator):
    x, new = (white_noise(64, 40, 3, generator) for _ in range(2))
    labels = rule(TASK.targets(new))
    right = {code: accuracy(transfer(code, TASK, rule, x)(code(new)), labels) for code in (mixed, TASK.targets)}
    assert right[mixed] > 0.93
    assert right[TASK.targets] < 0.8


def test_distances_are_those_to_the_boundary(generator):
    y = 2 * torch.rand(40_000, 3, generator=generator) - 1
    label = context(y)
    side = torch.where(label, 1.0, -1.0)
    own, other = (torch.where(y[:, 2] < 0, y[:, a], y[:, b]) for a, b in ((0, 1), (1, 0)))
    across = torch.hypot(y[:, 2], (side * other).clamp(min=0))  # to the other label on the other side of y_2 = 0
    exact = torch.minimum(own.abs(), across).double()
    found = boundary_distance(y, label)
    assert bool((found >= exact - 1e-6).all())
    assert float((found - exact).mean()) < 0.05


def test_what_is_no_label_is_refused(generator):
    h = torch.randn(10, 3, generator=generator)
    with pytest.raises(InputError, match=r"states, labels: shapes \(10, 3\), \(9,\)"):
        fit_head(h, torch.zeros(9))
    with pytest.raises(InputError, match="labels: other values than 0 and 1"):
        fit_head(h, torch.full((10,), -1.0))
    with pytest.raises(InputError, match="states: missing or infinite"):
        fit_head(h / 0, torch.zeros(10))
    with pytest.raises(InputError, match="labels: all the same"):
        boundary_distance(h, torch.ones(10))
