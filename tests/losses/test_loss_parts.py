"""What a loss says of itself: where training starts from, how fast it may go, what it needs."""

from typing import Any

import pytest
import torch
from told import mistyped

from rni import AveragedLoss, BatchLoss, InputError, Integration, ProxyLoss
from rni.core import memory
from rni.losses import Loss, ReLUProxyLoss
from rni.losses.base import build_loss
from rni.losses.gradient import PARAMETERS


def test_the_silent_proxy_loss_is_that_of_a_network_without_weights(small):
    net = small("relu", (0.9, 0.8), scales=(2.0, 0.5))
    with torch.no_grad():
        net.recurrent.value.zero_()
        box = ProxyLoss(net.task, points=2**14, bounds=(3.0, 2.0), fixed=True)
        assert float(box(net)) == pytest.approx(box.zero_output_loss(), rel=1e-3)
        one = small("relu", (0.9,), scales=(2.0,))
        one.recurrent.value.zero_()
        exact = ReLUProxyLoss(one.task)
        assert float(exact(one)) == pytest.approx(exact.zero_output_loss())


@pytest.mark.parametrize("scale", [0.5, -4.0])
def test_learning_rates_fall_with_scales_durations_and_bounds(scale):
    task = Integration([0.9, 0.8], [0.1, scale])
    larger = max(1, scale**2)
    assert ReLUProxyLoss(Integration(0.9, scale)).default_learning_rate() == pytest.approx(0.05 / larger)
    assert ProxyLoss(task, bounds=(2.0, 3.0)).default_learning_rate() == pytest.approx(0.05 / larger * 6 / 9)
    assert (
        BatchLoss(task, 4).default_learning_rate()
        == AveragedLoss(task, 4).default_learning_rate()
        == pytest.approx(2 / scale**2 / 4**3)
    )
    assert BatchLoss(task, 10).default_learning_rate() == pytest.approx(2 / scale**2 / 10**3 / 2)
    assert BatchLoss(Integration(0.9, 0.0), 4).default_learning_rate() == pytest.approx(2e6 / 4**3)


PARTS = [  # of 2 channels: its fields, rows of a step, and bytes asked for with 100 neurons of 8 bytes
    ({"name": "batch", "batch": 5, "duration": 7}, 35, 6 * 7 * 5 * 800),
    ({"name": "averaged", "duration": 3, "correlation": [1, 0.5, 0.1]}, 2, 16 * 6 * 6),
    ({"name": "proxy", "points": 9}, 9, 3 * 9 * 800),
]


@pytest.mark.parametrize(("fields", "rows", "needed"), PARTS)
def test_what_a_step_multiplies_and_holds(fields, rows, needed, monkeypatch):
    loss, asked = build_loss(fields, Integration([0.9, 0.8])), []
    monkeypatch.setattr(memory, "require", lambda size, what, allowed: asked.append((size, what, allowed)))
    assert loss.cost == rows
    loss.require_memory(100, 8)
    size, _, allowed = asked[-1]
    assert size == needed
    if callable(allowed):  # as many as fit into what is free
        number = fields.get("batch", fields.get("points"))
        assert allowed(2.5 * needed / number) == "up to 2"


def test_two_points_stand_for_all_only_where_the_proxy_is_homogeneous():
    one, two = Integration(0.9), Integration([0.9, 0.8])
    assert ProxyLoss(one, points=8).for_activation("relu") == ReLUProxyLoss(one)
    assert ReLUProxyLoss(one).cost == 2
    fields: dict[str, Any]
    for fields, task, f in (({}, two, "relu"), ({}, one, "tanh"), ({"bounds": [3]}, one, "relu"),
                            ({"current_weight": 0}, one, "relu")):  # fmt: skip
        loss = ProxyLoss(task, points=8, **fields)
        assert loss.for_activation(f) is loss
        assert loss.cost == 8


def test_what_a_proxy_loss_can_not_be_is_refused():
    one, two, endless = Integration(0.9), Integration([0.9, 0.8]), Integration([0.9, 1.0])
    for fields, task in (({"bounds": [3]}, two), ({"bounds": [3, 0]}, two), ({}, endless)):
        with pytest.raises(InputError) as caught:
            build_loss({"name": "proxy"} | fields, task)
        assert caught.value.field == "loss.bounds"
    assert ProxyLoss(endless, bounds=(3, 4)).box == (3, 4)
    mistakes: list[dict[str, Any]] = [
        *({"bounds": bounds} for bounds in ((0.0,), (1.0, 1.0), (float("inf"),))),
        *({"current_weight": weight} for weight in (-0.1, float("inf"))),
        {"points": 0},
    ]
    for wrong in mistakes:
        with pytest.raises(InputError) as caught:
            ProxyLoss(one, **wrong)
        assert caught.value.field.partition(".")[0] == next(iter(wrong))
    ProxyLoss(one, points=1, current_weight=0)


def test_a_correlation_has_one_number_for_each_lag_and_no_negative_eigenvalue():
    task = Integration(0.9)
    for correlation in ([1, 0.5], [1, -0.9, -0.9]):
        with pytest.raises(InputError) as caught:
            BatchLoss(task, duration=3, correlation=mistyped(correlation))
        assert caught.value.field == "correlation"
    BatchLoss(task, duration=3, correlation=(1, 1, 1))  # two eigenvalues are 0


@pytest.mark.parametrize("train", ["recurrent", "decoders", "all"])
def test_automatic_gradients_are_of_what_is_trained_and_of_nothing_else(train, small, generator):
    net = small("relu")
    loss = BatchLoss(net.task, 3, 4)
    x = loss.draw(generator, torch.float64)
    parameters = PARAMETERS[train]
    (value, found), (wanted, fast) = Loss.gradient(loss, net, x, parameters), loss.gradient(net, x, parameters)
    assert value == pytest.approx(wanted)
    torch.testing.assert_close(found.recurrent(), fast.recurrent())
    assert len(found.left) == len(found.right) == (0 if train == "decoders" else net.neurons)
    for one, other in ((found.decoders, fast.decoders), (found.encoders, fast.encoders)):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other)
