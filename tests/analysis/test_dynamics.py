"""Networks with known answers: their fixed points, multipliers, and what they do when their inputs end."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from torch import Tensor, nn

from rni import InputError, Integration, Recording, VanillaRNN, analysis, analyze, design, fixed_points
from rni import activations as activation
from rni.analysis.behaviour import feedforward, fibonacci, follow, looks_random, period, start_correlation
from rni.analysis.latents import latent
from rni.analysis.verdict import behaves
from rni.pages.analysis import write_page
from rni.weights import Dense, LowRank, Weights

FORMS = ("rate", "current")


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def orthonormal(n, k, seed=0):
    return torch.linalg.qr(normal(n, k, seed=seed)).Q


def network(w, u, f: str | Callable[[Tensor], Tensor] = "tanh", bias=None, **more):
    w = w if isinstance(w, Weights) else Dense(torch.as_tensor(w, dtype=torch.float64))
    u = torch.as_tensor(u, dtype=torch.float64)
    bias = torch.zeros(len(u), dtype=torch.float64) if bias is None else bias
    return VanillaRNN(w, u, activation.make(f), bias, **more)


def of_plane(matrix, u=None, n=60, **more):
    """Latent dynamics of two given dimensions in n neurons."""
    q = orthonormal(n, 2)
    return network(q @ torch.tensor(matrix, dtype=torch.float64) @ q.T, q if u is None else u, **more)


def bistable(**more):
    m = normal(60, 1)
    return network(1.6 * m @ m.T / 60, m, leak=0.2, form="current", **more)


def rotation(size, angle):
    c, s = size * math.cos(angle), size * math.sin(angle)
    return [[c, -s], [s, c]]


def ring(n=60):
    angles = torch.arange(n) * (2 * math.pi / n)
    w = (3 * torch.cos(angles[:, None] - angles) - 1) * 2 / n
    u = torch.stack([angles.cos(), angles.sin()], 1)
    return network(w, u, "relu", torch.ones(n, dtype=torch.float64), leak=0.1)


def layers():
    w = torch.zeros(30, 30)
    w[10:20, :10], w[20:, 10:20] = normal(10, 10) / 3, normal(10, 10, seed=1) / 3
    u = torch.cat([normal(10, 1), torch.zeros(20, 1)])
    return network(w, u, "relu", leak=0.2, form="current")


ZOO = {
    "integrator": ("integrates", lambda: VanillaRNN.of(design(Integration((0.99, 0.98)), 60).network), "0.99  0.98"),
    "leaky integrator": ("integrates", lambda: of_plane([[0.95, 0], [0, 0.9]], f="linear", leak=0.1), "0.995  0.99"),
    "bistable": ("decides", bistable, "2 attractors"),
    "winner takes all": (
        "decides",
        lambda: network([[0.5, -1], [-1, 0.5]], np.eye(2), "relu", torch.ones(2).double(), leak=0.2),
        "multiplier 1.1 (10.49 steps)",
    ),
    "slow and fast": ("remembers", lambda: of_plane([[0.995, 0], [0, 0.35]], leak=0.2, form="current"), "a line"),
    "line": ("remembers", lambda: network(orthonormal(60, 1) @ orthonormal(60, 1).T, 3 * orthonormal(60, 1)), "a line"),
    "plane": ("remembers", lambda: of_plane([[1.0, 0], [0, 1]], 3 * orthonormal(60, 2), leak=0.1), "a plane"),
    "ring": ("remembers", ring, "a line"),
    "limit cycle": ("oscillates", lambda: of_plane(rotation(1.3, 0.3)), "goes on without inputs"),
    "leaky limit cycle": ("oscillates", lambda: of_plane([[1.3, -1], [1, 1.3]], leak=0.1), "goes on without inputs"),
    "ringing": ("oscillates", lambda: network(rotation(0.99, 0.3), [[1.0], [0]], "linear"), "period 20.94 steps"),
    "alternating": ("oscillates", lambda: network([[-1.5]], [[1.0]]), "period 2 steps"),
    "layers": ("forgets", layers, "feed-forward"),
    "random": ("forgets", lambda: network(0.5 * normal(60, 60) / 60**0.5, normal(60, 1), leak=0.1), "random matrix"),
    "chaotic": ("none", lambda: network(2.5 * normal(60, 60) / 60**0.5, normal(60, 1)), "chaotic"),
}


@pytest.mark.parametrize("name", [name for name, (kind, _, _) in ZOO.items() if kind != "integrates"])
def test_what_becomes_of_states_is_called_what_it_is(name):
    kind, make, evidence = ZOO[name]
    verdict = behaves(analysis.dynamics(make()))
    assert verdict.kind == kind, verdict
    assert evidence in verdict.evidence


@pytest.mark.parametrize("leak", [1.0, 0.2])
@pytest.mark.parametrize("period", [5, 6, 7.3, 25, 80])
@pytest.mark.parametrize("multiplier", [0.96, 0.975])
def test_states_that_rotate_are_not_remembered_whatever_their_period(multiplier, period, leak):
    """Of 5, 10 and 25 steps all are multiples after 50: the states come back, but they did not stay."""
    step = torch.tensor(rotation(1 - leak * (1 - multiplier), leak * 2 * math.pi / period), dtype=torch.float64)
    one = torch.eye(2, dtype=torch.float64)
    found = analysis.dynamics(network(one + (step - one) / leak, one[:, :1], "linear", leak=leak))
    assert found.start_correlation < 0
    assert behaves(found).kind != "remembers"


@pytest.mark.parametrize("leak", [1.0, 0.1])
def test_states_on_a_slow_cycle_are_not_remembered(leak):
    """Its period is 180 own times, so that less than a third of it passes until the states are judged."""
    angle = 2 * math.pi / 180
    found = analysis.dynamics(of_plane([[1.3, -1.3 * angle], [1.3 * angle, 1.3]], leak=leak, n=300))
    assert found.retained[1] > 0.9
    assert behaves(found).kind != "remembers"


def test_states_that_fade_are_not_remembered():
    found = analysis.dynamics(of_plane([[0.96, 0], [0, 0.95]], f="linear"))
    assert found.graded is False
    assert 0.05 < found.retained[1] < 0.15
    assert behaves(found).kind != "remembers"
    symmetric = normal(50, 50) + normal(50, 50).T
    w = 0.97 * symmetric / torch.linalg.eigvalsh(symmetric).abs().max()
    assert behaves(analysis.dynamics(network(w, normal(50, 1), leak=0.2))).kind != "remembers"


def test_slow_neurons_alone_remember_nothing():
    w, u = 1e-6 * normal(20, 20), normal(20, 1)
    very_slow = network(w, u, leak=2e-4)  # followed for one own time, not for 50
    unequal = torch.cat([torch.full((10,), 0.02), torch.full((10,), 0.5)]).double()
    for net in (very_slow, network(w, u, leak=unequal)):
        assert behaves(analysis.dynamics(net)).kind != "remembers"


def test_the_correlation_with_the_starts_is_that_along_the_last_directions():
    """Against numpy: 30 states in three dimensions, of which two are left at the end."""
    first = normal(30, 3)
    turned = torch.tensor([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 0]], dtype=torch.float64)
    last = first @ torch.diag(torch.tensor([0.9, 0.8, 1e-3], dtype=torch.float64)) + 5
    found = start_correlation(torch.stack([first, first @ turned.T, last]))
    kept = np.linalg.svd(last.numpy() - last.numpy().mean(0))[2][:2]
    a, b = (((each - each.mean(0)).numpy() @ kept.T).ravel() for each in (first, first @ turned.T))
    assert found == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-12)
    assert start_correlation(torch.stack([first, 0.5 * first + 1])) == pytest.approx(1)
    assert start_correlation(torch.stack([first, 0 * first])) == 0


def test_one_of_the_steps_is_far_from_the_multiples_of_any_period():
    steps = fibonacci(50)
    assert steps == [1, 2, 3, 5, 8, 13, 21, 34]
    for length in np.linspace(2, 130, 1000):
        assert np.cos(2 * np.pi * np.array(steps) / length).min() < 0.1


@pytest.mark.parametrize(
    "name", ["leaky integrator", "winner takes all", "slow and fast", "ringing", "layers", "chaotic"]
)
def test_the_verdict_of_an_analysis_says_so(name):
    kind, make, evidence = ZOO[name]
    found = analyze(replace(make(), noise=0.02))
    assert found.verdict.kind == kind, found.verdict
    assert evidence in found.verdict.evidence
    assert "; noise of 0.02 moves its outputs by " in found.verdict.evidence


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", ["dense", "low rank", "two leaks"])
def test_fixed_points_and_multipliers_of_one_latent_dimension(form, shape):
    r"""$\kappa = r^\dagger \tanh(l\kappa + b)$, solved on the line; multiplier $1 - \alpha + \alpha r^\dagger f' l$."""
    left, right, bias = normal(50, 1), normal(50, 1) * 2.5 / 50 + normal(50, 1, seed=1) / 50, 0.1 * normal(50, seed=2)
    right += 1.5 * left / 50
    w = LowRank(left, right) if shape == "low rank" else left @ right.T
    leak = torch.where(torch.arange(50) < 20, 0.1, 0.3).double() if shape == "two leaks" else 0.2
    net = network(w, normal(50, 1), bias=bias, leak=leak, form=form)
    found = fixed_points(net)
    up, down, b = (each.numpy().ravel() for each in (left, right, bias))

    def pull(kappa):
        return down @ np.tanh(up * kappa + b) - kappa

    grid = np.linspace(-10, 10, 2001)
    roots = [brentq(pull, *ends) for ends in pairwise(grid) if pull(ends[0]) * pull(ends[1]) <= 0]
    assert len(roots) == len(found) == 3
    for root in roots:
        nu = up * root + b
        state = np.tanh(nu) if form == "rate" else nu
        k = np.abs(found.states - state).max(1).argmin()
        np.testing.assert_allclose(found.states[k], state, atol=1e-6)
        if shape != "two leaks":
            assert found.points[k].modes[0].multiplier == pytest.approx(
                0.8 + 0.2 * down @ (up / np.cosh(nu) ** 2), abs=1e-6
            )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("leak", [1.0, 0.2, torch.where(torch.arange(24) < 9, 0.1, 0.5).double()])
