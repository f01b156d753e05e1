"""Descent in the span of encoders and decoders is dense descent, for the price of 2D neurons."""

import numpy as np
import pytest
import torch
from told import of, train_run, train_step_by_step
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import rni
from rni import AveragedLoss, Diverged, InputError, Integration, Network, train, vectors
from rni.theory import null_basis, to_weights
from rni.training import Checkpoint
from rni.training.descent import make_plan
from rni.training.reduced import descend_in_span, descend_together, reduced
from rni.weights import Dense, LowRank

DECAYS = (0.95, 0.9, 0.8)
CORRELATED = torch.tensor([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]], dtype=torch.float64)


def fresh(channels=1, neurons=40, dtype=torch.float64, f="linear", start=None):
    task = Integration(DECAYS[:channels], tuple(1.0 + 0.3 * c for c in range(channels)))
    encoders, decoders = vectors.independent(neurons, channels, torch.Generator().manual_seed(3))
    w = torch.zeros(neurons, neurons, dtype=dtype)
    if start is not None:
        omega = start * torch.randn(2 * channels, 2 * channels, generator=torch.Generator().manual_seed(1))
        w = to_weights(omega, null_basis(encoders, decoders))
    return Network(task, encoders, decoders, w, f)


@pytest.mark.parametrize("start", [None, 0.2])
@pytest.mark.parametrize("covariance", [None, CORRELATED])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_hundreds_of_steps_are_those_of_dense_descent(channels, covariance, start):
    dense, small = fresh(channels, start=start), fresh(channels, start=start)
    loss = AveragedLoss(dense.task, 3, covariance)
    halfway = []

    def look(step, value, net):
        if step == 150:
            halfway.append(net.recurrent.matrix().detach().clone())

    options = {"learning_rate": 0.02, "steps": 300, "callbacks": [look]}
    expected = train_step_by_step(dense, loss, **options)
    losses = descend_in_span(small, make_plan(small, loss, **options))
    np.testing.assert_allclose(losses, expected, rtol=1e-9, atol=1e-24)
    assert losses[-1] < 1e-3 * losses[0]
    assert isinstance(small.recurrent, LowRank)
    torch.testing.assert_close(small.recurrent.matrix(), dense.recurrent.matrix(), rtol=0, atol=1e-12)
    torch.testing.assert_close(*halfway, rtol=0, atol=1e-12)


class Shapes(TorchDispatchMode):
    """Counts the operations on torch tensors, and those that touch a dimension of n."""

    def __init__(self, neurons):
        super().__init__()
        self.neurons, self.all, self.large = neurons, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.all += 1
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
        self.large += any(self.neurons in tensor.shape for tensor in tensors)
        return result


def test_no_step_touches_the_neurons():
    counts = {}
    for neurons in (53, 211):
        for steps in (1, 101):
            net = fresh(2, neurons)
            loss = AveragedLoss(net.task, 3)
            with Shapes(neurons) as seen:
                train(net, loss, learning_rate=0.01, steps=steps)
            counts[neurons, steps] = seen.all, seen.large
    assert counts[53, 1] == counts[211, 1]
    assert counts[53, 101] == counts[211, 101]
    assert counts[53, 101][0] > counts[53, 1][0] + 1000
    assert counts[53, 101][1] == counts[53, 1][1]


def test_dependent_vectors_need_fewer_neurons():
    encoders, _ = vectors.independent(30, 1, torch.Generator().manual_seed(0))
    net = Network(Integration(0.9), encoders, encoders, torch.zeros(30, 30, dtype=torch.float64), "linear")
    assert reduced(net).network.neurons == 1
    train(net, AveragedLoss(net.task), learning_rate=0.01, steps=2000)
    assert rni.theory.is_generalizing_integrator(net.recurrent.matrix().detach(), encoders, encoders, 0.9, 1.0)


