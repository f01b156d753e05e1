"""The parts of the search for fixed points, and of what is said of states that go on moving."""

import math

import numpy as np
import pytest
import torch

from rni import VanillaRNN
from rni import activations as activation
from rni.analysis.behaviour import feedforward, follow, looks_random, nearest_of, outcomes, period
from rni.analysis.latents import latent, marks, settle
from rni.analysis.stationary import (
    Mode,
    descend,
    distinct,
    duration,
    find,
    one_sided_slopes,
    polish,
    solve_by_conjugate_gradients,
    solve_by_matrices,
    spaced,
    time_scales,
)
from rni.weights import Dense, LowRank


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def reduced(w, f="tanh", leak=1.0):
    w = torch.as_tensor(w, dtype=torch.float64)
    none = torch.zeros(len(w), dtype=torch.float64)
    return latent(VanillaRNN(Dense(w), torch.eye(len(w), dtype=torch.float64), activation.make(f), none, leak=leak))


def test_rows_are_spaced_from_the_first_to_the_last():
    assert spaced(torch.arange(10), 4).tolist() == [0, 3, 6, 9]
    assert spaced(torch.arange(3), 5).tolist() == [0, 1, 2]
    assert spaced(torch.arange(5), 1).tolist() == [0]


def test_both_ways_solve_the_damped_equations():
    r"""$(J^\dagger J + \mu)\,\delta = g$ with $J = R^\dagger f' L - 1$."""
    net = reduced(1.3 * normal(12, 12) / 12**0.5)
    kappa, gradient, mu = normal(5, 12, seed=1), normal(5, 12, seed=2), torch.logspace(-3, 1, 5, dtype=torch.float64)
    slopes = net.slopes(kappa)
    exact, close = (solve(net, slopes, gradient, mu) for solve in (solve_by_matrices, solve_by_conjugate_gradients))
    for k in range(5):
        j = torch.autograd.functional.jacobian(lambda x: net.pull(x[None])[0], kappa[k])
        normal_matrix = j.T @ j + mu[k] * torch.eye(12, dtype=torch.float64)
        torch.testing.assert_close(normal_matrix @ exact[k], gradient[k])
        assert (normal_matrix @ close[k] - gradient[k]).norm() <= 0.01 * gradient[k].norm()


@pytest.mark.parametrize("n", [3, 40])
def test_a_descent_ends_where_the_network_stands_still(n):
    """In few coordinates and in many; each row on its own."""
    net = reduced(1.6 * torch.linalg.qr(normal(n, n)).Q.T @ torch.diag(torch.linspace(0.1, 1, n).double()))
    starts = normal(6, n, seed=1)
    before = starts.clone()
    ends = descend(net, starts, 1e-6)
    assert torch.equal(starts, before)
    pulls, first = net.pull(ends).norm(dim=1), net.pull(starts).norm(dim=1)
    assert bool((pulls < 0.1 * first).all())
    assert int((pulls < 1e-5).sum()) >= 3
    alone = torch.cat([descend(net, row[None], 1e-6) for row in starts])
    torch.testing.assert_close(ends, alone, atol=1e-4, rtol=0)
    assert torch.equal(descend(net, torch.zeros(2, n).double(), 1e-6), torch.zeros(2, n).double())


def test_polishing_stays_within_reach():
    net = reduced([[1.6]])
    root = torch.tensor([[1.0]]).double()
    for _ in range(200):
        root = root + net.pull(root)
    near = root + 1e-3
    assert abs(polish(net, near, 0.1) - root) < 1e-12
    assert torch.equal(polish(net, near, 1e-6), near)
    assert torch.equal(polish(net, near, float((near - root) * 0.5)), near)


def test_of_close_rows_the_stillest_stays():
    net = reduced([[0.5]])
    rows = torch.tensor([[1.0], [0.9375], [-2.0], [0.5], [-2.0625]]).double()
    kept, member = distinct(net, rows, 0.1)
    assert kept.flatten().tolist() == [0.5, 0.9375, -2]
    assert member.tolist() == [1, 1, 2, 0, 2]
    kept, member = distinct(net, torch.tensor([[0.0], [0.25]]).double(), 0.25)  # as far is not farther
    assert kept.flatten().tolist() == [0]


