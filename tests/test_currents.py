"""The steps of a design, each against what it says it is."""

import math

import numpy as np
import pytest
import torch

import rni
from rni import activations as activation
from rni import vectors
from rni.designs.axes import balanced, better_signs, split, turned_axes
from rni.designs.certificate import _homogeneous_residuals, coordinates, invariant_box
from rni.designs.currents import least_norm, preferred_currents
from rni.designs.designing import advice, box_of_integrals, require_suitable_activation, residuals, simulated_error
from rni.designs.extremes import _neighbours, box_points, linear_maxima, relu_maxima, searched_maxima, shared_axes_bound
from rni.designs.linear import linear_factors
from rni.designs.polishing import _candidates
from rni.designs.relu import (
    _all_sides,
    nearest_nonnegative,
    populations,
    relu_factors,
    right_conditions,
    signed_strengths,
)
from rni.designs.smooth import RIDGE, _currents, _nodes, _right, largest_outputs, smooth_factors
from rni.papers.fanthomme2021.bent import bent
from rni.weights import LowRank

AXES = [(1, 400, 1, 1), (3, 40, 3, 5), (3, 150, 9, 18), (3, 1000, 12, 125), (2, 24, 2, 4)]


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def on_axes(neurons=60, channels=3, groups=5):
    """Decoders, signed strengths in balance on some axes, the axes, and the group of each neuron."""
    d = vectors.independent(neurons, channels, torch.Generator().manual_seed(0)).decoders
    axes = torch.nn.functional.normalize(normal(groups, channels, seed=1), dim=1)
    own = split(d, (d @ axes.T).abs(), torch.Generator().manual_seed(0))
    assert own is not None
    signed = signed_strengths(d, (d * axes[own]).sum(1), own, groups)
    assert signed is not None
    return d, signed, axes, own


def test_axes_are_turned_as_little_as_the_condition_allows():
    r"""$\min \sum_j \rho_j^2 |u_{g(j)} - \alpha a_{g(j)}|^2$ with $\sum_g w_g u_g^\dagger = 2$, by Lagrange."""
    d, signed, axes, own = on_axes()
    found = turned_axes(d, signed, axes, own)
    assert found is not None
    w = torch.stack([(signed[own == g, None] * d[own == g]).sum(0) for g in range(5)])
    torch.testing.assert_close(w.T @ found, 2 * torch.eye(3).double())
    squares = torch.stack([signed[own == g].square().sum() for g in range(5)])
    alpha = 2 * float((w.T @ axes).trace() / (w.T @ axes).square().sum())  # of the least |w' alpha a - 2|
    pulls = squares[:, None] * (found - alpha * axes)
    multipliers = torch.linalg.lstsq(w, pulls, driver="gelsd").solution
    torch.testing.assert_close(w @ multipliers, pulls)
    assert turned_axes(d, signed.abs() * 0 + 1e-300, axes, own) is None
    for unit in (1e-10, 1e10):
        torch.testing.assert_close(turned_axes(unit * d, signed, axes, own), found / unit)


def test_no_sign_is_left_whose_turn_would_lessen_the_currents():
    d, signed, _, own = on_axes(40, 3, 3)

    def size(values):
        axes = turned_axes(d, values, torch.eye(3).double(), own)
        assert axes is not None
        return float((values[:, None] * axes[own]).norm() ** 2)

    signed = signed * normal(40, seed=2).sign()
    turned = better_signs(d, signed, own)
    assert size(turned) < size(signed)
    for j in range(40):
        other = turned.clone()
        other[j] *= -1
        assert size(other) >= size(turned) * (1 - 1e-5)
    for unit in (1e-6, 1e6):
        assert torch.equal(better_signs(unit * d, signed, own), turned)


def test_neurons_that_no_output_reads_go_where_they_are_worth_most():
    d = vectors.independent(40, 3, torch.Generator().manual_seed(0)).decoders
    d[[3, 17]] = 0
    gains = d.abs()
    gains[3, 2] = gains[17, 1] = 1
    own = split(d, gains, torch.Generator().manual_seed(0))
    assert own is not None
    assert own[[3, 17]].tolist() == [2, 1]
    assert sorted(own.unique().tolist()) == [0, 1, 2]


