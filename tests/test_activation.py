import pytest
import torch

from rni import InputError
from rni.activation import BUILT_IN, Activation, make


@pytest.mark.parametrize("name", BUILT_IN)
def test_derivatives_agree_with_automatic_differentiation(name, generator):
    f = make(name).double()
    nu = torch.randn(5, 7, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(f.derivative(nu), Activation.derivative(f, nu), rtol=1e-12, atol=1e-12)


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
