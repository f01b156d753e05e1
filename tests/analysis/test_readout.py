"""What is read out of activity, and how neurons code it, against the same written out."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from told import there

from rni import InputError, Integration, VanillaRNN, design
from rni import activations as activation
from rni.analysis import fit_integrals, principal
from rni.analysis.accuracy import measure_accuracy
from rni.analysis.coding import coding
from rni.analysis.decays import require_memory
from rni.analysis.examination import check_inputs, examine, observe
from rni.analysis.latents import latent, visited
from rni.analysis.noisy import Noisy, noisy
from rni.analysis.readout import fitted_readout, given_readout
from rni.analysis.recorded import examine_recording, fit_with_or_without_starts, held_out, require_enough
from rni.files.recording import Recording
from rni.weights import Dense


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def integrator(decays=(0.9, 0.7), *, leak=1.0, bias=0.0, **more):
    """Linear neurons that each are an integral, with outputs of their own size."""
    w = torch.diag(torch.tensor(decays, dtype=torch.float64))
    w = torch.eye(len(w)) - (torch.eye(len(w)) - w) / leak
    none = torch.full((len(w),), bias, dtype=torch.float64)
    decoders = torch.diag(torch.tensor([2.0, -0.5], dtype=torch.float64))
    more = {"decoders": decoders, "leak": leak} | more
    return VanillaRNN(Dense(w), w.clone(), activation.make("linear"), none, **more)


@pytest.mark.parametrize(("leak", "settled"), [(1.0, 10), (0.3, 34)])
@torch.no_grad()
def test_outputs_at_rest_are_those_after_ten_times_the_leak_if_they_hardly_change(leak, settled):
    net = integrator((0.999, 0.5), leak=leak, bias=0.1, offset=torch.tensor([0.5, 0.25]))
    y = net.outputs(torch.zeros(1, 200 + settled, 2))[0, settled:]
    mean = y.mean(0)
    assert ((y - mean).abs().amax(0) > 0.1 * mean.abs()).tolist() == [True, False]
    found = there(given_readout(replace(net, task=Integration((0.999, 0.5))), normal(8, 60, 2)).offset)
    assert found == pytest.approx((0.0, float(mean[1])))


@torch.no_grad()
def test_a_given_readout_has_the_order_and_scale_of_the_integrals_and_no_constant():
    net = integrator(offset=torch.tensor([3.0, -4.0]))
    x = normal(8, 60, 2)
    own = given_readout(net, x)
    torch.testing.assert_close(own.fit.decays, torch.tensor([0.9, 0.7]).double(), atol=1e-6, rtol=0)
    assert own.scales == pytest.approx((2, -0.5), rel=1e-6)
    assert own.offset == pytest.approx((3, -4))
    assert own.task.scales == own.scales
    assert own.notes == ("outputs at rest: 3  -4, taken away from the outputs before they are judged",)
    torch.testing.assert_close(own.net.outputs(x), Integration((0.9, 0.7), (2.0, -0.5)).targets(x))
    torch.testing.assert_close(own.signals.flatten(0, 1).std(0), torch.ones(2).double())
    decoders, offset = there(net.decoders), torch.tensor([3.0, -4.0])
    turned = given_readout(replace(net, decoders=decoders[:, [1, 0]], offset=offset), x)
    assert turned.scales == pytest.approx((2, -0.5), rel=1e-6)
    assert turned.offset == pytest.approx((-4, 3))
    assert turned.notes[1] == "outputs taken in the order 2 1, in which they are integrals of the channels"
    torch.testing.assert_close(turned.net.outputs(x), Integration((0.9, 0.7), (2.0, -0.5)).targets(x))
    torch.testing.assert_close(turned.fit.gains.diagonal(), own.fit.gains.diagonal())
    silent = given_readout(replace(net, decoders=0 * decoders, offset=None), x)
    assert silent.task.scales == (1, 1)
    assert silent.notes == ()


@torch.no_grad()
def test_a_readout_is_fitted_to_the_neurons_that_are_held():
    net = replace(integrator(), decoders=None)
    x = normal(8, 60, 2)
    activity = net.run(x)
    found = fitted_readout(net, x, activity, activity[..., [1]], torch.tensor([1]))
    targets = Integration((0.9, 0.7)).targets(x).flatten(0, 1)
    wanted = np.linalg.lstsq(np.column_stack([np.ones(480), activity[..., 1].flatten()]), targets.numpy(), rcond=None)[
        0
    ]
    np.testing.assert_allclose(there(found.net.decoders), [[0, 0], wanted[1]], atol=1e-6)
    np.testing.assert_allclose(there(found.net.offset), wanted[0], atol=1e-6)
    assert (found.source, found.notes) == ("fitted", ())
    other = replace(net, decoders=torch.ones(2, 1))
    assert fitted_readout(other, x, activity, activity, torch.arange(2)).notes == (
        "its readout has 1 outputs for 2 channels: another was fitted",
    )


@torch.no_grad()
def test_constants_of_more_than_a_hundredth_are_noted():
    net, x = replace(integrator(), task=Integration((0.9, 0.7), (2.0, -0.5))), normal(8, 60, 2)
    size = net.outputs(x).square().mean((0, 1)).sqrt()
    for part, notes in ((0.009, 0), (0.011, 1)):
        offset = torch.tensor([0.0, part * float(size[1])])
        assert len(given_readout(replace(net, offset=offset), x).notes) == notes


@pytest.mark.parametrize(
    ("order", "signs", "size", "expected"),
    [
        ([0, 1], [1, 1], 1.0, ()),
        ([1, 0], [1, 1], 1.0, ("order 2 1", "signs + +", "error 0 %")),
        ([0, 1], [1, -1], 1.0, ("order 1 2", "signs + -", "error 0 %")),
        ([0, 1], [-1, -1], 1.09, ("order 1 2", "signs - -", "error 9 %")),
        ([0, 1], [-1, -1], 1.11, ()),  # not within 10 %
    ],
)
@torch.no_grad()
def test_outputs_in_another_order_or_of_another_sign_than_the_task_are_noted(order, signs, size, expected):
    decoders = size * torch.eye(2, dtype=torch.float64)[:, order] * torch.tensor(signs)
    net = integrator(decoders=decoders, task=Integration((0.9, 0.7)))
    notes = given_readout(net, normal(8, 60, 2)).notes
    assert len(notes) == bool(expected)
    for text in expected:
        assert text.replace("error 0 %", "error ") in notes[0]


def test_how_neurons_code_integrals_against_regressions_written_out():
    y, noise = 1 + normal(3, 40, 2), normal(3, 40, 6, seed=1)
    nu = y @ normal(2, 6, seed=2) * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) + 0.5 * noise + 3
    shape = principal(nu.flatten(0, 1))
    found = coding(nu, nu, y, shape)
    v, z = (each.flatten(0, 1).numpy() for each in (nu, y))
    v, spread = v - v.mean(0), z.std(0, ddof=1)
    z = z - z.mean(0)
    weights = np.linalg.lstsq(z, v, rcond=None)[0]
    assert found.linearity == pytest.approx(1 - ((v - z @ weights) ** 2).sum() / (v**2).sum())
    selectivity = weights.T * spread
    np.testing.assert_allclose(found.data["selectivity"], selectivity)
    squares = selectivity**2
    index = squares.sum(1) ** 2 / (squares**2).sum(1) - 1
    assert found.mixing == pytest.approx((squares.sum(1) * index).sum() / squares.sum())
    np.testing.assert_allclose(found.data["coordinates"], v @ shape.directions[:, :2].numpy())
    np.testing.assert_allclose(found.data["predicted"], z @ weights @ shape.directions[:, :2].numpy())
    assert found.populations is None
    assert math.isnan(coding(nu, nu, 0 * y, shape).linearity)


def test_populations_of_one_channel_whose_activity_is_never_negative():
    y = normal(2, 50, 1)
    h = torch.cat([y.clamp(min=0), y.clamp(max=0).abs(), y.abs(), 0 * y, 0.02 * y.clamp(min=0)], 2)
    shape = principal(h.flatten(0, 1))
    found = coding(h, h, y, shape)
    assert found.populations == {"+": 0.2, "-": 0.2, "shared": 0.2, "null": 0.4}
    assert found.mixing is None
    assert coding(h, h - 1e-9, y, shape).populations is None
    for one in (y.abs(), -y.abs(), y.clamp(min=0), y.clamp(max=0)):
        assert coding(h, h, one, shape).notes == ("populations: left out, the integral has one sign only",)


def recorded(trials, steps):
    """Six neurons with an integral in them, and noise."""
    x = normal(trials, steps, 1)
    z = Integration(0.9).targets(x)
    return Recording(activity=z @ normal(1, 6, seed=2) + 0.3 * normal(trials, steps, 6, seed=3) + 2, inputs=x)


@pytest.mark.parametrize(("trials", "steps"), [(4, 40), (1, 160)])
def test_a_recording_is_compared_with_inputs_of_another_trial_or_time(trials, steps):
    recording = recorded(trials, steps)
    found = examine_recording(recording)
    x = recording.inputs
    scores = principal(recording.activity.flatten(0, 1)).coordinates(recording.activity, 20)
    other = x[torch.arange(-1, trials - 1)] if trials > 1 else x[:, torch.arange(steps) - steps // 2]
    assert found.chance == pytest.approx(float(fit_integrals(scores, other).shares.max()))
    assert found.chance < 0.8 * max(found.shares)
    fit = fit_integrals(scores, x)
    assert found.decays == pytest.approx(fit.decays.tolist())
    assert (found.trials, found.duration, found.neurons, found.notes) == (trials, steps, 6, ())
    if trials > 1:
        h, z = recording.activity.numpy(), fit.integrals(x).numpy()
        seen, targets = np.concatenate(h[::2]), np.concatenate(z[::2])
        weights = np.linalg.lstsq(np.column_stack([np.ones(len(seen)), seen]), targets, rcond=None)[0]
        outputs = np.column_stack([np.ones(len(seen)), np.concatenate(h[1::2])]) @ weights
        truth = np.concatenate(z[1::2])
        assert found.errors == pytest.approx((((outputs - truth) ** 2).sum(0) / (truth**2).sum(0)) ** 0.5, rel=1e-5)


def test_initial_states_are_taken_for_real_where_they_explain_a_hundredth_more():
    x = normal(4, 20, 1)
    powers = 0.9 ** torch.arange(1, 21)[:, None]
    for size, from_rest in ((0.0, True), (0.2, True), (3.0, False)):
        signals = Integration(0.9).targets(x) + size * powers + 0.1 * normal(4, 20, 1, seed=1)
        both = [fit_integrals(signals, x, from_rest=way) for way in (True, False)]
        assert (both[1].explained <= both[0].explained + 0.01) == from_rest
        fit, found = fit_with_or_without_starts(signals, x)
        assert found == from_rest
        assert fit.explained == both[not from_rest].explained


def test_a_readout_is_judged_without_what_trials_started_with():
    z = Integration((0.9, 0.6)).targets(normal(4, 30, 2))
    h = z @ normal(2, 5, seed=1) + 7 + 0.1 * normal(4, 30, 5, seed=2)
    powers = np.array([0.9, 0.6]) ** np.arange(1, 31)[:, None]
    beyond = np.eye(30) - powers @ np.linalg.pinv(powers)
    seen, truth = (beyond @ (each - each.mean((0, 1))).numpy() for each in (h, z))
    outputs, targets = held_out(h, z, (0.9, 0.6))
    np.testing.assert_allclose(targets, truth[1::2], atol=1e-9)
    columns, wanted = np.concatenate(seen[::2]), np.concatenate(truth[::2])
    weights = np.linalg.lstsq(np.column_stack([np.ones(60), columns]), wanted, rcond=None)[0]
    np.testing.assert_allclose(outputs, weights[0] + seen[1::2] @ weights[1:], atol=1e-6)


def test_as_few_samples_as_coefficients_are_refused():
    x = normal(1, 11, 2)
    require_enough(Recording(activity=normal(1, 11, 3, seed=1), inputs=x))
    with pytest.raises(InputError) as caught:
        require_enough(Recording(activity=normal(1, 10, 3, seed=1), inputs=x[:, :10]))
    assert (caught.value.field, caught.value.value) == ("activity", 10)


def test_test_inputs_have_trials_times_and_something_in_each_channel():
    assert check_inputs(torch.ones(4, 2), 2).shape == (1, 4, 2)
    assert check_inputs(torch.ones(3, 4, 2), 2).shape == (3, 4, 2)
    nothing = torch.ones(4, 3)
    nothing[:, 1:] = 0
    with pytest.raises(InputError) as caught:
        check_inputs(nothing, 3)
    assert (caught.value.field, caught.value.value) == ("inputs", [2, 3])


def test_sequences_of_two_steps_have_no_memory():
    require_memory(torch.zeros(1, 3, 1))
    with pytest.raises(InputError) as caught:
        require_memory(torch.zeros(1, 2, 1))
    assert (caught.value.field, caught.value.value) == ("inputs", 2)


@torch.no_grad()
def test_what_noise_moves_outputs_by_is_known_of_a_linear_network():
    r"""$\sigma^2 \sum_{k<t} \gamma^{2k}$ for each neuron, t steps after inputs; beside the outputs' spread."""
    net = integrator(noise=0.1, offset=torch.tensor([0.5, 0.5]))
    x = normal(3000, 30, 2)
    found = noisy(net, x, {"bursts": {30: (0.25, 0.5), 60: (0.125, math.nan)}}, torch.tensor([0.9, 0.7]))
    sizes = [0.1 * sum(g ** (2 * k) for k in range(30)) ** 0.5 for g in (0.9, 0.7)]
    assert found.deviations == pytest.approx((2 * sizes[0], 0.5 * sizes[1]), rel=0.05)
    spread = replace(net, noise=0.0).outputs(x).flatten(0, 1).std(0)
    assert found.parts == pytest.approx([d / float(s) for d, s in zip(found.deviations, spread, strict=True)])
    assert (found.steps, found.noise, found.error) == (30, 0.1, 0.5)
    few = noisy(net, x[:3], {}, torch.tensor([0.9, 0.7]))  # repeated to 66 trials
    assert few.deviations == pytest.approx(found.deviations, rel=0.4)
    assert math.isnan(few.error)
    told = Noisy(noise=0.1, errors=found.errors, decays=(0.9,), steps=30, deviations=(1.0,), parts=(0.1234, math.nan))
    assert told.clause("none") == "noise of 0.1 moves its outputs by 12 % of their spread in 30 steps"
    assert told.clause("integrates").endswith("30 steps, relative error 50 % with it")
    assert "(12.34 %  – of their spread)" in str(told)


