"""The steps of a design, each against what it says it is."""

import math

import numpy as np
import pytest
import torch

import rni
from rni import activation, vectors
from rni.designs.axes import better_signs, split, turned_axes
from rni.designs.certificate import _enclosure, _homogeneous_residuals, coordinates
from rni.designs.currents import least_norm, preferred_currents
from rni.designs.extremes import linear_maxima
from rni.designs.relu import populations, signed_strengths
from rni.designs.smooth import _nodes, _right, largest_outputs


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
    rest = torch.tensor([0.0, 0.5]).double()
    found = _enclosure((0.5, 0.75), rest, lambda box: torch.full((4,), 0.2).double())
    assert found.obstacle is None
    torch.testing.assert_close(found.off, torch.tensor([0.4, 0.8]).double())  # r / (1 - decay), or the rest
    torch.testing.assert_close(found.box, 1.05 * torch.tensor([2.4, 4.8]).double())
    resting = _enclosure((0.5, 0.75), rest, lambda box: torch.full((4,), 0.01).double())
    torch.testing.assert_close(resting.off, torch.tensor([0.02, 0.5]).double())
    growing = _enclosure((0.5, 0.75), rest, lambda box: box.repeat(2))
    assert "feed on themselves" in str(growing.obstacle)
    assert "at decay 1" in str(_enclosure((0.5, 1.0), rest, lambda box: box.repeat(2)).obstacle)


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

    assert polished.norm == pytest.approx(spectral(before))
    assert polished.moved == pytest.approx(spectral(w - before))
    assert polished.distance == pytest.approx(np.linalg.norm(w - before) / np.linalg.norm(before))
    assert polished.currents == pytest.approx(np.linalg.norm((w - before) @ e) / np.linalg.norm(before @ e))
    integrals = 1.05 * np.linalg.norm([10, 5])
    off = spectral(w - before) * (spectral(w @ e) * integrals + spectral(e) * 2**0.5) / (1 - spectral(before))
    wanted = np.array(polished.certificate().bounds) + np.linalg.norm(d, axis=0) * off
    np.testing.assert_allclose(polished.trained_bounds(), wanted, rtol=1e-9)
