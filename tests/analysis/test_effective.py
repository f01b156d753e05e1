"""What regressions say, against the same ones written out."""

import math

import numpy as np
import pytest
import torch

from rni import Integration
from rni.analysis import fit_integrals, fit_readout, memory, outliers, principal
from rni.analysis.decays import halves, without_starts
from rni.analysis.readout import matching


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def lagged(x, lags):
    """x_t, ..., x_{t - lags} beside each other, 0 before the first step: (trials, time, channels (lags + 1))."""
    past = [np.concatenate([np.zeros((len(x), k, x.shape[2])), x[:, : x.shape[1] - k]], 1) for k in range(lags + 1)]
    return np.concatenate(past, 2)


def rows(values):
    return np.asarray(values).reshape(-1, np.shape(values)[-1])


def with_one(columns):
    return np.column_stack([np.ones(len(columns)), columns])


def unexplained(columns, values):
    return values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0]


def test_the_explained_variance_is_adjusted_for_the_number_of_coefficients():
    x, noise = normal(3, 20, 2), normal(3, 20, 4, seed=1)
    signals = Integration((0.9, 0.5)).targets(x) @ normal(2, 4, seed=2) + 0.5 * noise
    fit = fit_integrals(signals, x)
    z, v = rows(fit.integrals(x)), rows(signals)
    left = unexplained(with_one(np.column_stack([rows(x), z])), v)
    part = (left**2).sum() / ((v - v.mean(0)) ** 2).sum()
    assert fit.explained == pytest.approx(1 - part * (60 - 1) / (60 - 5), rel=1e-9)
    for c, share in enumerate(fit.shares):
        without = unexplained(with_one(np.column_stack([rows(x), z[:, [1 - c]]])), v)
        assert float(share) == pytest.approx((without**2).sum() / ((v - v.mean(0)) ** 2).sum() - part, rel=1e-6)
    for k, candidate in enumerate(fit.candidates.tolist()):
        alone = rows(Integration((candidate, candidate)).targets(x))
        base = (unexplained(with_one(rows(x)), v) ** 2).sum()
        added = base - (unexplained(with_one(np.column_stack([rows(x), alone[:, 1]])), v) ** 2).sum()
        assert float(fit.profile[k, 1]) == pytest.approx(added / ((v - v.mean(0)) ** 2).sum(), abs=1e-9)