def test_the_saddle_between_two_attractors_is_found_from_states_next_to_these():
    w = torch.diag(torch.tensor([1.6, 0.3])).double()
    net = VanillaRNN(Dense(w), torch.eye(2).double(), activation.make("tanh"), torch.zeros(2).double())
    once = latent(net)
    begun = torch.tensor([[1.0, 0.5], [-1.0, 0.2], [2.0, -0.5], [-0.5, 0.0]]).double()
    found = find(net, once, begun, begun)
    assert once.pull(torch.from_numpy(found.latent)).norm(dim=1).max() < 1e-12
    kinds = {
        round(float(kappa[0]), 1): point.stability for kappa, point in zip(found.latent, found.points, strict=True)
    }
    root = round(float(abs(found.latent[:, 0]).max()), 1)
    assert kinds == {root: "attractor", -root: "attractor", 0.0: "saddle"}


def test_each_visited_state_counts_for_the_point_that_it_settles_next_to():
    net = VanillaRNN(Dense(torch.tensor([[1.6]]).double()), torch.ones(1, 1), activation.make("tanh"), torch.zeros(1))
    once = latent(net)
    begun = torch.tensor([[0.5], [1.0], [-1.0], [2.0], [0.7]]).double()
    settled = settle(once, begun, marks(once))[-1]
    found = find(net, once, begun, settled)
    shares = {round(float(at[0]), 1): point.reached for at, point in zip(found.latent, found.points, strict=True)}
    root = float(settled[0, 0])
    assert shares == {round(root, 1): 0.8, round(-root, 1): 0.2, 0.0: 0.0}
    assert [point.reached for point in found.points] == [0.8, 0.2, 0.0]
    assert [point.stability for point in found.points] == ["attractor", "attractor", "repeller"]
    slope = 1.6 * (1 - root**2)  # h = tanh(1.6 h)
    assert found.points[0].modes[0].multiplier == pytest.approx(slope)
    assert found.spread == pytest.approx(float(begun.std(unbiased=False)))
    fewer = find(net, once, begun, settled, described=2)
    assert [len(point.modes) for point in fewer.points] == [1, 1, 0]
    np.testing.assert_allclose(fewer.eigenvalues, found.eigenvalues)
    assert (len(fewer), fewer.found) == (3, 3)


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        ([0.9, -0.9], "attractor"),
        ([1.0, 0.5], "marginal point"),
        ([1.1, 0.5], "saddle"),
        ([1.1, 1.0], "saddle"),
        ([1.1, -1.2], "repeller"),
    ],
)
def test_the_kinds_of_points_by_their_multipliers(weights, kind):
    w = torch.diag(torch.tensor(weights)).double()
    net = VanillaRNN(Dense(w), torch.eye(2).double(), activation.make("linear"), torch.zeros(2).double())
    found = find(net, latent(net), torch.zeros(1, 2).double(), torch.zeros(1, 2).double())
    assert [point.stability for point in found.points] == [kind]


