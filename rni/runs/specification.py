"""A run as a value: task, network, training and seed, validated, with the same meaning wherever it is read."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import tomli_w
import torch
from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator
from torch import Generator

from rni.activations import ACTIVATIONS, ActivationPart
from rni.core.errors import InputError, did_you_mean, path_of, require_is
from rni.core.parts import Numbers, Part, Positive, require, shown
from rni.core.rng import stream
from rni.core.threads import threads
from rni.core.toml import parse_toml
from rni.losses import LOSSES, Loss, LossPart, Schedule, Trained
from rni.networks.network import Network
from rni.runs.label import label
from rni.tasks.integration import Integration
from rni.training.best import Keep
from rni.weights import WEIGHTS, Weights, WeightsPart
from rni.weights.vectors import VECTORS, VectorsPart

LARGEST = 10**6  # bytes of a configuration
EXPECTED = 5000  # steps at most of a run that ends at a loss: nobody knows how many it needs
FORMAT = 7  # part of every run's hash: raise it when the same specification comes to mean another result
ForChannels = Annotated[Numbers, BeforeValidator(lambda raw: [raw] if type(raw) in (int, float) else raw)]


class Task(Part):
    """Decays and scales, one for each channel; scales are 1 if left open."""

    decays: ForChannels = Field(min_length=1, max_length=1000)
    scales: ForChannels = Field(default_factory=lambda data: (1.0,) * len(data["decays"]))

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        require(all(0 <= g <= 1 for g in self.decays), "decays", self.decays, "numbers between 0 and 1")
        require(len(self.scales) == len(self.decays), "scales", self.scales, f"{len(self.decays)}, one for each decay")
        return self

    def build(self) -> Integration:
        return Integration(self.decays, self.scales)


class NetworkPart(Part):
    """The network before training.

    `initial_space = "vectors"`: a random W within the space of encoders and decoders, $W = Q\\omega Q^\\dagger$, which
    descent from W = 0 does not leave.
    """

    neurons: Annotated[int, Field(ge=2, le=1_000_000)] = 1000
    activation: Annotated[SerializeAsAny[ActivationPart], BeforeValidator(ACTIVATIONS.choose)] = ACTIVATIONS.choose(
        "relu"
    )
    vectors: Annotated[SerializeAsAny[VectorsPart], BeforeValidator(VECTORS.choose)] = VECTORS.choose("independent")
    weights: Annotated[SerializeAsAny[WeightsPart], BeforeValidator(WEIGHTS.choose)] = WEIGHTS.choose("dense")
    leak: Annotated[float, Field(gt=0, le=1)] = 1.0
    initial_radius: Annotated[float, Field(ge=0, le=1e3)] = 0.0
    initial_space: Literal["vectors"] | None = None
    precision: Literal["float32", "float64"] = "float32"


class Training(Part):
    """How it is trained. `learning_rate` is for the paper's loss, summed over time and channels.

    Learning rate and schedule that are left open are the optimizer's own for the loss: see `rni.train`. `threads`: on
    which the bits depend, so that they are a field like the others. More than one pays for dense weights of several
    thousand neurons. Fields of the loss may stand here too, beside its name.
    """

    loss: Annotated[SerializeAsAny[LossPart], BeforeValidator(LOSSES.choose)] = LOSSES.choose("batch")
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: Positive | None = None
    schedule: Schedule | None = None
    steps: Annotated[int, Field(ge=0, le=1_000_000_000)] = 5000
    stop_loss: Annotated[float, Field(ge=0)] = 0.0
    keep: Keep | None = None
    train: Trained = "recurrent"
    threads: Annotated[int, Field(ge=1, le=1024)] = 1

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, raw: Any) -> Any:
        """`loss = "proxy"` and `points = 64` side by side are `loss = { name = "proxy", points = 64 }`."""
        known = {name for part in LOSSES.parts.values() for name in part.model_fields}
        if not isinstance(raw, dict) or not (beside := known & raw.keys()):
            return raw
        loss = raw.get("loss", "batch")
        table = {"name": loss} if isinstance(loss, str) else loss.model_dump() if isinstance(loss, LossPart) else loss
        if not isinstance(table, dict):
            return raw
        rest = {name: value for name, value in raw.items() if name not in beside}
        return rest | {"loss": table | {name: raw[name] for name in beside}}


class Specification(Part):
    """Everything that determines a trained or designed network, bit for bit.

    >>> raw = {"task": {"decays": [0.9]}, "network": {"neurons": 30}, "training": {"steps": 100}}
    >>> specification = rni.Specification.parse(raw)
    >>> specification.training.loss.name, specification.build().neurons
    ('batch', 30)
    >>> rni.Specification.parse({"task": {"decays": [0.9]}, "network": {"neuron": 30}})
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: network.neuron: no such field; allowed: neurons, activation, ...
    """

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    kind: Literal["train", "design"] = "train"
    task: Task
    network: NetworkPart = NetworkPart()
    training: Training = Training()

    if TYPE_CHECKING:  # pydantic makes it, as the class is frozen, which type checkers don't see

        def __hash__(self) -> int: ...

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        training, network = self.training, self.network
        training.loss.check(self.task.build(), network.activation.name)
        require(network.leak == 1 or training.loss.leaky, "network.leak", network.leak, "1, or the batch loss")
        try:
            network.vectors.check(network.neurons, len(self.task.decays))
        except InputError as error:
            place = "network" if str(error).startswith("neurons") else "network.vectors"
            raise InputError(f"{place}.{error}") from None
        element_wise = training.optimizer == "adam" and training.train != "decoders"
        network.weights.check(network.initial_radius, element_wise)
        if network.initial_space:
            require(network.initial_radius > 0, "network.initial_radius", 0, "above 0 with an initial_space")
            free = network.weights.makes.lifted is not Weights.lifted
            require(free, "network.initial_space", "vectors", f"none for {network.weights.name} weights")
        if self.kind == "design":
            factored = network.weights.name == "lowrank" and network.precision == "float64"
            require(factored, "network", f"{network.weights.name} {network.precision}", "lowrank float64 in a design")
            require(training.steps == 0, "training.steps", training.steps, "0 in a design")
        return self

    @classmethod
    def parse(cls, raw: Any) -> Self:
        """Validate plain data; one line for each thing that is wrong: field, value, what is allowed."""
        if not isinstance(raw, dict) or not all(isinstance(name, str) for name in raw):
            raise InputError(f"specification: {shown(raw)}; allowed: a table")
        return cls(**raw)

    @classmethod
    def from_toml(cls, path: str | Path, overrides: dict[str, Any] | None = None) -> Self:
        """Read a configuration file; `overrides` are values by dotted field, e.g. {"network.neurons": 500}."""
        return cls.parse({"task": {}} | override(read_toml(path), overrides or {}))

    def to_toml(self) -> str:
        """The whole specification as a configuration that gives the same run."""
        return tomli_w.dumps(self.to_dict())

    def key(self) -> str:
        """The content hash by which the run is known."""
        content = json.dumps({"format": FORMAT, **self.to_dict()}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """Plain data; without the fields that are left open, and the kind of what is trained."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"kind"} if self.kind == "train" else None)

    def stream(self, purpose: str) -> Generator:
        """Random numbers for one purpose: drawing more for one leaves the others as they are."""
        return stream(self.seed, purpose)

    def build(self) -> Network:
        """The network before training."""
        part, dtype = self.network, getattr(torch, self.network.precision)
        part.weights.require_memory(part.neurons, part.initial_radius, dtype.itemsize)
        with threads(self.training.threads):
            encoders, decoders = part.vectors.draw(part.neurons, len(self.task.decays), self.stream("vectors"))
            noisy = self.loss().noisy
            basis = torch.linalg.qr(torch.cat([encoders, decoders], 1)).Q if part.initial_space else None
            size = part.neurons if basis is None else basis.shape[1]
            recurrent = part.weights.build(size, part.initial_radius, dtype, self.stream, noisy)
            if basis is not None:
                recurrent = recurrent.lifted(basis.to(dtype))
            f = part.activation.build(part.neurons, self.stream)
            return Network(self.task.build(), encoders, decoders, recurrent, f, part.leak)

    def loss(self) -> Loss:
        """The loss that training minimises."""
        return self.training.loss.build(self.task.build(), self.network.activation.name)

    def require_memory(self) -> None:
        """Refuse, before it begins, a run whose arrays don't fit."""
        part, size = self.network, getattr(torch, self.network.precision).itemsize
        part.weights.require_memory(part.neurons, part.initial_radius, size)
        self.training.loss.require_memory(self.task.build(), part.neurons, size)

    def label(self) -> str:
        """The run in one line."""
        return label(self.to_dict())

    def cost(self) -> float:
        """Roughly how long the run takes, in multiplications."""
        training, neurons = self.training, self.network.neurons
        rows = training.loss.rows(self.task.build(), self.network.activation.name)
        steps = min(training.steps, EXPECTED) if training.stop_loss else training.steps
        return float(max(steps, 1)) * (rows + 16) * self.network.weights.numbers(neurons)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The plain data of a configuration file."""
    path = path_of(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"more than {LARGEST} bytes")
        raw = parse_toml(content.decode())
        if _has_huge_numbers(raw):
            raise ValueError("whole numbers of more than 64 bits")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        reasons = {
            UnicodeDecodeError: "not text",
            IsADirectoryError: "a folder",
            RecursionError: "nested too deeply",
        }
        reason = reasons.get(type(error)) or getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {reason}; allowed: a TOML configuration") from None
    return raw


def override(raw: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Plain data with some fields replaced, by dotted name or by the last part of it."""
    raw = dict(raw)
    for name, value in values.items():
        *tables, field = place(name)
        part: dict[str, Any] = raw
        for table in tables:
            inner: Any = part.get(table, {})
            inner = {"name": inner} if isinstance(inner, str) and part is not raw else inner  # a part by its name
            if not isinstance(inner, dict):
                raise InputError(f"{name}: no such field; allowed: {'.'.join(tables)}, which is {shown(inner)}")
            part[table] = part = dict(inner)
        part[field] = value
    return raw


