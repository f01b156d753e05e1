"""A run as a value: task, network, training and seed, validated, with the same meaning wherever it is read."""

import hashlib
import json
import tomllib
from math import isqrt, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import tomli_w
from pydantic import BaseModel, Field, ValidationError, model_validator

from rni import memory
from rni.errors import InputError
from rni.runs.messages import explain, shown
from rni.runs.parts import (
    DaleWeights,
    DenseWeights,
    LowRankWeights,
    NetworkPart,
    Normal,
    OverlapVectors,
    Part,
    SupportVectors,
    Task,
    Training,
    require,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from rni.losses import Loss
    from rni.network import Network

LARGEST = 10**6  # bytes of a configuration
FORMAT = 4  # part of every run's hash: raise it when the same specification comes to mean another result


class Specification(Part):
    """Everything that determines a trained network, bit for bit."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    task: Task
    network: NetworkPart = NetworkPart()
    training: Training = Training()

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        training, network, channels = self.training, self.network, len(self.task.decays)
        if training.loss == "averaged":
            name = network.activation.name
            require(name == "linear", "training.loss", "averaged", f"'batch' for the activation {name!r}")
        if training.loss == "proxy":
            given = ("training.bounds", training.bounds)
            require(
                len(training.bounds) in (0, channels) and all(bound > 0 for bound in training.bounds),
                *given,
                f"{channels} positive numbers, one for each channel",
            )
            require(bool(training.bounds) or max(self.task.decays) < 1, *given, "bounds of z where a decay is 1")
        if training.correlation:
            fits = len(training.correlation) == training.duration
            given = ("training.correlation", training.correlation)
            require(fits, *given, f"{training.duration} numbers, one for each lag")
            positive = _smallest_eigenvalue(training.correlation) >= -1e-10 * abs(training.correlation[0])
            require(positive, *given, "a correlation without negative eigenvalues")
        if network.vectors.name in ("orthonormal", "supports"):
            require(
                network.neurons >= 2 * channels,
                "network.neurons",
                network.neurons,
                f"at least {2 * channels} for {network.vectors.name} vectors of {channels} channels",
            )
        if isinstance(network.vectors, SupportVectors):
            fraction = network.vectors.fraction
            require(fraction * channels >= 1, "network.vectors.fraction", fraction, f"at least 1 / {channels} channels")
        if isinstance(network.weights, LowRankWeights):
            plain = training.optimizer == "sgd" or training.train == "decoders"
            require(plain, "training.optimizer", training.optimizer, "'sgd' for lowrank weights")
            radius = network.initial_radius
            require(radius == 0, "network.initial_radius", radius, "0 for lowrank weights")
            object.__setattr__(self, "network", network.model_copy(update={"weights": self._factored(network.weights)}))
        object.__setattr__(self, "training", training.model_copy(update=self._steps()))
        return self

    def _steps(self) -> dict[str, Any]:
        r"""Learning rate and schedule where they are left open.

        Descent warms up to $2 / (s^2 T^3)$, four times the authors' constant rate in the paper's normalisation: from
        there on the current manifold is flatter and the integrals are better for the same work; less from T = 5 on,
        where small batches would make it unstable. On the proxy loss it
        keeps the authors' 0.05 for z = +-1, in proportion to the mean of z^2 elsewhere. Adam: 5e-4.
        """
        training = self.training
        descent = training.optimizer == "sgd"
        warm = descent and training.learning_rate is None and training.loss != "proxy"
        scale = max(max(abs(s) for s in self.task.scales), 1e-3)
        rate = 5e-4
        if descent and training.loss == "proxy":
            rate = 0.05 / max(1.0, scale**2)
            if not self.exact_proxy():
                rate *= 6 / max(training.bounds or (1 / (1 - decay) for decay in self.task.decays)) ** 2
        elif descent:
            rate = 2 / (scale**2 * training.duration**3) * min(1, 5 / training.duration)
        return {
            "learning_rate": training.learning_rate or rate,
            "schedule": training.schedule or ("warmup" if warm else "constant"),
        }

    def _factored(self, weights: LowRankWeights) -> LowRankWeights:
        r"""The tolerance where it is left open: 1e-8, or 1e-4 where gradients are noisy.

        The noise of drawn inputs fills W with singular values below about $10^{-4}\sigma_1$, which cost time and do
        nothing: without them the losses and r are those of dense weights.
        """
        noisy = self.training.loss == "batch" or (self.training.loss == "proxy" and not self.exact_proxy())
        return weights.model_copy(update={"tolerance": weights.tolerance or (1e-4 if noisy else 1e-8)})

    @classmethod
    def parse(cls, raw: Any) -> Self:
        """Validate plain data; one line for each thing that is wrong: field, value, what is allowed."""
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise InputError(*explain(error)) from None

    @classmethod
    def from_toml(cls, path: str | Path, overrides: dict[str, Any] | None = None) -> Self:
        """Read a configuration file; `overrides` are values by dotted field, e.g. {"network.neurons": 500}."""
        try:
            with Path(path).open("rb") as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise ValueError(f"more than {LARGEST} bytes")
            raw = tomllib.loads(content.decode())
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
        return cls.parse(override(raw, overrides or {}))

    def to_toml(self) -> str:
        """The whole specification, every field, as a configuration that gives the same run."""
        return tomli_w.dumps(self.model_dump(mode="json"))

    def key(self) -> str:
        """The content hash by which the run is known."""
        content = json.dumps({"format": FORMAT, **self.model_dump(mode="json")}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def stream(self, purpose: str) -> "Generator":
        """Random numbers for one purpose: drawing more for one leaves the others as they are."""
        from rni.streams import stream

        return stream(self.seed, purpose)

    def build(self) -> "Network":
        """The network before training."""
        from rni.threads import threads

        with threads(self.training.threads):
            return self._build()

    def _build(self) -> "Network":
        import torch

        from rni import vectors, weights
        from rni.activation import make
        from rni.network import Network
        from rni.task import Integration

        part, channels = self.network, len(self.task.decays)
        self._require_memory_for_weights()
        options = part.vectors.model_dump(exclude={"name", "value"})
        if isinstance(part.vectors, OverlapVectors):
            options["overlap"] = part.vectors.value
        family = vectors.FAMILIES[part.vectors.name]
        encoders, decoders = family(part.neurons, channels, self.stream("vectors"), **options)
        dtype = getattr(torch, part.precision)
        if isinstance(part.weights, LowRankWeights):
            assert part.weights.tolerance is not None
            empty = torch.zeros(part.neurons, 0, dtype=dtype)
            recurrent = weights.LowRank(empty, empty, part.weights.tolerance)
        else:
            signs = None
            if isinstance(part.weights, DaleWeights):
                signs = weights.dale_signs(part.neurons, part.weights.inhibitory, self.stream("signs"))
            w = weights.random_matrix(part.neurons, part.initial_radius, self.stream("weights"), signs).to(dtype)
            recurrent = weights.Dense(w) if signs is None else weights.Dale(w, signs)
        drawn = {key: self._drawn(key, value) for key, value in part.activation if key != "name"}
        f = make(part.activation.name, **drawn)
        return Network(Integration(self.task.decays, self.task.scales), encoders, decoders, recurrent, f)

    def _require_memory_for_weights(self) -> None:
        """W is drawn in float64 and then copied to its precision; its eigenvalues need two copies more."""
        part = self.network
        if isinstance(part.weights, LowRankWeights):
            return
        each = 24 if part.initial_radius else 8 + self._bytes()
        also = ', or weights = "lowrank"' if isinstance(part.weights, DenseWeights) else ""
        memory.require(
            each * part.neurons**2,
            f"Specification.network.neurons: {part.neurons}, with {part.weights.name} weights",
            f"up to {isqrt(int(memory.available() / each))}{also}",
        )

    def require_memory(self) -> None:
        """Refuse, before it begins, a run whose arrays don't fit: W, (rows, neurons), and all pairs of inputs."""
        self._require_memory_for_weights()
        training, channels = self.training, len(self.task.decays)
        row = 3 * self._bytes() * self.network.neurons  # states, currents and their gradients
        if training.loss == "batch":
            each = training.duration * row
            _require("training.batch", training.batch, training.batch * each, memory.available() / each)
        if training.loss == "proxy" and not self.exact_proxy():
            _require("training.points", training.points, training.points * row, memory.available() / row)
        if training.loss != "proxy":
            pairs = 16 * channels**2  # covariance and correlation of the inputs, in float64
            largest = sqrt(memory.available() / pairs)
            _require("training.duration", training.duration, pairs * training.duration**2, largest)

    def _bytes(self) -> int:
        return 8 if self.network.precision == "float64" else 4

    def loss(self) -> "Loss":
        """The loss that training minimises."""
        import torch
        from scipy.linalg import toeplitz

        from rni.losses import AveragedLoss, BatchLoss, ProxyLoss, ReLUProxyLoss
        from rni.task import Integration

        training, task = self.training, Integration(self.task.decays, self.task.scales)
        covariance = torch.tensor(toeplitz(training.correlation)) if training.correlation else None
        if training.loss == "averaged":
            return AveragedLoss(task, training.duration, covariance)
        if training.loss == "proxy":
            if self.exact_proxy():
                return ReLUProxyLoss(task)
            return ProxyLoss(task, training.points, training.bounds or None, training.current_weight)
        return BatchLoss(task, training.duration, training.batch, covariance)

    def exact_proxy(self) -> bool:
        """Two points stand for all where both terms of the proxy are homogeneous and weigh the same."""
        training = self.training
        exact = self.network.activation.name == "relu" and len(self.task.decays) == 1
        return exact and not training.bounds and training.current_weight == 1

    def _drawn(self, key: str, value: "float | Normal") -> "float | Tensor":
        import torch

        if not isinstance(value, Normal):
            return value
        noise = torch.randn(self.network.neurons, generator=self.stream(f"activation.{key}"), dtype=torch.float64)
        return value.mean + value.deviation * noise


def override(raw: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Plain data with some fields replaced, by dotted name or by the last part of it."""
    raw = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    for name, value in values.items():
        section, field = _place(name)
        if section:
            part = raw.setdefault(section, {})
            if not isinstance(part, dict):
                raise InputError(f"Specification.{section}: {shown(part)}; allowed: a table")
            part[field] = value
        else:
            raw[field] = value
    return raw


def fields() -> dict[str, list[str]]:
    """The fields of a specification by section; the section of the seed is the empty string."""
    sections: dict[str, type[BaseModel]] = {"task": Task, "network": NetworkPart, "training": Training}
    return {"": ["seed"]} | {name: list(part.model_fields) for name, part in sections.items()}


def _place(name: str) -> tuple[str, str]:
    section, _, field = name.rpartition(".")
    for known, names in fields().items():
        if field in names and section in ("", known):
            return known, field
    allowed = ", ".join(field for names in fields().values() for field in names)
    raise InputError(f"{name}: no such field; allowed: {allowed}")


def _require(field: str, value: int, needed: float, largest: float) -> None:
    memory.require(needed, f"Specification.{field}: {value}", f"up to {int(largest)}")


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


def _smallest_eigenvalue(correlation: tuple[float, ...]) -> float:
    from scipy.linalg import eigvalsh, toeplitz

    return float(eigvalsh(toeplitz(correlation))[0])
