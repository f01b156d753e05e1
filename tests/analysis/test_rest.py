"""Where networks come to rest, against the same written out."""

import pytest
import torch
from told import of, there

from rni import Analysis, VanillaRNN, analyze
from rni import activations as activation
from rni.analysis.rest import follow, from_rest
from rni.weights import Dense


def linear(w, bias, leak: torch.Tensor | float = 1.0, initial=None):
    """Of the multipliers w, each neuron on its own."""
    w, bias = (torch.as_tensor(each, dtype=torch.float64) for each in (w, bias))
    start = None if initial is None else torch.as_tensor(initial, dtype=torch.float64)
    recurrent = Dense(torch.diag(w))
    return VanillaRNN(recurrent, torch.ones(len(w), 1), activation.make("linear"), bias, leak=leak, initial=start)


def test_a_leaky_network_with_biases_starts_where_it_rests():
    net = linear([0.5, -0.5], [1.0, 3.0], leak=0.5)
    rested = from_rest(net)
    torch.testing.assert_close(rested.initial, torch.tensor([2.0, 2.0]).double())  # b / (1 - w)
    assert rested.notes == ("tested from where it rests without inputs, to which it goes from its initial state",)
    assert from_rest(rested) is rested


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_analyze_takes_one_leak_for_each_neuron_and_no_initial_state(bias):
    """Neuron i, on its own, rests at b / (1 - w) whatever its leak, and decays as 1 - leak (1 - w)."""
    leak = torch.tensor([0.5, 0.25, 1.0], dtype=torch.float64)
    net = linear([0.98, 0.96, 0.99], [bias] * 3, leak=leak)
    rested = from_rest(net)
    if bias:
        torch.testing.assert_close(there(rested.initial), torch.tensor([50.0, 25.0, 100.0]).double())
    else:
        assert rested is net
    assert from_rest(linear([0.5], [1.0], leak=torch.ones(1))).initial is None  # no neuron is leaky
    found = of(Analysis, analyze(net))
    assert found.leak == (0.5, 0.25, 1.0)
    assert sorted(mode.multiplier for mode in found.dynamics.fixed_points.points[0].modes) == pytest.approx([0.99] * 3)


def test_a_network_without_leak_biases_or_initial_state_is_taken_as_it_is():
    for net in (linear([0.5], [1.0]), linear([0.5], [0.0], leak=0.5)):
        assert from_rest(net) is net
    started = linear([0.0], [1.0], initial=[3.0])  # at rest after one step
    torch.testing.assert_close(from_rest(started).initial, torch.ones(1).double())


@pytest.mark.parametrize(("left", "rests"), [(0.0095, True), (0.0105, False)])
def test_what_rests_has_at_most_a_hundredth_of_the_way_to_go_after_half_of_2000_steps(left, rests):
    multiplier = left ** (1 / 1001)
    for net in (linear([multiplier], [0.0], initial=[1.0]), linear([multiplier], [0.0], initial=[-1e6])):
        found = (multiplier**1001 - multiplier**2000) / (1 - multiplier**2000)
        assert (found <= 0.01) == rests
        assert (from_rest(net) is not net) == rests


def test_a_way_that_is_rounding_beside_the_state_is_none():
    still = 1e4
    for away, moves in ((1e-6, False), (1.0, True)):
        net = linear([0.5], [still / 2], initial=[still + away])
        assert (from_rest(net) is not net) == moves
    nothing = linear([0.5], [0.0], initial=[0.0])
    assert from_rest(nothing) is nothing


@torch.no_grad()
def test_a_state_is_followed_until_it_stays_the_same_or_for_as_long_as_is_asked():
    net = linear([0.5], [0.0], initial=[1.0])
    for most in (1, 2, 7):
        state, steps = follow(net, most)
        assert state.tolist() == [[0.5**most]]
        assert steps == most
    state, steps = follow(linear([0.0], [3.0]), 9)
    assert (state.tolist(), steps) == ([[3.0]], 2)
    assert follow(linear([0.5], [1.0], leak=0.5), 2)[0].tolist() == [[0.875]]  # 0, 1/2, 7/8
