import pytest
import torch

from rni import AveragedLoss, BatchLoss, InputError, Network
from rni.losses import Gradient

CORRELATED = torch.tensor([[1.0, 0.5, 0.2, 0.1], [0.5, 1.0, 0.5, 0.2], [0.2, 0.5, 2.0, 0.5], [0.1, 0.2, 0.5, 1.0]])


def by_autograd(loss, net, inputs):
    value = loss.value(net, inputs)
    slopes = torch.autograd.grad(value, [net.recurrent.value, net.decoders, net.encoders])
    return value.item(), slopes


def assert_same(loss, net, inputs):
    expected, slopes = by_autograd(loss, net, inputs)
    value, gradient = loss.gradient(net, inputs, "all")
    assert value == pytest.approx(expected, rel=1e-10)
    for found, slope in zip((gradient.recurrent(), gradient.decoders, gradient.encoders), slopes, strict=True):
        assert ((found - slope).norm() / slope.norm()).item() < 1e-10


@pytest.mark.parametrize("f", ["linear", "relu", "sigmoid", "tanh", "softplus", "rectified_power", torch.sin])
@pytest.mark.parametrize("duration", [1, 2, 5])
def test_batch_gradient_agrees_with_autograd(small, generator, f, duration):
    net = small(f)
    loss = BatchLoss(net.task, duration, batch=9)
    assert_same(loss, net, loss.draw(generator, torch.float64))


@pytest.mark.parametrize("decays", [(0.9,), (0.9, 0.8), (0.9, 0.8, 0.7)])
@pytest.mark.parametrize("covariance", [None, CORRELATED])
def test_averaged_gradient_agrees_with_autograd(small, decays, covariance):
    net = small("linear", decays, scales=[1.0 + c for c in range(len(decays))])
    assert_same(AveragedLoss(net.task, 4, covariance), net, None)


def test_averaged_loss_takes_correlations_between_channels(small, generator):
    net = small("linear")
    root = torch.randn(8, 8, generator=generator, dtype=torch.float64)
    covariance = (root @ root.T).reshape(4, 2, 4, 2)
    assert_same(AveragedLoss(net.task, 4, covariance), net, None)
    assert_average(net, covariance, generator)


@pytest.mark.parametrize("covariance", [None, CORRELATED])
def test_averaged_loss_is_the_average_of_the_batch_loss(small, generator, covariance):
    assert_average(small("linear", (0.9, 0.8, 0.7)), covariance, generator)


@torch.no_grad()
def assert_average(net: Network, covariance, generator):
    batches = 200
    loss = BatchLoss(net.task, 4, 2000, covariance)
    values = torch.stack([loss.value(net, loss.draw(generator, torch.float64)) for _ in range(batches)])
    error_bar = values.std() / batches**0.5
    exact = AveragedLoss(net.task, 4, covariance).value(net)
    assert abs(values.mean() - exact) < 4 * error_bar
    assert error_bar < 0.01 * exact


def test_the_silent_loss_is_that_of_a_network_without_weights(small):
    net = small("linear", scales=(2.0, 0.5))
    with torch.no_grad():
        net.recurrent.value.zero_()
    for covariance in (None, CORRELATED):
        loss = AveragedLoss(net.task, 4, covariance)
        assert loss.silent() == pytest.approx(loss.value(net).item())
        assert BatchLoss(net.task, 4, 8, covariance).silent() == loss.silent()


def test_averaged_loss_is_for_linear_networks(small):
    with pytest.raises(InputError, match="'relu'; allowed: 'linear'"):
        AveragedLoss(small("relu").task).gradient(small("relu"))


def test_a_covariance_of_the_wrong_size_is_refused(small):
    with pytest.raises(InputError, match=r"shape \(4, 4\); allowed: \(3, 3\)"):
        AveragedLoss(small("linear").task, 3, CORRELATED)


def test_plain_descent_makes_no_second_matrix(small, generator):
    """The gradient is handed over as factors of (duration - 1) batch + channels rows, never as n x n."""
    net = small(neurons=200)
    loss = BatchLoss(net.task, 3, batch=8)
    _, gradient = loss.gradient(net, loss.draw(generator, torch.float64))
    assert isinstance(gradient, Gradient)
    assert gradient.left.shape == gradient.right.shape == (2 * 8 + 2, 200)
