"""Lines and planes of the flow against the network's own steps, one state at a time."""

import numpy as np
import pytest
import torch

from rni import VanillaRNN
from rni import activations as activation
from rni.analysis.flow import ALONG, SIDE, flow
from rni.analysis.latents import latent, marks, settle, spread, visited
from rni.weights import Dense


def step(reduced, kappa):
    return kappa + reduced.leak * reduced.pull(kappa)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(rank, n=20, *, leak=0.25, **more):
    w = normal(n, rank) @ normal(n, rank, seed=1).T / n
    return VanillaRNN(
        Dense(w), normal(n, 2, seed=2), activation.make("tanh"), 0.1 * normal(n, seed=3), leak=leak, **more
    )


def states_of(dimension, later):
    """At two times (2, 30, K): far more along some coordinates than others, and `later` as large."""
    first = normal(30, dimension, seed=4) * torch.tensor([0.1, 3.0, 0.02])[:dimension] + 0.3
    return torch.stack([first, later * first])


@pytest.mark.parametrize("later", [0.8, 1e-3])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_flow_is_the_step_of_each_state_on_the_grid(dimension, later):
    reduced = latent(network(dimension))
    assert reduced.dimension == dimension
    states, centre = states_of(dimension, later), 0.001 * normal(dimension, seed=5)
    points = 0.01 * torch.eye(dimension, dtype=torch.float64)  # what is projected on the axes is the axes
    found = flow(reduced, points, states, centre)
    axes = 100 * found.points
    drawn = min(2, dimension)
    away = torch.cat([states.flatten(0, 1), points]).numpy() - centre.numpy()
    leading = np.linalg.eigh(away.T @ away)[1][:, ::-1][:, :drawn]
    np.testing.assert_allclose(np.abs(axes), np.abs(leading), atol=1e-9)
    assert (axes.sum(0) > 0).all()
    np.testing.assert_allclose(found.states, states[0].numpy() @ axes, atol=1e-12)
    visited = away[:-dimension]
    assert found.share == pytest.approx(((visited @ axes) ** 2).sum() / (visited**2).sum(), rel=1e-12)
    assert found.ticks.shape == (drawn, SIDE if drawn == 2 else ALONG)
    middle = centre.numpy()
    for place in np.random.default_rng(0).integers(len(found.ticks[0]), size=(20, drawn)):
        z = np.array([found.ticks[k, at] for k, at in enumerate(reversed(place))])
        kappa = torch.from_numpy(middle + axes @ (z - middle @ axes))
        moved = (step(reduced, kappa[None]) - kappa)[0].numpy() @ axes
        np.testing.assert_allclose(found.speed[tuple(place)], moved, atol=1e-12)


@pytest.mark.parametrize(("later", "settles"), [(0.8, True), (1e-3, False)])
def test_the_plane_shows_where_states_settle_unless_that_is_a_point_beside_where_they_were(later, settles):
    reduced = latent(network(2))
    states = states_of(2, later)
    points, centre = torch.tensor([[0.001, 0.002]]).double(), torch.zeros(2).double()
    found = flow(reduced, points, states, centre)
    turned = np.linalg.lstsq(states[0].numpy(), found.states, rcond=None)[0]
    last = torch.cat([states[1], points, centre[None]]).numpy() @ turned
    shown = last if settles else states[0].numpy() @ turned
    low, high = shown.min(0), shown.max(0)
    half = 1.3 * (high - low) / 2
    half = np.maximum(half, half.max() / 2)  # no side is less than half of the other
    np.testing.assert_allclose(found.ticks[:, 0], (low + high) / 2 - half, atol=1e-9)
    np.testing.assert_allclose(found.ticks[:, -1], (low + high) / 2 + half, atol=1e-9)


def test_where_nothing_moves_the_axes_are_the_coordinates():
    reduced = latent(network(2))
    nothing = torch.zeros(2, 3, 2).double()
    found = flow(reduced, nothing[0, :0], nothing, nothing[0, 0])
    assert found.share == 1
    np.testing.assert_allclose(found.ticks, np.linspace([-1, -1], [1, 1], SIDE).T, atol=1e-12)
    moved = step(reduced, torch.tensor([[1.0, -1.0]]).double())[0].numpy() - [1, -1]
    np.testing.assert_allclose(found.speed[0, -1], moved, atol=1e-12)


def test_states_are_kept_after_0_10_25_and_50_own_times():
    turning = Dense(torch.tensor([[0.9, -0.4], [0.4, 0.9]], dtype=torch.float64))  # so that no two times are alike
    linear = activation.make("linear")
    reduced = latent(VanillaRNN(turning, torch.ones(2, 1), linear, torch.zeros(2, dtype=torch.float64), leak=0.5))
    kappa = normal(70, 2, seed=6)
    path = settle(reduced, kappa[:64], marks(reduced))
    at = kappa[:64]
    for steps in range(101):
        for kept, mark in zip(path, (0, 20, 50, 100), strict=True):
            if steps == mark:
                torch.testing.assert_close(kept, at)
        at = step(reduced, at)


def test_what_goes_beyond_a_thousand_times_the_first_states_runs_away():
    growing = torch.diag(torch.tensor([1.0, 1000 ** (1 / 49.999), 1000 ** (1 / 50.001)], dtype=torch.float64))
    reduced = latent(VanillaRNN(Dense(growing), torch.ones(3, 1), activation.make("linear"), torch.zeros(3)))
    path = settle(reduced, torch.eye(3, dtype=torch.float64), marks(reduced))
    assert path.shape == (4, 2, 3)
    torch.testing.assert_close(path[3].diagonal(dim1=0, dim2=1)[0], torch.ones(()).double())
    assert float(path[3, 1, 2]) == pytest.approx(1000, rel=1e-3)
    assert spread(torch.tensor([[0.0, 0.0], [6.0, 8.0]])) == 5
    assert spread(torch.zeros(0, 2)) == 0


@torch.no_grad()
@pytest.mark.parametrize("form", ["rate", "current"])
def test_visited_are_the_start_the_ends_the_ways_and_points_between(form):
    net = network(2, form=form)
    reduced = latent(net)
    x = normal(10, 51, 2, seed=7)
    found = visited(net, reduced, x)
    after = {0: net.rate(net.start(1))} | {t: net.rate(net.end(x[:, :t])) for t in (51, 2, 6, 16)}
    wanted = torch.cat([reduced.project(h) for h in after.values()])  # 0.02, 0.1 and 0.3 of the way
    assert len(found) == 64
    torch.testing.assert_close(found[:41], wanted)
    for between in found[41:]:
        middles = (wanted[:, None] + wanted) / 2
        assert float((middles - between).norm(dim=2).min()) < 1e-9


def test_without_inputs_of_ones_own_states_are_visited_by_noise_and_bursts():
    slow, quick = (latent(network(2, leak=leak)) for leak in (0.01, 1.0))
    for reduced, net, steps in ((slow, network(2, leak=0.01), 1000), (quick, network(2, leak=1.0), 100)):
        assert len(visited(net, reduced)) == 1 + 4 * 64
        lengths = []
        object.__setattr__(net, "steps", lambda x, lengths=lengths: lengths.append(x.shape) or iter(()))
        visited(net, reduced)
        assert lengths == [(64, steps, 2)]


def test_what_is_not_finite_was_not_visited():
    net = VanillaRNN(Dense(torch.full((1, 1), 1e30)), torch.ones(1, 1), activation.make("linear"), torch.ones(1))
    found = visited(net, latent(net), torch.ones(1, 100, 1))
    assert bool(found.isfinite().all())
