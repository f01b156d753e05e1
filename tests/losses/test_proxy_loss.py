"""The proxy loss for activations of any kind, and the range of integrals that it trains for."""

import warnings

import pytest
import torch
from told import train_run

from rni import InputError, Integration, Network, ProxyLoss, run
from rni.activations import ReLU, make
from rni.analysis import linear_map
from rni.core.rng import lattice
from rni.losses import RangeWarning, ReLUProxyLoss
from rni.losses.gradient import PARAMETERS
from rni.losses.proxy import largest_coordinates, proxy_gradient
from rni.tasks.inputs import bursts
from rni.weights.vectors import independent


def test_the_trained_range_is_what_bounded_inputs_can_reach():
    task = Integration([0.8, 0.5], [1.0, 3.0])
    assert largest_coordinates(task) == pytest.approx((5, 2))  # the paper's footnote: z_max = 5 at decay 0.8
    x = torch.ones(1, 500, 2)
    y = task.targets(x)[0, -1]
    z = y / (torch.tensor(task.scales) * torch.tensor(task.decays))
    assert z.tolist() == pytest.approx([5, 2])


def test_inputs_that_leave_the_range_are_warned_of():
    loss = ProxyLoss(Integration([0.8, 0.5], [1.0, 3.0]))
    x = torch.ones(1, 100, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss.check_range(x)
    x[:, :, 1] *= 2
    with pytest.warns(RangeWarning, match=r"channel 2 reaches \|z\| = 4; trained for at most 2"):
        loss.check_range(x)


def test_points_are_drawn_anew_within_the_box_and_cover_it_evenly():
    loss, generator = ProxyLoss(Integration((0.9, 0.8)), points=32, bounds=(3.0, 1.0)), torch.Generator().manual_seed(0)
    draws = torch.stack([loss.draw(generator) for _ in range(200)])
    assert not torch.equal(draws[0], draws[1])
    assert (draws.abs().amax((0, 1)) <= torch.tensor(loss.box)).all()
    powers = 3 * (draws / torch.tensor(loss.box)).square().mean(1)
    independent = (4 / 5 / 32) ** 0.5  # the deviation of that for independent points
    torch.testing.assert_close(powers.mean(0), torch.ones(2), atol=0.02, rtol=0)
    assert (powers.std(0) < independent / 3).all()


def test_the_two_point_loss_of_a_relu_network_is_the_box_loss_up_to_a_factor():
    """Both terms are homogeneous of degree 2 in z: over [-b, b] they have the mean b^2/6 of their sum at z = +-1."""
    specification = train_run({"task": {"decays": [0.9]}, "network": {"neurons": 50, "initial_radius": 0.8}})
    net, task = specification.build().double(), Integration([0.9])
    exact, box = ReLUProxyLoss(task), ProxyLoss(task, bounds=(3.0,), points=2**14, fixed=True)
    two = exact.gradient(net, exact.draw(dtype=torch.float64))
    many = box.gradient(net, box.draw(dtype=torch.float64))
    assert many[0] == pytest.approx(two[0] * 9 / 6, rel=1e-3)
    first, second = (gradient.left.T @ gradient.right for _, gradient in (two, many))
    torch.testing.assert_close(second, first * 9 / 6, rtol=1e-2, atol=1e-3 * float(first.abs().max()))


@pytest.mark.parametrize(
    "activation",
    [
        "tanh",
        "softplus",
        {"name": "sigmoid", "threshold": {"mean": 0.1, "deviation": 0.03}},
        {"name": "rectified_power", "exponent": {"mean": 1.4, "deviation": 0.1}},
    ],
)
def test_any_activation_of_a_configuration_learns_to_integrate(activation):
    power = isinstance(activation, dict) and activation["name"] == "rectified_power"
    specification = train_run(
        {
            "task": {"decays": [0.8, 0.75]},
            "network": {"neurons": 150, "activation": activation, "initial_radius": 0.5 if power else 0.0},
            "training": {
                "loss": "proxy",
                "points": 64,
                "optimizer": "adam",
                "learning_rate": 0.004,
                "schedule": "cosine",
                "steps": 300,
            },
        }
    )
    result = run(specification)
    assert sum(result.losses[-20:]) / 20 < 0.1 * specification.loss().zero_output_loss()
    x = bursts(32, 5, 2, torch.Generator().manual_seed(0))
    with torch.no_grad():
        currents = result.network.currents(x).flatten(0, 1)
    fit = linear_map(currents, result.network.task.targets(x).flatten(0, 1))
    power = currents.square().sum(0)
    assert (fit.explained.nan_to_num(1) * power).sum() > 0.8 * power.sum()  # currents are linear in the integrals


def test_samples_may_be_independent_instead_of_even():
    raw = {"task": {"decays": [0.8]}, "network": {"neurons": 20, "activation": "sigmoid"}}
    drawn = {}
    for sampling in ("even", "independent"):
        training = {"loss": "proxy", "points": 64, "sampling": sampling}
        loss = train_run(raw | {"training": training}).loss()
        draws = [loss.draw(torch.Generator().manual_seed(k)) for k in range(50)]
        drawn[sampling] = torch.stack([z.square().mean() for z in draws]).std()
        batch = train_run(raw | {"training": {"sampling": sampling}}).loss()
        assert batch.draw(torch.Generator().manual_seed(0)).shape == (32, 3, 1)
    assert drawn["even"] < 0.2 * drawn["independent"]
    assert train_run(raw).key() == train_run(raw | {"training": {}}).key()
    with pytest.raises(InputError, match="sampling: 'independent'; allowed: 'even' for fixed points"):
        train_run(raw | {"training": {"loss": "proxy", "sampling": "independent", "fixed": True}})


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("train", ["recurrent", "recurrent+decoders", "decoders", "all"])
@pytest.mark.parametrize("activation", ["linear", "relu", {"name": "sigmoid", "slope": 5, "threshold": 0}, "softplus"])
def test_points_in_pairs_have_the_gradient_of_all_points_from_half_of_the_products(activation, train, channels):
    task = {"decays": [0.8, 0.77, 0.75][:channels], "scales": [1.0, 2.0, 0.5][:channels]}
    network = {"neurons": 30, "activation": activation, "initial_radius": 0.8, "precision": "float64"}
    training = {"loss": "proxy", "points": 16, "sampling": "folded", "current_weight": 0.3, "bounds": [2.0] * channels}
    specification = train_run({"task": task, "network": network, "training": training})
    net, loss = specification.build(), specification.loss()
    z = loss.draw(torch.Generator().manual_seed(0), torch.float64)
    z = z[[0, *range(2, 8), 8, *range(10, 16)]]  # seven pairs, so that their c c' is not that of a whole lattice
    (found, by_half), (expected, plain) = (
        loss.gradient(net, z, PARAMETERS[train]),
        proxy_gradient(net, net.task, z, 0.3, 1 / 14, PARAMETERS[train]),
    )
    assert found == pytest.approx(expected, rel=1e-12)
    torch.testing.assert_close(by_half.recurrent(), plain.recurrent(), rtol=1e-10, atol=1e-10)
    for one, other in ((by_half.decoders, plain.decoders), (by_half.encoders, plain.encoders)):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("moved", ["points", "threshold", "function"])
def test_half_of_the_products_only_where_points_are_opposite_and_the_activation_symmetric(monkeypatch, moved):
    class Bent(ReLU):
        """Inherits all but its values from another function."""

        def __call__(self, current):
            return current.clamp(min=0) ** 2

    def never(*_):
        raise AssertionError("the products of one half were taken for all")

    f = {
        "points": "tanh",
        "threshold": make("sigmoid", slope=5, threshold=torch.tensor([0.0] * 19 + [0.1])),
        "function": Bent(),
    }[moved]
    task = Integration([0.8])
    net = Network(task, *independent(20, 1, torch.Generator().manual_seed(0)), 0.1 * torch.ones(20, 20), f)
    loss = ProxyLoss(task, points=8, sampling="folded")
    z = loss.draw(torch.Generator().manual_seed(0))
    monkeypatch.setattr("rni.losses.mirrored.mirrored_gradient", never)
    loss.gradient(net, z + 0.1 if moved == "points" else z)
    if moved == "points":
        with pytest.raises(AssertionError, match="one half"):
            loss.gradient(net, z)


@pytest.mark.parametrize(("points", "channels"), [(16, 1), (24, 2), (256, 3), (256, 5)])
def test_folded_points_are_opposite_uniform_in_the_box_and_leave_less_noise(points, channels):
    bounds = (5.0, 4.0, 3.0, 2.0, 1.0)[:channels]
    folded = ProxyLoss(Integration([0.8] * channels), points, bounds, sampling="folded")
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([folded.draw(generator, torch.float64) for _ in range(200)]) / torch.tensor(bounds)
    assert torch.equal(draws[:, points // 2 :], -draws[:, : points // 2])
    assert draws.abs().max() <= 1
    for power, mean in ((2, 1 / 3), (4, 1 / 5)):
        each = draws[:, 0] ** power  # of one point, by itself
        torch.testing.assert_close(each.mean(0), torch.full((channels,), mean).double(), atol=0.09, rtol=0)
    even = ProxyLoss(Integration([0.8] * channels), points, bounds)
    drawn = torch.stack([even.draw(generator, torch.float64) for _ in range(200)]) / torch.tensor(bounds)
    noise, other = (torch.exp(z.sum(-1) / channels**0.5).mean(-1).std() for z in (draws, drawn))
    assert noise < 0.5 * other  # the average of a smooth function


@pytest.mark.parametrize(("pairs", "channels"), [(1, 2), (12, 2), (15, 3), (32, 1), (64, 3), (128, 5), (1000, 4)])
def test_the_lattice_and_itself_half_of_the_cube_away_fill_every_dimension(pairs, channels):
    half = lattice(pairs, channels)
    whole = torch.cat([half, (half + 0.5) % 1])
    assert half.shape == (pairs, channels)
    expected = (torch.arange(2 * pairs).double() / (2 * pairs))[:, None].expand(-1, channels)
    torch.testing.assert_close(whole.sort(0).values, expected, rtol=0, atol=1e-12)


def test_folded_points_cost_half():
    raw = {"task": {"decays": [0.8, 0.75]}, "training": {"loss": "proxy", "points": 64, "sampling": "folded"}}
    even = train_run({"task": raw["task"], "training": {"loss": "proxy", "points": 32}})
    assert train_run(raw).cost() == even.cost()


def test_folded_points_are_pairs():
    with pytest.raises(InputError) as caught:
        ProxyLoss(Integration(0.8), points=7, sampling="folded")
    assert (caught.value.field, caught.value.value) == ("points", 7)
    with pytest.raises(InputError) as caught:
        ProxyLoss(Integration(0.8), fixed=True, sampling="folded")
    assert (caught.value.field, caught.value.value) == ("sampling", "folded")
    raw = {"task": {"decays": [0.8]}, "network": {"activation": "sigmoid"}}
    with pytest.raises(InputError, match=r"^training.loss.points: 7"):
        train_run(raw | {"training": {"loss": "proxy", "points": 7, "sampling": "folded"}})


def test_fixed_points_of_a_specification_are_the_same_at_every_step():
    raw = {"task": {"decays": [0.8]}, "network": {"neurons": 20, "activation": "sigmoid"}}
    loss = train_run(raw | {"training": {"loss": "proxy", "points": 8, "fixed": True}}).loss()
    assert torch.equal(loss.draw(torch.Generator().manual_seed(0)), loss.draw(torch.Generator().manual_seed(1)))


def test_a_threshold_that_saturates_at_rest_makes_zero_weights_a_fixed_point():
    def gradient_at_zero(threshold):
        raw = {"task": {"decays": [0.8]}, "training": {"loss": "proxy"}}
        raw["network"] = {"neurons": 50, "activation": {"name": "sigmoid", "threshold": threshold}}
        specification = train_run(raw)
        net, loss = specification.build(), specification.loss()
        return float(loss.gradient(net, loss.draw(torch.Generator().manual_seed(0)))[1].recurrent().norm())

    assert gradient_at_zero(0.1) > 1  # the paper's choice
    assert gradient_at_zero(1.0) < 1e-12
