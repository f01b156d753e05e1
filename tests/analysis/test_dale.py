"""Dale's law: the mode that carries the signs, the spectrum that cutting leaves, what one sign alone can't do."""

import pytest
import torch
from told import of

from rni import InputError, Integration, Network, ReLUProxyLoss, vectors
from rni.analysis import breaks_dale, dale_mode, obstacle, rectified_spectrum, relative_error
from rni.tasks.inputs import white_noise
from rni.training import train
from rni.weights import Dale, Dense, dale_signs


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_the_sign_mode_is_found_whatever_its_place_and_orientation(generator):
    signs = dale_signs(200, 0.25, generator)
    left, right, decoders = normal(generator, 200, 3), normal(generator, 200, 3), normal(generator, 200, 2)
    left[:, 1], right[:, 1] = -left[:, 1].abs(), -right[:, 1].abs() * signs
    found = dale_mode(left, right, decoders, signs)
    assert found[:3] == (1, 1.0, 1.0)
    assert float(found.overlaps[2, 0]) == pytest.approx(abs(float(left[:, 2] @ decoders[:, 0])))


def test_random_vectors_have_no_sign_mode(generator):
    signs = dale_signs(500, 0.25, generator)
    found = dale_mode(normal(generator, 500, 3), normal(generator, 500, 3), normal(generator, 500, 2), signs)
    assert found.one_sign < 0.6
    assert found.agreement < 0.6


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_cutting_a_gaussian_matrix_to_dales_signs_leaves_the_modes_that_are_computed(channels, generator):
    a = normal(generator, 400, channels) @ normal(generator, channels, 400)
    found = torch.linalg.svdvals(Dale(a, dale_signs(400, 0.3, generator)).matrix().detach())
    count = channels * (channels + 3) // 2
    theory = rectified_spectrum(channels, count)
    for value in theory.unique():
        assert float((found[:count] / found[0])[theory == value].mean()) == pytest.approx(float(value), rel=0.1)
    assert float(found[count] / found[0]) < 0.5 * float(theory[-1])


def test_the_sign_mode_counted_component_by_component():
    left = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 0.0]])
    right = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [0.0, 0.0]])
    found = dale_mode(left, right, torch.tensor([[1.0], [2.0], [4.0], [8.0]]), torch.tensor([1.0, -1.0, 1.0, -1.0]))
    assert found[:3] == (0, 0.5, 0.75)  # half of them positive: not turned; 0 has no sign
    assert found.overlaps.tolist() == [[9], [5]]
    turned = dale_mode(left[:, 1:], right[:, 1:], torch.ones(4, 1), torch.tensor([1.0, -1.0, 1.0, -1.0]))
    assert turned[:3] == (0, 0.5, 0.75)


def test_the_spectrum_of_few_channels_ends_in_zeros():
    assert rectified_spectrum(1, 4).tolist() == [1, 1, 0, 0]
    third = 1 / 4
    assert rectified_spectrum(3, 11).tolist() == pytest.approx([1, *[2 / 3] * 3, *[third] * 5, 0, 0])


def test_dales_law_is_counted_weight_by_weight(generator):
    signs = dale_signs(50, 0.5, generator)
    w = Dale(normal(generator, 50, 50), signs).matrix().detach().clone()
    assert breaks_dale(w, signs) == 0
    w[3, 7] = -1e-30 * signs[7]
    assert breaks_dale(w, signs) == 1


def test_arrays_that_do_not_fit_are_named():
    with pytest.raises(InputError) as caught:
        dale_mode(torch.ones(5, 2), torch.ones(4, 2), torch.ones(5, 1), torch.ones(5))
    assert (caught.value.field, caught.value.value) == ("right", (4, 2))


def one_signed(sign, neurons=100):
    encoders, decoders = vectors.independent(neurons, 1, torch.Generator().manual_seed(1))
    zero = torch.zeros(neurons, neurons, dtype=torch.float64)
    recurrent = Dense(zero) if sign is None else Dale(zero, torch.full((neurons,), sign))
    net = Network(Integration(0.9), encoders, decoders, recurrent)
    losses = train(net, ReLUProxyLoss(net.task), learning_rate=0.05, steps=200)
    return net, losses[-1] / losses[0]


def test_neurons_of_one_sign_do_not_integrate_and_it_is_said_why():
    x = white_noise(16, 50, 1, torch.Generator().manual_seed(0))
    free, floor = one_signed(None)
    assert floor < 1e-2
    assert float(relative_error(free, x)) < 0.1
    for sign, reason in ((1.0, "no inhibitory neurons"), (-1.0, "no excitatory neurons")):
        net, floor = one_signed(sign)
        assert floor > 0.1
        assert float(relative_error(net, x)) > 0.3
        assert str(obstacle(of(Dale, net.recurrent).signs)).startswith(reason)
    assert obstacle(dale_signs(100, 0.1)) is None
    assert obstacle(torch.tensor([1.0, 0.0])) is obstacle(torch.tensor([-1.0, 0.0])) is None


def test_recurrent_currents_of_one_sign_are_what_the_explanation_says(generator):
    """All excitatory: W h >= 0 always. All inhibitory: nothing is left one step after the last input."""
    x = torch.zeros(4, 3, 1, dtype=torch.float64)
    x[:, 0] = normal(generator, 4, 1)
    encoders, decoders = vectors.independent(60, 1, generator)
    for sign in (1.0, -1.0):
        w = Dale(normal(generator, 60, 60), torch.full((60,), sign))
        h, _ = Network(Integration(0.9), encoders, decoders, w)(x)
        assert bool((h[:, 0] > 0).any())
        assert bool((w(h[:, 0]) * sign >= 0).all())
        assert bool((h[:, 1:] > 0).any()) == (sign > 0)
