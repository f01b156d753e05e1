"""Descent on the two points of the ReLU proxy, beside the steps of the loss itself."""

import pytest
import torch
from told import of

from rni import InputError, ReLUProxyLoss, Specification, run
from rni.training import train, train_two_points
from rni.weights import LowRank


def specification(scale=1.0, **training):
    raw = {
        "task": {"decays": [0.995], "scales": [scale]},
        "network": {"neurons": 60, "weights": "lowrank", "precision": "float64"},
        "training": {"loss": "proxy", "steps": 400} | training,
    }
    return Specification.parse(raw)


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_it_makes_the_steps_of_the_loss(scale, schedule):
    spec = specification(scale)
    nets, losses = zip(*(_trained(method, spec, schedule) for method in (train, train_two_points)), strict=True)
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    first, second = (net.recurrent.matrix() for net in nets)
    assert (first - second).norm() < 1e-6 * first.norm()


def _trained(method, spec, schedule):
    net = spec.build()
    rate, steps = spec.training.learning_rate, spec.training.steps
    return net, method(net, spec.loss(), learning_rate=rate, steps=steps, schedule=schedule)


def test_it_starts_from_any_factors():
    """More of them than there is room for at first, and neurons without any current, where the slope is 1/2."""
    factors = torch.randn(2, 60, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 20
    factors[0, :5] = 0
    (left, right), spec, found = factors, specification(), []
    for method in (train, train_two_points):
        net = spec.build()
        net.recurrent = LowRank(left, right)
        found.append(method(net, of(ReLUProxyLoss, spec.loss()), learning_rate=0.01, steps=50))
    assert found[1] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize("changes", [{"weights": "dense"}, {"activation": "tanh"}])
def test_other_networks_are_refused(changes):
    raw = specification().model_dump(mode="json", exclude={"training"})
    net = Specification.parse(raw | {"network": raw["network"] | changes, "training": {"steps": 10}}).build()
    with pytest.raises(InputError, match="LowRank and 'relu'"):
        train_two_points(net, of(ReLUProxyLoss, specification().loss()), learning_rate=0.01, steps=1)


def test_callbacks_see_the_network_of_each_step():
    spec, seen = specification(steps=40), []

    def look(step, loss, net):
        seen.append((loss, spec.loss().value(net, spec.loss().draw(dtype=torch.float64)).item()))

    run(spec, callbacks=[look])
    assert [loss for loss, _ in seen] == pytest.approx([value for _, value in seen], rel=1e-9)