def test_eigenvalues_alone_are_those_with_eigenvectors():
    """Eigenvalues of all points are those of the step, also where no modes are described."""
    w = 0.9 * normal(6, 6) / 6**0.5
    net = VanillaRNN(Dense(w), torch.eye(6).double(), activation.make("tanh"), normal(6, seed=2), leak=0.3)
    once, start = latent(net), normal(1, 6, seed=1)
    whole, alone = (find(net, once, start, start, described) for described in (64, 0))
    kappa = torch.from_numpy(whole.latent[0])
    step = torch.autograd.functional.jacobian(lambda x: x + once.leak * once.pull(x[None])[0], kappa).numpy()
    for found in (whole, alone):
        np.testing.assert_allclose(np.sort_complex(found.eigenvalues[0]), np.sort_complex(np.linalg.eigvals(step)))
        assert (np.diff(np.abs(found.eigenvalues[0])) <= 1e-12).all()
    assert alone.points[0].modes == ()


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_slopes_at_a_kink_are_those_on_the_side_of_the_farthest_start(unit):
    """Of two ReLU neurons, one that is at its threshold where the other is above it."""
    once = latent(
        VanillaRNN(
            Dense(torch.tensor([[1.0, 1.0], [0.0, 1.0]]).double()),
            torch.eye(2).double(),
            activation.make("relu"),
            torch.tensor([-2.0, 0.0]).double() * unit,
        )
    )
    at = torch.tensor([1.0, 1.0]).double() * unit

    def slopes(*moves, point=at):
        starts = at + unit * torch.tensor(moves, dtype=torch.float64).reshape(-1, 2)
        return one_sided_slopes(once, point, starts, unit).tolist()

    assert slopes((-3.0, 1.0), (1.0, 1.0)) == [0, 1]
    assert slopes((-0.5, 0.0), (1.0, 1.0)) == [1, 1]
    assert slopes((3.0, -1.0), (-0.5, 0.0)) == [1, 1]
    assert slopes((-3.0, 1.0), point=at + 1e-8 * unit) == [0, 1]  # as near is at the kink
    assert slopes((-3.0, 1.0), point=at + 1e-6 * unit) == [1, 1]
    assert slopes() == once.slopes(at).tolist()


@pytest.mark.parametrize(("beyond", "kinds"), [(1e-3, ["slow point"]), (0.02, ["slow point"]), (0.03, [])])
@pytest.mark.parametrize("leak", [1.0, 0.5])
def test_where_two_points_have_met_states_are_slow(beyond, kinds, leak):
    r"""$\tanh(2\nu + b)$ has two fixed points up to $b = -\mathrm{artanh}\,h + 2h$ at $2(1 - h^2) = 1$."""
    met = math.sqrt(0.5)
    bias = torch.tensor([math.atanh(met) - 2 * met - beyond], dtype=torch.float64)
    net = VanillaRNN(Dense(torch.tensor([[2.0]]).double()), torch.ones(1, 1), activation.make("tanh"), bias, leak=leak)
    once = latent(net)
    begun = torch.linspace(-1, 1, 16).double()[:, None]
    found = find(net, once, begun, begun)
    slow = [point for point, at in zip(found.points, found.latent, strict=True) if at[0] > 0]
    assert [point.stability for point in slow] == kinds
    least = float(once.pull(torch.linspace(0.5, 1, 100_001).double()[:, None]).abs().min())
    assert (least <= found.spread / 50) == bool(slow)
    assert [point.speed for point in slow] == pytest.approx([leak * least] * len(kinds))
    text = str(found).splitlines()
    assert (
        sorted(text[0].removeprefix("fixed points: ").split(", ")) == ["1 attractor", "1 slow point"][: 1 + len(slow)]
    )
    assert sum(f"speed {point.speed:.2g} a step" in line for line in text for point in slow) == len(kinds)


def test_time_constants_and_periods_of_multipliers():
    assert time_scales(math.exp(-0.1)) == (pytest.approx(10), math.inf)
    assert time_scales(math.exp(0.1)) == (pytest.approx(-10), math.inf)
    assert time_scales(-0.5) == (pytest.approx(1 / math.log(2)), 2)
    assert time_scales(0.5j) == (pytest.approx(1 / math.log(2)), 4)
    assert time_scales(complex(0.0, -1.0)) == (math.inf, 4)
    assert time_scales(1 + 1e-12) == (math.inf, math.inf)
    assert time_scales(0.0) == (0, math.inf)
    assert time_scales(-1e-13)[1] == math.inf  # rounding has no period
    assert time_scales(complex(1.0, 1e-10))[1] == math.inf