@pytest.mark.parametrize("rank", [2, 24])
def test_eigenvalues_and_their_directions_are_those_of_the_whole_step(form, leak, rank):
    """Against automatic differentiation of the step of all neurons."""
    q, p = orthonormal(24, rank), orthonormal(24, rank, seed=1)
    w = 1.5 * q @ (q + 0.3 * p).T if rank == 2 else 1.4 * normal(24, 24) / 24**0.5
    decoders = normal(24, 2, seed=5)
    net = network(w, normal(24, 2), bias=0.1 * normal(24), leak=leak, form=form, decoders=decoders)
    found = fixed_points(net)
    assert found.points
    for point, state, latents in zip(found.points, found.states, found.eigenvalues, strict=True):
        if point.stability == "slow point":
            continue
        at = torch.from_numpy(state)[None]
        torch.testing.assert_close(net.step(at), at, rtol=0, atol=1e-9)
        jacobian = torch.autograd.functional.jacobian(lambda s: net.step(s[None])[0], at[0])
        fed = torch.autograd.functional.jacobian(lambda x, at=at: net.step(at, x[None])[0], torch.zeros(2).double())
        rates = torch.autograd.functional.jacobian(lambda s: net.rate(s[None])[0], at[0]).to(torch.complex128)
        values, rights = torch.linalg.eig(jacobian)
        lefts = torch.linalg.inv(rights)
        for value in latents:
            assert float((values - value).abs().min()) < 1e-6
        for mode in point.modes:
            distance = (values.abs() - mode.multiplier).abs()
            k = int(distance.argmin())
            if int((distance < 1e-6).sum()) > 2 or mode.multiplier < 1e-6:
                continue  # several of one size
            y, h = lefts[k], rates @ rights[:, k]
            driven = (y @ fed.to(y.dtype)).abs() / (y.abs().square().sum().sqrt() * fed.norm(dim=0))
            seen = (h @ decoders.to(h.dtype)).abs() / (h.abs().square().sum().sqrt() * decoders.norm(dim=0))
            assert mode.inputs == pytest.approx(driven.tolist(), abs=1e-6)
            assert mode.outputs == pytest.approx(seen.tolist(), abs=1e-6)