@torch.no_grad()
def test_errors_by_kind_and_duration_and_where_they_end_each_channel():
    """Outputs are twice and -0.5 times the integrals, and 0.9 and 0.7 their decays: relative to a task of others."""
    net, task = integrator(), Integration((0.9, 0.6), (2.05, -0.5))
    noise, step = 0.1 * normal(3, 20, 2), 0.01 * torch.ones(1, 20, 2).double()
    found = measure_accuracy(net, task, torch.tensor([False, False]), [("a", noise[:, :9]), ("a", noise), ("b", step)])
    curves = {}
    for kind, x in (("a", noise[:, :9]), ("a", noise), ("b", step)):
        off, targets = (net.outputs(x) - task.targets(x)).square(), task.targets(x).square()
        curves[kind] = (off.sum(0).cumsum(0) / targets.sum(0).cumsum(0)).sqrt()
        assert found.errors[kind][x.shape[1]] == pytest.approx(curves[kind][-1].tolist())
    torch.testing.assert_close(found.worst, torch.maximum(curves["a"], curves["b"]))
    assert found.largest == pytest.approx(float(task.targets(noise).abs().max()))
    within = {kind: int((torch.arange(1, 21) * (curve[:, 1] <= 0.1)).max()) for kind, curve in curves.items()}
    assert found.durations == (20, min(within.values()))
    assert found.limits == ("a", min(within, key=lambda kind: within[kind]))
    absent = measure_accuracy(net, task, torch.tensor([True, False]), [("a", noise)])
    assert math.isnan(absent.errors["a"][20][0])
    assert absent.errors["a"][20][1] == found.errors["a"][20][1]


