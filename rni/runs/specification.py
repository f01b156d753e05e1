"""A run as a value: task, network, training and seed, validated, with the same meaning wherever it is read."""

import hashlib
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import tomli_w
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError, model_validator

from rni.errors import InputError
from rni.runs.messages import explain

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from rni.losses import Loss
    from rni.network import Network

FORMAT = 1  # part of every run's hash: raise it when the same specification comes to mean another result

Numbers = Annotated[tuple[float, ...], Strict(False)]
Positive = Annotated[float, Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Task(_Part):
    """Decays and scales, one for each channel."""

    decays: Annotated[Numbers, Field(min_length=1, max_length=1000)]
    scales: Numbers = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        _require(all(0 <= g <= 1 for g in self.decays), "decays", self.decays, "numbers between 0 and 1")
        if not self.scales:
            object.__setattr__(self, "scales", (1.0,) * len(self.decays))
        _require(len(self.scales) == len(self.decays), "scales", self.scales, f"{len(self.decays)}, one for each decay")
        return self


class Normal(_Part):
    """A parameter that differs between neurons: Gaussian, drawn once from the seed."""

    mean: float
    deviation: Annotated[float, Field(ge=0)]


class LinearActivation(_Part):
    name: Literal["linear"] = "linear"


class ReLUActivation(_Part):
    name: Literal["relu"] = "relu"


class TanhActivation(_Part):
    name: Literal["tanh"] = "tanh"


class SigmoidActivation(_Part):
    name: Literal["sigmoid"] = "sigmoid"
    slope: Positive | Normal = 50.0
    threshold: float | Normal = 0.1


class SoftplusActivation(_Part):
    name: Literal["softplus"] = "softplus"
    slope: Positive | Normal = 50.0


class RectifiedPowerActivation(_Part):
    name: Literal["rectified_power"] = "rectified_power"
    exponent: Annotated[float, Field(gt=1)] | Normal = 2.0


class IndependentVectors(_Part):
    name: Literal["independent"] = "independent"
    encoder_norm: Positive = 1.0
    decoder_norm: Positive = 1.0


class OverlapVectors(IndependentVectors):
    name: Literal["overlap"] = "overlap"  # pyright: ignore[reportIncompatibleVariableOverride]
    value: Annotated[float, Field(ge=0, le=1)]


class OrthonormalVectors(_Part):
    name: Literal["orthonormal"] = "orthonormal"


class SupportVectors(_Part):
    name: Literal["supports"] = "supports"
    kind: Literal["same", "overlap", "disjoint", "decoders"] = "same"
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.6


class DenseWeights(_Part):
    name: Literal["dense"] = "dense"


class DaleWeights(_Part):
    name: Literal["dale"] = "dale"
    inhibitory: Annotated[float, Field(ge=0, le=1)] = 0.25


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


_by_name = (BeforeValidator(_named), Field(discriminator="name"))
ActivationPart = Annotated[
    LinearActivation
    | ReLUActivation
    | TanhActivation
    | SigmoidActivation
    | SoftplusActivation
    | RectifiedPowerActivation,
    *_by_name,
]
VectorsPart = Annotated[IndependentVectors | OverlapVectors | OrthonormalVectors | SupportVectors, *_by_name]
WeightsPart = Annotated[DenseWeights | DaleWeights, *_by_name]


class NetworkPart(_Part):
    """The network before training."""

    neurons: Annotated[int, Field(ge=2, le=1_000_000)] = 1000
    activation: ActivationPart = ReLUActivation()
    vectors: VectorsPart = IndependentVectors()
    weights: WeightsPart = DenseWeights()
    initial_radius: Annotated[float, Field(ge=0, le=1e3)] = 0.0
    precision: Literal["float32", "float64"] = "float32"


class Training(_Part):
    """How it is trained. `learning_rate` is for the paper's loss, summed over time and channels."""

    loss: Literal["batch", "averaged"] = "batch"
    duration: Annotated[int, Field(ge=1, le=10_000)] = 3
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 32
    correlation: Numbers = ()
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: Positive | None = None
    schedule: Literal["constant", "warmup", "cosine"] | None = None
    steps: Annotated[int, Field(ge=0, le=1_000_000_000)] = 5000
    stop_loss: Annotated[float, Field(ge=0)] = 0.0
    train: Literal["recurrent", "recurrent+decoders", "all"] = "recurrent"


class Specification(_Part):
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
            _require(name == "linear", "training.loss", "averaged", f"'batch' for the activation {name!r}")
        if training.correlation:
            fits = len(training.correlation) == training.duration
            given = ("training.correlation", training.correlation)
            _require(fits, *given, f"{training.duration} numbers, one for each lag")
            positive = _smallest_eigenvalue(training.correlation) >= -1e-10 * abs(training.correlation[0])
            _require(positive, *given, "a correlation without negative eigenvalues")
        if network.vectors.name in ("orthonormal", "supports"):
            _require(
                network.neurons >= 2 * channels,
                "network.neurons",
                network.neurons,
                f"at least {2 * channels} for {network.vectors.name} vectors of {channels} channels",
            )
        if isinstance(network.vectors, SupportVectors):
            fraction = network.vectors.fraction
            _require(
                fraction * channels >= 1, "network.vectors.fraction", fraction, f"at least 1 / {channels} channels"
            )
        object.__setattr__(self, "training", training.model_copy(update=self._steps()))
        return self

    def _steps(self) -> dict[str, Any]:
        r"""Learning rate and schedule where they are left open.

        Descent warms up to $2 / (s^2 T^3)$, four times the authors' constant rate in the paper's normalisation: from
        there on the current manifold is flatter and the integrals are better for the same work. Adam: 5e-4.
        """
        training = self.training
        warm = training.optimizer == "sgd" and training.learning_rate is None
        largest = max(max(abs(s) for s in self.task.scales), 1e-3)
        rate = 2 / (largest**2 * training.duration**3) if training.optimizer == "sgd" else 5e-4
        return {
            "learning_rate": training.learning_rate or rate,
            "schedule": training.schedule or ("warmup" if warm else "constant"),
        }

    @classmethod
    def parse(cls, raw: Any) -> Self:
        """Validate plain data; one line for each thing that is wrong: field, value, what is allowed."""
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise InputError(explain(error)) from None

    @classmethod
    def from_toml(cls, path: str | Path, overrides: dict[str, Any] | None = None) -> Self:
        """Read a configuration file; `overrides` are values by dotted field, e.g. {"network.neurons": 500}."""
        try:
            raw = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path}: no such file") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"{path}: {error}; allowed: a TOML configuration") from None
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
        import torch

        digest = hashlib.sha256(f"{self.seed}/{purpose}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))

    def build(self) -> "Network":
        """The network before training."""
        import torch

        from rni import vectors, weights
        from rni.activation import make
        from rni.network import Network
        from rni.task import Integration

        part, channels = self.network, len(self.task.decays)
        options = part.vectors.model_dump(exclude={"name", "value"})
        if isinstance(part.vectors, OverlapVectors):
            options["overlap"] = part.vectors.value
        family = vectors.FAMILIES[part.vectors.name]
        encoders, decoders = family(part.neurons, channels, self.stream("vectors"), **options)
        dtype = getattr(torch, part.precision)
        signs = None
        if isinstance(part.weights, DaleWeights):
            signs = weights.dale_signs(part.neurons, part.weights.inhibitory, self.stream("signs"))
        w = weights.random_matrix(part.neurons, part.initial_radius, self.stream("weights"), signs).to(dtype)
        recurrent = weights.Dense(w) if signs is None else weights.Dale(w, signs)
        drawn = {key: self._drawn(key, value) for key, value in part.activation if key != "name"}
        f = make(part.activation.name, **drawn)
        return Network(Integration(self.task.decays, self.task.scales), encoders, decoders, recurrent, f)

    def loss(self) -> "Loss":
        """The loss that training minimises."""
        import torch
        from scipy.linalg import toeplitz

        from rni.losses import AveragedLoss, BatchLoss
        from rni.task import Integration

        training, task = self.training, Integration(self.task.decays, self.task.scales)
        covariance = torch.tensor(toeplitz(training.correlation)) if training.correlation else None
        if training.loss == "averaged":
            return AveragedLoss(task, training.duration, covariance)
        return BatchLoss(task, training.duration, training.batch, covariance)

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
                raise InputError(f"Specification.{section}: {part!r}; allowed: a table")
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


def _smallest_eigenvalue(correlation: tuple[float, ...]) -> float:
    from scipy.linalg import eigvalsh, toeplitz

    return float(eigvalsh(toeplitz(correlation))[0])


def _require(condition: bool, field: str, value: Any, allowed: str) -> None:
    if not condition:
        raise ValueError(f"{field}: {value!r}; allowed: {allowed}")
