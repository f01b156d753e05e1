import pytest
import torch
from told import mistyped, of

from rni import InputError, Integration, Network, VanillaRNN, design, load, save
from rni.activations import ACTIVATIONS, Activation, RectifiedPower, Sigmoid, make
from rni.files.foreign import interpret
from rni.weights import Dense


@pytest.mark.parametrize("name", ACTIVATIONS.parts)
def test_derivatives_agree_with_automatic_differentiation(name, generator):
    f = make(name).double()
    nu = torch.randn(5, 7, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(f.derivative(nu), Activation.derivative(f, nu), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", [*map(make, ACTIVATIONS.parts), Sigmoid(7, 0.0)], ids=repr)
def test_mirrors_give_the_function_and_its_derivative_at_minus_the_current(f, generator):
    nu = torch.cat([torch.zeros(1, dtype=torch.float64), torch.randn(20, generator=generator, dtype=torch.float64)])
    if (mirror := f.mirror()) is None:
        assert f.name in ("sigmoid", "rectified_power")
        return
    sign, slope, offset = mirror
    torch.testing.assert_close(f(-nu), sign * f(nu) + slope * nu + offset, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(f.derivative(-nu), -sign * f.derivative(nu) - slope, rtol=1e-12, atol=1e-12)


def test_relu_has_slope_one_half_at_zero_by_hand_and_by_autograd():
    f = make("relu")
    nu = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    f(nu).sum().backward()
    expected = torch.tensor([0.0, 0.5, 1.0])
    assert nu.grad is not None
    assert torch.equal(nu.grad, expected)
    assert torch.equal(f.derivative(nu.detach()), expected)
    assert torch.equal(f(nu).detach(), torch.relu(nu))
    with torch.no_grad():
        assert torch.equal(f(nu), torch.relu(nu))


def test_any_elementwise_function_is_an_activation(generator):
    nu = torch.randn(4, generator=generator)
    f = make(torch.sin)
    assert torch.equal(f(nu), torch.sin(nu))
    torch.testing.assert_close(f.derivative(nu), torch.cos(nu))


def test_thresholds_may_differ_between_neurons():
    f = make("sigmoid", slope=10.0, threshold=torch.tensor([0.0, 0.5]))
    assert f(torch.tensor([0.0, 0.5])).tolist() == [0.5, 0.5]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match=r"'relux'; allowed: linear, relu, sigmoid"):
        make("relux")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parameters_have_the_precision_of_the_network(dtype):
    thresholds = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64) / 3
    ones, f = torch.ones(3, 1), Sigmoid(slope=0.1, threshold=thresholds)
    own = of(Sigmoid, Network(Integration(0.9), ones, ones, torch.zeros(3, 3, dtype=dtype), f).f)
    assert torch.equal(own.slope, torch.tensor(0.1, dtype=dtype))
    assert torch.equal(own.threshold, thresholds.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parameters_come_back_from_a_file_to_the_last_bit(tmp_path, dtype):
    ones, f = torch.ones(3, 1), Sigmoid(slope=0.1, threshold=torch.rand(3, dtype=torch.float64))
    net = Network(Integration(0.9), ones, ones, torch.zeros(3, 3, dtype=dtype), f)
    save(net, tmp_path / "net.safetensors")
    again = load(tmp_path / "net.safetensors").f
    assert all(torch.equal(again.get_buffer(name), value) for name, value in net.f.named_buffers())


def test_an_activation_given_is_never_changed(generator):
    f, module = Sigmoid(), torch.nn.PReLU()
    e, d = torch.randn(2, 6, 1, generator=generator, dtype=torch.float64)
    half, double = (torch.zeros(6, 6, dtype=dtype) for dtype in (torch.float32, torch.float64))
    net = Network(Integration(0.9), e, d, half, f)
    Network(Integration(0.9), e, d, double, module)
    Network(Integration(0.9), e, d, double, net.f)
    VanillaRNN(Dense(double), e, net.f, double[0])
    interpret({"recurrent": double, "input_weights": e}, net.f)
    interpret({"weight_hh": double, "weight_ih": e}, net.f)
    design(Integration(0.8), 200, net.f)
    assert f.threshold.dtype == torch.float64
    assert net.f.threshold.dtype == torch.float32
    assert module.weight.dtype == torch.float32


@pytest.mark.parametrize("exponent", [1.0, 0.5, -2.0, torch.tensor([2.0, 1.0])])
def test_a_rectified_power_has_an_exponent_above_one(exponent):
    """At 1 and below, 0^(p - 1) would give neurons that are silent a slope."""
    with pytest.raises(InputError, match=r"rectified_power\.exponent: .*; allowed: above 1"):
        RectifiedPower(exponent)
    assert RectifiedPower(1.01).derivative(torch.tensor([-1.0, 0.0])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: make("sigmoid", threshold=float("nan")), r"sigmoid\.threshold: NaN or infinite"),
        (lambda: make("sigmoid", slope="steep"), r"sigmoid\.slope: 'steep'; allowed: a number or \(neurons,\)"),
        (lambda: make("sigmoid", slope=torch.ones(2, 2)), r"sigmoid\.slope: shape \(2, 2\)"),
        (lambda: make("softplus", slope=0.0), r"softplus\.slope: 0; allowed: any other"),
        (lambda: make("sigmoid", slop=3.0), "slop: not a parameter of sigmoid; allowed: slope, threshold"),
        (lambda: make("relu", slope=3.0), "slope: not a parameter of relu; allowed: none"),
        (lambda: make(torch.sin, slope=3.0), "slope: given beside"),
        (lambda: make(mistyped(3.0)), "activation: 3.0; allowed: linear, relu"),
    ],
)
def test_parameters_that_make_no_activation_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        given()
