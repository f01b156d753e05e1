"""The verdicts on Dale's law and on transfer can fail."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from told import mistyped
from violations import altered, failed

from rni import run
from rni.losses import BatchLoss
from rni.papers import Profile, Results
from rni.papers.fanthomme2021.figures import fig12, fig19
from rni.runs.execution import Result

TINY = Profile("tiny", neurons=100, quick=True)
UNLIKE_THE_PAPER = {"outliers", "truncated"}  # weaker modes stand apart too, and take part in integration


class Short(dict):
    """Runs on demand, with few steps."""

    def __missing__(self, specification):
        steps = 500 if isinstance(specification.training.loss, BatchLoss) else 250
        training = replace(specification.training, steps=steps)
        self[specification] = run(replace(specification, training=training))
        return self[specification]


@pytest.fixture(scope="module")
def runs():
    return Short()


@pytest.fixture(scope="module")
def dale(runs):
    return fig12.measure(runs, TINY)


def test_networks_trained_under_dales_law_have_a_mode_for_the_signs(dale):
    assert failed(fig12, dale) - UNLIKE_THE_PAPER <= {"integrates", "small-start"}  # which takes longer


def all_altered(runs, change):
    """The runs with each of the figure's networks changed."""
    return dict(runs) | {specification: altered(runs[specification], change) for specification in fig12.main(TINY)}


def unlawful(net):
    net.recurrent.value[5, 7] = -1e-6 * net.recurrent.signs[7]


def shuffle_rows(net):
    net.recurrent.value.copy_(net.recurrent.value[torch.randperm(net.neurons)])


def shuffle_columns(net):
    net.recurrent.value.copy_(net.recurrent.value[:, torch.randperm(net.neurons)])


def one_mode(net):
    """Signs alone: no integrals."""
    net.recurrent.value.copy_(torch.ones(net.neurons, 1) * net.recurrent.signs / net.neurons)


def positive_decoders(net):
    net.decoders.abs_()


def free(net):
    noise = torch.randn(net.neurons, net.neurons, generator=torch.Generator().manual_seed(0))
    net.recurrent.value.copy_(noise / net.neurons**0.5)


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (unlawful, {"law"}),
        (shuffle_rows, {"integrates", "truncated"}),
        (shuffle_columns, {"right-vector", "law", "integrates"}),
        (one_mode, {"additional-mode", "outliers", "rectified", "integrates"}),
        (positive_decoders, {"orthogonal", "integrates"}),
        (free, {"additional-mode", "left-vector", "right-vector", "law", "integrates", "rectified", "modes"}),
    ],
)
def test_a_network_that_violates_a_claim_on_dales_law_is_not_reproduced(runs, dale, change, broken):
    torch.manual_seed(0)
    assert broken <= failed(fig12, fig12.measure(all_altered(runs, change), TINY))


def biased(vectors):
    return np.abs(vectors)


@pytest.mark.parametrize(
    ("key", "change", "broken"),
    [
        ("outliers", lambda v: v * 0 + 5, "outliers"),
        ("large", lambda v: v * 0 + 2, "additional-mode"),
        ("free_large", lambda v: 3, "additional-mode"),
        ("one_sign", lambda v: v * 0 + 0.9, "left-vector"),
        ("mode", lambda v: v * 0 + 1, "left-vector"),
        ("agreement", lambda v: v * 0 + 0.9, "right-vector"),
        ("cosine", lambda v: v * 0 + 0.5, "orthogonal"),
        ("overlap", lambda v: v * 0 + 0.5, "orthogonal"),
        ("share", lambda v: v * 0 + 0.7, "modes"),
        ("small_large", lambda v: 2, "small-start"),
        ("small_one_sign", lambda v: 0.9, "small-start"),
        ("small_error", lambda v: 0.3, "small-start"),
        ("left", biased, "following-signs"),
        ("right", biased, "following-signs"),
        ("broken", lambda v: v * 0 + 1, "law"),
        ("error", lambda v: v * 0 + 0.3, "integrates"),
        ("cut_error", lambda v: v + 0.2 * (np.arange(len(v)) == 0), "truncated"),
        ("values", lambda v: v * 0 + 1, "rectified"),
        ("excitatory_error_4", lambda v: 0.0, "all-excitatory"),
        ("excitatory_error_40", lambda v: 0.0, "all-excitatory"),
    ],
)
def test_each_claim_on_dales_law_can_fail_alone(dale, key, change, broken):
    good = dale | {
        "outliers": dale["outliers"] * 0 + 3,
        "other_outliers": dale["other_settings"][:, 0] + 1,
        "error": dale["error"] * 0 + 0.1,
        "cut_error": dale["error"] * 0 + 0.1,
        "small_error": 0.1,
    }
    assert failed(fig12, good) == set()
    assert failed(fig12, good | {key: change(good[key])}) == {broken}


def test_the_figure_of_dales_law_is_drawn(dale):
    assert len(fig12.draw(dale).axes) == 6


def untrained(specification):
    network = replace(specification.network, initial_radius=1.0)
    return replace(specification, network=network).build()


@pytest.fixture(scope="module", autouse=True)
def fewer_sequences():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig19, "SEQUENCES", ((128, 40), (64, 40), (8, 400)))
        yield


@pytest.fixture(scope="module")
def transfer(runs: Results):
    """With the network of the proxy loss, which trains sooner, for those of the batch loss too."""
    proxy = runs[fig19.specification(TINY, "proxy")]
    return fig19.measure(mistyped(dict.fromkeys(fig19.runs(TINY), proxy)), TINY)


def test_a_head_on_a_small_integrator_decides_by_context(transfer):
    assert transfer["accuracy"].min() > 0.85
    assert transfer["integrals_accuracy"].max() < 0.76  # sign(y_0 + y_1) is right for three quarters
    assert transfer["random_accuracy"].max() < 0.75
    assert transfer["furthest_share"] < 0.1
    assert len(fig19.draw(transfer).axes) == 4


def test_a_network_that_does_not_integrate_supports_no_decision():
    random = {each: Result(each, untrained(each), []) for each in fig19.runs(TINY)}
    assert failed(fig19, fig19.measure(mistyped(random), TINY)) >= {"context", "mixed-activity", "boundaries"}


@pytest.mark.parametrize(
    ("key", "value", "broken"),
    [
        ("accuracy", np.array([[0.97, 0.94], [0.97, 0.94]]), "context"),
        ("furthest_share", 0.2, "boundaries"),
        ("currents_accuracy", np.array([0.9, 0.9]), "mixed-activity"),
        ("integrals_accuracy", np.array([0.9, 0.9]), "mixed-activity"),
        ("random_accuracy", np.array([0.9, 0.9]), "mixed-activity"),
        ("proxy_accuracy", np.array([0.9, 0.9]), "any-training"),
        ("descended_accuracy", np.array([[0.9, 0.9], [0.9, 0.9]]), "descent"),
    ],
)
def test_each_claim_on_transfer_can_fail_alone(transfer, key, value, broken):
    good = transfer | {"accuracy": np.full((2, 2), 0.96), "proxy_accuracy": np.array([0.95, 0.95])}
    good |= {"currents_accuracy": np.array([0.75, 0.75]), "descended_accuracy": np.full((2, 2), 0.95)}
    assert failed(fig19, good) == set()
    assert failed(fig19, good | {key: value}) == {broken}
