import pytest
import torch
from told import mistyped, train_run

from rni import AveragedLoss, BatchLoss, InputError, Integration, Network, run, train
from rni.activations import Activation, Tanh, make
from rni.core.registry import part
from rni.losses import Gradient, ProxyLoss, ReLUProxyLoss
from rni.losses.gradient import PARAMETERS
from rni.tasks.inputs import white_noise

CORRELATED = torch.tensor([[1.0, 0.5, 0.2, 0.1], [0.5, 1.0, 0.5, 0.2], [0.2, 0.5, 2.0, 0.5], [0.1, 0.2, 0.5, 1.0]])


def by_autograd(loss, net, inputs):
    value = loss.value(net, inputs)
    slopes = torch.autograd.grad(value, [net.recurrent.value, net.decoders, net.encoders])
    return value.item(), slopes


def assert_same(loss, net, inputs):
    expected, slopes = by_autograd(loss, net, inputs)
    value, gradient = loss.gradient(net, inputs, PARAMETERS["all"])
    assert value == pytest.approx(expected, rel=1e-10)
    for found, slope in zip((gradient.recurrent(), gradient.decoders, gradient.encoders), slopes, strict=True):
        assert ((found - slope).norm() / slope.norm()).item() < 1e-10


@pytest.mark.parametrize("f", ["linear", "relu", "sigmoid", "tanh", "softplus", "rectified_power", torch.sin])
@pytest.mark.parametrize("duration", [1, 2, 5])
def test_batch_gradient_agrees_with_autograd(small, generator, f, duration):
    net = small(f)
    loss = BatchLoss(net.task, duration, batch=9)
    assert_same(loss, net, loss.draw(generator, torch.float64))


class Scaled(Tanh):
    """As LeCun has it, with a derivative of its own."""

    def __call__(self, current):
        return 1.7159 * torch.tanh(2 / 3 * current)

    def derivative(self, current):
        return 1.7159 * 2 / 3 * (1 - torch.tanh(2 / 3 * current).square())


@part
class Gain(Activation):
    """Linear, with a slope for each neuron, which its derivative does not repeat for each state."""

    slope: float = 1.0

    def __call__(self, current):
        return self.slope * current

    def derivative(self, current):  # pyright: ignore[reportIncompatibleMethodOverride]: a number, without an array
        return self.slope


@pytest.mark.parametrize("of", [Scaled, Gain])
def test_gradients_take_the_derivative_that_an_activation_of_ones_own_has(small, generator, of):
    net = small("tanh")
    net.f = make(of(), slope=torch.linspace(0.5, 1.5, net.neurons)) if of is Gain else make(of())
    for loss in (BatchLoss(net.task, 3, batch=9), ProxyLoss(net.task, 7)):
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
        assert loss.zero_output_loss() == pytest.approx(loss.value(net).item())
        assert BatchLoss(net.task, 4, 8, covariance).zero_output_loss() == loss.zero_output_loss()


def test_averaged_loss_is_for_linear_networks(small):
    net = small("relu")
    with pytest.raises(InputError) as caught:
        AveragedLoss(net.task)(net)
    assert (caught.value.field, caught.value.value) == ("loss", "averaged")


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


@pytest.mark.parametrize("f", ["linear", "relu", "sigmoid", "tanh", "softplus", torch.sin])
@pytest.mark.parametrize("decays", [(0.9,), (0.9, 0.8, 0.7)])
def test_proxy_gradient_agrees_with_autograd(small, generator, f, decays):
    net = small(f, decays, scales=[1.0 + c for c in range(len(decays))])
    loss = ProxyLoss(net.task, points=7, current_weight=0.3)
    assert_same(loss, net, loss.draw(generator, torch.float64))


def test_exact_relu_proxy_gradient_agrees_with_autograd(small):
    net = small("relu", (0.9,), scales=(1.7,))
    loss = ReLUProxyLoss(net.task)
    assert_same(loss, net, loss.draw(dtype=torch.float64))


