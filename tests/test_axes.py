"""Exact ReLU designs down to the number of neurons below which there are none."""

from itertools import combinations
from math import ceil

import pytest
import torch

import rni
from rni import vectors
from rni.designs.axes import _vertex, balanced, better_signs, split, turned_axes


@pytest.mark.parametrize(("channels", "seed"), [(2, 0), (4, 2), (8, 0), (12, 1)])
def test_designs_are_exact_at_hardly_more_neurons_than_the_bound(channels, seed):
    task = rni.Integration(torch.linspace(0.99, 0.9, channels).tolist())
    design = rni.design(task, ceil(1.3 * channels * (channels + 1)), seed=seed)
    assert max(design.error()) < 1e-9
    assert design.norm < 15 * channels**0.5
    certificate = rni.certify(design.network)
    assert certificate.rigorous
    assert max(certificate.relative) < 1e-6


@pytest.mark.parametrize(("channels", "neurons"), [(1, 2), (2, 5), (5, 29), (9, 89)])
def test_below_the_bound_a_design_is_refused_and_the_error_states_the_bound(channels, neurons):
    with pytest.raises(rni.InputError) as error:
        rni.design(rni.Integration([0.9] * channels), neurons)
    assert (error.value.field, error.value.value) == ("neurons", neurons)
    assert f"{rni.theory.least_neurons(channels)} for" in error.value.allowed


def test_splits_of_five_channels_hardly_ever_fail():
    found = 0
    for seed in range(40):
        d = vectors.independent(39, 5, torch.Generator().manual_seed(seed)).decoders
        found += split(d, d.abs(), torch.Generator().manual_seed(seed)) is not None
    assert found >= 38


def test_each_group_of_a_split_has_zero_in_its_hull(generator):
    d = vectors.independent(40, 4, generator).decoders
    own = split(d, d.abs(), generator)
    assert own is not None
    for g in range(4):
        rows = d[own == g]
        rho = balanced(torch.ones(len(rows)).double(), rows)
        assert rho is not None
        assert rho.min() >= 0
        assert (rho @ rows).norm() < 1e-13 * rho.norm()


def around(rows):
    """Whether three points of the plane have 0 between them."""
    return bool((torch.linalg.solve(torch.cat([rows.T, torch.ones(1, 3)]), torch.eye(3)[2]) > 0).all())


@pytest.mark.parametrize("neurons", [5, 6])
def test_two_channels_are_split_at_six_neurons_wherever_they_can_be(neurons):
    """Against all ways to make two threes of six."""
    there = []
    for seed in range(16):
        generator = torch.Generator().manual_seed(seed)
        d = vectors.independent(neurons, 2, generator).decoders.float()
        halves = [(list(one), [j for j in range(6) if j not in one]) for one in combinations(range(6), 3)]
        there.append(neurons == 6 and any(around(d[a]) and around(d[b]) for a, b in halves))
        own = split(d.double(), d.double().abs(), generator)
        assert (own is not None) == there[-1]
        assert own is None or (around(d[own == 0]) and around(d[own == 1]))
    assert neurons == 5 or 0 < sum(there) < 16


def test_a_vertex_has_three_neurons_around_zero_of_those_that_are_worth_most(generator):
    rows = torch.nn.functional.normalize(torch.randn(30, 2, generator=generator), dim=1)
    worth = torch.full((30,), 0.01)
    valued = next(list(three) for three in combinations(range(30), 3) if around(rows[list(three)]))
    worth[valued] = 1
    found = _vertex(rows.double().numpy(), worth.double().numpy())
    assert found is not None
    assert found.nonzero()[0].tolist() == valued
    one_side = rows * rows[:, :1].sign()
    assert _vertex(one_side.double().numpy(), worth.double().numpy()) is None
    assert _vertex(one_side[:0].double().numpy(), worth[:0].double().numpy()) is None


def test_balanced_is_a_projection(generator):
    """Optimality: rho - start is in the span of the rows where rho > 0, and above it where rho = 0."""
    start, rows = (torch.randn(shape, generator=generator).double() for shape in ((30,), (30, 3)))
    rho = balanced(start, rows)
    assert rho is not None
    active = rho > 1e-12
    assert not active.all()
    multipliers = torch.linalg.lstsq(rows[active], (rho - start)[active, None], driver="gelsd").solution[:, 0]
    torch.testing.assert_close((start + rows @ multipliers).clamp(min=0), rho)
    assert balanced(torch.rand(9, generator=generator).double(), torch.rand(9, 3, generator=generator).double()) is None


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_units_do_not_matter_to_what_is_balanced(unit, generator):
    start, rows = (torch.randn(shape, generator=generator).double() for shape in ((30,), (30, 3)))
    torch.testing.assert_close(balanced(unit * start, rows), unit * balanced(start, rows))
    torch.testing.assert_close(balanced(start, unit * rows), balanced(start, rows))


def test_turned_axes_meet_the_outputs_condition_and_better_signs_lessen_the_currents(generator):
    d = vectors.independent(39, 5, generator).decoders
    own = split(d, d.abs(), generator)
    assert own is not None
    signed = torch.zeros(39).double()
    for g in range(5):
        members = own == g
        rho = balanced(d[members, g].abs(), d[members])
        assert rho is not None
        signed[members] = rho * d[members, g].sign()
    sizes = []
    for values in (signed, better_signs(d, signed, own)):
        torch.testing.assert_close(values.abs(), signed.abs())
        axes = turned_axes(d, values, torch.eye(5).double(), own)
        assert axes is not None
        left = values[:, None] * axes[own]
        torch.testing.assert_close(d.T @ left, 2 * torch.eye(5).double())
        sizes.append(float(left.norm()))
    assert sizes[1] <= sizes[0]


@pytest.mark.parametrize("slope", [50, 100])
def test_sigmoid_designs_do_not_get_worse_with_more_neurons_and_steeper_slopes(slope):
    """Most neurons of many stay below threshold; the others should come to it one after the other."""
    design = rni.design(rni.Integration([0.8]), 4000, rni.activations.Sigmoid(slope, 0.1))
    assert max(design.output_residuals) < 3e-3
    assert max(design.error(300)) < 0.015
    assert design.norm < 12
