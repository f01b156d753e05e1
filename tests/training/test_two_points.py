"""Descent on the two points of the ReLU proxy, beside the steps of the loss itself."""

import copy

import pytest
import torch
from told import train_run, train_step_by_step

from rni import Diverged, InputError, run
from rni.training import Checkpoint, train, two_points
from rni.training.descent import descend, make_plan
from rni.training.paths import choose_method
from rni.weights import Dense, LowRank


def specification(scale=1.0, weights="lowrank", **training):
    raw = {
        "task": {"decays": [0.995], "scales": [scale]},
        "network": {"neurons": 60, "weights": weights, "precision": "float64"},
        "training": {"loss": "proxy", "steps": 400} | training,
    }
    return train_run(raw)


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("weights", ["lowrank", "dense"])
@pytest.mark.parametrize("singles", [two_points.SINGLES, 3])
def test_it_makes_the_steps_of_the_loss(scale, schedule, weights, singles, monkeypatch):
    monkeypatch.setattr(two_points, "SINGLES", singles)
    spec = specification(scale, weights=weights)
    nets, losses = zip(*(_trained(method, spec, schedule) for method in (train_step_by_step, train)), strict=True)
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    first, second = (net.recurrent.matrix() for net in nets)
    assert (first - second).norm() < 1e-6 * first.norm()
    assert type(nets[1].recurrent) is type(nets[0].recurrent)


def _trained(method, spec, schedule="constant"):
    net = spec.build()
    rate, steps = spec.training.learning_rate, spec.training.steps
    return net, method(net, spec.loss(), learning_rate=rate, steps=steps, schedule=schedule)


def test_neurons_change_sides_on_the_way_and_the_span_grows_by_them():
    ranks, made = [], []

    def look(step, loss, net):
        ranks.append(len(net.recurrent.core))
        made.append(len(net.recurrent.alone))

    net, spec = specification(2.0).build(), specification(2.0)
    train(net, spec.loss(), learning_rate=0.03, steps=400, callbacks=[look])
    assert ranks[0] == 2, "e and d: no current has a sign yet"
    assert ranks[1] == 4
    assert 3 < made[-1] == ranks[-1] - 4 < 30


@pytest.mark.parametrize(("precision", "digits"), [("float32", 1e-3), ("float64", 1e-6)])
def test_neurons_that_are_not_driven_or_not_read_have_slope_one_half_where_they_have_no_current(precision, digits):
    raw = specification(0.5).to_dict()
    spec = train_run(raw | {"network": raw["network"] | {"precision": precision}})
    nets, losses = [spec.build(), spec.build()], []
    for net, method in zip(nets, (train_step_by_step, train), strict=True):
        net.encoders.data[:10], net.decoders.data[5:15] = 0, 0
        losses.append(method(net, spec.loss(), learning_rate=0.05, steps=400))
    assert losses[1] == pytest.approx(losses[0], rel=digits)
    assert not nets[1].recurrent.matrix()[5:10].any(), "neither driven nor read: silent for ever"
    assert nets[1].recurrent.matrix()[10:15].any()


