"""An activation, a task, a set of vectors and a form of weights outside of the package, each in a file of its own.

They can be configured, trained, saved, loaded and analysed, and no file of the package knows of them.
"""

import sys
from pathlib import Path

import pytest
import torch
from told import mistyped, train_run

import rni
from rni import InputError, Integration, load, run, save
from rni.activations import ACTIVATIONS, make
from rni.core.registry import import_reference
from rni.files.foreign import interpret
from rni.networks.vanilla import VanillaRNN
from rni.tasks import TASKS
from rni.weights import WEIGHTS, from_tensors
from rni.weights.vectors import VECTORS

OUTSIDE = Path(__file__).parent / "outside"
RAW = {
    "task": {"name": "delayed:Delayed", "decays": [0.9]},
    "network": {
        "neurons": 8,
        "activation": {"name": "cubic:Cubic", "strength": 0.25},
        "weights": "circulant:CirculantWeights",
        "vectors": {"name": "axes:Axes", "first": 2},
        "precision": "float64",
    },
    "training": {"steps": 5},
}


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    """Work in the folder of the files, with registries that are restored after the test."""
    monkeypatch.chdir(OUTSIDE)
    for registry in (ACTIVATIONS, TASKS, VECTORS, WEIGHTS):
        monkeypatch.setattr(registry, "parts", dict(registry.parts))
    yield
    for path in OUTSIDE.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_a_run_with_parts_from_outside_is_configured_trained_and_rebuilt():
    specification = train_run(RAW)
    assert train_run(specification.to_dict()) == specification
    for table, name in ((specification.to_dict(), "task"), *((specification.to_dict()["network"], n) for n in
                        ("activation", "weights", "vectors"))):  # fmt: skip
        assert ":" in table[name]["name"]
    net = run(specification).network
    assert net.recurrent.matrix().any()
    assert torch.equal(net.recurrent.matrix()[1], net.recurrent.matrix()[0].roll(1))
    assert torch.equal(net.encoders[:, 0], torch.eye(8).double()[2])
    assert torch.equal(net.f(torch.ones(1)), torch.tensor([1.25]))


@pytest.mark.parametrize("name", ["delayed:Delayed", "delayed:Doubled"])
def test_a_network_file_never_names_the_parent_of_a_task(tmp_path, name):
    task = TASKS.build({"name": name, "decays": [0.9]})
    assert isinstance(task, Integration)
    net = rni.Network(task, *rni.vectors.independent(8, 1), torch.zeros(8, 8))
    save(net, tmp_path / "net.safetensors")
    with pytest.raises(InputError) as error:
        load(tmp_path / "net.safetensors")
    assert name in str(error.value)
    assert load(tmp_path / "net.safetensors", allow=[name]).task == task
    inputs = torch.randn(3, 5, 1)
    assert torch.equal(load(tmp_path / "net.safetensors", allow=[name]).task.targets(inputs), task.targets(inputs))


@pytest.mark.parametrize("activation", [{"name": "cubic:Cubic", "strength": 0.25}, "cubic:swish"])
def test_a_file_imports_an_activation_only_with_permission(tmp_path, activation):
    f = make(activation)
    net = rni.Network(Integration(0.9), *rni.vectors.independent(8, 1), torch.zeros(8, 8), f)
    save(net, tmp_path / "net.safetensors")
    config = f.config()
    sys.modules.pop("cubic")
    with pytest.raises(InputError):
        load(tmp_path / "net.safetensors", allow=["cubic:Other"])
    assert "cubic" not in sys.modules
    again = load(tmp_path / "net.safetensors", allow=[config["name"]])
    assert again.f.config() == config
    assert torch.equal(again.f(torch.ones(2)), f(torch.ones(2)))


@pytest.mark.parametrize(
    ("registry", "name"),
    [
        (ACTIVATIONS, "cubic:Cubic"),
        (TASKS, "delayed:Delayed"),
        (VECTORS, "axes:Axes"),
        (WEIGHTS, "circulant:Circulant"),
    ],
)
def test_code_outside_of_the_package_needs_permission(registry, name):
    with pytest.raises(InputError) as error:
        registry.build(name, allow=())
    assert (error.value.field, error.value.value) == (registry.family, name)
    assert name.partition(":")[0] not in sys.modules


@pytest.mark.parametrize("registry", [ACTIVATIONS, TASKS, VECTORS, WEIGHTS])
@pytest.mark.parametrize("name", ["cubic", "cubic:Missing", "missing:Cubic", "cubic:", "pathlib:Path", None])
def test_names_of_no_part_are_refused(registry, name):
    with pytest.raises(InputError) as error:
        registry.build({"name": name})
    assert (error.value.field, error.value.value) == (registry.family, name)


def test_a_registered_part_has_its_short_name():
    Cubic = import_reference("cubic:Cubic", "activation")
    ACTIVATIONS.register("cubic")(Cubic)
    assert ACTIVATIONS.build({"name": "cubic", "strength": 2.0}) == Cubic(2.0)
    assert ACTIVATIONS.config(Cubic(2.0)) == {"name": "cubic", "strength": 2.0}
    assert make("cubic", strength=2.0)(torch.ones(1)).item() == 3


def test_a_part_that_no_other_process_can_import_is_not_saved():
    class Local(Integration):
        pass

    with pytest.raises(InputError) as error:
        TASKS.config(Local(0.9))
    assert error.value.field == "task"
    with pytest.raises(InputError) as error:
        ACTIVATIONS.config(ACTIVATIONS.build(lambda current: 2 * current))
    assert error.value.field == "activation"


def test_arrays_name_registered_parts_from_outside():
    ACTIVATIONS.register("cubic")(import_reference("cubic:Cubic", "activation"))
    WEIGHTS.register("circulant")(import_reference("circulant:CirculantWeights", "weights"))
    Circulant = import_reference("circulant:Circulant", "weights")
    row = torch.linspace(-1, 1, 8, dtype=torch.float64)
    arrays = {"first_row": row, "input_weights": torch.ones(8, 1), "activation": "cubic", "strength": 0.25}
    net = interpret(arrays)
    assert isinstance(net, VanillaRNN)
    assert isinstance(net.recurrent, Circulant)
    assert isinstance(from_tensors({"first_row": row}), Circulant)
    torch.testing.assert_close(net.f(row), row + 0.25 * row**3)


def test_fields_of_a_part_from_outside_are_checked():
    with pytest.raises(InputError) as error:
        ACTIVATIONS.build({"name": "cubic:Cubic", "strength": -1})
    assert (error.value.field, error.value.value) == ("strength", -1)
    with pytest.raises(InputError) as error:
        TASKS.build({"name": "delayed:Delayed", "decays": [0.9], "dely": 3})
    assert (error.value.field, error.value.hint) == ("dely", "delay")
    with pytest.raises(InputError, match=r"network\.activation\.strength: -1"):
        train_run(RAW | {"network": {"activation": {"name": "cubic:Cubic", "strength": -1}}})
    with pytest.raises(InputError) as error:
        rni.Network(mistyped(0.9), *rni.vectors.independent(8, 1), torch.zeros(8, 8))
    assert error.value.field == "task"
