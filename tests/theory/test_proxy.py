"""The Hessian of the exact ReLU proxy loss, against automatic differentiation and against descent itself."""

import pytest
import torch
from told import of

from rni import InputError, Integration, Network, vectors
from rni.losses import ReLUProxyLoss
from rni.theory import proxy_hessian
from rni.training import train
from rni.weights import LowRank


def autograd_loss(net):
    e, d, decay, scale = net.encoders[:, 0], net.decoders[:, 0], net.task.decays[0], net.task.scales[0]

    def loss(w):
        total = torch.zeros((), dtype=torch.float64)
        for z in (1, -1):
            h = torch.relu(z * w @ e)
            total = total + (d @ h - z * scale * decay) ** 2 + (w @ h - z * decay * w @ e).square().sum()
        return total

    return loss


def trained(neurons, scale, steps=400, stop_loss=1e-9):
    empty = torch.zeros(neurons, 0, dtype=torch.float64)
    e, d = vectors.independent(neurons, 1, torch.Generator().manual_seed(1))
    net = Network(Integration(0.995, scale), e, d, LowRank(empty, empty))
    train(net, ReLUProxyLoss(net.task), learning_rate=0.18 / (1 + scale**2), steps=steps, stop_loss=stop_loss)
    return net


def hessian_at(net):
    return proxy_hessian(net.recurrent, net.encoders, net.decoders, net.task.decays[0])


def symmetric_eigenvalues(hessian):
    return torch.linalg.eigvalsh(hessian.dense().reshape(hessian.neurons**2, -1))


def test_closed_form_is_the_hessian_of_automatic_differentiation_at_any_weights(small, generator):
    net = small(decays=(0.9,), neurons=9, scales=(1.4,))
    w, loss, hessian = net.recurrent.matrix().detach(), autograd_loss(net), hessian_at(net)
    direction = torch.randn(9, 9, generator=generator, dtype=torch.float64)
    exact = torch.autograd.functional.hessian(loss, w)
    torch.testing.assert_close(hessian.dense(), exact)
    product = torch.autograd.functional.hvp(loss, w, direction)[1]
    torch.testing.assert_close(hessian.product(direction), product)


def test_a_factored_matrix_has_the_hessian_of_the_dense_one(small, generator):
    net = small(decays=(0.9,), neurons=9)
    left, right = torch.randn(2, 9, 2, generator=generator, dtype=torch.float64)
    forms = [Network(net.task, net.encoders, net.decoders, w) for w in (LowRank(left, right), left @ right.T)]
    factored, dense = (hessian_at(form) for form in forms)
    torch.testing.assert_close(factored.dense(), dense.dense())
    assert factored.largest_eigenvalue() == pytest.approx(dense.largest_eigenvalue(), rel=1e-10)


@pytest.mark.parametrize("decay", [0.5, 0.995])
def test_five_numbers_a_neuron_hold_the_largest_eigenvalue_far_from_any_minimum(small, decay):
    net = small(decays=(decay,), neurons=9, radius=1.3)
    hessian = hessian_at(net)
    assert hessian.residuals.norm() > 0.1
    assert hessian.largest_eigenvalue() == pytest.approx(float(symmetric_eigenvalues(hessian)[-1]), rel=1e-9)


def test_lanczos_is_the_dense_diagonalisation_for_fifty_neurons():
    hessian = hessian_at(trained(50, 2.0))
    assert hessian.largest_eigenvalue() == pytest.approx(float(symmetric_eigenvalues(hessian)[-1]), rel=1e-9)


def test_a_thousand_neurons_are_not_too_many():
    assert 5 < hessian_at(trained(1000, 1.0, steps=100)).largest_eigenvalue() < 30


@pytest.mark.parametrize("neurons", [1, 2, 3, 6])
def test_few_neurons_are_not_too_few(small, neurons):
    hessian = hessian_at(small(decays=(0.9,), neurons=neurons))
    assert hessian.largest_eigenvalue() == pytest.approx(float(symmetric_eigenvalues(hessian)[-1]), rel=1e-9)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_descent_stays_at_a_minimum_just_below_the_limit_and_leaves_it_just_above(scale, generator):
    net = trained(40, scale, steps=5000, stop_loss=1e-14)
    limit = hessian_at(net).stability_limit()
    kick = torch.randn(2, 1, 40, generator=generator, dtype=torch.float64)
    change = {}
    for factor in (0.97, 1.03):
        w = LowRank(*of(LowRank, net.recurrent).factors())
        w.descend_(kick[0], kick[1], 1e-7)
        copy = Network(net.task, net.encoders, net.decoders, w)
        losses = train(copy, ReLUProxyLoss(net.task), learning_rate=factor * limit, steps=150)
        change[factor] = losses[-1] / losses[0]
    assert change[0.97] < 1 < 100 < change[1.03]


def test_vectors_of_several_channels_are_refused(small):
    with pytest.raises(InputError) as error:
        hessian_at(small())
    assert (error.value.field, error.value.value, error.value.allowed) == ("encoder", (12, 2), "(12, 1)")


def test_close_to_an_integrator_some_small_eigenvalues_are_negative():
    net = trained(20, 1.0, steps=60)
    eigenvalues = symmetric_eigenvalues(hessian_at(net))
    assert -0.1 * eigenvalues[-1] < eigenvalues[0] < -1e-6 * eigenvalues[-1]