@pytest.mark.parametrize("leak", [0.3, torch.where(torch.arange(40) < 9, 0.1, 0.5).double()])
@pytest.mark.parametrize("form", FORMS)
def test_latent_coordinates_follow_the_network(form, leak):
    net = network(
        normal(40, 2) @ normal(40, 2, seed=1).T / 40, normal(40, 1), "relu", normal(40, seed=2), leak=leak, form=form
    )
    reduced = latent(net)
    assert reduced.dimension <= 4
    kappa = normal(3, reduced.dimension, seed=3)
    state = normal(3, 40, seed=4) if form == "rate" else reduced.currents(kappa)
    kappa = reduced.project(state) if form == "rate" else kappa
    moved, state = kappa + reduced.leak * reduced.pull(kappa), net.step(state)
    torch.testing.assert_close(
        reduced.project(state) if form == "rate" else reduced.currents(moved), moved if form == "rate" else state
    )


def test_two_patterns_have_five_fixed_points_between_them_the_saddles():
    m = torch.cat([torch.ones(1, 80), torch.tensor([1.0, -1.0]).repeat(40)[None]]).T.double()
    found = fixed_points(network(m @ torch.diag(torch.tensor([2.0, 1.6])).double() @ m.T / 80, m))
    kinds = [point.stability for point in found.points]
    assert len(kinds) >= 5
    assert kinds.count("repeller") == 1
    assert {"saddle", "attractor"} <= set(kinds)
    assert kinds.count("attractor") >= 2