def test_what_trials_start_with_is_found_beside_the_decays():
    x, started = 3 * normal(6, 60, 2), 5 * normal(6, 2, seed=1)
    powers = torch.tensor([0.95, 0.7], dtype=torch.float64) ** torch.arange(1, 61)[:, None]
    integrals = Integration((0.95, 0.7)).targets(x) + started[:, None] * powers
    gains = normal(2, 3, seed=2)
    signals = integrals @ gains + 2
    fit = fit_integrals(signals, x, from_rest=False)
    torch.testing.assert_close(fit.decays, torch.tensor([0.95, 0.7]).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(fit.initial, started, atol=1e-3, rtol=0)
    torch.testing.assert_close(fit.integrals(x), integrals, atol=1e-3, rtol=0)
    torch.testing.assert_close(fit.gains.T, gains, atol=1e-4, rtol=0)
    assert fit.explained == pytest.approx(1, abs=1e-6)
    assert fit_integrals(signals, x).explained < 0.99
    noisy = signals + 0.3 * normal(6, 60, 3, seed=3)
    fit = fit_integrals(noisy, x, from_rest=False)
    v = rows(noisy)
    part = 1 - fit.explained
    freedom = 360 - 5 - 12 / 3  # twelve initial integrals, seen in three signals each
    left = (fit.integrals(x) @ fit.gains.T).numpy()
    offset = unexplained(with_one(rows(x)), v - rows(left))
    assert part == pytest.approx((offset**2).sum() / ((v - v.mean(0)) ** 2).sum() * 359 / freedom, rel=0.02)
    beyond = without_starts(signals, (0.95, 0.7))
    torch.testing.assert_close(powers.T @ beyond, torch.zeros_like(powers.T @ beyond), atol=1e-9, rtol=0)


@pytest.mark.parametrize("recent", [2, 4])
def test_memory_is_what_regressions_on_the_other_half_of_the_trials_explain(recent):
    x = normal(40, 60, 1)
    old = torch.cat([torch.zeros(40, 8, 1), x[:, :-8]], 1)
    signals = Integration(0.8).targets(x) + 0.7 * old + 0.3 * x + 0.2 * normal(40, 60, 1, seed=1)
    fit = fit_integrals(signals, x)

    def explained(columns):
        def a(values):
            return rows(np.asarray(values)[::2])

        def b(values):
            return rows(np.asarray(values)[1::2])

        weights = np.linalg.lstsq(with_one(a(columns)), a(signals), rcond=None)[0]
        left = b(signals) - with_one(b(columns)) @ weights
        return 1 - (left**2).sum() / ((b(signals) - a(signals).mean(0)) ** 2).sum()

    present, lately = (explained(lagged(x.numpy(), k)) for k in (0, recent))
    times = [7.5, 15, 30, 60, 120, 240]  # of the averages of inputs from before the last lag
    averages = [Integration(math.exp(-1 / time)).targets(x).numpy() for time in times]
    longer = explained(np.concatenate([lagged(x.numpy(), 30), *averages], 2))
    within = explained(np.concatenate([x, fit.integrals(x)], 2))
    found = memory(signals, x, fit, recent)
    assert found.older == pytest.approx((longer - lately) / longer, rel=1e-6)
    assert found.integrals == pytest.approx((within - present) / (longer - present), rel=1e-6)


def test_memory_counts_modes_that_are_slower_than_the_last_lag():
    """Two modes, of which one integral can be only a part: all inputs together explain the signals exactly."""
    x = normal(40, 200, 1)
    signals = torch.cat([Integration(0.9).targets(x), 0.1 * Integration(0.998).targets(x)], 2)
    fit = fit_integrals(signals, x)
    found = memory(signals, x, fit)
    v = rows(signals)
    total = ((v - v.mean(0)) ** 2).sum()
    present, lately, within = (
        1 - (unexplained(with_one(rows(columns)), v) ** 2).sum() / total
        for columns in (x, lagged(x.numpy(), 2), np.concatenate([x, fit.integrals(x)], 2))
    )
    assert found.older == pytest.approx(1 - lately, abs=0.02)
    assert found.integrals == pytest.approx((within - present) / (1 - present), abs=0.02)


def test_memory_ends_at_half_of_the_trial_where_neurons_forget_slower_than_that():
    x = normal(20, 40, 1)
    signals = Integration(0.99).targets(x)
    found = memory(signals, x, fit_integrals(signals, x), recent=1000)
    assert 0 < found.older < 0.2
    assert found.integrals == pytest.approx(1)


def test_of_signals_without_inputs_in_them_nothing_is_remembered():
    x, signals = normal(10, 50, 1), normal(10, 50, 1, seed=1)
    assert memory(signals, x, fit_integrals(signals, x)) == (0, 0)


def test_halves_are_every_other_trial_or_those_of_the_one():
    several, one = torch.arange(5)[:, None, None], torch.arange(5)[None, :, None]
    assert [half.flatten().tolist() for half in halves(several)] == [[0, 2, 4], [1, 3]]
    assert [half.flatten().tolist() for half in halves(one)] == [[0, 1], [2, 3, 4]]


def test_principal_components_against_numpy():
    samples = normal(200, 4) * torch.tensor([3.0, 1.0, 0.3, 0.01]) + 5
    found = principal(samples)
    values = np.linalg.eigvalsh(np.cov(samples.numpy().T, bias=True))[::-1]
    np.testing.assert_allclose(found.variances, values, rtol=1e-9)
    assert found.participation == pytest.approx(values.sum() ** 2 / (values**2).sum())
    assert found.components == 1 + int((np.cumsum(values) / values.sum() < 0.99).sum()) == 2
    inside = found.coordinates(samples, 2)
    away = samples - samples.mean(0)
    outside = (away.square().sum(1) - inside.square().sum(1)).clamp(min=0).sqrt()
    ratio = float(outside.mean() / inside.norm(dim=1).mean())
    assert found.ratio(samples, 2) == found.ratio(samples.view(8, 25, 4), 2) == pytest.approx(ratio, rel=1e-6)


def test_outliers_are_looked_for_among_the_first():
    values = torch.tensor([4.0, 3.0, 2.9, 0.5, 0.4, 1e-9])
    assert outliers(values) == 5
    assert outliers(values, most=4) == 3
    assert outliers(values, most=1) == 1
    assert outliers(torch.tensor([2.0])) == 1


def test_a_fitted_readout_has_an_offset_and_a_small_ridge():
    h = normal(50, 3) + torch.tensor([1.0, -2.0, 3.0])
    y = h @ normal(3, 2, seed=1) + torch.tensor([0.5, 4.0]) + 0.1 * normal(50, 2, seed=2)
    decoders, offset = fit_readout(h, y)
    wanted = np.linalg.lstsq(with_one(h.numpy()), y.numpy(), rcond=None)[0]
    np.testing.assert_allclose(decoders, wanted[1:], rtol=1e-6)
    np.testing.assert_allclose(offset, wanted[0], rtol=1e-6)
    doubled, _ = fit_readout(torch.cat([h, h], 1), y)  # of which only the sum is known
    np.testing.assert_allclose(doubled, np.concatenate([wanted[1:], wanted[1:]]) / 2, rtol=1e-5)


def test_outputs_are_matched_with_integrals_by_correlation_of_either_sign():
    z = normal(4, 50, 3)
    y = torch.stack([5 - 2 * z[..., 2], 0.1 * z[..., 0], z[..., 1] + 3], 2) + 0.1 * normal(4, 50, 3, seed=1)
    order, signs = matching(y, z)
    assert order.tolist() == [1, 2, 0]
    assert signs.tolist() == [1, 1, -1]
    assert matching(torch.zeros_like(z), z)[1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("turned", [False, True])
def test_sizes_do_not_matter_to_what_is_matched(turned):
    """With correlations of 0.6 + 0.48 for the order as it is, and 0.55 + 0.4 for the other."""
    basis = torch.linalg.qr(torch.cat([torch.ones(50, 1), normal(50, 4)], 1)).Q[:, 1:]
    correlation = torch.tensor([[0.6, 0.55], [0.4, 0.48]]).double()
    correlation = correlation.T if turned else correlation
    y = basis[:, :2] @ correlation.T + basis[:, 2:] * (1 - correlation.square().sum(1)).sqrt()
    for size in (1e-3, 1.0, 1e3):
        sizes = torch.tensor([1.0, size])
        assert matching((y * sizes)[None], basis[None, :, :2])[0].tolist() == [0, 1]
        assert matching(y[None], (basis[:, :2] * sizes)[None])[0].tolist() == [0, 1]
