import json
import math

import pytest
import torch

from rni import Integration, Network, VanillaRNN, analyze, vectors
from rni.activations import make
from rni.analysis import current_ratio, null_ratio, relative_error, svd
from rni.networks.vanilla import Form
from rni.tasks.inputs import white_noise
from rni.weights import Dense, LowRank


@pytest.fixture
def exact():
    """A linear rank-1 integrator in closed form: W = l r' with d.l = s, r.e = gamma, r.l = gamma."""
    e, d = vectors.orthonormal(30, 1, torch.Generator().manual_seed(1))
    left, right = d + e, 0.9 * e
    return Network(Integration(0.9), e, d, LowRank(left, right), "linear")


def test_an_exact_integrator_has_no_error_and_no_current_outside_its_line(exact: Network):
    analysis = analyze(exact)
    for errors in analysis.errors.values():
        assert all(error < 1e-12 for by_channel in errors.values() for error in by_channel)
    assert analysis.ratio < 1e-12
    assert analysis.null_ratio == pytest.approx(29**0.5)
    assert json.loads(analysis.to_json())["errors"]["bursts"]["2000"][0] < 1e-12


def test_relative_error_of_a_silent_network_is_one(exact, generator):
    silent = Network(exact.task, exact.encoders, exact.decoders, torch.zeros(30, 30, dtype=torch.float64), "linear")
    assert relative_error(silent, white_noise(5, 20, 1, generator)).tolist() == [1.0]


def test_currents_without_structure_have_the_null_ratio(generator):
    n = 400
    w = torch.randn(n, n, generator=generator, dtype=torch.float64) / n**0.5
    net = Network(Integration((0.9, 0.9)), *vectors.independent(n, 2, generator), w, "linear")
    directions = torch.linalg.qr(torch.randn(n, 2, generator=generator, dtype=torch.float64)).Q
    ratio = current_ratio(net, directions, white_noise(200, 30, 2, generator))
    mean_over_rms = (math.pi / 4) ** 0.5  # of the norm of two Gaussian coordinates: r is a ratio of mean norms
    assert ratio == pytest.approx(null_ratio(n, 2) / mean_over_rms, rel=0.12)


@pytest.mark.parametrize("form", ["rate", "current"])
def test_the_ratio_of_a_factored_network_is_that_of_its_matrix(form: Form):
    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) / 40**0.5

    generator = torch.Generator().manual_seed(0)
    factors, enters, bias, start = (drawn(40, 5), drawn(40, 5)), drawn(40, 2), drawn(40), drawn(40)
    low, full = (
        VanillaRNN(w, enters, make("tanh"), bias, form=form, initial=start)
        for w in (LowRank(*factors), Dense(factors[0] @ factors[1].T))
    )
    directions, x = svd(full.recurrent).left[:, :2], white_noise(8, 30, 2, generator)
    ratio = current_ratio(full, directions, x)
    assert ratio > 0.1
    assert current_ratio(low, directions, x) == pytest.approx(ratio, rel=1e-12)


def test_without_currents_there_is_no_ratio():
    none, x = torch.zeros(5, 2).double(), white_noise(2, 3, 1)
    for w in (LowRank(none, none), Dense(none @ none.T)):
        net = VanillaRNN(w, none[:, :1], make("tanh"), none[:, 0])
        assert math.isnan(current_ratio(net, torch.eye(5)[:, :2], x))


@pytest.mark.parametrize("factored", [False, True])
def test_a_few_singular_values_and_vectors_are_the_first_of_all(generator, factored):
    left, right = torch.randn(2, 90, 30, generator=generator, dtype=torch.float64)
    left *= torch.logspace(0, -2, 30, dtype=torch.float64)
    weights = LowRank(left, right) if factored else Dense(left @ right.T)
    few, whole = svd(weights, 5), svd(weights)
    torch.testing.assert_close(few.values, whole.values[:5], rtol=1e-7, atol=0)
    for found, exact in ((few.left, whole.left), (few.right, whole.right)):
        assert (found * exact[:, :5]).sum(0).abs().min() > 1 - 1e-8


def test_svd_of_factors_is_the_svd_of_the_matrix(generator):
    left, right = (torch.randn(50, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    factored, dense = svd(LowRank(left, right)), svd(Dense(left @ right.T))
    torch.testing.assert_close(factored.values, dense.values[:3])
    rebuilt = factored.left @ torch.diag(factored.values) @ factored.right.T
    torch.testing.assert_close(rebuilt, left @ right.T)
