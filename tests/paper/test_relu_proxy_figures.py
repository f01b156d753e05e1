"""The verdicts on the minima of the ReLU proxy loss hold for small networks, and can fail."""

import numpy as np
import pytest
import torch
from told import there

from rni import run
from rni.papers import Profile
from rni.papers.fanthomme2021.figures import fig16, fig17, fig18
from rni.papers.fanthomme2021.trainings import proxy_descent
from rni.runs.execution import Result
from rni.weights import Dense, LowRank

TINY = Profile("tiny", neurons=150, quick=True)


class Trained(dict):
    """Runs by key, computed when they are asked for."""

    def __getitem__(self, specification):
        key = specification.key()
        if key not in self:
            self[key] = run(specification)
        return super().__getitem__(key)


@pytest.fixture(scope="module")
def runs():
    return Trained()


@pytest.fixture(scope="module")
def measured(runs):
    return {figure: figure.measure(runs, TINY) for figure in (fig16, fig17, fig18)}


@pytest.fixture(scope="module", autouse=True)
def few_scales():
    """One network for each end of the range and for the scale between them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig17, "SEEDS", 1)
        for figure in (fig16, fig17):
            patch.setattr(figure, "proxy_scales", lambda profile: (0.1, 1.0, 10.0))
        yield


def verdicts(figure, measured):
    return {claim.id: claim.verdict for claim in figure.claims(measured)}


def broken(figure, measured):
    return {name for name, verdict in verdicts(figure, measured).items() if verdict == "not reproduced"}


def test_small_networks_are_as_the_paper_says(measured):
    found = verdicts(fig17, measured[fig17])
    assert found.pop("fig17.no-error-bars") == "not tested in this profile"
    assert set(found.values()) == {"reproduced"}
    assert set(verdicts(fig18, measured[fig18]).values()) == {"reproduced"}
    found = verdicts(fig16, measured[fig16])
    assert found.pop("fig16.larger") == "not tested in this profile"
    assert set(found.values()) == {"reproduced"}


def times(factor):
    return lambda values: values * factor


def last_scale_fastest(values):
    return np.concatenate([values[:, :-1], 100 * values[:, -1:]], axis=1)


@pytest.mark.parametrize(
    ("figure", "name", "change", "claims"),
    [
        (fig16, "lanczos_error", lambda error: 1e-3, {"fig16.lanczos"}),
        (fig16, "growth", lambda growth: growth[..., ::-1], {"fig16.limit"}),
        (fig16, "growth", lambda growth: np.ones_like(growth), {"fig16.limit"}),
        (fig16, "smallest", last_scale_fastest, {"fig16.preferred-scale"}),
        (fig16, "smallest", np.ones_like, {"fig16.preferred-scale"}),
        (fig17, "sigma", times(1.05), {"fig17.tight"}),
        (fig17, "sigma", times(0.98), {"fig17.bound"}),
        (fig17, "sigma", lambda sigma: sigma[[0, 0, 2]], {"fig17.near-one"}),
        (fig17, "conditions", times(100), {"fig17.conditions"}),
        (fig17, "second", times(100), {"fig17.rank-one"}),
        (fig17, "left_d", times(0.8), {"fig17.left"}),
        (fig17, "right_e", times(0.9), {"fig17.right-encoder", "fig17.turn"}),
        (fig17, "right_d", times(0.9), {"fig17.turn"}),
        (fig18, "agreement", lambda agreement: agreement[::-1], {"fig18.ordered", "fig18.random"}),
        (fig18, "norm", lambda norm: norm[::-1], {"fig18.norm"}),
    ],
)
def test_altered_measurements_break_the_claim_that_rests_on_them(measured, figure, name, change, claims):
    altered = measured[figure] | {name: change(measured[figure][name])}
    assert broken(figure, altered) == claims


def test_realizations_are_compared_where_there_are_several(measured):
    names = ("sigma", "second", "conditions", "left_d", "left_e", "right_e", "right_d")
    twice = {name: np.repeat(measured[fig17][name], 2, axis=1) for name in names}
    assert verdicts(fig17, measured[fig17] | twice)["fig17.no-error-bars"] == "reproduced"
    twice["right_d"][0, 1] -= 0.1
    assert verdicts(fig17, measured[fig17] | twice)["fig17.no-error-bars"] == "not reproduced"


def test_sizes_are_compared_over_several_networks_only(measured):
    twice = {name: np.repeat(measured[fig16][name], 2, axis=2) for name in ("largest", "smallest")}
    twice["largest"][0] = twice["largest"][1]
    assert verdicts(fig16, measured[fig16] | twice)["fig16.larger"] == "reproduced"
    twice["largest"][0] *= 1.4
    assert verdicts(fig16, measured[fig16] | twice)["fig16.larger"] == "not reproduced"


class Altered:
    """The same runs with other weights."""

    def __init__(self, runs, change):
        self.runs, self.change = runs, change

    @torch.no_grad()
    def __getitem__(self, specification):
        net = specification.build()
        net.recurrent = self.change(
            *(factor.detach() for factor in self.runs[specification].network.recurrent.factors())
        )
        return Result(specification, net, self.runs[specification].losses)


def shuffled(left, right):
    return LowRank(left, right[torch.randperm(len(right), generator=torch.Generator().manual_seed(0))])


def with_noise(left, right):
    noise = torch.randn(len(left), len(left), generator=torch.Generator().manual_seed(0), dtype=left.dtype)
    return Dense(left @ right.T + 0.02 * noise)


@pytest.mark.parametrize(
    ("figure", "change", "claims"),
    [
        (fig17, shuffled, {"fig17.right-encoder", "fig17.turn"}),
        (fig17, with_noise, {"fig17.rank-one"}),
        (fig18, shuffled, {"fig18.ordered"}),
    ],
)
def test_other_weights_are_not_what_the_paper_describes(runs, figure, change, claims):
    assert claims <= broken(figure, figure.measure(Altered(runs, change), TINY))


def test_weights_of_random_sign_know_no_populations(runs):
    def random(left, right):
        return Dense(torch.randn(len(left), len(left), generator=torch.Generator().manual_seed(0), dtype=left.dtype))

    measured = fig18.measure(Altered(runs, random), TINY)
    np.testing.assert_allclose(measured["agreement"], 0.5, atol=0.05)


def test_the_effective_eigenvalue_is_that_of_an_exponential_decay(runs):
    specification = proxy_descent(1.0, 50, 0)
    rate = there(specification.training.learning_rate)
    losses = [(1 - rate * 0.3) ** (2 * step) for step in range(300)]
    result = Result(specification, runs[specification].network, losses)
    assert fig16.effective_eigenvalue(result) == pytest.approx(0.3)


@pytest.mark.parametrize(("figure", "panels"), [(fig16, 3), (fig17, 2), (fig18, 2)])
def test_figures_are_drawn_from_what_was_measured(measured, figure, panels):
    drawing = figure.draw(measured[figure])
    drawn = [axis for axis in drawing.axes if axis.lines or axis.images or axis.collections]
    assert len(drawn) >= panels
