"""What networks and recordings are said to do: a verdict that can be no."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.signal import lfilter
from told import mistyped, of, there
from torch import nn

from rni import Analysis, InputError, Integration, Network, Recording, VanillaRNN, analyze, design, vectors
from rni.analysis import Memory, fit_integrals, judge
from rni.pages.analysis import write_page
from rni.tasks.inputs import white_noise

TWO = Integration((0.95, 0.9))
ONE = Integration(0.9)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def arrays(w, u=None, activation="linear", **more):
    w = torch.as_tensor(w, dtype=torch.float64)
    return {
        "recurrent": w,
        "input_weights": torch.eye(len(w))[:, :1] if u is None else u,
        "activation": activation,
    } | more


def untrained(kind, readout=False):
    torch.manual_seed(0)
    rnn, linear = nn.RNN(2, 60, nonlinearity=kind), nn.Linear(60, 2)
    return (rnn, linear) if readout else rnn


def delay_line(**more):
    return arrays(torch.diag(torch.ones(29), -1), **more)


def echo_state():
    w = normal(100, 100)
    return arrays(0.95 * w / torch.linalg.eigvals(w).abs().max(), 0.1 * normal(100, 1, seed=3), "tanh")


def oscillator(**more):
    c, s = 0.99 * math.cos(0.3), 0.99 * math.sin(0.3)
    return arrays([[c, -s], [s, c]], **more)


def designed(integration=TWO, **more):
    """A perfect design; its readout may be another, or missing (None)."""
    return replace(VanillaRNN.of(design(integration, 60).network), **more)


def noise(decay):
    """Neurons that have their own noise, as slow as an integral, and nothing of the inputs."""
    h = torch.from_numpy(lfilter([1], [1, -decay], normal(20, 100, 30, seed=5).numpy(), axis=1))
    return Recording(h, normal(20, 100, 1))


ZOO = {
    "untrained relu": ("forgets", lambda: untrained("relu"), None),
    "untrained tanh": ("forgets", lambda: untrained("tanh"), None),
    "untrained relu, readout": ("forgets", lambda: untrained("relu", readout=True), None),
    "untrained tanh, readout": ("forgets", lambda: untrained("tanh", readout=True), None),
    "untrained tanh, readout and task": ("forgets", lambda: untrained("tanh", readout=True), TWO),
    "W = 0": ("forgets", lambda: arrays(torch.zeros(9, 9), normal(9, 1), "relu"), None),
    "W = 0, silent": ("forgets", lambda: Network(ONE, *vectors.independent(9, 1), torch.zeros(9, 9)), None),
    "delay line": ("none", delay_line, None),
    "delay line, end": ("none", lambda: delay_line(decoders=torch.eye(30)[:, -1:]), None),
    "delay line, sum": ("none", lambda: delay_line(decoders=torch.ones(30, 1)), None),
    "echo state": ("none", echo_state, None),
    "oscillator": ("oscillates", oscillator, None),
    "oscillator, readout": ("oscillates", lambda: oscillator(decoders=torch.eye(2)[:, :1]), None),
    "bistable": ("decides", lambda: arrays([[1.5]], activation="tanh"), None),
    "bistable, readout": ("decides", lambda: arrays([[1.5]], activation="tanh", decoders=torch.ones(1, 1)), None),
    "runs away": ("none", lambda: arrays([[1.2]], decoders=torch.ones(1, 1)), None),
    "runs away late": ("none", lambda: arrays(np.diag([0.9, 1.1]), torch.tensor([[0.9], [1e-12]])), ONE),
    "design": ("integrates", designed, None),
    "design, wrong task": ("none", designed, Integration((0.99, 0.5))),
    "design, neither readout nor task": ("integrates", lambda: designed(decoders=None, offset=None, task=None), None),
    "design, decay 1": ("integrates", lambda: designed(Integration(1.0)), None),
    "design, decay 0.1": ("integrates", lambda: designed(Integration(0.1)), None),
    "task of decay 0": ("integrates", lambda: arrays(np.eye(2) / 2, decoders=torch.eye(2)[:, 1:]), Integration(0.0)),
    "noise recorded": ("forgets", lambda: noise(0.0), None),
    "slow noise recorded": ("forgets", lambda: noise(0.9), None),
    "integrals recorded": (
        "integrates",
        lambda: Recording(TWO.targets(x := normal(9, 99, 2)) @ normal(2, 20), x),
        None,
    ),
}


@pytest.mark.parametrize("name", ZOO)
def test_the_verdict_is_what_the_network_does(name, capsys):
    kind, make, task = ZOO[name]
    analysis = analyze(make()) if task is None else analyze(make(), task=task)
    assert analysis.verdict.kind == kind, analysis.verdict
    assert json.loads(analysis.to_json())["verdict"] == {"kind": kind, "evidence": analysis.verdict.evidence}
    print(analysis)
    out = capsys.readouterr().out
    assert out.splitlines()[0] == str(analysis.verdict)
    assert "nan" not in out
    if kind == "forgets" and task is None:  # no number that would suit an integrator
        assert not analysis.linearity > 0.5
        assert not getattr(analysis, "durations", (0,))[0]


@pytest.mark.parametrize("name", ["W = 0", "W = 0, silent", "runs away"])
def test_the_page_shows_networks_that_do_not_integrate(name, tmp_path):
    write_page(analyze(ZOO[name][1]()), tmp_path / "page.html", name)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ">nan" not in page
    assert "<strong>" in page


def test_the_verdict_follows_from_the_numbers():
    good, bad = {"noise": {200: (0.01,), 2000: (0.02,)}}, {"noise": {200: (0.01,)}, "bursts": {200: (0.2,)}}
    memory = Memory(older=0.7, integrals=0.9)
    options = {"signals": "outputs", "fitted": True}
    assert judge(good, [0.9], memory, **options).kind == "integrates"
    assert judge(bad, [0.9], memory, **options).kind == "none"
    assert "20 % on bursts" in judge(bad, [0.9], memory, **options).evidence
    assert judge(good, [0.5], memory, **options).kind == "none"
    assert judge(good, [0.5], memory, signals="outputs", fitted=False).kind == "integrates"
    assert judge(good, [0.9], memory._replace(integrals=0.3), **options).kind == "none"
    assert judge(bad, [0.9], memory._replace(older=0.05), **options).kind == "forgets"
    assert judge(good | {"bursts": {200: (0.05,), 2000: (3.0,)}}, [0.9], memory, **options).kind == "none"


def test_durations_are_those_of_the_worst_kind_of_test():
    """A saturating readout is right for white noise, whose integrals are small, and wrong for bursts."""
    saturating = arrays([[0.9]], torch.tensor([[0.045]]), "tanh", decoders=torch.tensor([[20.0]]))
    analysis = of(Analysis, analyze(saturating, task=ONE))
    assert analysis.errors["white noise"][2000][0] < 0.1 < analysis.errors["bursts"][2000][0]
    assert analysis.durations[0] < 2000
    assert analysis.limits == ("bursts",)
    assert analysis.verdict.kind == "none"


def test_a_constant_beside_the_integrals_is_told_and_taken_away():
    analysis = analyze(designed(offset=torch.tensor([3.0, 0.0])))
    assert analysis.verdict.kind == "integrates"
    assert analysis.offset == pytest.approx((3, 0))
    assert any(note.startswith("outputs at rest: 3  0, taken away") for note in analysis.notes)


def test_a_drift_is_not_a_constant():
    """A bias that is integrated makes the outputs grow without inputs."""
    drifting = arrays([[1.0]], bias=torch.tensor([0.1]), decoders=torch.ones(1, 1))
    analysis = of(Analysis, analyze(drifting, task=Integration(1.0)))
    assert analysis.offset == (0,)
    assert analysis.verdict.kind == "none"


@pytest.mark.parametrize("signs", [(1.0, 1.0), (-1.0, 1.0)])
def test_outputs_in_another_order_are_noticed(signs):
    net = designed()
    net = replace(net, decoders=there(net.decoders)[:, [1, 0]] * torch.tensor(signs))
    known, unknown = analyze(net), analyze(replace(net, task=None))
    assert known.verdict.kind == "none"
    assert any(note.startswith("outputs in the order 2 1, signs ") for note in known.notes)
    assert unknown.verdict.kind == "integrates"
    assert unknown.fitted_scales == pytest.approx(signs[::-1], rel=1e-4)
    assert any(note.startswith("outputs taken in the order 2 1") for note in unknown.notes)


def test_what_is_fitted_is_judged_on_other_inputs():
    """300 neurons read out anything of 60 samples; on the next 60 nothing of it is left."""
    echo = arrays(0.05 * normal(300, 300) / 300**0.5, normal(300, 1, seed=3), "tanh")
    x = normal(2, 60, 1)
    analysis = of(Analysis, analyze(echo, task=Integration(0.95), inputs=x))
    assert analysis.errors["inputs"][60][0] > 0.3


@pytest.mark.parametrize("f", [lambda nu: nu, torch.relu])
def test_recordings_cut_from_the_middle_have_the_right_decays(f, generator):
    x = white_noise(20, 400, 2, generator, dtype=torch.float64) + 0.5
    h = f(Integration((0.99, 0.95)).targets(x) @ normal(2, 40) / 10)
    analysis = analyze(Recording(h[:, 300:], x[:, 300:]))
    assert analysis.decays == pytest.approx((0.99, 0.95), rel=2e-3)
    assert analysis.verdict.kind == "integrates"
    assert analysis.notes[0].startswith("trials do not start at rest")
    assert analyze(Recording(h[:, :100], x[:, :100])).notes == ()


def test_initial_states_are_found(generator):
    x = white_noise(20, 400, 2, generator, dtype=torch.float64) + 0.5
    z = Integration((0.99, 0.95)).targets(x)
    fit = fit_integrals(z[:, 300:] @ normal(2, 5), x[:, 300:], from_rest=False)
    torch.testing.assert_close(fit.initial, z[:, 299], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(fit.integrals(x[:, 300:]), z[:, 300:], rtol=1e-5, atol=1e-5)


def test_inputs_of_one_sign_leave_out_the_populations_only(generator):
    x = white_noise(9, 60, 1, generator, dtype=torch.float64).abs()
    analysis = analyze(Recording(ONE.targets(x) @ normal(1, 9).abs(), x))
    assert analysis.decays == pytest.approx((0.9,))
    assert analysis.populations is None
    assert analysis.notes == ("populations: left out, the integral has one sign only",)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_do_not_matter(unit, generator):
    x = white_noise(9, 60, 1, generator, dtype=torch.float64)
    h = ONE.targets(x) @ normal(1, 9)
    for recording in (Recording(unit * h, x), Recording(h, unit * x)):
        analysis = analyze(recording)
        assert analysis.decays == pytest.approx((0.9,))
        assert analysis.verdict.kind == "integrates"
    assert analyze(designed(ONE), inputs=unit * x).verdict.kind == "integrates"
    single = {
        key: value.float() if isinstance(value, torch.Tensor) else value for key, value in arrays([[0.9]]).items()
    }
    assert math.isfinite(of(Analysis, analyze(single, task=ONE, inputs=unit * x)).ratio)


def test_silent_neurons_and_a_single_one_are_no_obstacle(generator):
    x = white_noise(9, 60, 1, generator, dtype=torch.float64)
    z = ONE.targets(x)
    for h in (z, torch.cat([z, torch.zeros_like(z)], 2)):
        assert analyze(Recording(h, x)).verdict.kind == "integrates"


@pytest.mark.parametrize(
    ("call", "field", "value"),
    [
        (lambda: analyze(designed(), inputs=torch.zeros(3, 9, 2)), "inputs", [1, 2]),  # channels that are 0 throughout
        (lambda: analyze(designed(), inputs=normal(0, 9, 2)), "inputs", (0, 9, 2)),
        (lambda: analyze(designed(), inputs=normal(9, 1, 2)), "inputs", None),  # integrals are the inputs
        (lambda: analyze(untrained("tanh"), inputs=torch.ones(4, 9, 2)), "inputs", 1),  # rank
        (lambda: analyze(untrained("tanh"), inputs=normal(9, 2, 2)), "inputs", 2),  # steps
        (lambda: analyze(designed(), inputs=mistyped([["a"]])), "inputs", "list"),
        (lambda: analyze(Recording(normal(8, 1, 3), normal(8, 1, 1))), "inputs", 1),
        (lambda: analyze(Recording(normal(8, 9, 3), torch.ones(8, 9, 1))), "inputs", 0),  # rank of the changes
        (lambda: analyze(Recording(normal(8, 9, 3), torch.zeros(8, 9, 1))), "inputs", 0),
        (lambda: analyze(Recording(normal(8, 9, 3), normal(8, 1, 1).expand(8, 9, 1))), "inputs", 0),
        (lambda: analyze(arrays([[10.0]])), "network", None),  # runs away
    ],
)
def test_samples_without_information_are_refused(call, field, value):
    with pytest.raises(InputError) as caught:
        call()
    assert (caught.value.field, caught.value.value) == (field, value)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: analyze(designed(), inputs=1e200 * normal(3, 9, 2)), "inputs"),
        (lambda: analyze(Recording(1e160 * normal(8, 9, 3), normal(8, 9, 1))), "activity"),
    ],
)
def test_numbers_of_which_squares_overflow_are_refused(call, field):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.field == field
    assert float(there(caught.value.value)) > 1e100