def test_it_starts_from_any_factors():
    """More of them than there is room for at first, and neurons without any current, where the slope is 1/2."""
    factors = torch.randn(2, 60, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 20
    factors[0, :5] = 0
    (left, right), spec, found = factors, specification(), []
    for method in (train_step_by_step, train):
        net = spec.build()
        net.recurrent = LowRank(left, right)
        found.append(method(net, spec.loss(), learning_rate=0.01, steps=50))
    assert found[1] == pytest.approx(found[0], rel=1e-6)


OTHERS = [{"weights": "dense", "initial_radius": 0.1}, {"weights": "dale"}, {"activation": "tanh"}]


@pytest.mark.parametrize("changes", OTHERS)
def test_other_networks_are_trained_step_by_step(changes):
    raw = specification().to_dict()
    spec = train_run(raw | {"network": raw["network"] | changes})
    net = spec.build()
    assert choose_method(net, make_plan(net, spec.loss())) is descend


def test_callbacks_see_the_network_of_each_step():
    spec, seen = specification(steps=40), []

    def look(step, loss, net):
        seen.append((loss, spec.loss().value(net, spec.loss().draw(dtype=torch.float64)).item()))

    run(spec, callbacks=[look])
    assert [loss for loss, _ in seen] == pytest.approx([value for _, value in seen], rel=1e-9)


@pytest.mark.parametrize("weights", ["lowrank", "dense"])
@pytest.mark.parametrize("rate", [10.0, 1e10, 1e100])
def test_a_rate_far_too_high_is_told_as_that(weights, rate, recwarn):
    raw = specification(2.0, weights=weights).to_dict()
    spec = train_run(raw | {"network": raw["network"] | {"precision": "float32"}})
    with pytest.raises(Diverged):
        train(spec.build(), spec.loss(), learning_rate=rate, steps=50)
    assert not recwarn.list


@pytest.mark.parametrize("weights", ["lowrank", "dense"])
@pytest.mark.parametrize("singles", [two_points.SINGLES, 3])
def test_a_training_goes_on_from_its_checkpoint_to_the_same_bits_also_in_a_network_of_other_vectors(
    weights, singles, tmp_path, monkeypatch
):
    monkeypatch.setattr(two_points, "SINGLES", singles)
    spec = specification(2.0, weights=weights)
    whole, losses = _trained(train, spec)
    kept, alone = Checkpoint(tmp_path / "checkpoint", seconds=0), []
    options = {"learning_rate": spec.training.learning_rate, "checkpoint": kept}

    def interrupt(step, loss, net):
        alone.append(len(net.recurrent.alone))
        if step == 250:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(spec.build(), spec.loss(), callbacks=[interrupt], **options)
    assert max(alone) > 0
    assert (sorted(alone) != alone) == (singles == 3), "the span was made anew"
    net = train_run(spec.to_dict() | {"seed": 5}).build()
    assert train(net, spec.loss(), steps=400, **options) == losses
    assert torch.equal(net.recurrent.matrix(), whole.recurrent.matrix())
    assert torch.equal(net.encoders, whole.encoders)


@pytest.mark.parametrize("weights", ["lowrank", "dense"])
def test_interrupted_it_leaves_the_network_of_its_last_step(weights):
    spec = specification(2.0, weights=weights)
    net, losses = spec.build(), []

    def interrupt(step, loss, _):
        losses.append(loss)
        if step == 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(net, spec.loss(), learning_rate=0.03, steps=400, callbacks=[interrupt])
    assert type(net.recurrent) is {"lowrank": LowRank, "dense": Dense}[weights]
    assert spec.loss()(net).item() == pytest.approx(losses[-1], rel=1e-6)


def test_what_is_frozen_or_refused_stays_as_it_is():
    factors = torch.randn(2, 60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 20
    net, loss = specification().build(), specification().loss()
    left, right = factors
    weights = net.recurrent = LowRank(left, right)
    with pytest.raises(InputError, match="steps"):
        train(net, loss, steps=-1)
    net.recurrent.requires_grad_(False)
    with pytest.raises(InputError, match="none of it requires a gradient"):
        train(net, loss, steps=10)
    assert all(torch.equal(kept, given) for kept, given in zip(weights.factors(), factors, strict=True))


def test_a_copy_made_on_the_way_is_a_network_like_any_other():
    spec, copies = specification(2.0, steps=40), []
    raw = spec.to_dict()
    spec = train_run(raw | {"network": raw["network"] | {"precision": "float32"}})
    run(spec, callbacks=[lambda step, loss, net: copies.append((loss, copy.deepcopy(net)))])
    loss, net = copies[30]
    assert type(net.recurrent) is LowRank
    assert spec.loss()(net.double()).item() == pytest.approx(loss, rel=1e-4)
    assert train(net, spec.loss(), learning_rate=0.03, steps=10)[-1] < loss


def test_without_currents_slopes_are_one_half_whatever_w_is():
    """W e = 0 as W reads only neurons that are not driven; in another basis it is so but for rounding."""
    left, right = torch.randn(2, 300, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 20
    right[:150], found = 0, []
    raw = specification().to_dict()
    spec = train_run(raw | {"network": raw["network"] | {"neurons": 300}})
    for method in (train_step_by_step, train):
        net = spec.build()
        net.encoders.data[150:] = 0
        net.recurrent = LowRank(left, right)
        found.append(method(net, spec.loss(), learning_rate=0.01, steps=20))
    assert found[1] == pytest.approx(found[0], rel=1e-6)
