import copy
import pickle

import pytest
import torch
from told import mistyped

from rni import InputError, Integration, Network, VanillaRNN, design, load, save
from rni.activations import (
    ACTIVATIONS,
    Activation,
    Elementwise,
    Linear,
    Normal,
    RectifiedPower,
    ReLU,
    Sigmoid,
    Tanh,
    draw,
    make,
)
from rni.core.registry import part
from rni.core.rng import stream
from rni.files.foreign import interpret
from rni.weights import Dense

ONE = Integration(0.9)


def network(activation, neurons=3, dtype=torch.float64):
    ones = torch.ones(neurons, 1, dtype=dtype)
    return Network(ONE, ones, ones, torch.zeros(neurons, neurons, dtype=dtype), activation)


@pytest.mark.parametrize("name", ACTIVATIONS.parts)
def test_derivatives_agree_with_automatic_differentiation(name, generator):
    f = make(name).double()
    nu = torch.randn(5, 7, generator=generator, dtype=torch.float64)
    expected = Activation.derivative(f.bound(), nu)
    torch.testing.assert_close(f.derivative(nu), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(f.derivative_at(nu, f(nu)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", [*(cls() for cls in ACTIVATIONS.parts.values()), Sigmoid(7, 0.0)], ids=repr)
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


def test_an_activation_is_a_name_a_table_an_object_or_a_function():
    steep = Sigmoid(slope=20)
    assert network("relu").f.activation == ReLU()
    assert network({"name": "sigmoid", "slope": 20}).f.activation == steep
    assert network(activation=steep).f.activation == steep
    assert network(torch.sin).f.activation == Elementwise(torch.sin)


@pytest.mark.parametrize("activation", ["relux", mistyped(3.0), ReLU, {"slope": 3}, torch.sum, lambda x: x.numpy()])
def test_what_is_no_activation_is_refused(activation):
    with pytest.raises(InputError) as error:
        make(activation)
    assert error.value.field == "activation"


@pytest.mark.parametrize(
    "f", [Sigmoid(3, 0.5), Sigmoid(threshold=Normal(0.1, 0.02)), Elementwise(torch.nn.functional.elu)]
)
def test_an_activation_is_rebuilt_from_its_configuration(f):
    assert ACTIVATIONS.build(ACTIVATIONS.config(f)) == f
    assert copy.deepcopy(f) == pickle.loads(pickle.dumps(f)) == f


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_of_neurons_have_the_precision_of_the_network(dtype):
    thresholds = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64) / 3
    f = network(make("sigmoid", slope=0.1, threshold=thresholds), dtype=dtype).f
    assert torch.equal(f.values()["threshold"], thresholds.to(dtype))
    assert f.state_dict().keys() == {"threshold"}
    expected = torch.sigmoid(torch.tensor(0.1, dtype=dtype) * (torch.ones(3, dtype=dtype) - thresholds.to(dtype)))
    assert torch.equal(f(torch.ones(3, dtype=dtype)), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_activation_comes_back_from_a_file_to_the_last_bit(tmp_path, dtype):
    net = network(make("sigmoid", slope=0.1, threshold=torch.rand(3, dtype=torch.float64)), dtype=dtype)
    save(net, tmp_path / "net.safetensors")
    again = load(tmp_path / "net.safetensors").f
    assert again.config() == net.f.config() == {"name": "sigmoid", "slope": 0.1}
    assert torch.equal(again.values()["threshold"], net.f.values()["threshold"])


def test_normal_parameters_are_drawn_by_their_names():
    f = draw(Sigmoid(threshold=Normal(0.1, 0.02)), 300, lambda purpose: stream(5, purpose))
    drawn = 0.1 + 0.02 * torch.randn(300, generator=stream(5, "activation.threshold"), dtype=torch.float64)
    assert torch.equal(f.values()["threshold"], drawn)
    with pytest.raises(InputError) as error:
        network(Sigmoid(threshold=Normal(0.1, 0.02)))
    assert error.value.field == "threshold"


def test_a_subclass_inherits_no_closed_form_of_another_function():
    class Bent(Tanh):
        def __call__(self, current):
            return current**3

    @part
    class Straight(Linear):
        def derivative(self, current):
            return 2 * torch.ones_like(current)

    nu = torch.tensor([2.0, -1.0])
    assert Bent().derivative(nu).tolist() == Bent().derivative_at(nu, nu).tolist() == [12.0, 3.0]
    assert Straight().derivative_at(nu, nu).tolist() == [2.0, 2.0]
    assert Bent().mirror() is None
    assert Straight().mirror() is None


def test_an_activation_given_is_never_changed(generator):
    threshold, module = torch.full((6,), 0.1, dtype=torch.float64), torch.nn.PReLU()
    f = make("sigmoid", threshold=threshold)
    e, d = torch.randn(2, 6, 1, generator=generator, dtype=torch.float64)
    half, double = (torch.zeros(6, 6, dtype=dtype) for dtype in (torch.float32, torch.float64))
    net = Network(ONE, e, d, half, f)
    Network(ONE, e, d, double, module)
    Network(ONE, e, d, double, net.f)
    VanillaRNN(Dense(double), e, net.f, double[0])
    interpret({"recurrent": double, "input_weights": e}, mistyped(net.f))
    interpret({"weight_hh": double, "weight_ih": e}, mistyped(net.f))
    assert f.values()["threshold"].dtype == torch.float64
    assert net.f.values()["threshold"].dtype == torch.float32
    assert module.weight.dtype == torch.float32
    net.f.values()["threshold"].zero_()
    assert threshold.all()


@pytest.mark.parametrize("exponent", [1.0, 0.5, -2.0, torch.tensor([2.0, 1.0])])
def test_a_rectified_power_has_an_exponent_above_one(exponent):
    """At 1 and below, 0^(p - 1) would give silent neurons a derivative."""
    with pytest.raises(InputError) as error:
        make("rectified_power", exponent=exponent)
    assert error.value.field == "exponent"
    assert RectifiedPower(1.01).derivative(torch.tensor([-1.0, 0.0])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (lambda: make("sigmoid", threshold=float("nan")), "threshold"),
        (lambda: make("sigmoid", threshold=torch.tensor([0.1, float("nan")])), "threshold"),
        (lambda: make("sigmoid", slope="steep"), "slope"),
        (lambda: make("sigmoid", slope=torch.ones(2, 2)), "slope"),
        (lambda: make("softplus", slope=0.0), "slope"),
        (lambda: make("sigmoid", slop=3.0), "slop"),
        (lambda: make("relu", slope=3.0), "slope"),
        (lambda: make(torch.sin, slope=3.0), "slope"),
        (lambda: make("torch:sin", slope=3.0), "slope"),
        (lambda: network(make("sigmoid", slope=torch.ones(7))), "sigmoid.slope"),
        (lambda: design(Integration(0.8), 200, Sigmoid(slope=mistyped([1.0]))), "slope"),
    ],
)
def test_parameters_that_make_no_activation_are_refused(given, field):
    with pytest.raises(InputError) as error:
        given()
    assert error.value.field == field