@torch.no_grad()
def test_the_currents_and_activity_of_the_held_neurons_are_observed():
    net = replace(integrator((0.9, 0.7), form="current"), f=activation.make("tanh"))
    x = normal(5, 7, 2)
    states = net.run(x)
    one = torch.tensor([1])
    currents, activity, _, _ = observe(replace(net, decoders=None), x, one, False, "inputs")
    torch.testing.assert_close(activity, net.rate(states)[..., one])
    torch.testing.assert_close(currents, states[..., one])  # v - b, where b = 0
    for own_readout, source in ((True, "given"), (False, "fitted")):
        currents, activity, components, readout = observe(net, x, torch.arange(2), own_readout, "inputs")
        torch.testing.assert_close(currents, states)
        torch.testing.assert_close(activity, net.rate(states))
        assert readout.source == source
    torch.testing.assert_close(readout.signals, components.coordinates(states, 2))


@torch.no_grad()
@pytest.mark.parametrize("f", ["relu", "sigmoid", torch.sin])
def test_a_factored_network_is_observed_without_all_of_its_states(f):
    """The results are those of the same network with a full matrix."""
    net = VanillaRNN.of(design(Integration([0.9, 0.7]), 40).network)
    net = replace(net, f=activation.make(f), bias=normal(40) / 10)
    full = replace(net, recurrent=Dense(net.recurrent.matrix()))
    x, held = normal(5, 7, 2), torch.tensor([3, 0, 39])
    for found, expected in zip(
        observe(net, x, held, True, "inputs")[:2], observe(full, x, held, True, "inputs")[:2], strict=True
    ):
        torch.testing.assert_close(found, expected)
    reduced = latent(net)
    torch.testing.assert_close(visited(net, reduced, x), visited(full, reduced, x))


@pytest.mark.parametrize(("neurons", "trials"), [(10, 64), (2000, 32), (5000, 16)])
def test_as_many_trials_are_observed_as_can_be_held(neurons, trials, monkeypatch):
    lengths = []

    def observed(net, inputs, *rest):
        lengths.append(len(inputs))
        raise InterruptedError

    monkeypatch.setattr("rni.analysis.examination.HELD", 5000)
    monkeypatch.setattr("rni.analysis.examination.observe", observed)
    net = VanillaRNN.of(design(Integration(0.9), neurons).network)
    with pytest.raises(InterruptedError):
        examine(net, None, 0)
    assert lengths == [trials]