def fields() -> dict[str, list[str]]:
    """The fields of a specification by section; the section of the seed is the empty string."""
    sections: dict[str, type[Part]] = {"task": Task, "network": NetworkPart, "training": Training}
    names = {"": ["seed"]} | {name: list(part.model_fields) for name, part in sections.items()}
    of_losses = (name for part in LOSSES.parts.values() for name in part.model_fields)
    names["training"] += dict.fromkeys(of_losses)
    return names


def place(name: str) -> tuple[str, ...]:
    """Where a field is: ("seed",), ("network", "neurons"), ("network", "activation", "slope")."""
    section, *rest = name.split(".")
    for known, names in fields().items():
        if known == section and rest and rest[0] in names:
            return (known, *rest)
        if not rest and section in names:
            return (known, section) if known else (section,)
    known = [field for names in fields().values() for field in names]
    likely = did_you_mean(name.rpartition(".")[2], known) or did_you_mean(section, fields())
    raise InputError(f"{name}: no such field; allowed: {', '.join(known)}{likely}")


def require_specification(specification: Any) -> None:
    """Refuse a file's name, a table, a network."""
    allowed = "a Specification, as rni.Specification.from_toml(path) or .parse(table) makes"
    require_is("specification", specification, Specification, allowed)


def _has_huge_numbers(raw: Any) -> bool:
    """Beyond TOML's range, and beyond what Python can show where they were hexadecimal."""
    rest = [raw]
    while rest:
        match rest.pop():
            case dict(table):
                rest += table.values()
            case list(values):
                rest += values
            case int(number) if number.bit_length() > 64:
                return True
    return False
