"""The verdicts on capacity can fail."""

import numpy as np
import pytest
from told import train_run

from rni import run
from rni.papers import Profile
from rni.papers.fanthomme2021.figures import capacity


@pytest.fixture(scope="module")
def measured():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacity, "DURATION", 200)
        patch.setattr(capacity, "SEVERAL", {True: (2, 5)})
        patch.setattr(capacity, "DRAWS", {True: 20})
        patch.setattr(capacity, "SMOOTH", {True: (200,)})
        raw = {"task": {"decays": [0.95]}, "network": {"neurons": 60}, "training": {"steps": 100}}
        trained = run(train_run(raw))

        class Same:
            def __getitem__(self, specification):
                return trained

        found = capacity.measure(Same(), Profile("tiny", neurons=60, quick=True))
        assert all(axis.has_data() for axis in capacity.draw(found).axes)
    return found


def verdicts(measured, **changes):
    return {claim.id.removeprefix("capacity."): claim.verdict for claim in capacity.claims(measured | changes)}


def test_exact_networks_stand_where_theory_has_them(measured):
    found = verdicts(measured)
    assert found.pop("trained") == "not tested in this profile"
    assert set(found.values()) == {"reproduced"}
    assert {claim.origin for claim in capacity.claims(measured)} == {"ours"}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("exact", {"errors": np.array([1e-12, 1e-3])}),
        ("exact", {"bounds": np.array([1e-9, np.inf])}),
        ("bound", {"refused": np.array([True, False])}),
        ("found", {"found": np.array([1.0, 0.5])}),
        ("untuned", {"untuned": np.full(len(capacity.UNTUNED), 0.1)}),
        ("sigmoid", {"smooth": np.array([(300, 5, 5)])}),
        ("sigmoid", {"smooth": np.array([(300, 2, 1), (1000, 2, 1)])}),
        ("polish", {"polish_after": np.full(6, 1e-3)}),
        ("other-representations", {"bent_part": 0.0}),
    ],
)
def test_what_theory_does_not_allow_is_noticed(measured, claim, changes):
    assert verdicts(measured, **changes)[claim] == "not reproduced"


def test_trained_networks_are_judged_by_their_law(measured):
    sizes = np.array([(n, channels) for n in (100, 300, 1000) for channels in (2, 3, 5, 8)], dtype=float)
    errors = 0.05 * sizes[:, 1] ** 2 * (sizes[:, 0] / 100) ** -0.5
    good, bad = (np.column_stack([sizes, values]) for values in (errors, errors[::-1]))
    assert verdicts(measured, trained=good, batch=good)["trained"] == "reproduced"
    assert verdicts(measured, trained=bad, batch=good)["trained"] == "not reproduced"
    assert verdicts(measured, trained=good, batch=bad)["trained"] == "not reproduced"


def test_a_law_is_found_with_its_error_bar():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 10, (2, 200))
    exponents, bars = capacity.law([x, y], 3 * x**2 / y * np.exp(0.1 * rng.standard_normal(200)))
    assert abs(exponents - [2, -1]).max() < 4 * bars.max() < 0.1
