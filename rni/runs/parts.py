"""The parts of a specification: task, network and training, each field with its range and default."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

Numbers = Annotated[tuple[float, ...], Strict(False)]
Positive = Annotated[float, Field(gt=0)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Task(Part):
    """Decays and scales, one for each channel."""

    decays: Annotated[Numbers, Field(min_length=1, max_length=1000)]
    scales: Numbers = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        require(all(0 <= g <= 1 for g in self.decays), "decays", self.decays, "numbers between 0 and 1")
        if not self.scales:
            object.__setattr__(self, "scales", (1.0,) * len(self.decays))
        require(len(self.scales) == len(self.decays), "scales", self.scales, f"{len(self.decays)}, one for each decay")
        return self


class Normal(Part):
    """A parameter that differs between neurons: Gaussian, drawn once from the seed."""

    mean: float
    deviation: Annotated[float, Field(ge=0)]


class LinearActivation(Part):
    name: Literal["linear"] = "linear"


class ReLUActivation(Part):
    name: Literal["relu"] = "relu"


class TanhActivation(Part):
    name: Literal["tanh"] = "tanh"


class SigmoidActivation(Part):
    name: Literal["sigmoid"] = "sigmoid"
    slope: Positive | Normal = 50.0
    threshold: float | Normal = 0.1


class SoftplusActivation(Part):
    name: Literal["softplus"] = "softplus"
    slope: Positive | Normal = 50.0


class RectifiedPowerActivation(Part):
    name: Literal["rectified_power"] = "rectified_power"
    exponent: Annotated[float, Field(gt=1)] | Normal = 2.0


class IndependentVectors(Part):
    name: Literal["independent"] = "independent"
    encoder_norm: Positive = 1.0
    decoder_norm: Positive = 1.0


class OverlapVectors(IndependentVectors):
    name: Literal["overlap"] = "overlap"  # pyright: ignore[reportIncompatibleVariableOverride]
    value: Annotated[float, Field(ge=0, le=1)]


class OrthonormalVectors(Part):
    name: Literal["orthonormal"] = "orthonormal"


class SupportVectors(Part):
    name: Literal["supports"] = "supports"
    kind: Literal["same", "overlap", "disjoint", "decoders"] = "same"
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.6


class DenseWeights(Part):
    name: Literal["dense"] = "dense"


class DaleWeights(Part):
    name: Literal["dale"] = "dale"
    inhibitory: Annotated[float, Field(ge=0, le=1)] = 0.25


class LowRankWeights(Part):
    name: Literal["lowrank"] = "lowrank"
    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = None


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
WeightsPart = Annotated[DenseWeights | DaleWeights | LowRankWeights, *_by_name]


class NetworkPart(Part):
    """The network before training."""

    neurons: Annotated[int, Field(ge=2, le=1_000_000)] = 1000
    activation: ActivationPart = ReLUActivation()
    vectors: VectorsPart = IndependentVectors()
    weights: WeightsPart = DenseWeights()
    initial_radius: Annotated[float, Field(ge=0, le=1e3)] = 0.0
    precision: Literal["float32", "float64"] = "float32"


class Training(Part):
    """How it is trained. `learning_rate` is for the paper's loss, summed over time and channels.

    `threads`: on which the bits depend, so that they are a field like the others. More than one pays for dense weights
    of several thousand neurons.
    """

    loss: Literal["batch", "averaged", "proxy"] = "batch"
    duration: Annotated[int, Field(ge=1, le=10_000)] = 3
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 32
    correlation: Numbers = ()
    points: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    bounds: Numbers = ()
    current_weight: Annotated[float, Field(ge=0)] = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: Positive | None = None
    schedule: Literal["constant", "warmup", "cosine"] | None = None
    steps: Annotated[int, Field(ge=0, le=1_000_000_000)] = 5000
    stop_loss: Annotated[float, Field(ge=0)] = 0.0
    train: Literal["recurrent", "recurrent+decoders", "decoders", "all"] = "recurrent"
    threads: Annotated[int, Field(ge=1, le=1024)] = 1


def require(condition: bool, field: str, value: Any, allowed: str) -> None:
    """Refuse a value in the words of an error message, which `explain` puts behind the place of the field."""
    if not condition:
        raise ValueError(f"{field}: {value!r}; allowed: {allowed}")
