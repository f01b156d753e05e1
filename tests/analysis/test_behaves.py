"""From what becomes of states to a word for it, at the limits between words."""

import math
import re

import numpy as np
import pytest
import torch

import rni
from rni.analysis import Memory, analyze, judge
from rni.analysis.accuracy import MANY, sequence_counts
from rni.analysis.behaviour import Dynamics
from rni.analysis.flow import Flow
from rni.analysis.stationary import FixedPoints, Mode, Point
from rni.analysis.verdict import behaves, percent, time_constant

NONE = np.zeros((0, 1))


def states(*modes, dt=None, **more):
    """Of a network with a point for each of these (multiplier, time constant, period); states are gone by default."""
    points = tuple(Point("attractor", 0.0, 1.0, (Mode(mode[0], mode[1], mode[2], (), ()),)) for mode in modes)
    fixed = FixedPoints(
        points=points,
        found=len(points),
        starts=9,
        unconverged=0,
        spread=1.0,
        dt=dt,
        states=NONE,
        latent=NONE,
        eigenvalues=NONE,
    )
    still = {
        "own_time": 1.0,
        "coordinates": 1,
        "fixed_points": fixed,
        "attractors": (),
        "graded": False,
        "slow": 0,
        "start_correlation": 1.0,
    }
    still |= {"retained": (0.0, 0.0), "drift": 0.0, "leaves": 0.0, "grows": 0.0, "moving": 0.0, "chaotic": False}
    still |= {"lyapunov": None, "period": None, "feedforward": False, "random": False}
    return Dynamics(**still | more, flow=Flow(1.0, NONE, NONE, NONE, NONE))


GONE = "without inputs its states return to one point"


@pytest.mark.parametrize(
    ("dynamics", "kind", "words"),
    [
        (states(leaves=0.25, grows=0.25), "none", "runs away without inputs"),
        (states(leaves=0.25, grows=0.2), "forgets", GONE),
        (
            states(chaotic=True, moving=1.0, lyapunov=0.25),
            "none",
            "chaotic, neighbouring states part e-fold in 4 steps",
        ),
        (states(moving=0.5, lyapunov=0.0), "none", "without a period"),
        (states(moving=0.5, period=7.0), "oscillates", "goes on without inputs, period 7 steps,"),
        (states((1.1, -9, 7.0), moving=0.5, period=7.0), "oscillates", "around a point with multipliers 1.1 (9 steps"),
        (states(moving=0.4, period=7.0), "forgets", GONE),
        (states((0.99, 50.0, 20.0)), "oscillates", "rings when inputs end, period 20 steps, and dies away in 50 steps"),
        (states((0.99, 49.9, 20.0)), "forgets", GONE),
        (states((0.99, 99.9, 20.0), own_time=2.0), "forgets", GONE),
        (states((0.99, 60.0, 60.0)), "forgets", GONE),
        (states(graded=True, slow=0), "remembers", "many points"),
        (states(graded=True, slow=1, drift=0.01), "remembers", "drift at most 1 % of their range"),
        (states(graded=True, slow=1), "remembers", "a line of slow points"),
        (states(graded=True, slow=2), "remembers", "a plane of slow points"),
        (states(graded=True, slow=3, retained=(1.0, 0.5)), "remembers", "in 3 dimensions, multipliers ; 50 % of the"),
        (states(graded=True, own_time=2.0), "remembers", "is left after 100 steps"),
        (states(attractors=(0.5, 0.25)), "decides", "2 attractors, where 75 % of the visited states end"),
        (
            states((0.9, 9.5, math.inf), (1.5, -2.5, math.inf), (1.2, -5.5, math.inf), attractors=(0.5, 0.5)),
            "decides",
            "a point that they leave, multiplier 1.5 (2.5 steps)",
        ),
        (states((1.0, math.inf, math.inf), attractors=(0.5, 0.5)), "decides", "100 % of the visited states end"),
        (states(attractors=(0.5,)), "forgets", GONE),
        (states(retained=(0.09, 0.049)), "forgets", "9 % left after 10 steps"),
        (states(retained=(0.09, 0.0), own_time=3.0), "forgets", "9 % left after 30 steps"),
        (states(retained=(0.1, 0.049)), "none", GONE),
        (states(retained=(0.1, 0.05)), "none", "without inputs 5 % of the spread of its states is left after 50 steps"),
        (states(feedforward=True), "forgets", "; feed-forward, W has no loops"),
        (states(random=True), "forgets", "; W is like a random matrix, by its singular values"),
        (states(moving=0.5, period=7.0, dt=0.5), "oscillates", "period 7 steps, 3.5 units of time"),
    ],
)
def test_each_word_begins_where_it_should(dynamics, kind, words):
    found = behaves(dynamics)
    assert found.kind == kind
    assert words in found.evidence
    if "leave, multiplier" not in words:
        assert "a point that they leave" not in found.evidence


