r"""Encoders and decoders: pairs of (neurons, channels) matrices in float64, column c for channel c.

Each kind is a function, and a part of a specification that draws by it.

>>> list(rni.vectors.VECTORS.parts)
['independent', 'overlap', 'orthonormal', 'supports']
"""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Generator, Tensor

from rni.core.errors import InputError, require_whole
from rni.core.parts import Choice, Family, Positive, require
from rni.core.rng import require_generator

__all__ = ["VECTORS", "Vectors", "VectorsPart", "independent", "on_supports", "orthonormal", "overlapping"]

Norms = float | Sequence[float]


class Vectors(NamedTuple):
    """Encoders $e_c$ and decoders $d_c$, each (neurons, channels).

    >>> vectors = rni.vectors.independent(100, 2)
    >>> vectors.encoders.shape, vectors.decoders.shape
    (torch.Size([100, 2]), torch.Size([100, 2]))
    """

    encoders: Tensor
    decoders: Tensor


def independent(
    neurons: int,
    channels: int,
    generator: Generator | None = None,
    *,
    encoder_norm: Norms = 1.0,
    decoder_norm: Norms = 1.0,
) -> Vectors:
    """Independent Gaussian directions, of norm 1 unless told otherwise: the paper's default.

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
    generator: Generator | None = None,
    *,
    overlap: float,
    encoder_norm: Norms = 1.0,
    decoder_norm: Norms = 1.0,
) -> Vectors:
    r"""$d \leftarrow o\,e + (1-o)\,d$, then rescaled: the paper's recipe for an overlap beyond $n^{-1/2}$.

    The paper calls $o$ the overlap; the cosine that the recipe gives is near $o / \sqrt{o^2 + (1-o)^2}$.

    >>> e, d = rni.vectors.overlapping(10_000, 1, torch.Generator().manual_seed(0), overlap=0.8)
    >>> round(float(e.T @ d), 2), round(rni.theory.recipe_cosine(0.8), 2)
    (0.97, 0.97)
    """
    if not isinstance(overlap, int | float) or not 0 <= overlap <= 1:
        raise InputError(f"overlap: {overlap!r}; allowed: a number from 0 to 1")
    encoders, decoders = independent(neurons, channels, generator)
    decoders = _unit(overlap * encoders + (1 - overlap) * decoders)
    return Vectors(encoders * _row(encoder_norm, channels), decoders * _row(decoder_norm, channels))


def orthonormal(neurons: int, channels: int, generator: Generator | None = None) -> Vectors:
    """2D orthonormal vectors: encoders and decoders exactly orthogonal to each other and among themselves.

    >>> e, d = rni.vectors.orthonormal(100, 3, torch.Generator().manual_seed(0))
    >>> float((e.T @ d).abs().max()) < 1e-12
    True
    """
    _require_sizes(neurons, channels, generator)
    _require_neurons(neurons, channels)
    basis = torch.linalg.qr(_gaussian(neurons, 2 * channels, generator=generator)).Q
    return Vectors(basis[:, :channels].contiguous(), basis[:, channels:].contiguous())


SupportKind = Literal["same", "overlap", "disjoint", "encoders", "decoders"]
FRACTION = 0.6  # of the neurons, for one of the overlapping supports


def on_supports(
    neurons: int,
    channels: int,
    generator: Generator | None = None,
    *,
    kind: SupportKind = "same",
    fraction: float = FRACTION,
) -> Vectors:
    """Vectors that live on parts of the network, with variance 1 / (support size) (Fig 11).

    same: encoder and decoder of channel c on the c-th of D equal parts; overlap: on the c-th of D stretches of
    `fraction` n neurons, evenly shifted, so that neighbours share neurons; disjoint: encoder and decoder of every
    channel on different ones of 2D equal parts; encoders, decoders: these on D equal parts, the others anywhere.

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
        raise InputError(f"kind: {kind!r}; allowed: {', '.join(supports)}")
    encoder_supports, decoder_supports = supports[kind]
    return Vectors(_supported(neurons, encoder_supports, generator), _supported(neurons, decoder_supports, generator))


