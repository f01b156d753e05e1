"""How many integrals n neurons can hold: the bounds, and why they hold."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

import rni
from rni import vectors
from rni.theory.capacity import largest_channels, least_neurons, sides, untuned_error, wendel


def distance_of_the_hull(rows):
    """min |sum rho_j d_j| with sum rho_j = 1, rho >= 0, up to a factor: 0 if and only if 0 is in the hull."""
    stacked = np.vstack([rows.T, np.ones(len(rows))])
    return nnls(stacked, np.append(np.zeros(rows.shape[1]), 1.0))[1]


def two_triangles():
    """Decoder rows of 6 neurons and 2 channels, the first and the last three around 0."""
    angles = torch.tensor([0.0, 2.09, 4.19, 0.5, 2.6, 4.7]).double()
    return torch.stack([angles.cos(), angles.sin()], 1)


@pytest.mark.parametrize(("points", "dimensions"), [(2, 1), (3, 2), (6, 2), (5, 3), (8, 4), (4, 6)])
def test_wendels_probability_is_that_of_random_points(points, dimensions):
    rng, draws = np.random.default_rng(0), 600
    inside = [distance_of_the_hull(rng.standard_normal((points, dimensions))) < 1e-9 for _ in range(draws)]
    p = wendel(points, dimensions)
    assert abs(np.mean(inside) - p) <= 4 * (p * (1 - p) / draws) ** 0.5
    assert wendel(dimensions + 1, dimensions) == pytest.approx(2.0**-dimensions)


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("decoders", ["given", "free"])
def test_the_most_channels_are_those_that_the_least_neurons_allow(activation, decoders):
    for neurons in range(1, 200):
        channels = largest_channels(neurons, activation, decoders)
        assert channels == 0 or least_neurons(channels, activation, decoders) <= neurons
        assert least_neurons(channels + 1, activation, decoders) > neurons
    assert [least_neurons(d) for d in (1, 2, 5, 31)] == [3, 6, 30, 992]
    assert [largest_channels(n) for n in (2, 3, 1000, 10**6)] == [0, 1, 31, 999]


def test_functions_of_different_axes_are_linearly_independent_and_of_the_same_are_not(generator):
    axes = torch.randn(12, 3, generator=generator).double()
    z = torch.randn(200, 3, generator=generator).double()
    assert torch.linalg.matrix_rank((z @ axes.T).abs()) == 12
    axes[7] = -2 * axes[3]
    assert torch.linalg.matrix_rank((z @ axes.T).abs()) == 11


def test_fewer_than_d_plus_one_neurons_of_an_axis_can_not_cancel():
    """So that no way to share 5 neurons between the 2 axes of 2 channels is exact: one of them gets 2 or fewer."""
    d = two_triangles()[:5].numpy()
    for few in combinations(range(5), 2):
        assert distance_of_the_hull(d[list(few)]) > 1e-3
    assert min(distance_of_the_hull(d[list(three)]) for three in combinations(range(5), 3)) < 1e-9


def test_below_the_bound_no_currents_whatever_make_the_first_output_linear():
    r"""Descent on L towards D'f(Lx) = x ends away from 0 for n = 5, from all starts, and at 0 from some for n = 6."""
    decoders = two_triangles()
    around = torch.linspace(0, 2 * torch.pi, 25)[:-1].double()
    x = torch.stack([around.cos(), around.sin()], 1)
    errors = {}
    for n in (5, 6):
        left = torch.randn(60, n, 2, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
        optimizer = torch.optim.Adam([left], lr=0.1)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-3, total_iters=300)
        missed = torch.tensor(torch.inf)
        for _ in range(300):
            missed = ((x @ left.mT).clamp(min=0) @ decoders[:n] - x).square().mean((1, 2))
            optimizer.zero_grad()
            missed.sum().backward()
            optimizer.step()
            schedule.step()
        errors[n] = float(missed.detach().min().sqrt())
    assert errors[5] > 0.01
    assert errors[6] < 0.1 * errors[5]


def test_currents_along_the_decoders_err_by_the_root_of_channels_over_neurons(generator):
    for channels, neurons in ((1, 200), (5, 200), (20, 300)):
        d = torch.randn(300, neurons, channels, generator=generator).double() / neurons**0.5
        z = torch.randn(300, 20, channels, generator=generator).double()
        even = (z @ d.mT).abs() @ d
        assert float(even.square().mean() / z.square().mean()) ** 0.5 == pytest.approx(
            untuned_error(channels, neurons), rel=0.1
        )


def test_every_direction_needs_as_many_decoder_rows_as_channels():
    """A design exists at 1.3 D (D + 1) neurons only where 0 is deep among the rows; the others are refused."""
    angles = np.linspace(0, np.pi, 721)
    directions = np.stack([np.cos(angles), np.sin(angles)], 1)
    outcomes = []
    for seed in range(8):
        d = vectors.independent(8, 2, torch.Generator().manual_seed(seed)).decoders
        e = vectors.independent(8, 2, torch.Generator().manual_seed(100 + seed)).encoders
        try:
            rni.design(rni.Integration([0.9, 0.8]), 8, encoders=e, decoders=d)
            outcomes.append((True, sides(d.numpy(), directions) >= 2))
        except rni.InputError:
            outcomes.append((False, sides(d.numpy(), directions) >= 2))
    assert all(designed == deep for designed, deep in outcomes)
    assert {designed for designed, _ in outcomes} == {True, False}


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_with_free_decoders_two_neurons_a_channel_are_enough_for_relu(channels, generator):
    r"""Pairs with currents $\pm\rho u$; $U = Q\Gamma$ answers any encoders, and the decoders are $D = MS$."""
    n = least_neurons(channels, "relu", "free")
    decays, scales = torch.linspace(0.9, 0.8, channels).double(), torch.linspace(1, 2, channels).double()
    e = vectors.independent(n, channels, generator).encoders
    rho = torch.rand(2, channels, generator=generator).double() + 0.5
    plus, minus = e[:channels] / rho[0][:, None], e[channels:] / rho[1][:, None]
    v = torch.linalg.inv(plus - minus)  # columns: v_g, the same as Gamma U^-1
    m = torch.cat([v.T / rho[0][:, None], -v.T / rho[1][:, None]])
    task = rni.Integration(decays.tolist(), scales.tolist())
    design = rni.design(task, n, encoders=e, decoders=m * scales)
    assert max(design.error(500)) < 1e-9
    with pytest.raises(rni.InputError):
        rni.design(task, n, encoders=e, decoders=vectors.independent(n, channels, generator).decoders)


def test_linear_networks_need_two_neurons_a_channel_and_one_with_decoders_of_their_own(generator):
    task = rni.Integration([0.9, 0.8, 0.7], [1, 2, 1])
    n = least_neurons(3, "linear")
    assert max(rni.design(task, n, "linear").error(200)) < 1e-9
    with pytest.raises(rni.InputError) as error:
        rni.design(task, n - 1, "linear")
    assert (error.value.field, error.value.value) == ("neurons", n - 1)
    n = least_neurons(3, "linear", "free")
    e = torch.randn(n, n, generator=generator).double()
    d = torch.linalg.inv(e).T * torch.tensor(task.scales)
    assert max(rni.design(task, n, "linear", encoders=e, decoders=d).error(200)) < 1e-9


@pytest.mark.parametrize("call", [lambda: least_neurons(0), lambda: largest_channels(3, "tanh"), lambda: wendel(2, 0)])
def test_invalid_values_are_refused(call):
    with pytest.raises(rni.InputError):
        call()