@pytest.mark.parametrize(
    ("error", "dynamics", "fitted", "kind"),
    [
        (0.01, states(attractors=(0.5, 0.5)), True, "integrates"),
        (0.2, states(attractors=(0.5, 0.5)), False, "decides"),
        (0.2, states(chaotic=True, lyapunov=1.0), False, "none"),
        (0.2, states(graded=True), True, "remembers"),
        (0.2, states(graded=True), False, "none"),
        (0.2, states(own_time=1.0), True, "none"),
        (0.2, states(own_time=1.01), True, "forgets"),
        (0.2, states(own_time=2.0), False, "none"),
    ],
)
def test_what_states_do_is_a_verdict_only_if_no_task_failed(error, dynamics, fitted, kind):
    options = {"signals": "outputs", "fitted": fitted}
    errors, held = {"bursts": {200: (error,)}}, Memory(older=0.7, integrals=0.9)
    alone = judge(errors, [0.95], held, **options)
    verdict = judge(errors, [0.95], held, dynamics=dynamics, **options)
    assert verdict.kind == kind
    replaced = kind in ("decides", "remembers") or dynamics.chaotic
    assert (alone.evidence in verdict.evidence) != replaced
    runs_away = judge(errors, [0.95], held, growth=1e4, dynamics=dynamics, **options)
    assert runs_away == judge(errors, [0.95], held, growth=1e4, **options)
    assert runs_away.kind == "none"


def test_a_chaotic_network_that_also_runs_away_keeps_its_own_verdict():
    errors, held = {"bursts": {200: (0.2,)}}, Memory(older=0.7, integrals=0.9)
    alone = judge(errors, [0.95], held, signals="outputs", fitted=True)
    found = states(chaotic=True, lyapunov=1.0, leaves=0.5)
    verdict = judge(errors, [0.95], held, signals="outputs", fitted=True, dynamics=found)
    assert found.runs_away
    assert verdict.evidence.startswith(alone.evidence)


NOISE, BURSTS = {200: (0.01, 0.02), 2000: (0.03, 0.04)}, {200: (0.05, 0.1), 2000: (0.06, 0.07)}
KEEPS = Memory(older=0.7, integrals=0.9)