@pytest.mark.parametrize("strength", [0.3, 1.0, -2.0])
@pytest.mark.parametrize("overlap", [0.0, 0.6, 1.0])
def test_preferred_currents_have_the_least_weights(strength, overlap):
    r"""$|W|^2 = |l|^2 |m|^2 p^2$ with the m of least norm that has $m \cdot e = 1$ and $m \cdot l = 1/p$."""
    n = 6
    d, across = torch.linalg.qr(normal(n, 2)).Q.T
    e = overlap * d + math.sqrt(1 - overlap**2) * across
    p = torch.tensor([strength]).double()

    def squared(current):
        both = torch.stack([e, current])
        m = torch.linalg.pinv(both) @ torch.tensor([1.0, 1 / strength]).double()
        return float(current.square().sum() * m.square().sum() * strength**2)

    (found,) = preferred_currents(e[:, None], d[:, None], p, torch.Generator().manual_seed(0)).T
    assert float(found @ d) == pytest.approx(1)
    beyond = found - d
    if overlap < 1:
        assert abs(float(beyond @ across)) == pytest.approx(float(beyond.norm()))
        others = [
            d + nu / strength * across for nu in np.concatenate([np.logspace(-1, 4, 99), -np.logspace(-1, 4, 99)])
        ]
        assert squared(found) <= 1.001 * min(map(squared, others))
    else:
        assert float(beyond.norm()) > 0.01


def test_least_norm_solutions_and_conditions_that_contradict_each_other():
    c, v = normal(8, 3), normal(3, 2, seed=1)
    c = c * torch.tensor([1e-6, 1.0, 1e6])
    found = least_norm(c, v)
    assert found is not None
    torch.testing.assert_close(found, torch.linalg.pinv((c / c.norm(dim=0)).T) @ (v / c.norm(dim=0)[:, None]))
    twice = torch.cat([c, c[:, :1]], 1)
    assert least_norm(twice, torch.cat([v, v[:1] + 1])) is None
    torch.testing.assert_close(least_norm(twice, torch.cat([v, v[:1]])), found)


def test_the_largest_outputs_of_bounded_activations():
    d = normal(20, 2)
    torch.testing.assert_close(largest_outputs(activation.make("tanh"), d), d.abs().sum(0))
    one_side = torch.minimum(d.clamp(min=0).sum(0), (-d).clamp(min=0).sum(0))
    torch.testing.assert_close(largest_outputs(activation.make("sigmoid"), d), one_side, rtol=1e-6, atol=1e-6)
    assert largest_outputs(activation.make("sigmoid"), d.abs()).tolist() == [0, 0]
    assert bool((largest_outputs(activation.make("linear"), d) > 1e11).all())


def test_nodes_are_denser_towards_zero_and_the_ends():
    nodes = _nodes(torch.zeros(1).double())
    x = np.cos(np.pi * (np.arange(80) + 0.5) / 80)
    np.testing.assert_allclose(nodes, np.sign(x) * x**2, atol=1e-15)


def test_m_is_a_ridge_regression_among_those_that_keep_the_encoders():
    """Written out: normal equations in a basis of what is orthogonal to the encoders."""
    n, channels = 10, 2
    e, left, t = normal(n, channels), normal(n, channels, seed=1), normal(channels, 7, seed=2)
    decays, ridges = torch.tensor([0.9, 0.5]).double(), torch.tensor([1e-2, 1e-3]).double()
    offset, f = torch.tensor([0.2, -0.1]).double(), activation.make("sigmoid")
    found = _right(decays, ridges, e, left, f, t, offset)
    torch.testing.assert_close(found.T @ e, torch.eye(channels).double())
    a = torch.cat([torch.stack([t[0], 0 * t[0]], 1), torch.stack([0 * t[1], t[1]], 1)])  # on the two axes
    features, wanted = f(a @ left.T), decays * (a - offset) + offset
    across = torch.linalg.qr(e, mode="complete").Q[:, channels:]
    base = torch.linalg.pinv(e).T
    free = features @ across
    largest = float(torch.linalg.matrix_norm(free, 2)) ** 2
    for c in range(channels):
        damped = free.T @ free + float(ridges[c]) * largest * torch.eye(n - channels).double()
        own = torch.linalg.solve(damped, free.T @ (wanted[:, c] - features @ base[:, c]))
        torch.testing.assert_close(found[:, c], base[:, c] + across @ own)


