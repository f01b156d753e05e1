import tomllib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from told import of, train_run

from rni import InputError, Integration, read_run, run
from rni.analysis import relative_error
from rni.losses import BatchLoss, ProxyLoss
from rni.runs.run import NetworkConfig, TrainingConfig, TrainRun, fields, override
from rni.training.descent import make_plan
from rni.weights import Dale

MINIMAL = {"task": {"decays": [0.9]}}


def test_every_field_but_the_decays_has_a_default():
    specification = train_run(MINIMAL)
    assert specification.network.neurons == 1000
    assert specification.task.scales == (1.0,)
    assert specification.training.loss == BatchLoss(Integration(0.9), duration=3, batch=32)


def test_learning_rate_and_schedule_that_are_left_open_are_the_optimizers_own():
    def chosen(**training):
        part = (specification := train_run(MINIMAL | {"training": training})).training
        options = {"learning_rate": part.learning_rate, "schedule": part.schedule, "optimizer": part.optimizer}
        plan = make_plan(specification.build(), part.loss, **options)
        return plan.learning_rate, plan.schedule

    assert chosen() == (pytest.approx(2 / 27), "warmup")
    assert chosen(duration=10) == (pytest.approx(1e-3), "warmup")
    assert chosen(learning_rate=0.0185) == (0.0185, "constant")
    assert chosen(optimizer="adam") == (pytest.approx(6e-4), "cosine")
    assert chosen(loss="proxy") == (0.05, "constant")
    assert chosen(loss="proxy", bounds=[10]) == (pytest.approx(0.003), "constant")


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"training": {"points": 32}}, "training.loss.points: no such field; allowed: duration, batch"),
        ({"training": {"loss": "proxy", "batch": 8}}, "training.loss.batch: no such field; allowed: points, bounds"),
        (
            {"network": {"vectors": {"name": "supports", "fraction": 0.7}}},
            "network.vectors.fraction: 0.7; allowed: none",
        ),
    ],
)
def test_a_field_that_would_have_no_effect_is_refused(part, line):
    with pytest.raises(InputError) as caught:
        train_run(MINIMAL | part)
    assert str(caught.value).startswith(line)


def test_fields_of_the_loss_may_stand_beside_its_name():
    task = Integration(0.9)
    flat = train_run(MINIMAL | {"training": {"loss": "proxy", "points": 32}})
    table = train_run(MINIMAL | {"training": {"loss": {"name": "proxy", "points": 32}}})
    assert flat == table == TrainRun(task, NetworkConfig(), TrainingConfig(ProxyLoss(task, points=32)))


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
    specification = train_run(raw)
    (tmp_path / "run.toml").write_text(specification.to_toml(), encoding="utf-8")
    again = of(TrainRun, read_run(tmp_path / "run.toml"))
    assert again == specification
    assert again.key() == specification.key()
    net = again.build()
    assert net.f.values()["threshold"].std() == pytest.approx(0.02, rel=0.5)
    assert (of(Dale, net.recurrent).signs < 0).sum() == 25


def test_a_short_and_a_long_way_of_saying_the_same_have_one_hash():
    long = {"seed": 0, "task": {"decays": [0.9], "scales": [1]}, "network": {"activation": {"name": "relu"}}}
    assert train_run(long).key() == train_run(MINIMAL).key()
    assert train_run(MINIMAL | {"seed": 1}).key() != train_run(MINIMAL).key()


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
        ({}, "task.decays: missing"),
        ({"task": {"decays": [2]}}, "task.decays.0: 2; allowed: "),
        (MINIMAL | {"network": {"neurons": "x"}}, "network.neurons: 'x'; allowed: a whole number"),
        (MINIMAL | {"network": {"size": 3}}, "network.size: no such field; allowed: neurons, activation"),
        (MINIMAL | {"network": {"activation": "rely"}}, "network.activation: 'rely'; allowed: linear"),
        (
            MINIMAL | {"network": {"activation": {"name": "sigmoid", "slop": 3}}},
            "network.activation.slop: no such field; allowed: slope, threshold",
        ),
        (
            MINIMAL | {"network": {"activation": {"name": "sigmoid", "slope": -3}}},
            "network.activation.slope: -3; allowed: above 0",
        ),
        (MINIMAL | {"training": {"loss": "averaged"}}, "training.loss: 'averaged'; allowed: 'batch'"),
        (MINIMAL | {"training": {"correlation": [1]}}, "training.loss.correlation: [1.0]; allowed: 3 num"),
        (
            MINIMAL | {"training": {"correlation": [1, 3, 0]}},
            "training.loss.correlation: [1.0, 3.0, 0.0]; allowed: a correlation without negative eigenvalues",
        ),
    ],
)
def test_a_wrong_value_is_answered_with_field_value_and_what_is_allowed(raw, line):
    with pytest.raises(InputError) as caught:
        train_run(raw)
    assert str(caught.value).startswith(line)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MEANT = {
    "task": {"decays": [[0.9], [0.5, 1.0]], "scales": [[2], [1.0, -3.0]]},
    "network": {
        "neurons": [3, 20],
        "activation": ["relu", "linear", {"name": "sigmoid", "slope": {"mean": 9.0, "deviation": 1.0}}],
        "vectors": ["orthonormal", {"name": "overlap", "value": 0.4}, {"name": "supports", "kind": "overlap"}],
        "weights": ["dale", "lowrank", {"name": "lowrank", "tolerance": 1e-3}],
        "initial_radius": [0, 0.5],
    },
    "training": {
        "loss": ["averaged", "proxy", {"name": "batch", "batch": 4}],
        "duration": [1, 4],
        "points": [7],
        "optimizer": ["adam"],
        "train": ["all", "decoders"],
    },
}