@torch.no_grad()
def test_the_integral_over_the_box_is_the_exact_relu_proxy_times_the_mean_square_of_z(small):
    net = small("relu", (0.9,), scales=(1.7,))
    box = ProxyLoss(net.task, points=2**14, bounds=(3.0,), fixed=True)
    exact = ReLUProxyLoss(net.task)
    expected = exact.value(net, exact.draw(dtype=torch.float64)) / 2 * 3.0**2 / 3
    assert box.value(net, box.draw(dtype=torch.float64)).item() == pytest.approx(expected.item(), rel=1e-3)


def test_the_box_is_what_bounded_inputs_can_reach():
    assert ProxyLoss(Integration(0.8)).box == (pytest.approx(5.0),)
    for task, bounds in ((Integration(1.0), ()), (Integration(0.8), (1.0, 2.0))):
        with pytest.raises(InputError) as caught:
            ProxyLoss(task, bounds=bounds)
        assert (caught.value.field, caught.value.value) == ("bounds", bounds)


def test_a_network_of_null_proxy_loss_integrates_sequences_of_any_length(generator):
    """The closed-form rank-1 ReLU integrator with l along d: sufficient conditions are sufficient."""
    n, decay, scale = 400, 0.9, 1.5
    task = Integration(decay, scale)
    e, d = (torch.randn(n, generator=generator, dtype=torch.float64) for _ in range(2))
    positive, negative = d.clamp(min=0), (-d).clamp(min=0)
    # W = l r' with l = a d+ - b d-, such that d.f(+-l) = +-s, and r: r.e = gamma, r.f(l) = gamma, r.f(-l) = -gamma
    plus, minus = scale * positive / (d @ positive), -scale * negative / (d @ negative)
    rows = torch.stack([e, plus, minus])
    right = torch.linalg.lstsq(rows, rows.new_tensor([decay, decay, -decay]), driver="gelsd").solution
    net = Network(task, e[:, None], d[:, None], torch.outer(plus - minus, right), "relu")
    exact = ReLUProxyLoss(task)
    assert exact.value(net, exact.draw(dtype=torch.float64)).item() < 1e-24
    x = torch.randn(3, 2000, 1, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(net.outputs(x), task.targets(x), rtol=1e-8, atol=1e-8)


def test_the_exact_proxy_is_for_one_channel_of_relu(small):
    with pytest.raises(InputError) as caught:
        ReLUProxyLoss(Integration((0.9, 0.8)))
    assert caught.value.field == "task"
    with pytest.raises(InputError) as caught:
        ReLUProxyLoss(Integration(0.9))(small("tanh", (0.9,)))
    assert caught.value.field == "loss"


LOSSES = [
    (lambda task: BatchLoss(task, 3, 4), "relu"),
    (lambda task: AveragedLoss(task, 3), "linear"),
    (lambda task: ProxyLoss(task, 5), "tanh"),
    (ReLUProxyLoss, "relu"),
]


@pytest.mark.parametrize(("make", "f"), LOSSES)
def test_only_what_is_trained_has_a_gradient(small, make, f):
    net = small(f, (0.9,))
    loss = make(net.task)
    inputs = loss.draw(dtype=torch.float64)
    value, whole = loss.gradient(net, inputs, PARAMETERS["all"])
    for mode in ("recurrent", "recurrent+decoders", "decoders"):
        found, gradient = loss.gradient(net, inputs, PARAMETERS[mode])
        assert found == value
        assert bool(len(gradient.left)) == ("recurrent" in mode)
        assert gradient.encoders is None
        if "decoders" in mode:
            torch.testing.assert_close(gradient.decoders, whole.decoders)
        else:
            assert gradient.decoders is None


@pytest.mark.parametrize(("make", "f"), LOSSES)
@pytest.mark.parametrize("task", [Integration(0.8), Integration(0.9, 2.0)])
def test_the_task_of_the_loss_is_that_of_the_network(small, make, f, task):
    net, loss = small(f, (0.9,)), make(task)
    for use in (loss, lambda net: train(net, loss, steps=1)):
        with pytest.raises(InputError) as caught:
            use(net)
        assert (caught.value.field, caught.value.value) == ("task", task)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda task: BatchLoss(task), (0, 3, 1)),
        (lambda task: BatchLoss(task), (2, 0, 1)),
        (lambda task: BatchLoss(task), (2, 3, 2)),
        (lambda task: BatchLoss(task), (3, 1)),
        (lambda task: ProxyLoss(task), (0, 1)),
        (lambda task: ProxyLoss(task), (4, 2)),
        (ReLUProxyLoss, (0, 1)),
    ],
)
def test_inputs_without_numbers_are_refused(small, make, shape):
    net = small("relu", (0.9,))
    with pytest.raises(InputError) as caught:
        make(net.task)(net, torch.zeros(shape, dtype=torch.float64))
    assert (caught.value.field, caught.value.problem) == ("inputs", f"shape {shape}")


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.int64, torch.bool])
def test_inputs_of_any_kind_are_cast_to_the_precision_of_the_network(small, generator, kind):
    net = small("relu", (0.9,))
    for loss, shape in (
        (BatchLoss(net.task), (2, 3, 1)),
        (ProxyLoss(net.task), (4, 1)),
        (ReLUProxyLoss(net.task), (2, 1)),
    ):
        given = torch.randn(shape, generator=generator).to(kind)
        cast = given.to(torch.float64)
        assert loss.value(net, given) == loss.value(net, cast)
        (value, gradient), (expected, slope) = loss.gradient(net, given), loss.gradient(net, cast)
        assert value == expected
        assert torch.equal(gradient.recurrent(), slope.recurrent())
        assert loss(net, given.numpy()) == loss.value(net, cast)
        with pytest.raises(InputError, match=r"inputs: torch.complex128; allowed: a tensor or an array of"):
            loss(net, cast.to(torch.complex128))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda task: BatchLoss(task, 0), "duration"),
        (lambda task: BatchLoss(task, mistyped(2.5)), "duration"),
        (lambda task: BatchLoss(task, 3, -1), "batch"),
        (lambda task: BatchLoss(task, 3, 8, mistyped([[1.0, 0.5], [0.5]])), "covariance"),
        (lambda task: BatchLoss(task, 2, covariance=mistyped(torch.eye(2)), correlation=(1.0, 0.5)), "covariance"),
        (lambda task: BatchLoss(task, 2, correlation=(1.0, 0.5), inputs=white_noise), "inputs"),
        (lambda task: AveragedLoss(task, 0), "duration"),
        (lambda task: ProxyLoss(task, 0), "points"),
        (lambda task: ProxyLoss(task, 8, current_weight=float("nan")), "current_weight"),
    ],
)
def test_losses_of_nothing_are_refused(make, field):
    with pytest.raises(InputError) as caught:
        make(Integration(0.9))
    assert caught.value.field == field