def test_populations_are_the_axes_that_neurons_share():
    axes = torch.nn.functional.normalize(normal(4, 2, seed=3), dim=1)
    planted = torch.arange(40) % 4
    currents = (0.5 + torch.rand(40, 1, generator=torch.Generator().manual_seed(0))) * axes[planted]
    currents = currents * torch.where(torch.arange(40) % 3 == 0, -1, 1)[:, None]
    found, own = populations(currents, 4, torch.Generator().manual_seed(2))
    weights = currents / currents.norm(dim=0)
    for g in range(4):
        members = weights[own == g]
        if len(members):
            leading = torch.linalg.svd(members).Vh[0]
            assert abs(float(leading @ found[g])) == pytest.approx(1)
    directions = torch.nn.functional.normalize(weights, dim=1)
    assert torch.equal(own, (directions @ found.T).abs().argmax(1))
    few, largest = populations(currents, 2, torch.Generator())
    assert torch.equal(few, torch.eye(2).double())
    assert torch.equal(largest, weights.abs().argmax(1))


def test_a_box_is_enlarged_until_states_can_not_leave_it():
    decays, rest = torch.tensor([0.5, 0.75]).double(), torch.tensor([0.0, 0.5]).double()
    enclosure = invariant_box(decays, rest, lambda box: torch.full((4,), 0.2).double())
    assert enclosure is not None
    torch.testing.assert_close(enclosure[1], torch.tensor([0.4, 0.8]).double())  # r / (1 - decay), or the rest
    torch.testing.assert_close(enclosure[0], 1.05 * torch.tensor([2.4, 4.8]).double())
    resting = invariant_box(decays, rest, lambda box: torch.full((4,), 0.01).double())
    assert resting is not None
    torch.testing.assert_close(resting[1], torch.tensor([0.02, 0.5]).double())
    assert invariant_box(decays, rest, lambda box: box.repeat(2)) is None


def test_the_sums_of_a_certificate_were_rounded_as_well():
    net = rni.design(rni.Integration([0.9, 0.8]), 12, "linear").network
    basis = coordinates(net)
    weights, wanted = normal(12, 4), normal(4, 2, seed=1)
    with torch.no_grad():
        residuals, proven = _homogeneous_residuals(net, basis, weights, wanted)
        unit, small = (residuals(size * torch.ones(2).double()) for size in (1.0, 1e-3))
    maxima, _ = linear_maxima(basis.left, weights, wanted)
    torch.testing.assert_close(maxima, (weights.T @ basis.left - wanted).square().sum(1).sqrt())
    assert proven
    torch.testing.assert_close(unit, 2**0.5 * maxima, rtol=1e-9, atol=0)
    torch.testing.assert_close(small, 1e-3 * unit, rtol=1e-9, atol=0)