class VectorsPart(Choice):
    """Vectors as a part of a specification.

    >>> part = rni.vectors.VECTORS.choose({"name": "overlap", "value": 0.4})
    >>> part.draw(100, 2, torch.Generator().manual_seed(0)).encoders.shape
    torch.Size([100, 2])
    """

    @abstractmethod
    def draw(self, neurons: int, channels: int, generator: Generator) -> Vectors:
        """Encoders and decoders."""

    def check(self, neurons: int, channels: int) -> None:
        """Refuse sizes that these vectors can't have."""


VECTORS: Family[VectorsPart] = Family()


class _Normed(VectorsPart):
    encoder_norm: Positive = 1.0
    decoder_norm: Positive = 1.0

    def norms(self) -> dict[str, Norms]:
        return {"encoder_norm": self.encoder_norm, "decoder_norm": self.decoder_norm}


@VECTORS.add("independent")
class Independent(_Normed):
    def draw(self, neurons: int, channels: int, generator: Generator) -> Vectors:
        return independent(neurons, channels, generator, **self.norms())


@VECTORS.add("overlap")
class Overlap(_Normed):
    value: Annotated[float, Field(ge=0, le=1)]

    def draw(self, neurons: int, channels: int, generator: Generator) -> Vectors:
        return overlapping(neurons, channels, generator, overlap=self.value, **self.norms())


@VECTORS.add("orthonormal")
class Orthonormal(VectorsPart):
    def draw(self, neurons: int, channels: int, generator: Generator) -> Vectors:
        return orthonormal(neurons, channels, generator)

    def check(self, neurons: int, channels: int) -> None:
        _require_neurons(neurons, channels)


@VECTORS.add("supports")
class Supports(VectorsPart):
    kind: SupportKind = "same"
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        given = self.fraction is not None and self.kind != "overlap"
        require(not given, "fraction", self.fraction, f"none for the kind {self.kind!r}, only for 'overlap'")
        return self

    def draw(self, neurons: int, channels: int, generator: Generator) -> Vectors:
        return on_supports(neurons, channels, generator, kind=self.kind, fraction=self.fraction or FRACTION)

    def check(self, neurons: int, channels: int) -> None:
        _require_supports(neurons, channels, self.fraction or FRACTION)


def _require_sizes(neurons: int, channels: int, generator: Generator | None) -> None:
    require_whole("neurons", neurons, 1)
    require_whole("channels", channels, 1)
    require_generator(generator)


def _require_neurons(neurons: int, channels: int) -> None:
    require(neurons >= 2 * channels, "neurons", neurons, f"at least {2 * channels} for {channels} such channels")


def _require_supports(neurons: int, channels: int, fraction: float) -> None:
    _require_neurons(neurons, channels)
    require(1 / channels <= fraction <= 1, "fraction", fraction, f"from {1 / channels:.3g} (1 / channels) to 1")


def _parts(neurons: int, number: int) -> list[range]:
    edges = [round(k * neurons / number) for k in range(number + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def _supported(neurons: int, supports: list[range], generator: Generator | None) -> Tensor:
    vectors = torch.zeros(neurons, len(supports), dtype=torch.float64)
    for c, support in enumerate(supports):
        values = _gaussian(len(support), generator=generator) / len(support) ** 0.5
        vectors[support.start : support.stop, c] = values
    return vectors


def _gaussian(*shape: int, generator: Generator | None) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _directions(neurons: int, channels: int, generator: Generator | None) -> Tensor:
    return _unit(_gaussian(neurons, channels, generator=generator))


def _unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.norm(dim=0)


def _row(norms: Norms, channels: int) -> Tensor:
    with suppress(TypeError, ValueError, RuntimeError):
        row = torch.as_tensor(norms, dtype=torch.float64)
        if row.shape in ((), (channels,)) and bool(((row > 0) & (row < torch.inf)).all()):
            return row
    raise InputError(f"norms: {norms}; allowed: a positive number, or {channels} of them, one for each channel")
