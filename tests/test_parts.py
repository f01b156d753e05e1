"""A loss, an activation, a form of weights, a kind of vectors: one module and one line each, here from outside.

What is added can be specified, trained, saved, read and shown, and no file of the package knows of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import torch
from told import of

from rni import InputError, Specification, load, run, save
from rni.activations import ACTIVATIONS, Activation, ActivationPart, make
from rni.core.parts import Positive
from rni.files.foreign import interpret
from rni.losses import LOSSES, BatchLoss, Loss, LossPart
from rni.networks.vanilla import VanillaRNN
from rni.weights import WEIGHTS, Dense, WeightsPart
from rni.weights.vectors import VECTORS, Vectors, VectorsPart


class Cubic(Activation):
    name = "cubic"
    strength: torch.Tensor

    def __init__(self, strength: float | torch.Tensor = 1.0):
        super().__init__()
        self.register_buffer("strength", torch.as_tensor(strength, dtype=torch.float64))

    def forward(self, currents):
        return currents + self.strength * currents**3


@dataclass(frozen=True)
class LastStep(BatchLoss):
    """Only half of what the batch loss is."""

    def gradient(self, net, inputs, train="recurrent"):
        value, gradient = super().gradient(net, inputs, train)
        return value / 2, type(gradient)(gradient.left / 2, gradient.right)


class Circulant(Dense):
    names = frozenset({"first_row"})

    def __init__(self, row: torch.Tensor):
        super().__init__(torch.stack([row.roll(k) for k in range(len(row))]))

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, torch.Tensor]):
        return cls(tensors["first_row"])

    def tensors(self):
        return {"first_row": self.value[0]}

    @torch.no_grad()
    def project_(self):
        rows = torch.stack([row.roll(-k) for k, row in enumerate(self.value)])
        self.value.copy_(torch.stack([rows.mean(0).roll(k) for k in range(self.neurons)]))


@pytest.fixture(autouse=True)
def families(monkeypatch):
    """As they were, after the test."""
    for family in (ACTIVATIONS, LOSSES, WEIGHTS, VECTORS):
        monkeypatch.setattr(family, "parts", dict(family.parts))


def add_all():
    @ACTIVATIONS.add("cubic")
    class CubicPart(ActivationPart):
        strength: Positive = 0.5
        makes = Cubic

    @LOSSES.add("last_step")
    class LastStepPart(LossPart):
        sequences: int = 4

        def build(self, task, activation) -> Loss:
            return LastStep(task, 3, self.sequences)

        def rows(self, task, activation):
            return 3 * self.sequences

    @WEIGHTS.add("circulant")
    class CirculantPart(WeightsPart):
        makes = Circulant

        def build(self, neurons, radius, dtype, stream, noisy):
            return Circulant(torch.zeros(neurons, dtype=dtype))

    @VECTORS.add("first_axes")
    class FirstAxes(VectorsPart):
        def draw(self, neurons, channels, generator):
            axes = torch.eye(neurons, dtype=torch.float64)
            return Vectors(axes[:, :channels], axes[:, channels : 2 * channels])


RAW = {
    "task": {"decays": [0.9]},
    "network": {
        "neurons": 8,
        "activation": {"name": "cubic", "strength": 0.25},
        "weights": "circulant",
        "vectors": "first_axes",
        "precision": "float64",
    },
    "training": {"loss": {"name": "last_step", "sequences": 6}, "steps": 5},
}


def test_parts_from_outside_are_specified_trained_saved_and_read(tmp_path):
    add_all()
    specification = Specification.parse(RAW)
    assert Specification.parse(specification.to_dict()) == specification
    result = run(specification)
    net = result.network
    assert isinstance(net.recurrent, Circulant)
    assert torch.equal(net.recurrent.matrix()[1], net.recurrent.matrix()[0].roll(1))
    assert net.recurrent.matrix().any()
    assert torch.equal(net.encoders[:, 0], torch.eye(8).double()[0])
    save(net, tmp_path / "net.safetensors", specification.to_dict(), result.losses)
    again = load(tmp_path / "net.safetensors")
    x = torch.ones(1, 5, 1).double()
    torch.testing.assert_close(again.outputs(x), net.outputs(x))
    assert float(of(Cubic, again.f).strength) == 0.25
    assert make("cubic", strength=2.0)(torch.ones(1)).item() == 3


def test_arrays_name_what_was_added_from_outside():
    add_all()
    row = torch.linspace(-1, 1, 8, dtype=torch.float64)
    arrays = {"first_row": row, "input_weights": torch.ones(8, 1), "activation": "cubic", "strength": 0.25}
    net = interpret(arrays)
    assert isinstance(net, VanillaRNN)
    assert isinstance(net.recurrent, Circulant)
    torch.testing.assert_close(net.f(row), row + 0.25 * row**3)


@pytest.mark.parametrize(
    ("place", "name", "line"),
    [
        ("activation", "cubic", "network.activation: 'cubic'; allowed: linear, relu, sigmoid"),
        ("weights", "circulant", "network.weights: 'circulant'; allowed: dense, dale, lowrank"),
        ("vectors", "first_axes", "network.vectors: 'first_axes'; allowed: independent, overlap"),
    ],
)
def test_what_nobody_has_added_is_unknown(place, name, line):
    with pytest.raises(InputError) as caught:
        Specification.parse({"task": {"decays": [0.9]}, "network": {place: name}})
    assert str(caught.value).startswith(line)


def test_fields_of_a_part_from_outside_are_checked_and_may_stand_beside_the_name_of_the_loss():
    add_all()
    raw = RAW | {"training": {"loss": "last_step", "sequences": 6, "steps": 5}}
    assert Specification.parse(raw) == Specification.parse(RAW)
    with pytest.raises(InputError, match=r"network\.activation\.strength: -1; allowed: above 0"):
        Specification.parse(RAW | {"network": {"activation": {"name": "cubic", "strength": -1}}})
