import numpy as np
import pytest
import torch
from scipy.signal import lfilter
from told import mistyped

from rni import InputError, Integration
from rni.tasks import TASKS
from rni.tasks.inputs import bursts, correlated_noise, pulses, white_noise
from rni.tasks.integration import SHORT_SEQUENCE, targets_at_once


@pytest.mark.parametrize("duration", [1, 3, SHORT_SEQUENCE, SHORT_SEQUENCE + 1])
def test_targets_are_the_discounted_sum_of_the_inputs(generator, duration):
    task = Integration((0.9, 0.5, 0.0, 1.0), (2.0, 0.3, 1.0, 0.7))
    x = white_noise(3, duration, 4, generator, dtype=torch.float64)
    targets = task.targets(x)
    for c, (decay, scale) in enumerate(zip(task.decays, task.scales, strict=True)):
        for t in range(duration):
            terms = [scale * decay ** (k + 1) * x[:, t - k, c] for k in range(t + 1)]
            torch.testing.assert_close(targets[:, t, c], sum(terms), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(targets_at_once(task, x), targets, rtol=1e-12, atol=1e-12)


def test_a_task_of_ones_own_keeps_its_targets_in_training(generator):
    class Doubled(Integration):
        def targets(self, inputs):
            return 2 * super().targets(inputs)

    x = white_noise(3, 4, 1, generator)
    assert torch.equal(targets_at_once(Doubled(0.9), x), Doubled(0.9).targets(x))


def test_targets_of_one_sequence_of_several_and_of_many_are_the_same(generator):
    task, x = Integration((0.9, 0.5)), white_noise(6, 5, 2, generator, dtype=torch.float64)
    assert torch.equal(task.targets(x.view(2, 3, 5, 2)), task.targets(x).view(2, 3, 5, 2))
    torch.testing.assert_close(task.targets(x[4]), task.targets(x)[4])
    assert task.targets(x[:0]).shape == (0, 5, 2)
    assert task.targets(x[:, :0]).shape == (6, 0, 2)


def test_inputs_that_are_missing_leave_the_targets_before_them_as_they_are(generator):
    task, x = Integration((0.9, 0.5)), white_noise(2, 5, 2, generator, dtype=torch.float64)
    whole = task.targets(x)
    x[0, 3:] = torch.nan
    x[1, 4] = torch.inf
    torch.testing.assert_close(task.targets(x)[0, :3], whole[0, :3])
    torch.testing.assert_close(task.targets(x)[1, :4], whole[1, :4])


def test_targets_of_long_sequences_agree_with_a_filter_from_scipy(generator):
    x = white_noise(2, 5000, 1, generator, dtype=torch.float64)
    expected = lfilter([0.999 * 1.5], [1, -0.999], x[..., 0].numpy(), axis=1)
    torch.testing.assert_close(Integration(0.999, 1.5).targets(x)[..., 0], torch.tensor(expected))


@pytest.mark.parametrize(
    ("decays", "field"),
    [((), "decays"), ((1.1,), "decays.0"), ((0.9, -0.1), "decays.1"), ((float("nan"),), "decays.0")],
)
def test_decays_outside_the_unit_interval_are_refused(decays, field):
    with pytest.raises(InputError) as error:
        Integration(decays)
    assert error.value.field == field


def test_one_scale_for_each_decay():
    with pytest.raises(InputError) as error:
        Integration((0.9,), (1.0, 2.0))
    assert (error.value.field, error.value.value) == ("scales", (1.0, 2.0))


def test_the_scales_are_one_by_default():
    assert Integration([0.9, 0.8]) == Integration([0.9, 0.8], None) == Integration([0.9, 0.8], [1, 1])


def test_a_task_is_rebuilt_from_its_configuration():
    task = Integration([0.9, 1.0], [2.0, 3.0])
    assert TASKS.config(task) == {"name": "integration", "decays": [0.9, 1.0], "scales": [2.0, 3.0]}
    assert TASKS.build(TASKS.config(task)) == task


def test_the_task_without_leak_has_the_same_largest_integral():
    task = Integration([0.9, 0.8], [1.0, 2.0])
    assert task.without_leak(0.5).decays == pytest.approx((0.8, 0.6))
    assert task.without_leak(0.5).largest_integral() == pytest.approx(task.largest_integral())
    with pytest.raises(InputError) as error:
        task.without_leak(0.15)
    assert error.value.field == "decays"


def test_largest_integral_is_the_fixed_point_of_a_constant_input():
    task = Integration((0.8, 1.0))
    assert task.largest_integral() == (pytest.approx(4.0), float("inf"))
    assert task.targets(torch.ones(1, 500, 2, dtype=torch.float64))[0, -1, 0] == pytest.approx(4.0)


def test_correlated_noise_has_the_covariance_asked_for(generator):
    covariance = torch.tensor([[1.0, 0.6, 0.1], [0.6, 2.0, 0.5], [0.1, 0.5, 1.0]])
    x = correlated_noise(200_000, 2, covariance, generator)
    flat = x[:, :, 0]
    torch.testing.assert_close(flat.T @ flat / len(x), covariance, atol=0.02, rtol=0)
    assert (x[:, :, 0].T @ x[:, :, 1]).abs().max() / len(x) < 0.02


def test_each_sequence_of_an_even_batch_is_white_noise(generator):
    x = torch.cat([white_noise(8, 2, 2, generator, even=True, dtype=torch.float64)[3:4] for _ in range(20_000)])
    flat = x.flatten(1)
    torch.testing.assert_close(flat.T @ flat / len(x), torch.eye(4, dtype=torch.float64), atol=0.04, rtol=0)
    torch.testing.assert_close((flat**4).mean(0), torch.full((4,), 3.0, dtype=torch.float64), atol=0.3, rtol=0)
    assert flat.mean(0).abs().max() < 0.03


def test_averages_over_an_even_batch_have_less_noise(generator):
    def spread(even: bool) -> float:
        powers = [white_noise(32, 3, 1, generator, even=even).square().mean((0, 2)) for _ in range(300)]
        return float(torch.stack(powers).std(0).max())

    assert spread(even=True) < 0.5 * spread(even=False)


def test_an_even_batch_is_finite_at_the_corner_of_the_cube(monkeypatch):
    corner = torch.tensor([[0.0, 1 - 2.0**-53]], dtype=torch.float64)
    monkeypatch.setattr("rni.tasks.inputs.shifted_points", lambda *_: corner)
    assert white_noise(1, 2, 1, even=True).isfinite().all()


def test_correlated_noise_can_be_even_too(generator):
    covariance = torch.tensor([[1.0, 0.6], [0.6, 2.0]])
    x = torch.cat([correlated_noise(32, 1, covariance, generator, even=True) for _ in range(500)])[:, :, 0]
    torch.testing.assert_close(x.T @ x / len(x), covariance, atol=0.03, rtol=0)


def test_a_covariance_that_is_none_is_refused():
    with pytest.raises(InputError, match="negative eigenvalues"):
        correlated_noise(1, 1, torch.tensor([[1.0, 2.0], [2.0, 1.0]]))


def test_pulses_are_sparse(generator):
    x = pulses(50, 1000, 2, 0.05, generator)
    assert (x != 0).float().mean() == pytest.approx(0.05, abs=0.005)


def test_bursts_alternate_stretches_of_one_sign_and_quiet(generator):
    x = bursts(200, 1000, 2, generator)
    assert set(x.unique().tolist()) == {-1.0, 0.0, 1.0}
    sums = x.unfold(1, 25, 1).sum(-1).abs()
    assert (sums >= 20).float().mean() > 0.05  # whole bursts
    assert (sums <= 3).float().mean() > 0.3  # quiet in between
    assert x.mean().abs() < 0.02
    quiet_only = bursts(200, 1000, 1, generator, starts=0.0, density=0.0)
    assert (quiet_only != 0).float().mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("decays", [np.array(0.5), np.float32(0.5), torch.tensor(0.5), np.array([0.5])])
def test_decays_may_be_numbers_of_numpy_and_torch(decays):
    assert Integration(decays) == Integration(0.5)


@pytest.mark.parametrize(
    "decays", [[0.5, np.float32(0.25)], [torch.tensor(0.5), np.array(0.25)], np.array([0.5, 0.25])]
)
def test_a_list_of_decays_may_mix_numbers_of_python_numpy_and_torch(decays):
    assert Integration(decays).decays == (0.5, 0.25)


@pytest.mark.parametrize("decays", ["0.9", None, [None], 1j, torch.eye(2), np.eye(2), {"a": 1}, [True]])
def test_decays_that_are_no_numbers_are_refused(decays):
    with pytest.raises(InputError) as error:
        Integration(mistyped(decays))
    assert error.value.field.split(".")[0] == "decays"


@pytest.mark.parametrize("scales", [float("nan"), float("inf"), "1", [[1.0]] * 2])
def test_scales_that_are_no_finite_numbers_are_refused(scales):
    with pytest.raises(InputError) as error:
        Integration(0.9, mistyped(scales))
    assert error.value.field.split(".")[0] == "scales"


@pytest.mark.parametrize("draw", [white_noise, lambda *sizes: white_noise(*sizes, even=True), pulses, bursts])
@pytest.mark.parametrize(
    ("sizes", "name"),
    [((-1, 2, 1), "batch"), ((2, 0, 1), "duration"), ((2, 2.5, 1), "duration"), ((2, 2, 0), "channels")],
)
def test_inputs_of_no_size_are_refused(draw, sizes, name):
    with pytest.raises(InputError, match=rf"{name}: .*; allowed: a whole number from 1 on"):
        draw(*sizes)


def test_long_even_batches_are_white_noise_beyond_the_dimensions_of_quasi_random_points(generator):
    x = white_noise(3, 21202, 1, generator, even=True)
    assert x.mean((1, 2)).abs().max() < 0.03
    assert x.square().mean((1, 2)).tolist() == pytest.approx([1, 1, 1], abs=0.05)
    assert abs(float((x[0] * x[1]).mean())) < 0.03
    assert not torch.equal(x, white_noise(3, 21202, 1, generator, even=True))