def test_a_mode_is_described_in_steps_and_in_time():
    mode = Mode(0.95, 19.5, math.inf, (), ())
    assert mode.describe() == "0.95 (19.5 steps)"
    growing = Mode(1.05, -20.5, 10.0, (), ())
    assert growing.describe(0.1) == "1.05 (20.5 steps, 2.05 units of time, period 10 steps, 1 units of time)"
    assert duration(3.0, None) == "3 steps"


@pytest.mark.parametrize(("weight", "leak"), [(1.01, 0.5), (0.99, 1.0)])
def test_a_linear_network_is_followed_for_200_own_times(weight, leak):
    states = torch.tensor([[1.0], [2.0]]).double()
    lyapunov, parting, found, sustained = follow(reduced([[weight]], "linear", leak), states)
    multiplier = 1 - leak + leak * weight
    steps = round(200 / leak)
    squares = multiplier ** (2 * np.arange(steps))
    assert lyapunov == pytest.approx(math.log(multiplier), rel=1e-9)
    assert parting == pytest.approx(math.log(multiplier) * (steps - steps // 4), rel=1e-9)
    half = steps // 2
    assert sustained == pytest.approx((squares[half:].mean() / squares[:half].mean()) ** 0.5, rel=1e-9)
    assert found is None


def test_the_exponent_is_that_of_the_direction_that_grows_most():
    lyapunov, *_ = follow(reduced(torch.diag(torch.tensor([0.5, 1.02, 0.9])), "linear"), normal(3, 3))
    assert lyapunov == pytest.approx(math.log(1.02), rel=1e-3)


@pytest.mark.parametrize("angle", [0.31, 0.63, math.pi])
def test_the_period_of_a_rotation(angle):
    t = torch.arange(400).double()
    path = torch.stack([(angle * t).cos(), (angle * t).sin()], 1)
    assert period(path[None]) == pytest.approx(2 * math.pi / angle, rel=1e-3)
    noise = normal(400, 2)
    assert period(torch.stack([path, path, noise])) == pytest.approx(2 * math.pi / angle, rel=1e-3)
    assert period(torch.stack([path, noise])) is None
    assert period((path + 0.5 * noise)[None]) is None  # returns, but not to a tenth of its variance


def test_few_neurons_and_uneven_weights_are_not_called_random():
    def with_w(w):
        return VanillaRNN(Dense(w), torch.ones(len(w), 1), activation.make("tanh"), torch.zeros(len(w)))

    assert looks_random(with_w(normal(200, 200)))
    assert looks_random(with_w(5 * normal(20, 20, seed=3)))
    assert not looks_random(with_w(normal(19, 19)))
    assert not looks_random(with_w(normal(200, 200) * torch.linspace(0.1, 2, 200)))
    values = torch.linalg.svdvals(normal(200, 200))
    assert looks_random(with_w(torch.eye(200)), values)
    assert not looks_random(with_w(torch.eye(200)), torch.cat([values[:-1], 1.2 * values[:1]]))
    assert not looks_random(with_w(torch.eye(200)), torch.linspace(0, 1, 200))
    assert not looks_random(with_w(torch.eye(200)), torch.zeros(200))


def fate(w, last, f="tanh", leak=1.0, later=None, first=None):
    """Of a network whose neurons act on themselves, at states (states, K), and 25 and 50 own times before."""
    once = reduced(torch.atleast_2d(torch.as_tensor(w)), f, leak)
    net = VanillaRNN(
        Dense(torch.atleast_2d(torch.as_tensor(w)).double()), torch.ones(len(last[0]), 1), once.f, once.bias, leak=leak
    )
    last = torch.as_tensor(last).double()
    later, first = (last if each is None else torch.as_tensor(each).double() for each in (later, first))
    return outcomes(once, find(net, once, first, last), first, later, last)


def test_states_end_at_two_attractors():
    root = float(settle(reduced([[1.6]]), torch.ones(1, 1).double(), [50])[-1, 0, 0])
    ends = [[root]] * 6 + [[-root]] * 3 + [[0.0]]
    found = fate([[1.6]], ends, first=torch.linspace(-2, 2, 10)[:, None])
    assert found["attractors"] == (0.6, 0.3)
    assert not found["graded"]
    assert found["slow"] == found["grows"] == found["moving"] == 0


def test_states_of_a_line_end_graded_and_of_a_cycle_go_on():
    line = torch.stack([torch.linspace(-1, 1, 20), torch.zeros(20)], 1)
    found = fate(torch.diag(torch.tensor([1.0, 0.5])), line, "linear")
    assert found["graded"]
    assert found["slow"] == 1
    assert found["attractors"] == ()
    angle = 0.3
    turning = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    circle = normal(12, 2)
    found = fate(turning, circle, "linear")
    assert (found["moving"], found["grows"], found["chaotic"]) == (1, 0, False)
    assert found["period"] == pytest.approx(2 * math.pi / angle, rel=1e-3)
    assert found["lyapunov"] == pytest.approx(0, abs=1e-6)
    grown = fate(1.01 * turning, circle, "linear")
    assert (grown["grows"], grown["moving"], grown["period"]) == (1, 0, None)
    for factor, moves in ((0.55, True), (0.45, False)):  # as fast as half of what they were 25 own times before
        assert bool(fate(turning, circle, "linear", later=circle / factor)["moving"]) == moves


def test_the_nearest_of_several_states():
    distance, which = nearest_of(torch.tensor([[0.0], [3.5]]), torch.tensor([[1.0], [5.0]]), 9.0)
    assert (distance.tolist(), which.tolist()) == ([1, 1.5], [0, 1])
    assert nearest_of(torch.tensor([[0.0], [3.0]]), torch.zeros(0, 1), 9.0)[0].tolist() == [9, 9]
    several = torch.tensor([[0.0], [3.0], [4.0]])
    assert nearest_of(several, several, 9.0, itself=False)[0].tolist() == [3, 1, 1]
    assert nearest_of(several[:1], several[:1], 9.0, itself=False)[0].tolist() == [9]


def test_states_that_all_run_away_have_no_outcome():
    empty = torch.zeros(0, 1).double()
    found = fate([[0.5]], torch.zeros(1, 1))
    assert found["attractors"] == ()  # of a single state
    once = reduced([[0.5]])
    net = VanillaRNN(Dense(torch.full((1, 1), 0.5).double()), torch.ones(1, 1), once.f, once.bias)
    points = find(net, once, torch.zeros(1, 1).double(), torch.zeros(1, 1).double())
    assert outcomes(once, points, empty, empty, empty)["slow"] == 0


def test_a_chain_of_neurons_has_no_loop_and_a_ring_has_one():
    chain = torch.diag(torch.ones(3), -1)
    ring, diagonal = chain.clone(), chain.clone()
    ring[0, 3], diagonal[0, 0] = 1, 1
    for w, loops in ((chain, False), (ring, True), (diagonal, True), (torch.ones(4, 4), True)):
        net = VanillaRNN(Dense(w), torch.ones(4, 1), activation.make("tanh"), torch.zeros(4))
        assert feedforward(net) != loops
    left, right = torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [0.0]])
    for factors, loops in (((left, right), False), ((left, left), True)):
        net = VanillaRNN(LowRank(*factors), torch.ones(2, 1), activation.make("tanh"), torch.zeros(2))
        assert feedforward(net) != loops


@pytest.mark.parametrize(("leaks", "dimension"), [(1, 2), (2, 4), (3, 6)])
@pytest.mark.parametrize("form", ["rate", "current"])
def test_each_leak_has_latent_coordinates_unless_they_are_as_many_as_neurons(leaks, dimension, form):
    w = normal(6, 2) @ normal(6, 2, seed=1).T
    leak = torch.tensor([0.2, 0.5, 0.8]).double()[torch.arange(6) % leaks]
    net = VanillaRNN(Dense(w), torch.ones(6, 1), activation.make("tanh"), torch.zeros(6), leak=leak, form=form)
    once = latent(net)
    assert once.dimension == dimension
    assert once.own_time == pytest.approx(1 / float(leak.min()))
    assert (once.left is None or once.right is None) == (dimension == 6)
