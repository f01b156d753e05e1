import tomllib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rni import InputError, Specification, run
from rni.runs.specification import fields, override

MINIMAL = {"task": {"decays": [0.9]}}


def test_every_field_but_the_decays_has_a_default():
    specification = Specification.parse(MINIMAL)
    assert specification.network.neurons == 1000
    assert specification.task.scales == (1.0,)
    assert specification.training.learning_rate == pytest.approx(2 / 27)
    longer = Specification.parse(MINIMAL | {"training": {"duration": 10}})
    assert longer.training.learning_rate == pytest.approx(1e-3)
    assert specification.training.schedule == "warmup"
    given = Specification.parse(MINIMAL | {"training": {"learning_rate": 0.0185}})
    assert given.training.schedule == "constant"


def test_toml_out_is_the_same_specification_in(tmp_path):
    raw = {
        "seed": 7,
        "task": {"decays": [0.8, 0.75], "scales": [1, 2.5]},
        "network": {
            "neurons": 50,
            "activation": {"name": "sigmoid", "threshold": {"mean": 0.1, "deviation": 0.02}},
            "vectors": {"name": "overlap", "value": 0.4},
            "weights": {"name": "dale", "inhibitory": 0.5},
            "initial_radius": 0.1,
        },
        "training": {"optimizer": "adam", "schedule": "cosine", "correlation": [1, 0.5, 0.25], "train": "all"},
    }
    specification = Specification.parse(raw)
    (tmp_path / "run.toml").write_text(specification.to_toml())
    again = Specification.from_toml(tmp_path / "run.toml")
    assert again == specification
    assert again.key() == specification.key()
    net = again.build()
    assert net.f.threshold.std() == pytest.approx(0.02, rel=0.5)
    assert (net.recurrent.signs < 0).sum() == 25


def test_a_short_and_a_long_way_of_saying_the_same_have_one_hash():
    long = {"seed": 0, "task": {"decays": [0.9], "scales": [1]}, "network": {"activation": {"name": "relu"}}}
    assert Specification.parse(long).key() == Specification.parse(MINIMAL).key()
    assert Specification.parse(MINIMAL | {"seed": 1}).key() != Specification.parse(MINIMAL).key()


def test_flags_replace_fields_by_their_last_name():
    raw = override(MINIMAL, {"neurons": 5, "training.steps": 3, "seed": 4})
    assert raw == {"task": {"decays": [0.9]}, "network": {"neurons": 5}, "training": {"steps": 3}, "seed": 4}
    with pytest.raises(InputError, match="nurons: no such field; allowed: seed, decays"):
        override(MINIMAL, {"nurons": 5})
    names = [name for section in fields().values() for name in section]
    assert len(names) == len(set(names)), "a flag must mean one field"


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ({}, "Specification.task: missing; allowed: a value, it has no default"),
        ({"task": {"decays": [2]}}, "Specification.task.decays: (2.0,); allowed: numbers between 0 and 1"),
        (MINIMAL | {"network": {"neurons": "x"}}, "Specification.network.neurons: 'x'; allowed: integer"),
        (MINIMAL | {"network": {"size": 3}}, "Specification.network.size: no such field; allowed: neurons, activation"),
        (MINIMAL | {"network": {"activation": "rely"}}, "Specification.network.activation: 'rely'; allowed: 'linear'"),
        (
            MINIMAL | {"network": {"activation": {"name": "sigmoid", "slop": 3}}},
            "Specification.network.activation.slop: no such field; allowed: name, slope, threshold",
        ),
        (
            MINIMAL | {"network": {"activation": {"name": "sigmoid", "slope": -3}}},
            "Specification.network.activation.slope: -3; allowed: greater than 0",
        ),
        (MINIMAL | {"training": {"loss": "averaged"}}, "Specification.training.loss: 'averaged'; allowed: 'batch'"),
        (MINIMAL | {"training": {"correlation": [1]}}, "Specification.training.correlation: (1.0,); allowed: 3 num"),
        (
            MINIMAL | {"training": {"correlation": [1, 3, 0]}},
            "Specification.training.correlation: (1.0, 3.0, 0.0); allowed: a correlation without negative eigenvalues",
        ),
    ],
)
def test_a_wrong_value_is_answered_with_field_value_and_what_is_allowed(raw, line):
    with pytest.raises(InputError) as caught:
        Specification.parse(raw)
    assert str(caught.value).startswith(line)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from([name for section in fields().values() for name in section] + ["name", "slope", "kind"])