def test_the_multipliers_of_an_integrator_are_its_decays():
    """Also at rest, where every neuron of a ReLU network is at its kink."""
    found = fixed_points(design(Integration((0.995, 0.97)), 50).network)
    assert [mode.multiplier for mode in found.points[0].modes] == pytest.approx([0.995, 0.97], abs=1e-6)
    assert found.points[0].modes[0].time_constant == pytest.approx(-1 / math.log(0.995), rel=1e-5)


def test_how_often_the_search_started_and_failed_is_reported():
    found = fixed_points(network(2.5 * normal(60, 60) / 60**0.5, normal(60, 1)))  # chaotic
    assert 0 < found.unconverged < found.starts
    assert {str(found.starts), str(found.unconverged)} <= set(re.findall(r"\d+", str(found)))
    told = json.loads(analyze(bistable()).to_json())["dynamics"]["fixed_points"]
    assert told["starts"] > 64
    assert told["unconverged"] == 0


def test_a_constant_input_moves_the_fixed_points():
    found = fixed_points(network([[0.5]], [[1.0]]), constant=[0.3])
    (state,) = found.states[:, 0]
    assert math.tanh(0.5 * state + 0.3) == pytest.approx(state, abs=1e-9)


def test_the_exponent_of_a_known_map():
    r"""$x \leftarrow 1 - 2x^2$ has the Lyapunov exponent log 2."""
    logistic = network([[1.0]], [[1.0]], lambda nu: 1 - 2 * nu.square())
    lyapunov, parting, *_ = follow(latent(logistic), torch.tensor([[0.3], [0.41], [-0.2], [0.77]]).double())
    assert lyapunov == pytest.approx(math.log(2), rel=0.05)
    assert parting > 50


def test_periods_that_are_no_whole_number():
    t = torch.arange(400).double()
    path = torch.stack([(0.7 * t).cos() + 0.5 * (1.4 * t).sin(), (0.7 * t).sin()], 1)
    assert period(path[None]) == pytest.approx(2 * math.pi / 0.7, rel=1e-4)
    assert period(normal(1, 400, 2)) is None


def test_what_w_is_like():
    def with_w(w):
        return network(w, torch.ones(len(w), 1))

    square = normal(80, 80)
    assert looks_random(with_w(square))
    assert not looks_random(with_w(square + 20 * orthonormal(80, 1) @ orthonormal(80, 1).T))
    assert not looks_random(with_w(torch.eye(80)))
    assert feedforward(with_w(torch.tril(square, -1)))
    turned = torch.randperm(80, generator=torch.Generator().manual_seed(0))
    assert feedforward(with_w(torch.tril(square, -1)[turned][:, turned]))
    assert not feedforward(with_w(torch.tril(square)))


def test_times_are_told_in_time_too(tmp_path):
    found = analyze(bistable(dt=0.01, decoders=normal(60, 1)))
    told = json.loads(found.to_json())
    assert told["verdict"]["kind"] == "decides"
    assert "units of time" in told["verdict"]["evidence"]
    assert {point["stability"] for point in told["dynamics"]["fixed_points"]["points"]} == {"attractor", "repeller"}
    assert "fixed points: 2 attractors, 1 repeller" in str(found)
    write_page(found, tmp_path / "page.html", "bistable")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="without-inputs"' in page
    assert "nullclines" not in page  # of one coordinate
    assert "repeller" in page


def test_what_has_no_fixed_points_to_find_is_refused():
    with pytest.raises(InputError) as caught:
        fixed_points(Recording(normal(4, 9, 3), normal(4, 9, 1)))
    assert caught.value.field == "fixed_points"
    with pytest.raises(InputError) as caught:
        fixed_points(bistable(), constant=[1.0, 2.0])
    assert (caught.value.field, caught.value.value) == ("constant", (2,))


def test_the_state_dict_of_a_torch_rnn_can_be_asked():
    torch.manual_seed(0)
    found = fixed_points(nn.RNN(2, 30).state_dict(), activation="tanh")
    assert [point.stability for point in found.points] == ["attractor"]
    assert analysis.dynamics(bistable()).attractors