def test_the_bound_of_a_trained_network_is_that_of_its_distance_from_an_exact_one():
    q = torch.linalg.qr(normal(30, 2)).Q
    exact = rni.design(rni.Integration([0.9, 0.8], [1.0, 2.0]), 30, "linear", encoders=q, decoders=2 * q).network
    polished = rni.polish(exact.changed(exact.recurrent.matrix().detach() + 1e-4 * normal(30, 30, seed=1)))
    net = polished.network
    w, e, d = (part.detach().numpy() for part in (net.recurrent.matrix(), net.encoders, net.decoders))
    before = (exact.recurrent.matrix().detach() + 1e-4 * normal(30, 30, seed=1)).numpy()

    def spectral(matrix):
        return np.linalg.norm(matrix, 2)

    x = rni.inputs.white_noise(8, 400, 2, torch.Generator().manual_seed(0))
    trained = exact.changed(torch.from_numpy(before))
    assert polished.before == pytest.approx(rni.analysis.relative_error(trained, x).tolist())
    assert polished.norm == pytest.approx(spectral(before))
    assert polished.moved == pytest.approx(spectral(w - before))
    assert polished.distance == pytest.approx(np.linalg.norm(w - before) / np.linalg.norm(before))
    assert polished.currents == pytest.approx(np.linalg.norm((w - before) @ e) / np.linalg.norm(before @ e))
    integrals = 1.05 * np.linalg.norm([10, 5])
    off = spectral(w - before) * (spectral(w @ e) * integrals + spectral(e) * 2**0.5) / (1 - spectral(before))
    wanted = np.array(polished.certificate().bounds) + np.linalg.norm(d, axis=0) * off
    np.testing.assert_allclose(polished.trained_bounds(), wanted, rtol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_currents_that_give_a_curve_are_found_again(unit):
    """Of three neurons and two outputs: nothing else gives the same curves."""
    f, decoders = activation.make("tanh"), torch.tensor([[1.0, 0.2], [-0.5, 0.3], [0.4, -0.6]]).double()
    rho, t = torch.tensor([0.9, -1.1, 0.6]).double() / unit, unit * _nodes(torch.zeros(1).double())
    wanted = f(t[:, None] * rho) @ decoders
    found = _currents(t, wanted, decoders, 0, f)
    torch.testing.assert_close(f(t[:, None] * found) @ decoders, wanted, atol=1e-6, rtol=0)
    turned = _currents(t, -wanted, decoders, 0, f)
    torch.testing.assert_close(f(t[:, None] * turned) @ decoders, -wanted, atol=1e-6, rtol=0)


def test_a_smooth_design_is_a_fit_of_each_channel_and_one_regression():
    """Each neuron is its strongest decoder's; integrals are kept where activity at rest does not show."""
    task = rni.Integration([0.6, 0.5], [0.3, 0.4])
    e, d = 0.1 * normal(80, 2), 2 * normal(80, 2, seed=1) / 80**0.5 * torch.tensor([1.0, 3.0])
    f, bounds = activation.make("sigmoid", slope=4, threshold=0.1), torch.tensor([2.0, 3.0]).double()
    left, right, offset = smooth_factors(task, e, d, f, bounds)
    gains, decays = torch.tensor([0.18, 0.2]).double(), torch.tensor([0.6, 0.5]).double()
    at_rest = f(torch.zeros(1, 80).double())[0]
    torch.testing.assert_close(offset, -(d.T @ at_rest) / gains)
    own = (d / d.norm(dim=0)).abs().argmax(1)
    assert bool((left[torch.arange(80), 1 - own] == 0).all())
    t = torch.outer(bounds + offset.abs(), _nodes(d))
    for c in range(2):
        members = own == c
        curves = (f(torch.outer(t[c], left[members, c])) - at_rest[members]) @ d[members]
        wanted = torch.zeros(80, 2).double()
        wanted[:, c] = gains[c] * t[c]
        assert float((curves - wanted).norm() / wanted.norm()) < 0.01
    strengths = torch.tensor([0.3, 0.4]).double() / d.norm(dim=0) / e.norm(dim=0)
    assert bool((strengths > 0.05).all())
    ridges = RIDGE / strengths.square().clamp(min=1)
    torch.testing.assert_close(right, _right(decays, ridges, e, left, f, t, offset))


def test_a_bend_is_fed_by_how_far_integrals_are_from_zero():
    r"""$k \cdot f(\nu) = \frac{b}{D+1} \sum_g |u_g \cdot z + \beta_g c|$, whatever z and c are."""
    bend = 0.6
    net = bent(rni.Integration([0.9, 0.8]), 100, bend)
    factors = net.recurrent.factors()
    assert factors is not None
    (left, right), (z, c) = (part.detach() for part in factors), (normal(50, 2), normal(50, seed=1))
    h = (z @ left[:, :2].T + torch.outer(c, left[:, 2])).clamp(min=0)
    torch.testing.assert_close(h @ right[:, :2], z * torch.tensor([0.9, 0.8]))
    torch.testing.assert_close(h @ net.decoders.detach(), z * torch.tensor([0.9, 0.8]))
    rows = left[left.norm(dim=1) > 1e-9]
    axes = rows / rows.norm(dim=1, keepdim=True)
    axes = axes * axes[:, :1].sign()
    _, group = axes.round(decimals=6).unique(dim=0, return_inverse=True)
    assert int(group.max()) == 2
    shared = torch.stack([axes[group == g][0] for g in range(3)])  # along (u_g, beta_g)
    reach, fed = (torch.cat([z, c[:, None]], 1) @ shared.T).abs(), h @ right[:, 2]
    weights = torch.linalg.lstsq(reach, fed[:, None], driver="gelsd").solution[:, 0]
    torch.testing.assert_close(reach @ weights, fed)
    assert float((weights * shared[:, 2].abs()).max()) == pytest.approx(bend / 3)  # where |beta_g| is 1
    assert bool((weights > 0).all())
    with pytest.raises(rni.InputError, match="bend"):
        bent(rni.Integration([0.9, 0.8]), 100, -0.1)
    straight = bent(rni.Integration(0.9), 30, 0.0).recurrent.factors()
    assert straight is not None
    assert straight[1].detach()[:, 1].abs().max() < 1e-9


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_the_largest_residuals_of_a_few_neurons_are_those_of_many_directions(channels):
    left, weights, wanted = normal(5, channels), normal(5, 2, seed=1), normal(2, channels, seed=2)
    a = torch.nn.functional.normalize(normal(20_000, channels, seed=3), dim=1)
    many = ((a @ left.T).clamp(min=0) @ weights - a @ wanted.T).abs().amax(0)
    found, proven = relu_maxima(left, weights, wanted)
    assert proven == (channels < 3) or bool((found >= many).all())
    assert bool((found >= many * (1 - 1e-9)).all())
    if channels < 3:
        torch.testing.assert_close(found, many, rtol=1e-3, atol=0)
    dead = torch.cat([left, torch.zeros(1, channels)]), torch.cat([weights, 9 * torch.ones(1, 2)])
    torch.testing.assert_close(relu_maxima(*dead, wanted)[0], found)


def test_the_bound_by_shared_axes_written_out():
    axes = torch.nn.functional.normalize(normal(3, 3), dim=1)
    own, rho = torch.arange(12) % 3, normal(12, seed=1)
    rho[5] = 0
    left, weights, wanted = rho[:, None] * axes[own], normal(12, 2, seed=2), normal(2, 3, seed=3)
    odd = (weights.T @ left / 2 - wanted).square().sum(1).sqrt()
    even = sum((weights[own == g] * rho[own == g, None].abs()).sum(0).abs() for g in range(3)) / 2
    torch.testing.assert_close(shared_axes_bound(left, weights, wanted), odd + even)
    off = 1e-7 * normal(3, seed=4)
    left[0] += off
    moved = shared_axes_bound(left, weights, wanted)
    assert bool((moved <= odd + even + 3 * (weights[0].abs() * off.norm())).all())
    assert bool((moved >= odd + even - 3 * (weights[0].abs() * off.norm())).all())
    assert not torch.equal(moved, shared_axes_bound(left - torch.cat([off[None], torch.zeros(11, 3)]), weights, wanted))


def test_neighbours_are_values_without_a_gap():
    column = torch.tensor([0.5, 1.0, 0.5 + 1e-6, 1.0 + 1.9e-6, 1.0 - 1.9e-6, 1.0 + 5e-6]).double()
    assert _neighbours(column[:, None])[:, 0].tolist() == [0, 1, 0, 1, 1, 2]


def test_the_largest_in_a_box_is_climbed_to():
    """A narrow hill away from all points, and a corner."""
    top = torch.tensor([0.61, -1.23]).double()
    box = torch.tensor([1.0, 2.0]).double()

    def residuals(a):
        return torch.stack([(-(a - top).square().sum(1) / 2).exp(), -a.sum(1)], 1)

    maxima = searched_maxima(residuals, box, 10)
    torch.testing.assert_close(maxima, torch.tensor([1.0, 3.0]).double(), rtol=1e-6, atol=0)
    points = torch.cat(box_points(2, 10))
    assert points.abs().max() <= 1
    assert len(points) == 4096 + 64
    assert set(map(tuple, points[4096:].tolist())) == {(a, b) for a in (-1, 1) for b in (-1, 1)}
    assert points[:4096].mean(0).abs().max() < 0.01
    assert [len(part) for part in box_points(2, 2**24 // 128)] == [128, 64]
    assert [len(part) for part in box_points(2, 2**24)] == [64, 64]


def test_the_nearest_of_non_negative_numbers_meets_its_constraints(generator, monkeypatch):
    start, a = torch.rand(40, generator=generator).double(), normal(40, 3)
    values = a.T @ torch.rand(40, generator=generator).double()
    rho = nearest_nonnegative(start, a, values)
    assert rho is not None
    torch.testing.assert_close(a.T @ rho, values)
    active = rho > 0
    assert 0 < int(active.sum()) < 40
    multipliers = torch.linalg.lstsq(a[active], (rho - start)[active, None], driver="gelsd").solution[:, 0]
    torch.testing.assert_close((start + a @ multipliers).clamp(min=0), rho)
    assert nearest_nonnegative(start, a.abs(), -values.abs()) is None
    rows = normal(40, 2, seed=1)
    few = signed_strengths(rows, start, torch.zeros(40).long(), 1)
    monkeypatch.setattr("rni.designs.relu.FEW", 39)  # the method for many neurons
    many = signed_strengths(rows, start, torch.zeros(40).long(), 1)
    assert few is not None
    assert many is not None
    torch.testing.assert_close(few, balanced(start, rows))
    torch.testing.assert_close(many / many.norm(), few / few.norm())
    assert float(many @ start) == pytest.approx(float(start @ start))


def test_decoders_that_point_to_all_sides():
    three = torch.tensor([[1.0, 0.0], [-0.5, 1.0], [-0.5, -1.0]]).double()
    assert _all_sides(three)
    assert not _all_sides(three[:2])
    assert not _all_sides(three * torch.tensor([1.0, 0.0]) + torch.tensor([0.0, 1.0]))
    assert not _all_sides(torch.ones(3, 1).double())
    assert _all_sides(torch.tensor([[1.0], [-2.0]]).double())


def test_the_conditions_on_m_are_those_of_the_text():
    left, e, own, p = normal(7, 2), normal(7, 2, seed=1), torch.arange(7) % 3, torch.tensor([0.5, 4.0]).double()
    conditions, values = right_conditions(e, p, left, own)
    torch.testing.assert_close(conditions[:, :4], torch.cat([left, e], 1))
    for j in range(7):
        assert conditions[j, 4:].tolist() == pytest.approx(
            [float(left[j].norm()) if own[j] == g else 0 for g in range(3)]
        )
    assert values.tolist() == [[4, 0], [0, 0.5], [1, 0], [0, 1], [0, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(("channels", "neurons", "designed", "polished"), AXES)
def test_how_many_axes_are_looked_for(channels, neurons, designed, polished, monkeypatch):
    """About 4 (D + 1) neurons for each, up to 4 D of them; next to a trained network, half as many neurons."""
    tried = []
    monkeypatch.setattr("rni.designs.relu.currents_on_axes", lambda d, aim, number, g: tried.append(number) or [])
    monkeypatch.setattr("rni.designs.relu.currents_of_few_neurons", lambda d, g: [])
    monkeypatch.setattr("rni.designs.polishing.currents_on_axes", lambda d, aim, number, g: iter([(aim, number)]))
    monkeypatch.setattr("rni.designs.polishing.right_conditions", lambda e, p, left, own: (own, p))
    e, d, one = normal(neurons, channels), normal(neurons, channels, seed=1), torch.ones(channels).double()
    with pytest.raises(rni.InputError):
        relu_factors(e, d, one, torch.Generator())
    assert tried == [designed]
    decays, gains = one / 2, torch.arange(1, channels + 1).double()
    near, number, strengths = next(_candidates("relu", d, e, d, decays, gains, 0))
    assert number == polished
    torch.testing.assert_close(near, d)
    torch.testing.assert_close(strengths, 2 * one)


def test_points_at_which_a_design_is_checked_are_anywhere_in_its_box(monkeypatch):
    made = rni.design(rni.Integration([0.9, 0.8], [2.0, 0.5]), 60)
    assert made.offset == (0, 0)
    assert max(*made.output_residuals, *made.current_residuals) < 1e-12
    assert len(str(rni.design(rni.Integration(1.0), 20)).splitlines()) == len(str(made).splitlines()) - 1  # no bound
    points = []
    monkeypatch.setattr(
        "rni.designs.designing.residuals", lambda net, z, offset: points.append(z) or residuals(net, z, offset)
    )
    rni.design(rni.Integration([0.7, 0.6]), 300, "tanh", bounds=(1.0, 2.0))
    (z,), box = points, torch.tensor([1.0, 2.0]).double()
    assert z.shape == (256, 2)
    assert bool((z.abs().amax(0) <= box).all())
    assert bool((z.abs().amax(0) > 0.95 * box).all())
    assert bool((z.mean(0).abs() < 0.15 * box).all())


@pytest.mark.parametrize("leak", [1.0, 0.5])
def test_residuals_of_a_design_point_by_point(leak, monkeypatch):
    net = rni.design(rni.Integration([0.9, 0.8], [2.0, 0.5]), 12, "linear", leak=leak).network
    factors = net.recurrent.factors()
    assert factors is not None
    left, right = (part.detach() + 0.01 * normal(12, 2, seed=1) for part in factors)
    off = rni.Network(net.task, net.encoders, net.decoders, LowRank(left, right), "linear", leak)
    z, q = normal(30, 2), torch.tensor([0.3, -0.2]).double()
    decays = torch.tensor([1 - 0.1 / leak, 1 - 0.2 / leak]).double()
    h = (z + q) @ left.T
    outputs, coordinates = h @ net.decoders.detach(), h @ right
    wanted, kept = torch.tensor([1.8, 0.4]).double() / leak * z, decays * z + q
    found = residuals(off, z, q)
    assert found[0] == pytest.approx(((outputs - wanted).norm(dim=0) / wanted.norm(dim=0)).tolist())
    assert found[1] == pytest.approx(((coordinates - kept).norm(dim=0) / (decays * z).norm(dim=0)).tolist())

    inputs = []  # of a simulation with bounds, which are scaled so that the largest z = a + x reach the bounds
    monkeypatch.setattr("rni.designs.designing.relative_error", lambda net, x: inputs.append(x) or torch.zeros(2))
    simulated_error(off, (3.0, 4.0), duration=9)
    (x,) = inputs
    a, reached = torch.zeros(len(x), 2).double(), []
    for t in range(9):  # a <- (1 - leak) a + leak inner (a + x)
        reached.append(a + x[:, t])
        a = (1 - leak) * a + leak * decays * (a + x[:, t])
    torch.testing.assert_close(torch.stack(reached).abs().amax((0, 1)), torch.tensor([3.0, 4.0]).double())


def test_the_advice_about_a_design_that_fails_names_the_numbers_behind_its_error():
    linear = rni.design(rni.Integration([0.9, 0.8], [2.0, -0.5]), 12, "linear").network
    e, d = (part.detach().norm(dim=0) for part in (linear.encoders, linear.decoders))
    low, high = sorted((torch.tensor([2.0, 0.5]) / d / e).tolist())
    none, box = torch.zeros(2).double(), torch.tensor([2.0, 4.0]).double()
    assert f"{low:.2g} to {high:.2g}" in advice(linear, none, box, (1.0, 1.0))  # strengths
    net = rni.Network(linear.task, linear.encoders, linear.decoders, linear.recurrent, "tanh")
    assert " 0.2 " in advice(net, torch.tensor([0.4, 0.4]).double(), box, (1.0, 1.0))  # activity at rest
    text = advice(net, torch.tensor([0.19, -0.39]).double(), box, (0.1, 0.15))  # 10 x 0.1 > 5 x 0.15
    for number in ("0.9", "10", "1.0e-01", "2", f"{float(linear.decoders.detach()[:, 0].abs().sum()):.3g}"):
        assert f"{number} " in text.replace(",", " ").replace(")", " ")
    text = advice(net, none, box, (0.1, 0.3))
    for number in ("0.8", "5", "3.0e-01"):
        assert f"{number} " in text.replace(",", " ").replace(")", " ")


def test_bounds_and_activations_that_no_design_can_have():
    task = rni.Integration([0.9, 0.5])
    torch.testing.assert_close(box_of_integrals(task, None), torch.tensor([10.0, 2.0]).double())
    assert box_of_integrals(task, [3, 4]).tolist() == [3, 4]
    for bounds in ([1.0], [1.0, 0.0], [1.0, math.inf], [1.0, -1.0]):
        with pytest.raises(rni.InputError) as error:
            box_of_integrals(task, bounds)
        assert (error.value.field, error.value.value) == ("bounds", bounds)
    d = torch.tensor([[1.0, 0.5], [-1.0, -0.5]]).double()  # tanh gives up to 2 and 1
    scaled = rni.Integration([0.9, 0.5], [1.0, -2.0])
    require_suitable_activation(activation.make("tanh"), scaled, d, torch.tensor([2.2, 0.99]).double())
    for box, output in (([2.3, 0.9], 0.9 * 2.3), ([2.2, 1.1], 2 * 0.5 * 1.1)):
        with pytest.raises(rni.InputError) as error:
            require_suitable_activation(activation.make("tanh"), scaled, d, torch.tensor(box).double())
        assert (error.value.field, error.value.value) == ("bounds", pytest.approx(output))


@pytest.mark.parametrize("strengths", [(0.5, 2.0), (1.0, 1.0)])
def test_linear_factors_meet_their_conditions_down_to_two_neurons_a_channel(strengths):
    p = torch.tensor(strengths).double()
    for n in (4, 9):
        e, d = (torch.nn.functional.normalize(normal(n, 2, seed=k), dim=0) for k in (0, 1))
        left, right = linear_factors(e, d, p, torch.Generator().manual_seed(0))
        torch.testing.assert_close(d.T @ left, torch.eye(2).double())
        torch.testing.assert_close(right.T @ e, torch.eye(2).double())
        torch.testing.assert_close(right.T @ left, torch.diag(1 / p))
    with pytest.raises(rni.InputError) as error:
        linear_factors(e[:3], d[:3], p, torch.Generator().manual_seed(0))
    assert (error.value.field, error.value.value) == ("neurons", 3)
    same = torch.linalg.qr(normal(2, 2)).Q
    left, right = linear_factors(same, same, torch.ones(2).double(), torch.Generator().manual_seed(0))
    torch.testing.assert_close(same.T @ left, torch.eye(2).double())
    torch.testing.assert_close(right.T @ same, torch.eye(2).double())


def test_units_of_vectors_and_factors_do_not_make_a_network_blind():
    net = rni.design(rni.Integration([0.9, 0.8]), 30, "linear").network
    factors = net.recurrent.factors()
    assert factors is not None
    (a, b), unit = (part.detach() for part in factors), torch.tensor([1e-5, 1e5]).double()
    e, d = net.encoders.detach(), net.decoders
    for encoders, weights in ((e * unit, LowRank(a, b)), (e, LowRank(a / unit, b * unit))):
        basis = coordinates(rni.Network(net.task, encoders, d, weights, "linear"))
        torch.testing.assert_close(basis.right.T @ encoders, torch.eye(2).double(), atol=1e-4, rtol=0)
        torch.testing.assert_close(basis.left @ basis.right.T, a @ b.T)