def test_the_silent_loss_of_white_noise_is_that_of_its_covariance():
    task = Integration((0.9, 0.8, 1.0), (1.0, -2.0, 0.5))
    for duration in (1, 2, 7):
        slow = AveragedLoss(task, duration, torch.eye(duration))
        for loss in (AveragedLoss(task, duration), BatchLoss(task, duration)):
            assert loss.zero_output_loss() == pytest.approx(slow.zero_output_loss(), rel=1e-13)


def test_white_noise_weighs_the_moments_as_its_covariance_does(small, generator):
    net = small("linear")
    fast, slow = AveragedLoss(net.task, 4), AveragedLoss(net.task, 4, torch.eye(4))
    assert fast.value(net).item() == pytest.approx(slow.value(net).item(), rel=1e-12)
    (value, gradient), (expected, slope) = (loss.gradient(net, None, PARAMETERS["all"]) for loss in (fast, slow))
    assert value == pytest.approx(expected, rel=1e-12)
    torch.testing.assert_close(gradient.recurrent(), slope.recurrent())


@pytest.mark.parametrize(("loss", "f"), [("batch", "relu"), ("averaged", "linear")])
def test_sequences_of_ten_thousand_steps_are_trained_on(loss, f):
    """No array of more than one sequence squared: two channels of 10 000 steps would be 3.2 GB."""
    specification = train_run(
        {
            "task": {"decays": [0.99, 0.9]},
            "network": {"neurons": 10, "activation": f},
            "training": {"loss": loss, "duration": 10_000, "steps": 1} | ({"batch": 2} if loss == "batch" else {}),
        }
    )
    (value,) = run(specification).losses
    assert value == pytest.approx(specification.loss().zero_output_loss(), rel=0.3)