def mostly_meant(fields):
    """Some of the fields, with values that have a meaning, or once in a while with anything."""
    values = {
        name: st.integers(0, 9).flatmap(lambda k, v=v: st.sampled_from(v) if k else anything)
        for name, v in fields.items()
    }
    return st.fixed_dictionaries({}, optional=values)


whole = st.fixed_dictionaries(
    {"task": mostly_meant(MEANT["task"])},
    optional={"seed": st.integers(0, 9), **{name: mostly_meant(MEANT[name]) for name in ("network", "training")}},
)


@settings(max_examples=300, deadline=None)
@given(whole | st.dictionaries(st.sampled_from(["seed", "task", "network", "training", "extra"]), anything) | anything)
def test_no_malformed_specification_ends_in_a_traceback(raw):
    """Random fields, types, ranges and sizes: either a specification that builds, or an error a user can act on."""
    specification = parsed(raw)
    if specification is None:
        return
    assert train_run(tomllib.loads(specification.to_toml())) == specification
    small = specification.to_dict() | {"network": specification.to_dict()["network"] | {"neurons": 20}}
    if (smaller := parsed(small)) is not None:
        smaller.build()
        smaller.loss()


def test_many_of_these_specifications_are_valid():
    drawn = []
    settings(max_examples=200, database=None, deadline=None)(given(whole)(lambda raw: drawn.append(parsed(raw))))()
    assert sum(each is not None for each in drawn) >= 20


def parsed(raw):
    try:
        return train_run(raw)
    except InputError as error:
        message = str(error)
    assert all("; allowed: " in line for line in message.splitlines())
    return None


def test_drawing_for_one_purpose_leaves_the_others_as_they_are():
    plain, dale = (
        train_run(MINIMAL | {"network": {"neurons": 30, "weights": weights}}).build() for weights in ("dense", "dale")
    )
    assert torch.equal(plain.encoders, dale.encoders)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("loss", ["batch", "averaged", "proxy"])
def test_decoders_can_be_trained_alone(optimizer, loss):
    specification = train_run(
        MINIMAL
        | {
            "network": {"neurons": 20, "activation": "linear", "initial_radius": 0.9, "weights": "dale"},
            "training": {
                "train": "decoders",
                "optimizer": optimizer,
                "loss": loss,
                "learning_rate": 0.01,
                "steps": 50,
            }
            | ({"batch": 512} if loss == "batch" else {}),
        }
    )
    before, after = specification.build(), run(specification)
    assert torch.equal(after.network.recurrent.matrix(), before.recurrent.matrix())
    assert torch.equal(after.network.encoders, before.encoders)
    assert not torch.equal(after.network.decoders, before.decoders)
    assert after.losses[-1] < after.losses[0]


def test_adam_may_train_the_decoders_of_lowrank_weights():
    raw = MINIMAL | {"network": {"weights": "lowrank"}, "training": {"optimizer": "adam", "train": "decoders"}}
    assert train_run(raw).training.optimizer == "adam"


def test_parts_to_train_have_known_names():
    with pytest.raises(InputError, match=r"training\.train: 'recurent'; allowed: .*decoders"):
        train_run(MINIMAL | {"training": {"train": "recurent"}})


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
        read_run(path)
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
        train_run(raw)
    lines = str(caught.value).split("\n")
    assert len(lines) <= 21
    assert all(line.isprintable() and len(line) < 1500 for line in lines)
    assert all("; allowed: " in line for line in lines[:20])


def test_deeply_nested_fields_are_named_without_their_depth():
    deep = {"b": 1}
    for _ in range(3000):
        deep = {"a": deep}
    with pytest.raises(InputError, match=r"^network\.a: no such field; allowed: neurons"):
        train_run({"task": {"decays": [0.9]}, "network": deep})
    with pytest.raises(InputError, match=r"^task\.decays: {'a': .*; allowed: .*a list of numbers"):
        train_run({"task": {"decays": deep}})


def test_a_run_without_sequences_has_a_label_without_their_duration():
    proxy = train_run({"task": {"decays": [0.8]}, "training": {"loss": "proxy"}})
    assert proxy.label() == "relu n=1000, decays 0.8, proxy sgd 5000 steps, seed 0"


@pytest.mark.parametrize("weights", ["dense", {"name": "lowrank", "rank": 2}])
def test_descent_that_starts_within_the_space_of_the_vectors_stays_there_and_finds_an_integrator(weights):
    network = {"neurons": 30, "activation": "linear", "weights": weights, "initial_radius": 0.1, "precision": "float64"}
    training = {"loss": "averaged", "duration": 3, "learning_rate": 0.05, "steps": 1000}
    raw = {"task": {"decays": [0.8]}, "network": network | {"initial_space": "vectors"}, "training": training}
    specification = train_run(raw)
    before, after = specification.build(), run(specification).network
    vectors = torch.linalg.qr(torch.cat([before.encoders, before.decoders], 1)).Q
    for net in (before, after):
        w = net.recurrent.matrix()
        assert torch.allclose(vectors @ (vectors.T @ w @ vectors) @ vectors.T, w, atol=1e-12)
    assert torch.linalg.eigvals(before.recurrent.matrix()).abs().max().item() == pytest.approx(0.1)
    x = torch.randn(4, 100, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert relative_error(after, x).max() < 1e-9
    for changes, message in (
        ({"weights": "dale"}, "network.initial_space: 'vectors'; allowed: none for dale weights"),
        (
            {"weights": "dense", "initial_radius": 0},
            "network.initial_radius: 0; allowed: above 0 with an initial_space",
        ),
    ):
        with pytest.raises(InputError, match=message):
            train_run(raw | {"network": raw["network"] | changes})
