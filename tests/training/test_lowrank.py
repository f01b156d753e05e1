"""Descent on the factors of W, for any activation and with noise, beside descent on W itself."""

import pytest
import torch
from told import train_run
from torch.utils._python_dispatch import TorchDispatchMode

from rni import run
from rni.analysis import current_ratio, relative_error, svd
from rni.core.rng import stream
from rni.files import native
from rni.tasks.inputs import bursts
from rni.training import Checkpoint, train

DECAYS = {"relu": (0.995, 0.993, 0.99), "sigmoid": (0.8, 0.75, 0.77)}


def specification(activation, channels, weights, neurons=300, **training):
    if activation == "sigmoid":
        training = {"learning_rate": 0.25 / 27, "schedule": "warmup"} | training
    raw = {
        "task": {"decays": DECAYS[activation][:channels]},
        "network": {"neurons": neurons, "activation": activation, "weights": weights},
        "training": {"batch": 16} | training,
    }
    return train_run(raw)


def pair(activation, channels, **options):
    """Losses (steps,), r, and W's singular values, for dense weights and for their factors."""
    inputs = bursts(32, 100, channels, torch.Generator().manual_seed(1))
    for weights in ("dense", "lowrank"):
        result = run(specification(activation, channels, weights, **options))
        spectrum = svd(result.network.recurrent)
        ratio = current_ratio(result.network, spectrum.left[:, :channels], inputs)
        yield torch.tensor(result.losses, dtype=torch.float64), ratio, spectrum.values


def loss_curve(losses, windows=10):
    return losses.reshape(windows, -1).mean(1)


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_descent_on_the_factors_follows_descent_on_the_matrix(activation, channels):
    (exact, ratio, values), (found, found_ratio, found_values) = pair(activation, channels, steps=200)
    torch.testing.assert_close(loss_curve(found), loss_curve(exact), rtol=0.01, atol=0)
    assert found_ratio == pytest.approx(ratio, rel=0.01)
    assert found_values[:channels].tolist() == pytest.approx(values[:channels].tolist(), rel=1e-3)
    assert len(found_values) < len(values)


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_a_thousand_neurons_follow_dense_descent_to_the_end(activation, channels):
    (exact, ratio, _), (found, found_ratio, _) = pair(activation, channels, neurons=1000, steps=3000)
    torch.testing.assert_close(loss_curve(found, 50), loss_curve(exact, 50), rtol=0.05, atol=0)
    assert found_ratio == pytest.approx(ratio, rel=0.01)


class Largest(TorchDispatchMode):
    """The largest array, in bytes, that any operation gives."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for out in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(out, torch.Tensor):
                self.bytes = max(self.bytes, out.nbytes)
        return result


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_no_array_of_neurons_by_neurons_from_training_to_file_and_examination(tmp_path, activation):
    neurons, batch, duration, steps = 5000, 4, 3, 5
    spec = specification(activation, 2, "lowrank", neurons, batch=batch, duration=duration, steps=steps)
    with Largest() as largest:
        result = run(spec)
        native.save(result.network, tmp_path / "net.safetensors")
        net = native.load(tmp_path / "net.safetensors")
        inputs = bursts(batch, 10, 2, torch.Generator().manual_seed(1))
        relative_error(net, inputs)
        current_ratio(net, svd(net.recurrent).left[:, :2], inputs)
    assert 0 < largest.bytes <= 8 * neurons * 64  # dozens of columns, where W would have 5000


def test_noisy_training_of_all_vectors_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    spec = specification("sigmoid", 2, "lowrank", 60, steps=40, train="all")
    whole = run(spec)
    path = tmp_path / "half.safetensors"

    def stop(step, loss, net):
        if step == 23:
            raise RuntimeError

    training = spec.training
    options = {"learning_rate": training.learning_rate, "schedule": training.schedule, "steps": 40, "train": "all"}
    options |= {"generator": stream(spec.seed, "training"), "checkpoint": Checkpoint(path, spec.key(), seconds=0)}
    with pytest.raises(RuntimeError):
        train(spec.build(), spec.loss(), callbacks=[stop], **options)
    again = run(spec, checkpoint=path)
    assert again.losses == whole.losses
    assert all(torch.equal(a, b) for a, b in zip(again.network.parameters(), whole.network.parameters(), strict=True))


def test_trained_vectors_follow_dense_descent_too():
    (exact, *_), (found, *_) = pair("sigmoid", 2, neurons=200, steps=200, train="all")
    torch.testing.assert_close(loss_curve(found), loss_curve(exact), rtol=0.01, atol=0)


@pytest.mark.parametrize(
    ("training", "activation", "tolerance"),
    [
        ({"loss": "batch"}, "relu", 1e-4),
        ({"loss": "averaged"}, "linear", 1e-8),
        ({"loss": "proxy"}, "relu", 1e-8),
        ({"loss": "proxy"}, "sigmoid", 1e-4),
        ({"loss": "proxy", "bounds": [3.0]}, "relu", 1e-4),
    ],
)
def test_what_is_dropped_is_below_the_noise_where_there_is_noise(training, activation, tolerance):
    network = {"activation": activation, "weights": "lowrank", "neurons": 10}
    raw = {"task": {"decays": [0.9]}, "network": network, "training": training}
    spec = train_run(raw)
    assert spec.build().recurrent.tolerance == tolerance
    raw["network"] = network | {"weights": {"name": "lowrank", "tolerance": 1e-5}}
    assert train_run(raw).build().recurrent.tolerance == 1e-5