def test_a_start_outside_the_span_is_refused():
    net = fresh(start=0.2)
    with torch.no_grad():
        of(Dense, net.recurrent).value[0, 0] += 1e-6
    with pytest.raises(InputError, match=r"recurrent: .* outside the span of encoders and decoders; allowed: 0"):
        descend_in_span(net, make_plan(net, AveragedLoss(net.task), learning_rate=0.01, steps=1))


def test_networks_that_are_not_linear_are_refused():
    net = fresh(f="relu")
    with pytest.raises(InputError, match="activation: 'relu'; allowed: 'linear'"):
        reduced(net)


def test_a_diverged_descent_leaves_the_last_finite_weights_in_the_network():
    net = fresh()
    with pytest.raises(Diverged):
        train(net, AveragedLoss(net.task), learning_rate=10.0, steps=100)
    assert net.recurrent.matrix().isfinite().all()
    assert net.recurrent.matrix().any()


def raw(**changes):
    network = {"neurons": 40, "activation": "linear", "precision": "float64"}
    training = {"loss": "averaged", "learning_rate": 0.01, "steps": 60, "correlation": [1.0, 0.5, 0.2]}
    for key, value in changes.items():
        (training if key in ("optimizer", "train", "loss", "schedule", "stop_loss") else network)[key] = value
    return train_run({"task": {"decays": [0.9, 0.8]}, "network": network, "training": training})


@pytest.mark.parametrize("options", [{}, {"schedule": "cosine"}, {"stop_loss": 0.5}])
def test_a_run_is_reduced_and_ends_where_the_dense_one_does(options):
    specification = raw(**options)
    result = rni.run(specification)
    dense = specification.build()
    expected = train_step_by_step(dense, specification.loss(), learning_rate=0.01, steps=60, **options)
    assert isinstance(result.network.recurrent, LowRank)
    np.testing.assert_allclose(result.losses, expected, rtol=1e-10)
    torch.testing.assert_close(result.network.recurrent.matrix(), dense.recurrent.matrix(), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": "adam"},
        {"train": "recurrent+decoders"},
        {"loss": "batch"},
        {"initial_radius": 0.1},
        {"weights": "dale"},
        {"activation": "relu", "loss": "batch"},
    ],
)
def test_a_run_that_the_reduction_does_not_cover_stays_dense(change):
    assert not isinstance(rni.run(raw(**change)).network.recurrent, LowRank)


class Killed(Exception):
    pass


def test_a_killed_reduced_run_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    specification, path = raw(), tmp_path / "run.checkpoint"
    whole = rni.run(specification)

    def kill(step, value, net):
        assert net.neurons == 40
        if step == 37:
            raise Killed

    with pytest.raises(Killed):
        rni.run(specification, callbacks=[kill], checkpoint=path)
    seen = []
    resumed = rni.run(specification, callbacks=[lambda step, value, net: seen.append(step)], checkpoint=path)
    assert seen == list(range(37, 60))
    assert resumed.losses == whole.losses
    assert torch.equal(resumed.network.recurrent.matrix(), whole.network.recurrent.matrix())


@pytest.mark.parametrize("duration", [1, 2, 3, 5])
def test_many_descents_at_once_are_each_the_descent_of_its_own(duration):
    rng = np.random.default_rng(0)
    scales, rates = np.array([0.5, 1.0, 2.0]), np.array([0.01, 0.005, 0.002])
    start, encoders, decoders = rng.normal(0, 0.3, (3, 2, 2)), rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    encoders, decoders = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (encoders, decoders))
    options = {"duration": duration, "learning_rate": rates, "steps": 200}
    together = descend_together(start, encoders, decoders, 0.9, scales, **options)
    for k in range(3):
        task = Integration(0.9, (scales[k],))
        e, d = (torch.tensor(v[k][:, None]) for v in (encoders, decoders))
        net = Network(task, e, d, torch.tensor(start[k]), "linear")
        losses = train(net, AveragedLoss(task, duration), learning_rate=rates[k], steps=200)
        np.testing.assert_allclose(together.losses[:, k], losses, rtol=1e-9)
        np.testing.assert_allclose(together.omega[k], net.recurrent.matrix().detach(), rtol=1e-9)
