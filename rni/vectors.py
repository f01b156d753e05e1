r"""Encoders and decoders: pairs of (neurons, channels) matrices in float64, column c for channel c."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from rni.errors import InputError

Norms = float | Sequence[float]


class Vectors(NamedTuple):
    """Encoders $e_c$ and decoders $d_c$, each (neurons, channels)."""

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
    """Independent Gaussian directions, of norm 1 unless told otherwise: the paper's default."""
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
    """
    encoders, decoders = independent(neurons, channels, generator)
    decoders = _unit(overlap * encoders + (1 - overlap) * decoders)
    return Vectors(encoders * _row(encoder_norm, channels), decoders * _row(decoder_norm, channels))


def orthonormal(neurons: int, channels: int, generator: Generator | None = None) -> Vectors:
    """2D orthonormal vectors: encoders and decoders exactly orthogonal to each other and among themselves."""
    if neurons < 2 * channels:
        raise InputError(f"neurons: {neurons}; allowed: at least {2 * channels} for {channels} orthonormal channels")
    basis = torch.linalg.qr(_gaussian(neurons, 2 * channels, generator=generator)).Q
    return Vectors(basis[:, :channels].contiguous(), basis[:, channels:].contiguous())


SupportKind = Literal["same", "overlap", "disjoint", "decoders"]


def on_supports(
    neurons: int,
    channels: int,
    generator: Generator | None = None,
    *,
    kind: SupportKind = "same",
    fraction: float = 0.6,
) -> Vectors:
    """Vectors that live on parts of the network, with variance 1 / (support size) (Fig 11).

    same: encoder and decoder of channel c on the c-th of D equal parts; overlap: on the c-th of D stretches of
    `fraction` n neurons, evenly shifted, so that neighbours share neurons; disjoint: encoder and decoder of every
    channel on different ones of 2D equal parts; decoders: decoders on D equal parts, encoders anywhere.
    """
    if neurons < 2 * channels:
        raise InputError(
            f"neurons: {neurons}; allowed: at least {2 * channels} for the supports of {channels} channels"
        )
    if not 1 / channels <= fraction <= 1:
        raise InputError(f"fraction: {fraction}; allowed: from {1 / channels:.3g} (1 / channels) to 1")
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
        "decoders": (anywhere, parts),
    }
    if kind not in supports:
        raise InputError(f"kind: {kind!r}; allowed: {', '.join(supports)}")
    encoder_supports, decoder_supports = supports[kind]
    return Vectors(_supported(neurons, encoder_supports, generator), _supported(neurons, decoder_supports, generator))


FAMILIES: dict[str, Callable[..., Vectors]] = {
    "independent": independent,
    "overlap": overlapping,
    "orthonormal": orthonormal,
    "supports": on_supports,
}


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
    row = torch.as_tensor(norms, dtype=torch.float64)
    if row.ndim > 1 or (row.ndim == 1 and len(row) != channels) or not bool((row > 0).all()):
        raise InputError(f"norms: {norms}; allowed: a positive number, or {channels} of them, one for each channel")
    return row