plausible = st.sampled_from(["relu", "sigmoid", "overlap", "supports", "dale", "averaged", "adam", 0, 1, 3, 0.5, [0.9]])
section = anything | st.dictionaries(names, anything | plausible | st.dictionaries(names, anything | plausible))


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(["seed", "task", "network", "training", "extra"]), section) | anything)
def test_no_malformed_specification_ends_in_a_traceback(raw):
    """Random fields, types, ranges and sizes: either a specification that builds, or an error a user can act on."""
    specification = parsed(raw)
    if specification is None:
        return
    assert Specification.parse(tomllib.loads(specification.to_toml())) == specification
    small = specification.model_dump() | {"network": specification.network.model_dump() | {"neurons": 20}}
    if (smaller := parsed(small)) is not None:
        smaller.build()
        smaller.loss()


def parsed(raw):
    try:
        return Specification.parse(raw)
    except InputError as error:
        message = str(error)
    assert all("; allowed: " in line for line in message.splitlines())
    return None


def test_drawing_for_one_purpose_leaves_the_others_as_they_are():
    plain, dale = (
        Specification.parse(MINIMAL | {"network": {"neurons": 30, "weights": weights}}).build()
        for weights in ("dense", "dale")
    )
    assert torch.equal(plain.encoders, dale.encoders)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("loss", ["batch", "averaged", "proxy"])
def test_decoders_can_be_trained_alone(optimizer, loss):
    specification = Specification.parse(
        MINIMAL
        | {
            "network": {"neurons": 20, "activation": "linear", "initial_radius": 0.9, "weights": "dale"},
            "training": {
                "train": "decoders",
                "optimizer": optimizer,
                "loss": loss,
                "learning_rate": 0.01,
                "batch": 512,
                "steps": 50,
            },
        }
    )
    before, after = specification.build(), run(specification)
    assert torch.equal(after.network.recurrent.matrix(), before.recurrent.matrix())
    assert torch.equal(after.network.encoders, before.encoders)
    assert not torch.equal(after.network.decoders, before.decoders)
    assert after.losses[-1] < after.losses[0]


def test_adam_may_train_the_decoders_of_lowrank_weights():
    raw = MINIMAL | {"network": {"weights": "lowrank"}, "training": {"optimizer": "adam", "train": "decoders"}}
    assert Specification.parse(raw).training.optimizer == "adam"


def test_parts_to_train_have_known_names():
    with pytest.raises(InputError, match=r"training\.train: 'recurent'; allowed: .*decoders"):
        Specification.parse(MINIMAL | {"training": {"train": "recurent"}})


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\x89PNG\r\n\x1a\n", "not text; allowed: a TOML configuration"),
        (b"a = " + b"[" * 10**5, "nested too deeply; allowed"),
        (b"seed = " + b"9" * 5000, "Exceeds the limit (4300 digits)"),
        (b"seed = 0x" + b"F" * 5000, "whole numbers of more than 64 bits; allowed"),
        (b"#" * (10**6 + 1), "more than 1000000 bytes; allowed"),
        (b"a =", "Invalid value (at end of document); allowed"),
        (None, "a folder; allowed"),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_what_is_no_configuration_is_refused_in_one_line(tmp_path, content, line):
    path = tmp_path / "run.toml"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Specification.from_toml(path)
    assert str(caught.value).startswith(f"{path}: {line}")
    assert str(caught.value).isprintable()


HOSTILE = "\x1b[31m\nseed: 5; allowed: anything " + "x" * 10**6


@pytest.mark.parametrize(
    "raw",
    [
        MINIMAL | {HOSTILE: 1},
        MINIMAL | {"network": {"activation": HOSTILE}},
        MINIMAL | {"network": {"activation": {"name": HOSTILE}}},
        MINIMAL | {"training": HOSTILE},
        {"task": {"decays": [HOSTILE] * 1000}},
    ],
)
def test_no_name_or_value_can_forge_a_message(raw):
    with pytest.raises(InputError) as caught:
        Specification.parse(raw)
    lines = str(caught.value).split("\n")
    assert len(lines) <= 21
    assert all(line.isprintable() and len(line) < 1500 for line in lines)
    assert all(line.startswith("Specification.") and "; allowed: " in line for line in lines[:20])


def test_deeply_nested_fields_are_named_without_their_depth(tmp_path):
    (tmp_path / "run.toml").write_text("[task]\ndecays = [0.9]\n[network]\n" + "a." * 3000 + "b = 1\n")
    with pytest.raises(InputError, match=r"^Specification\.network\.a: no such field; allowed: neurons"):
        Specification.from_toml(tmp_path / "run.toml")
    (tmp_path / "run.toml").write_text("[task]\ndecays." + "a." * 3000 + "b = 1\n")
    with pytest.raises(InputError, match=r"^Specification\.task\.decays: {'a': .*; allowed: a list of numbers"):
        Specification.from_toml(tmp_path / "run.toml")
