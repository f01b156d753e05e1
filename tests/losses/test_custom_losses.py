"""Losses of a user, each in a file of its own outside of the package."""

import json
import logging
from typing import Any

import pytest
import torch
from told import train_run

from rni import (
    BatchLoss,
    CustomLoss,
    InputError,
    Integration,
    Network,
    ProxyLoss,
    TrainRun,
    run,
    train,
    vectors,
)
from rni.losses import LOSSES
from rni.losses.base import build_loss
from rni.runs.execution import Result
from rni.training.descent import needs_no_autograd
from rni.training.optimizers import GradientDescent

TASK = Integration([0.9])
MODULE = """
from typing import Annotated

import torch
from pydantic import Field

from rni.core.registry import part
from rni.losses import BatchLoss, Loss
from rni.losses.base import TaskField
from rni.tasks.integration import Integration


@part
class AbsoluteError(Loss):
    task: Annotated[Integration, *TaskField]
    batch: Annotated[int, Field(ge=1)] = 8

    def draw(self, generator=None, dtype=None):
        return torch.randn(self.batch, 3, self.task.channels, generator=generator, dtype=dtype)

    def value(self, net, inputs):
        return (net.outputs(inputs) - self.task.targets(inputs)).abs().mean()

    def default_learning_rate(self):
        return 0.01


class Halved(BatchLoss):
    def value(self, net, inputs):
        return super().value(net, inputs) / 2

    def gradient(self, net, inputs, parameters=frozenset({"recurrent"})):
        return Loss.gradient(self, net, inputs, parameters)


def small_weights(net):
    return (net.recurrent.matrix() - 0.5).square().sum()


def constant(batch, duration, channels, generator):
    return torch.randn(batch, 1, channels, generator=generator).expand(batch, duration, channels)
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "my_losses.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def network(f: Any = "relu", neurons=20):
    vectors_of_task = vectors.independent(neurons, 1, torch.Generator().manual_seed(0))
    return Network(TASK, *vectors_of_task, torch.zeros(neurons, neurons, dtype=torch.float64), f)


def trained(loss, **training) -> tuple[TrainRun, Result]:
    raw = {"task": {"decays": [0.9]}, "network": {"neurons": 20}}
    specification = train_run(raw | {"training": {"loss": loss, "steps": 200} | training})
    return specification, run(specification)


@pytest.mark.parametrize(
    ("loss", "saved"),
    [
        ("my_losses:AbsoluteError", {"name": "my_losses:AbsoluteError", "batch": 8}),
        ({"name": "my_losses:AbsoluteError", "batch": 4}, {"name": "my_losses:AbsoluteError", "batch": 4}),
        ("my_losses:small_weights", {"name": "custom", "function": "my_losses:small_weights"}),
        (
            {"name": "batch", "inputs": "my_losses:constant"},
            {"name": "batch", "inputs": "my_losses:constant", "duration": 3, "batch": 32},
        ),
        ("my_losses:Halved", {"name": "my_losses:Halved", "duration": 3, "batch": 32, "inputs": None}),
    ],
)
def test_a_loss_from_outside_is_trained_and_saved_under_its_own_name(loss, saved):
    specification, result = trained(loss, learning_rate=0.02)
    assert result.losses[-1] < 0.5 * result.losses[0]
    config = json.loads(json.dumps(specification.to_dict()["training"]["loss"]))
    assert {name: config.get(name) for name in saved} == saved
    again = train_run(specification.to_dict())
    assert again == specification
    assert type(again.training.loss) is type(specification.training.loss)
    assert run(again).losses == result.losses


def test_the_loss_of_a_run_has_the_task_of_the_run():
    specification, _ = trained("my_losses:AbsoluteError", steps=1)
    assert getattr(specification.training.loss, "task") == TASK  # noqa: B009
    assert "task" not in specification.to_dict()["training"]["loss"]
    with pytest.raises(InputError, match=r"training\.loss\.task"):
        trained({"name": "proxy", "task": {"decays": [0.8]}})
    with pytest.raises(InputError, match=r"training\.loss\.task"):
        trained(ProxyLoss(Integration([0.8])))


def test_code_from_outside_is_imported_only_if_it_is_allowed():
    for config in ("my_losses:small_weights", {"name": "batch", "inputs": "my_losses:constant"}):
        with pytest.raises(InputError) as caught:
            build_loss(config, TASK, allow=())
        assert str(caught.value.value).startswith("my_losses:")
        build_loss(config, TASK, allow=("my_losses:small_weights", "my_losses:constant"))


def test_functions_without_a_reference_are_trained_on_but_not_saved():
    for loss, field in (
        (CustomLoss(lambda net: net.recurrent.matrix().square().sum()), "function"),
        (BatchLoss(TASK, inputs=lambda batch, duration, channels, generator: torch.ones(32, 3, 1)), "inputs"),
    ):
        specification, result = trained(loss, steps=2, learning_rate=0.01)
        assert len(result.losses) == 2
        with pytest.raises(InputError) as caught:
            LOSSES.config(loss)
        assert caught.value.field == field
        with pytest.raises(InputError, match=f"training.loss.{field}"):
            specification.to_dict()


def test_a_local_subclass_is_never_saved_as_its_parent():
    class Local(BatchLoss):
        pass

    assert type(build_loss(Local(TASK), TASK)) is Local
    with pytest.raises(InputError) as caught:
        LOSSES.config(Local(TASK))
    assert caught.value.field == "loss"


def test_only_classes_that_say_so_are_trained_without_automatic_differentiation():
    class Local(BatchLoss):
        pass

    descent = GradientDescent()
    for f in ("linear", "relu", "sigmoid", "tanh", "softplus", "rectified_power"):
        assert needs_no_autograd(BatchLoss(TASK), network(f), descent)
    assert not needs_no_autograd(Local(TASK), network(), descent)
    assert not needs_no_autograd(BatchLoss(TASK), network(torch.sin), descent)


def test_training_tells_which_way_it_takes(caplog):
    caplog.set_level(logging.INFO, "rni.training")
    train(network(), ProxyLoss(TASK), steps=1)
    train(network(), BatchLoss(TASK), steps=1)
    train(network(), lambda net: net.recurrent.matrix().sum(), learning_rate=0.1, steps=1)
    ways = [(record.args[0], "automatic" in record.getMessage()) for record in caplog.records if record.args]
    assert ways == [("descend_on_two_points", False), ("descend", False), ("descend", True)]