@pytest.mark.parametrize(
    ("errors", "memory", "options", "kind", "words"),
    [
        (
            {"bursts": BURSTS},
            KEEPS,
            {},
            "integrates",
            "relative error 7 % at most, on bursts of 2000 steps; effect",
        ),
        ({"noise": NOISE, "bursts": BURSTS}, KEEPS, {}, "integrates", "7 % at most, on noise and bursts of 2000"),
        ({"noise": BURSTS, "bursts": NOISE}, KEEPS, {}, "integrates", "7 % at most, on noise and bursts of 2000"),
        ({"noise": NOISE}, KEEPS, {"linearity": 0.5, "largest": 12.0}, "integrates", "50 % linear in them, int"),
        ({"noise": {200: (0.1,)}}, KEEPS, {}, "integrates", "relative error 10 % at most, on noise of 200 steps"),
        (
            {"noise": {200: (0.11,)}},
            KEEPS,
            {},
            "none",
            "relative error 11 % on noise of 200 steps; effective decays",
        ),
        (
            {"a": NOISE, "b": {200: (0.2,), 2000: (0.0,)}},
            KEEPS,
            {},
            "none",
            "relative error 20 % on b of 200 steps",
        ),
        (
            {"a": {200: (0.1,), 2000: (0.11,)}},
            KEEPS,
            {},
            "integrates",
            "within 10 % for 200 steps; relative error 11",
        ),
        ({"a": {200: (0.1,), 2000: (1.0,)}}, KEEPS, {"durations": (7, 5)}, "integrates", "10 % for 5 steps; rel"),
        (
            {"a": {200: (0.1,), 2000: (1.1,)}},
            KEEPS,
            {},
            "none",
            "integrates only to within 10 % for 200 steps; rel",
        ),
        ({"a": NOISE}, KEEPS, {"growth": 1e3}, "integrates", ""),
        ({"a": NOISE}, KEEPS, {"growth": 1.1e3}, "none", "runs away, its outputs grow 1.1e+03-fold within 200 st"),
        ({"a": NOISE}, KEEPS, {"silent": True}, "integrates", ""),
        ({"a": {9: (0.2,)}}, KEEPS, {"silent": True}, "forgets", "silent"),
        ({"a": {9: (0.2,)}}, Memory(0.1, 0.9), {}, "none", "relative error 20 % on a of 9 steps"),
        (
            {"a": {9: (0.2,)}},
            Memory(0.09, 0.9),
            {"recent": 4},
            "forgets",
            "9 % of what the inputs leave in its outputs is",
        ),
        ({"a": {9: (0.2,)}}, Memory(0.09, 0.9), {"recent": 4}, "forgets", "older than 4 steps"),
        ({"a": {9: (0.2,)}}, Memory(1e-3, 0.9), {}, "forgets", "nothing of what the inputs leave"),
        ({"a": {9: (0.2,)}}, Memory(2e-3, 0.9), {}, "forgets", "0.2 % of what the inputs leave"),
        ({"a": NOISE}, Memory(0.7, 0.5), {"fitted": True}, "integrates", ""),
        ({"a": NOISE}, Memory(0.7, 0.4), {"fitted": True}, "none", "but integrals are only 40 % of what is remembered"),
        ({"a": NOISE}, Memory(0.7, 0.4), {}, "integrates", ""),
        ({"a": {9: (0.2,)}}, Memory(0.7, 0.4), {}, "none", "relative error 20 %"),
        ({"a": {9: (0.2,)}}, Memory(0.7, 0.5), {"fitted": True}, "none", "relative error 20 %"),
        ({"a": NOISE}, KEEPS, {"fitted": True, "recent": 9}, "integrates", ""),
        (
            {"a": NOISE},
            KEEPS,
            {"fitted": True, "recent": 10},
            "none",
            "70 % of what the inputs leave in its outputs",
        ),
        ({"a": NOISE}, KEEPS, {"fitted": True, "recent": 10}, "none", "there is no integral of channel 2"),
        ({"a": NOISE}, KEEPS, {"fitted": True, "alone": 6.49}, "integrates", ""),
        ({"a": NOISE}, KEEPS, {"fitted": True, "alone": 6.51}, "none", "19.5 steps, 2.99 times"),
        ({"a": NOISE}, KEEPS, {"alone": 6.51}, "integrates", ""),
        ({"a": NOISE}, Memory(0.7, 0.85), {"fitted": True, "signals": "currents"}, "integrates", ""),
        ({"a": NOISE}, Memory(0.7, 0.84), {"fitted": True, "signals": "currents"}, "none", "84 %"),
        ({"a": NOISE}, Memory(0.7, 0.4), {"signals": "currents"}, "integrates", ""),
        ({"a": NOISE}, KEEPS, {"fitted": True, "recent": 20}, "none", "there is no integral of channel 1, 2"),
    ],
)
def test_each_verdict_begins_where_it_should(errors, memory, options, kind, words):
    """Effective decays 0.95 and 0.9, with time constants of 19.5 and 9.5 steps."""
    found = judge(errors, [0.95, 0.9], memory, **{"signals": "outputs", "fitted": False} | options)
    assert found.kind == kind
    assert words in found.evidence
    if kind == "integrates":
        assert "effective decays 0.95  0.9" in found.evidence


def test_time_constants_of_decays():
    assert time_constant(1) == math.inf
    assert time_constant(0) == time_constant(-0.5) == 0
    assert time_constant(math.exp(-0.1)) == pytest.approx(10)


def test_parts_as_people_read_them():
    assert [percent(part) for part in (math.nan, 0.0, 1e-7, -1e-7, 1e-6, 0.1234567, 2.0)] == [
        "–", "0 %", "1e-07", "-1e-07", "0.0001 %", "12.35 %", "200 %"
    ]  # fmt: skip


@pytest.mark.parametrize(("held", "many", "counts"), [(20, 20, []), (19, 20, ["19"]), (19, 19, ["19", "121", "15"])])
def test_notes_say_what_is_kept_of_a_large_network_and_how_much_less_it_is_tested(held, many, counts, monkeypatch):
    """A network of 20 neurons, with lower limits."""
    monkeypatch.setattr("rni.analysis.examination.HELD", held)
    for module in ("examination", "accuracy"):
        monkeypatch.setattr(f"rni.analysis.{module}.MANY", many)
    net = rni.design(rni.Integration(0.9), neurons=20).network
    assert [number for note in analyze(net).notes for number in re.findall(r"\b(19|121|15)\b", note)] == counts
    x = rni.inputs.white_noise(4, 20, 1)
    assert len(analyze(net, inputs=x).notes) == min(len(counts), 1)


def test_a_network_without_task_and_inputs_of_its_own_has_a_note():
    rnn = torch.nn.RNN(1, 20)
    given = analyze(rnn).notes
    assert len(given) == len(analyze(rnn, task=rni.Integration(0.9)).notes) + 1
    assert len(given) == len(analyze(rnn, inputs=rni.inputs.white_noise(4, 20, 1)).notes) + 1


def test_large_networks_are_tested_on_fewer_sequences():
    counts = [sequence_counts(n) for n in (100, MANY, 2 * MANY, 4 * MANY, 1_000_000)]
    assert [count[200] for count in counts] == [128, 128, 64, 32, 32]
    assert [count[2000] for count in counts] == [16, 16, 8, 4, 4]
