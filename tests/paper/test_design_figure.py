"""The verdicts on designed networks can fail."""

import numpy as np
import pytest
from told import train_run

from rni import run
from rni.papers import Profile
from rni.papers.fanthomme2021.figures import design


@pytest.fixture(scope="module")
def measured():
    profile = Profile("tiny", neurons=250, quick=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "DURATION", 200)
        patch.setattr(design, "SEVERAL", {"relu": (1, 2), "sigmoid": (1,)})
        raw = {"task": {"decays": [0.995, 0.993]}, "network": {"neurons": 250}, "training": {"steps": 200}}
        trained = run(train_run(raw))

        class Same:
            def __getitem__(self, specification):
                return trained

        found = design.measure(Same(), profile)
        assert all(axis.has_data() for axis in design.draw(found).axes)
    return found | {
        "relu_errors": found["relu_errors"][[0, 1, 1, 1]],
        "relu_bounds": found["relu_bounds"][[0, 1, 1, 1]],
        "relu_rigorous": found["relu_rigorous"][[0, 1, 1, 1]],
        "sigmoid_errors": found["sigmoid_errors"][[0, 0, 0]],
    }


def verdicts(measured, **changes):
    return [claim.verdict for claim in design.claims(measured | changes)]


def test_designed_relu_networks_are_exact_and_certified(measured):
    untested = "not tested in this profile"
    assert verdicts(measured) == ["reproduced", "reproduced", untested, untested]
    assert {claim.origin for claim in design.claims(measured)} == {"ours"}


def test_errors_missing_proofs_and_delicate_weights_are_noticed(measured):
    large = measured | {"neurons": 1000, "sigmoid_errors": np.array([0.005, 0.01, 0.02])}
    large["designed_change"] = large["trained_change"] = 0.01
    assert verdicts(large) == ["reproduced"] * 4
    assert verdicts(large, relu_errors=np.full(4, 1e-3))[:2] == ["not reproduced"] * 2
    assert verdicts(large, relu_rigorous=np.array([True, True, False, True]))[1] == "not reproduced"
    assert verdicts(large, sigmoid_errors=np.array([0.005, 0.03, 0.02]))[2] == "not reproduced"
    assert verdicts(large, designed_change=0.02)[3] == "not reproduced"
