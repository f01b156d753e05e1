"""Encoders and decoders: pairs of (neurons, channels) matrices in float64, column c for channel c.

Each set of vectors is a function, and a configuration whose method `draw` calls the function.

>>> list(rni.vectors.VECTORS.parts)
['independent', 'overlap', 'orthonormal', 'supports']
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from rni.core.errors import InputError, require_whole
from rni.core.registry import Number, Positive, Registry, part
from rni.core.rng import require_generator

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    from rni.core.lazy import torch

__all__ = ["VECTORS", "VectorSet", "Vectors", "independent", "on_supports", "orthonormal", "overlapping"]

Norms = float | Sequence[float]


class Vectors(NamedTuple):
    r"""Encoders :math:`e_c` and decoders :math:`d_c`, each (neurons, channels).

    >>> vectors = rni.vectors.independent(100, 2)
    >>> vectors.encoders.shape, vectors.decoders.shape
    (torch.Size([100, 2]), torch.Size([100, 2]))
    """

    encoders: "Tensor"
    decoders: "Tensor"


def independent(
    neurons: int,
    channels: int,
    generator: "Generator | None" = None,
    *,
    encoder_norm: Norms = 1.0,
    decoder_norm: Norms = 1.0,
) -> Vectors:
    """Draw encoders and decoders with independent Gaussian directions, as the paper does.

    A norm is one number, or one number for each channel.

    >>> e, d = rni.vectors.independent(1000, 2, torch.Generator().manual_seed(0), decoder_norm=2.0)
    >>> e.norm(dim=0).round(decimals=6).tolist(), d.norm(dim=0).round(decimals=6).tolist()
    ([1.0, 1.0], [2.0, 2.0])
    """
    _require_sizes(neurons, channels, generator)
    return Vectors(
        _directions(neurons, channels, generator) * _row(encoder_norm, channels),
        _directions(neurons, channels, generator) * _row(decoder_norm, channels),
    )


def overlapping(
    neurons: int,
    channels: int,
    generator: "Generator | None" = None,
    *,
    overlap: float,
    encoder_norm: Norms = 1.0,
    decoder_norm: Norms = 1.0,
) -> Vectors:
    r"""Draw decoders that overlap with the encoders.

    .. math:: d \leftarrow o\,e + (1 - o)\,d

    The decoders are then scaled to `decoder_norm`. The paper calls :math:`o` the overlap. The cosine between an encoder
    and its decoder is near :math:`o / \sqrt{o^2 + (1 - o)^2}`.

    >>> e, d = rni.vectors.overlapping(10_000, 1, torch.Generator().manual_seed(0), overlap=0.8)
    >>> round(float(e.T @ d), 2), round(rni.theory.recipe_cosine(0.8), 2)
    (0.97, 0.97)
    """
    if not isinstance(overlap, int | float) or not 0 <= overlap <= 1:
        raise InputError("overlap", overlap, "a number from 0 to 1")
    encoders, decoders = independent(neurons, channels, generator)
    decoders = _unit(overlap * encoders + (1 - overlap) * decoders)
    return Vectors(encoders * _row(encoder_norm, channels), decoders * _row(decoder_norm, channels))


def orthonormal(neurons: int, channels: int, generator: "Generator | None" = None) -> Vectors:
    """Draw encoders and decoders that are all orthonormal to each other.

    >>> e, d = rni.vectors.orthonormal(100, 3, torch.Generator().manual_seed(0))
    >>> float((e.T @ d).abs().max()) < 1e-12
    True
    """
    _require_sizes(neurons, channels, generator)
    _require_neurons(neurons, channels)
    basis = torch.linalg.qr(_gaussian(neurons, 2 * channels, generator=generator)).Q
    return Vectors(basis[:, :channels].contiguous(), basis[:, channels:].contiguous())


SupportKind = Literal["same", "overlap", "disjoint", "encoders", "decoders"]
FRACTION = 0.6  # the default size of an overlapping support, as a fraction of the neurons


def on_supports(
    neurons: int,
    channels: int,
    generator: "Generator | None" = None,
    *,
    kind: SupportKind = "same",
    fraction: float = FRACTION,
) -> Vectors:
    """Draw vectors that are nonzero only on a part of the neurons, their support (Fig 11).

    Nonzero elements are Gaussian with variance 1 / (size of the support). The network is divided into equal parts, in
    the order of the neurons. For D channels, the kinds of supports are:

    - same: the encoder and the decoder of channel c have the c-th of D parts as their support;
    - overlap: they have the c-th of D evenly shifted ranges of `fraction` * neurons neurons, so that supports overlap;
    - disjoint: each encoder and each decoder has its own of 2D parts;
    - encoders: the encoders have D parts, and the decoders all neurons;
    - decoders: the decoders have D parts, and the encoders all neurons.

    >>> e, d = rni.vectors.on_supports(6, 2, kind="disjoint")
    >>> (e != 0).int().T.tolist(), (d != 0).int().T.tolist()
    ([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]], [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
    """
    _require_sizes(neurons, channels, generator)
    _require_supports(neurons, channels, fraction)
    parts = _parts(neurons, channels)
    halves = _parts(neurons, 2 * channels)
    width = round(fraction * neurons)
    shifts = [round(c * (neurons - width) / max(1, channels - 1)) for c in range(channels)]
    stretches = [range(shift, shift + width) for shift in shifts]
    anywhere = [range(neurons)] * channels
    supports: dict[str, tuple[list[range], list[range]]] = {
        "same": (parts, parts),
        "overlap": (stretches, stretches),
        "disjoint": (halves[:channels], halves[channels:]),
        "encoders": (parts, anywhere),
        "decoders": (anywhere, parts),
    }
    if kind not in supports:
        raise InputError("kind", kind, ", ".join(supports))
    encoder_supports, decoder_supports = supports[kind]
    return Vectors(_supported(neurons, encoder_supports, generator), _supported(neurons, decoder_supports, generator))


@part
class VectorSet(ABC):
    """Base class of the configurations of encoders and decoders.

    A set of vectors from outside the package is a subclass in a file of its own. A configuration names it as
    ``module:Class``.

    Examples
    --------
    >>> vectors = rni.vectors.VECTORS.build({"name": "overlap", "value": 0.4})
    >>> vectors.draw(100, 2, torch.Generator().manual_seed(0)).encoders.shape
    torch.Size([100, 2])
    """

    @property
    def name(self) -> str:
        """The registered name, or ``module:Class`` for a set of vectors from outside the package."""
        return VECTORS.name(self)

    @abstractmethod
    def draw(self, neurons: int, channels: int, generator: "Generator") -> Vectors:
        """Draw the encoders and decoders, each (neurons, channels) in float64."""

    def check(self, neurons: int, channels: int) -> None:  # noqa: B027
        """Raise an `InputError` if there are no such vectors for these sizes."""


VECTORS: Registry[VectorSet] = Registry("vectors", VectorSet)


@VECTORS.register("independent")
@part
class Independent(VectorSet):
    """Independent Gaussian directions, see `independent`."""

    encoder_norm: Positive = 1.0
    decoder_norm: Positive = 1.0

    def draw(self, neurons: int, channels: int, generator: "Generator") -> Vectors:
        norms = {"encoder_norm": self.encoder_norm, "decoder_norm": self.decoder_norm}
        return independent(neurons, channels, generator, **norms)


@VECTORS.register("overlap")
@part
class Overlap(VectorSet):
    """Decoders that overlap with the encoders by `value`, see `overlapping`."""

    value: Annotated[Number, Field(ge=0, le=1)]
    encoder_norm: Positive = 1.0
    decoder_norm: Positive = 1.0

    def draw(self, neurons: int, channels: int, generator: "Generator") -> Vectors:
        norms = {"encoder_norm": self.encoder_norm, "decoder_norm": self.decoder_norm}
        return overlapping(neurons, channels, generator, overlap=self.value, **norms)


@VECTORS.register("orthonormal")
@part
class Orthonormal(VectorSet):
    """Orthonormal encoders and decoders, see `orthonormal`."""

    def draw(self, neurons: int, channels: int, generator: "Generator") -> Vectors:
        return orthonormal(neurons, channels, generator)

    def check(self, neurons: int, channels: int) -> None:
        _require_neurons(neurons, channels)


@VECTORS.register("supports")
@part
class Supports(VectorSet):
    """Vectors that are nonzero only on parts of the network, see `on_supports`."""

    kind: SupportKind = "same"
    fraction: Annotated[Number, Field(gt=0, le=1)] | None = None

    @field_validator("fraction")
    @classmethod
    def _only_for_overlap(cls, fraction: float | None, info: ValidationInfo) -> float | None:
        kind = info.data.get("kind")
        if fraction is not None and kind != "overlap":
            raise InputError("fraction", fraction, f"none for the kind {kind!r}, only for 'overlap'")
        return fraction

    def draw(self, neurons: int, channels: int, generator: "Generator") -> Vectors:
        return on_supports(neurons, channels, generator, kind=self.kind, fraction=self.fraction or FRACTION)

    def check(self, neurons: int, channels: int) -> None:
        _require_supports(neurons, channels, self.fraction or FRACTION)


def _require_sizes(neurons: int, channels: int, generator: "Generator | None") -> None:
    require_whole("neurons", neurons, 1)
    require_whole("channels", channels, 1)
    require_generator(generator)


def _require_neurons(neurons: int, channels: int) -> None:
    if neurons < 2 * channels:
        raise InputError("neurons", neurons, f"at least {2 * channels} for {channels} such channels")


def _require_supports(neurons: int, channels: int, fraction: float) -> None:
    _require_neurons(neurons, channels)
    if not 1 / channels <= fraction <= 1:
        raise InputError("fraction", fraction, f"from {1 / channels:.3g} (1 / channels) to 1")


def _parts(neurons: int, number: int) -> list[range]:
    edges = [round(k * neurons / number) for k in range(number + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def _supported(neurons: int, supports: list[range], generator: "Generator | None") -> "Tensor":
    vectors = torch.zeros(neurons, len(supports), dtype=torch.float64)
    for c, support in enumerate(supports):
        values = _gaussian(len(support), generator=generator) / len(support) ** 0.5
        vectors[support.start : support.stop, c] = values
    return vectors


def _gaussian(*shape: int, generator: "Generator | None") -> "Tensor":
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _directions(neurons: int, channels: int, generator: "Generator | None") -> "Tensor":
    return _unit(_gaussian(neurons, channels, generator=generator))


def _unit(vectors: "Tensor") -> "Tensor":
    return vectors / vectors.norm(dim=0)


def _row(norms: Norms, channels: int) -> "Tensor":
    with suppress(TypeError, ValueError, RuntimeError):
        row = torch.as_tensor(norms, dtype=torch.float64)
        if row.shape in ((), (channels,)) and bool(((row > 0) & (row < torch.inf)).all()):
            return row
    raise InputError("norms", norms, f"a positive number, or {channels} of them, one for each channel")
