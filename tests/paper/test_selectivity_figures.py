"""The verdicts on coordinates, mixed selectivity and structured supports can fail."""

from typing import Any

import numpy as np
import pytest
import torch
from told import train_run
from violations import OneSeed, altered, failed, shuffle, untrain

from rni import run
from rni.analysis import rectified_selectivity
from rni.papers.fanthomme2021.figures import fig8, fig10, fig11
from rni.papers.figure import PROFILES
from rni.runs.execution import Result
from rni.tasks.inputs import white_noise

TINY = OneSeed("tiny", neurons=120, quick=True)


def small(
    activation="relu",
    decays: tuple[float, ...] = (0.95, 0.93),
    vectors: str | dict[str, str] = "independent",
    neurons=TINY.neurons,
    **training: Any,
):
    """A small network, with decays short enough for little training."""
    network = {"neurons": neurons, "activation": activation, "vectors": vectors}
    return run(train_run({"task": {"decays": decays}, "network": network, "training": training}))


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig8, "TRAJECTORIES", 32)
        patch.setattr(fig10, "MAPPED", 32)
        yield


@pytest.fixture(scope="module")
def trained():
    """A network of each activation; small sigmoidal ones have less mixed selectivity."""
    adam = {"optimizer": "adam", "learning_rate": 0.002, "schedule": "cosine", "points": 64, "steps": 300}
    sigmoid = small("sigmoid", (0.8, 0.75), neurons=300, loss="proxy", **adam)
    return {"relu": small(duration=4, steps=1000), "sigmoid": sigmoid}


@pytest.fixture(scope="module")
def supported():
    """A network for each variant of the supports."""
    kinds = {variant: {"name": "supports", "kind": variant} for variant in fig11.VARIANTS}
    kinds["independent"] = {"name": "independent"}
    options: dict[str, Any] = {"duration": 4, "batch": 16, "steps": 800}
    several: dict[Any, Result] = {variant: small(vectors=kind, **options) for variant, kind in kinds.items()}
    for variant in ("same", "independent"):
        several[variant, 3] = small(decays=(0.95, 0.94, 0.93), vectors=kinds[variant], **options)
    return several


class ByActivation(dict):
    """The same network for every specification of an activation."""

    def __getitem__(self, specification):
        return super().__getitem__(specification.network.activation.name)


class BySupport(dict):
    """The same network for every specification of a kind of vectors and a number of channels."""

    def __getitem__(self, specification):
        kind = getattr(specification.network.vectors, "kind", "independent")
        return super().__getitem__((kind, 3) if len(specification.task.decays) == 3 else kind)


def broken_by_activation(figure, results):
    return failed(figure, figure.measure(ByActivation(results), TINY))


def test_trained_networks_have_linear_coordinates_and_mixed_selectivity(trained):
    assert broken_by_activation(fig8, trained) == set()
    assert broken_by_activation(fig10, trained) == set()


@pytest.mark.parametrize("change", [shuffle, untrain])
@pytest.mark.parametrize("name", ["relu", "sigmoid"])
def test_the_coordinates_of_other_networks_are_not_linear(trained, name, change):
    found = broken_by_activation(fig8, trained | {name: altered(trained[name], change)})
    assert found == {f"{name}-linear", "input-independent"}


@pytest.mark.parametrize("change", [shuffle, untrain])
def test_the_neurons_of_other_networks_are_not_rectified_integrals(trained, change):
    found = broken_by_activation(fig10, trained | {"relu": altered(trained["relu"], change)})
    assert {"rectified", "half-plane"} <= found


def test_the_quick_profile_trains_long_enough_to_judge_the_linearity_of_relu_currents(trained):
    """Half of the authors' steps leave R2 = .997 with 300 neurons as with 1000: nothing that size decides."""
    quick = PROFILES["quick"]
    relu = run(fig8.specifications(quick)["relu"])
    claims = fig8.claims(fig8.measure(ByActivation(trained | {"relu": relu}), quick))
    assert {claim.id: claim.verdict for claim in claims}["fig8.relu-linear"] == "reproduced"


def test_pure_selectivity_is_not_mixed(trained, supported):
    assert "mixed" in broken_by_activation(fig10, trained | {"relu": supported["same"]})


def test_selectivity_from_rectified_activity_is_that_of_the_singular_vectors(trained):
    net = trained["relu"].network
    x = white_noise(16, 200, 2, torch.Generator().manual_seed(2))
    with torch.no_grad():
        activity = net(x)[0].flatten(0, 1).double()
    recorded = rectified_selectivity(activity, net.task.targets(x.double()).flatten(0, 1))
    vectors = torch.from_numpy(fig10.examine(net)["vectors"])
    assert float((recorded - vectors).norm() / vectors.norm()) < 0.05


