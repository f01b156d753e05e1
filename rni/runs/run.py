"""Runs: validated configurations of a training or of a design.

A run determines its network bit for bit on machines of one kind. Its key is a hash of its content, and the store keeps
its result under this key.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tomli_w
from pydantic import Field, TypeAdapter

from rni.activations.activations import ReLU
from rni.activations.base import ACTIVATIONS, Activation
from rni.core.errors import InputError, nearest, require_is
from rni.core.lazy import LazyModule
from rni.core.registry import Allowed, Numbers, Positive, build_part, field_names, part
from rni.core.rng import stream
from rni.core.threads import threads
from rni.core.toml import read_toml
from rni.losses.base import Loss, Schedule, build_loss, known_fields, loss_config
from rni.losses.gradient import Trained
from rni.runs.numerics import NUMERICS
from rni.tasks import TASKS, Integration
from rni.weights.configuration import WEIGHTS, DenseWeights, WeightsConfiguration
from rni.weights.vectors import VECTORS, Independent, VectorSet

if TYPE_CHECKING:
    import torch
    from torch import Generator

    from rni.activations import module as activation_module
    from rni.networks import network as networks
    from rni.networks.network import Network
    from rni.weights import base as weights_base
else:
    from rni.core.lazy import torch

    activation_module = LazyModule("rni.activations.module")
    networks = LazyModule("rni.networks.network")
    weights_base = LazyModule("rni.weights.base")

EXPECTED_STEPS = 5000  # steps at most that are expected of a run which ends at a given loss


@part
class NetworkConfig:
    r"""The network before training.

    Parameters
    ----------
    neurons : int
        The number of neurons.
    activation : str, table or Activation
        The activation function.
    vectors : str, table or VectorSet
        How encoders and decoders are drawn.
    weights : str, table or WeightsConfiguration
        The form of W: dense, lowrank or dale.
    leak : float
        The leak :math:`\alpha = dt / \tau` of each neuron, above 0 and up to 1. With 1 there is no leak.
    initial_radius : float
        The spectral radius of W before training. With 0, training starts from W = 0.
    initial_space : "vectors", optional
        Draw W within the space of encoders and decoders, which gradient descent does not leave.
    precision : "float32" or "float64"
        The number format of the network.
    """

    neurons: Annotated[int, Field(ge=2, le=1_000_000)] = 1000
    activation: Annotated[Activation, *ACTIVATIONS.field] = ReLU()
    vectors: Annotated[VectorSet, *VECTORS.field] = Independent()
    weights: Annotated[WeightsConfiguration, *WEIGHTS.field] = DenseWeights()
    leak: Annotated[float, Field(gt=0, le=1)] = 1.0
    initial_radius: Annotated[float, Field(ge=0, le=1e3)] = 0.0
    initial_space: Literal["vectors"] | None = None
    precision: Literal["float32", "float64"] = "float32"

    def build(self, task: Integration, seed: int, *, noisy: bool = True) -> "Network":
        """Build the network before training.

        Parameters
        ----------
        task : Integration
            The task of the network.
        seed : int
            The seed of vectors, weights and activation.
        noisy : bool
            Whether gradients will be estimated from random samples, which decides the tolerance of low-rank weights.
        """
        dtype = getattr(torch, self.precision)
        self.weights.require_memory(self.neurons, self.initial_radius, dtype.itemsize)
        encoders, decoders = self.vectors.draw(self.neurons, task.inputs, stream(seed, "vectors"))

        def draw(purpose: str) -> "Generator":
            return stream(seed, purpose)

        if self.initial_space is None:
            recurrent = self.weights.build(self.neurons, self.initial_radius, dtype, draw, noisy)
        else:
            basis = torch.linalg.qr(torch.cat([encoders, decoders], 1)).Q
            inner = self.weights.build(basis.shape[1], self.initial_radius, dtype, draw, noisy)
            recurrent = inner.embed(basis.to(dtype))
        activation = activation_module.draw(self.activation, self.neurons, draw)
        return networks.Network(task, encoders, decoders, recurrent, activation, self.leak)


@part
class TrainingConfig:
    """How a network is trained.

    Parameters
    ----------
    loss : Loss
        The loss. A configuration names it, and its fields may stand next to its name.
    optimizer : "sgd" or "adam"
        The optimizer. "sgd" is plain gradient descent.
    learning_rate : float, optional
        The learning rate for the paper's loss, which is summed over time and channels. The default depends on the loss.
    schedule : "constant", "warmup" or "cosine", optional
        How the learning rate changes during the training. The default depends on the loss.
    steps : int
        The number of training steps.
    stop_loss : float
        The loss at which training stops.
    keep : "best", optional
        Keep the network of the lowest loss instead of the last one.
    train : str
        What is trained: recurrent, recurrent+decoders, decoders or all.
    threads : int
        The number of threads of matrix products. The bits of the result depend on it. More than one is faster only for
        dense weights of several thousand neurons.
    """

    loss: Loss
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: Positive | None = None
    schedule: Schedule | None = None
    steps: Annotated[int, Field(ge=0, le=1_000_000_000)] = 5000
    stop_loss: Annotated[float, Field(ge=0)] = 0.0
    keep: Literal["best"] | None = None
    train: Trained = "recurrent"
    threads: Annotated[int, Field(ge=1, le=1024)] = 1


Seed = Annotated[int, Field(ge=0, lt=2**63)]


@part
class TrainRun:
    """A training.

    Parameters
    ----------
    task : Task
        The task.
    network : NetworkConfig
        The network before training.
    training : TrainingConfig
        How the network is trained. The task of its loss has to be `task`.
    seed : int
        The seed of all random numbers.

    Examples
    --------
    >>> run = rni.parse_run({"task": {"decays": [0.9]}, "network": {"neurons": 30}, "training": {"steps": 100}})
    >>> run.training.loss.duration, run.build().neurons
    (3, 30)
    >>> rni.parse_run({"task": {"decays": [0.9]}, "network": {"neuron": 30}})
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: network.neuron: no such field; allowed: neurons, activation, ...
    """

    kind: ClassVar[str] = "train"

    task: Annotated[Integration, *TASKS.field]
    network: NetworkConfig
    training: TrainingConfig
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Check what depends on several fields."""
        network, training = self.network, self.training
        if getattr(training.loss, "task", self.task) != self.task:
            raise InputError("training.loss.task", training.loss, f"the task of the run, {self.task}")
        with field_prefix("training"):
            self.loss()
        if network.leak != 1 and not training.loss.accepts_leak:
            raise InputError("network.leak", network.leak, "1, or the batch loss")
        with field_prefix("network.vectors"):
            network.vectors.check(network.neurons, self.task.inputs)
        elementwise = training.optimizer == "adam" and training.train != "decoders"
        network.weights.check(network.initial_radius, elementwise)
        if network.initial_space and network.initial_radius == 0:
            raise InputError("network.initial_radius", 0, "above 0 with an initial_space")
        if network.initial_space and network.weights.form().embed is weights_base.Weights.embed:
            raise InputError("network.initial_space", network.initial_space, f"none for {network.weights.name} weights")

    def loss(self) -> Loss:
        """Return the loss that training minimises for the network's activation."""
        return self.training.loss.for_activation(self.network.activation.name)

    @property
    def steps(self) -> int:
        """The number of training steps."""
        return self.training.steps

    def build(self) -> "Network":
        """Build the network before training."""
        with threads(self.training.threads):
            return self.network.build(self.task, self.seed, noisy=self.loss().noisy)

    def require_memory(self) -> None:
        """Raise `InputError`, before anything is computed, if the arrays of the run do not fit into memory."""
        itemsize = getattr(torch, self.network.precision).itemsize
        self.network.weights.require_memory(self.network.neurons, self.network.initial_radius, itemsize)
        self.loss().require_memory(self.network.neurons, itemsize)

    def cost(self) -> float:
        """Return the approximate number of multiplications of the run, by which an engine sorts runs."""
        steps = min(self.training.steps, EXPECTED_STEPS) if self.training.stop_loss else self.training.steps
        return float(max(steps, 1)) * (self.loss().cost + 16) * self.network.weights.weight_count(self.network.neurons)

    def label(self) -> str:
        """Return one line that describes the run."""
        loss = loss_config(self.training.loss)
        duration = f"T={loss['duration']} " if "duration" in loss else ""
        training = f"{duration}{loss['name']} {self.training.optimizer} {self.training.steps} steps"
        return f"{_network_label(self.network, self.task)}, {training}, seed {self.seed}"

    def key(self) -> str:
        """Return the content hash of the run."""
        return content_hash(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data, from which `parse_run` makes the same run, without fields that are None."""
        training = to_plain(self.training, leave_out=("loss",)) | {"loss": loss_config(self.training.loss)}
        return {
            "seed": self.seed,
            "task": TASKS.config(self.task),
            "network": to_plain(self.network),
            "training": training,
        }

    def to_toml(self) -> str:
        """Return the run as the text of a configuration file."""
        return tomli_w.dumps(self.to_dict())


@part
class DesignedNetworkConfig:
    """The network of a design, as in `NetworkConfig`. Its weights have low rank, and its precision is float64."""

    neurons: Annotated[int, Field(ge=2, le=1_000_000)] = 1000
    activation: Annotated[Activation, *ACTIVATIONS.field] = ReLU()
    vectors: Annotated[VectorSet, *VECTORS.field] = Independent()
    leak: Annotated[float, Field(gt=0, le=1)] = 1.0


@part
class DesignRun:
    """A design: an integrator that is computed without training.

    Parameters
    ----------
    task : Integration
        The task.
    network : DesignedNetworkConfig
        The network, whose vectors are those of a training with the same seed.
    bounds : sequence of float, optional
        The largest integral of each channel, for activations that are not homogeneous.
    seed : int
        The seed of all random numbers.

    Examples
    --------
    >>> run = rni.parse_run({"kind": "design", "task": {"decays": [0.9]}, "network": {"neurons": 30}})
    >>> rni.run(run).network.recurrent.left.shape
    torch.Size([30, 1])
    """

    kind: ClassVar[str] = "design"

    task: Annotated[Integration, *TASKS.field]
    network: DesignedNetworkConfig = DesignedNetworkConfig()
    bounds: Numbers = ()
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Check what depends on several fields."""
        with field_prefix("network.vectors"):
            self.network.vectors.check(self.network.neurons, self.task.inputs)

    @property
    def steps(self) -> int:
        """The number of training steps, 0."""
        return 0

    def cost(self) -> float:
        """Return the approximate number of multiplications of the run, by which an engine sorts runs."""
        return float(self.network.neurons)

    def label(self) -> str:
        """Return one line that describes the run."""
        return f"{_network_label(self.network, self.task)}, designed, seed {self.seed}"

    def key(self) -> str:
        """Return the content hash of the run."""
        return content_hash(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data, from which `parse_run` makes the same run."""
        bounds = {"bounds": list(self.bounds)} if self.bounds else {}
        network = to_plain(self.network)
        return {"kind": "design", "seed": self.seed, "task": TASKS.config(self.task), "network": network, **bounds}

    def to_toml(self) -> str:
        """Return the run as the text of a configuration file."""
        return tomli_w.dumps(self.to_dict())


Run = TrainRun | DesignRun

TABLES = ("task", "network", "training")


def parse_run(raw: Any, allow: Allowed = None) -> Run:
    """Make a run from plain data, such as a configuration file contains.

    Parameters
    ----------
    raw : mapping
        The tables ``task``, ``network`` and ``training``, the field ``seed``, and the field ``kind``, which is "train"
        or "design". The fields of the loss may stand next to its name in the table ``training``.
    allow : collection of str, optional
        The references ``module:name`` that may be imported. The default allows all: pass an empty tuple for data of
        unknown origin.

    Raises
    ------
    InputError
        If a field is invalid, missing or unknown.

    Examples
    --------
    >>> run = rni.parse_run({"task": {"decays": [0.9]}, "training": {"loss": "proxy", "points": 32}})
    >>> run.training.loss.points, run.network.neurons
    (32, 1000)
    """
    if not isinstance(raw, Mapping):
        raise InputError("run", raw, "a table with the tables task, network and training")
    raw = dict(raw)
    for name in TABLES:
        if not isinstance(raw.get(name, {}), Mapping):
            raise InputError(name, raw[name], "a table")
    kind = raw.pop("kind", "train")
    task_table = {"name": "integration", **raw.pop("task", {})}
    with field_prefix("task"):
        task = TASKS.build(task_table, allow=allow)
    network_table = raw.pop("network", {})

    if kind == "design":
        with field_prefix("network"):
            network = build_part(DesignedNetworkConfig, network_table, allow)
        return build_part(DesignRun, {"task": task, "network": network, **raw})
    if kind != "train":
        raise InputError("kind", kind, "train, design")

    with field_prefix("network"):
        network = build_part(NetworkConfig, network_table, allow)
    with field_prefix("training"):
        table = dict(raw.pop("training", {}))
        loss = table.pop("loss", "batch")
        loss_fields = {name: table.pop(name) for name in known_fields() if name in table}
        if loss_fields and isinstance(loss, str | Mapping):
            loss = {**({"name": loss} if isinstance(loss, str) else loss), **loss_fields}
        training = build_part(TrainingConfig, {**table, "loss": build_loss(loss, task, allow)}, allow)
    return build_part(TrainRun, {"task": task, "network": network, "training": training, **raw})


def read_run(path: str | Path, overrides: Mapping[str, Any] | None = None, allow: Allowed = ()) -> Run:
    """Read a run from a configuration file.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    overrides : mapping, optional
        Values by the name of a field, such as ``{"network.neurons": 500}`` or ``{"neurons": 500}``.
    allow : collection of str
        The references ``module:name`` that the file may name. What `overrides` name needs no permission.

    Examples
    --------
    >>> text = rni.parse_run({"task": {"decays": [0.9]}}).to_toml()
    >>> with open("run.toml", "w") as file:
    ...     _ = file.write(text)
    >>> rni.read_run("run.toml", {"neurons": 50}).network.neurons
    50
    """
    named = references(overrides or {})
    permitted = None if allow is None else [*allow, *named]
    return parse_run(override(read_toml(path), overrides or {}), permitted)


def override(raw: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace some fields of plain data.

    Parameters
    ----------
    raw : mapping
        Plain data, as `parse_run` takes it.
    values : mapping
        Values by the name of a field, as `full_name` takes it.
    """
    raw = dict(raw)
    for name, value in values.items():
        *tables, field = full_name(name).split(".")
        table: dict[str, Any] = raw
        for outer in tables:
            inner = table.get(outer, {})
            if isinstance(inner, str) and outer not in TABLES:  # a part that is given by its name
                inner = {"name": inner}
            if not isinstance(inner, Mapping):
                raise InputError(name, inner, "a field of a table", problem=f"{outer} is not a table")
            table[outer] = table = dict(inner)
        table[field] = value
    return raw


def fields() -> dict[str, list[str]]:
    """Return the fields of a configuration by table. The fields outside of a table are under the empty string."""
    return {
        "": ["seed"],
        "task": field_names(Integration),
        "network": field_names(NetworkConfig),
        "training": [*field_names(TrainingConfig), *known_fields()],
    }


def full_name(name: str) -> str:
    """Return the full name of a field, such as ``network.neurons`` for ``neurons``.

    The fields of a part have the name of the part before theirs: ``activation.slope`` is ``network.activation.slope``.
    The field ``bounds`` of a design is outside of the tables, and also has the name ``training.bounds``.

    Raises
    ------
    InputError
        If there is no such field.
    """
    first, *rest = name.split(".")
    for table, names in fields().items():
        if table == first and rest and rest[0] in names:
            return name
        if first in names:
            return f"{table}.{name}" if table else name
    known = [field for names in fields().values() for field in names]
    hint = nearest(name.rpartition(".")[2], known)
    raise InputError(name, name, ", ".join(known), problem="no such field", hint=hint)


@contextmanager
def field_prefix(outer: str) -> Iterator[None]:
    """Put the name of a table before the name of the field in errors."""
    try:
        yield
    except InputError as error:
        raise error.within(outer) from None


def content_hash(content: Mapping[str, Any]) -> str:
    """Return the key of a run with this content, 32 hexadecimal digits."""
    text = json.dumps({"numerics": NUMERICS, **content}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def to_plain(config: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a part as plain data, without those that are None."""
    return TypeAdapter[Any](type(config)).dump_python(config, mode="json", exclude_none=True, exclude=set(leave_out))


def _network_label(network: NetworkConfig | DesignedNetworkConfig, task: Integration) -> str:
    decays = " ".join(f"{decay:g}" for decay in task.decays[:4])
    return f"{network.activation.name} n={network.neurons}, decays {decays}"


def references(values: Any) -> Iterator[str]:
    """Yield the references ``module:name`` to code in plain data."""
    if isinstance(values, str):
        if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", values):
            yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from references(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from references(value)


def require_run(run: Any) -> None:
    """Refuse a file name, a table or a network in place of a run."""
    require_is("run", run, (TrainRun, DesignRun), "a run, such as rni.read_run(path) or rni.parse_run(table) returns")