def peaked(place, strength=0.5, networks=16, neurons=1000):
    """Selectivity vectors of several networks whose angles prefer four directions."""
    rng = np.random.default_rng(0)
    size = (networks, neurons)
    theta = place + (rng.vonmises(0, strength, size) + 2 * np.pi * rng.integers(4, size=size)) / 4
    return np.stack([np.cos(theta), np.sin(theta)], 2)


def uneven(networks=16):
    """Each network prefers directions of its own: nothing that networks have in common."""
    return np.concatenate([peaked(place, 2.0, 1) for place in np.random.default_rng(1).uniform(0, 7, networks)])


@pytest.mark.parametrize("key", ["sigmoid", "printed"])
def test_peaks_count_on_the_axes_only_and_from_enough_networks(trained, key):
    measured = fig10.measure(ByActivation(trained), TINY)
    name = {"sigmoid": "fig10.sigmoid-peaks", "printed": "fig10.sigmoid-peaks-as-printed"}[key]

    def verdict(vectors):
        claims = fig10.claims(measured | {f"{key}_vectors": vectors})
        return next(claim.verdict for claim in claims if claim.id == name)

    assert verdict(peaked(0.0)) == "reproduced"
    assert verdict(peaked(0.0, 0.1)) == "not reproduced"  # a preference, but no clear peak
    assert verdict(peaked(np.pi / 4)) == "not reproduced"
    assert verdict(uneven()) == "not reproduced"
    assert verdict(np.random.default_rng(0).normal(size=(16, 1000, 2))) == "not reproduced"
    assert verdict(peaked(0.0, networks=2)) == "not tested in this profile"


def test_uniform_angles_prefer_nothing_that_networks_have_in_common(trained):
    measured = fig10.measure(ByActivation(trained), TINY)

    def verdict(vectors):
        return fig10.claims(measured | {"relu_vectors": vectors})[2].verdict

    assert verdict(np.random.default_rng(0).normal(size=(16, 1000, 2))) == "reproduced"
    assert verdict(uneven()) == "reproduced"
    assert verdict(peaked(0.0)) == "not reproduced"
    assert verdict(np.random.default_rng(0).normal((0.3, 0.0), size=(16, 1000, 2))) == "not reproduced"


def broken_by_support(results):
    return failed(fig11, fig11.measure(BySupport(results), TINY) | {"full_length": True})


HALF_MIXED = {"relaxed"}  # with the decoders alone on their halves the mixing index is a little below the bar


def test_supports_shape_the_weights_and_the_selectivity(supported):
    assert broken_by_support(supported) == HALF_MIXED
    assert broken_by_support(supported | {"decoders": supported["independent"]}) == set()


@pytest.mark.parametrize(
    ("variant", "taken", "claims"),
    [
        ("same", "independent", {"blocks", "pure"}),
        ("overlap", "same", {"overlap"}),
        ("overlap", "independent", {"overlap"}),
        (("same", 3), ("independent", 3), {"several-blocks"}),
        (("independent", 3), ("same", 3), {"mixed-for-three"}),
    ],
)
def test_another_structure_than_claimed_is_not_reproduced(supported, variant, taken, claims):
    assert broken_by_support(supported | {variant: supported[taken]}) == claims | HALF_MIXED


@pytest.mark.parametrize("variant", fig11.RELAXED)
def test_pure_selectivity_where_one_constraint_is_relaxed_is_not_reproduced(supported, variant):
    mixed = supported | {"decoders": supported["independent"]}
    assert broken_by_support(mixed | {variant: supported["same"]}) == {"relaxed"}


def test_a_support_that_hinders_learning_is_not_reproduced(supported):
    worse = altered(supported["same"], lambda net: net.recurrent.value.mul_(0.9))
    slow = Result(worse.specification, worse.network, [1.0] * 800)
    assert {"performance", "learning"} <= broken_by_support(supported | {"same": slow})


def test_the_picture_of_weights_keeps_the_largest_of_each_block():
    w = np.zeros((250, 250))
    w[3, 7], w[4, 8], w[249, 0] = -2.0, 1.0, 3.0
    image = fig11.picture(w)
    assert image.shape == (84, 84)
    assert (image[1, 2], image[83, 0]) == (-2.0, 3.0)
    assert np.count_nonzero(image) == 2
