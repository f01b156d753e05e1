"""Samples from a network or a recording, and which of them can't be used."""

import torch
from torch import Tensor

from rni.errors import InputError


def require_finite(**samples: Tensor) -> None:
    """Refuse missing and infinite samples."""
    if not all(bool(torch.isfinite(values).all()) for values in samples.values()):
        raise InputError(f"{', '.join(samples)}: missing or infinite samples; allowed: finite numbers")


def require_integrals(integrals: Tensor, **samples: Tensor) -> None:
    """Refuse samples that are not (samples, ...), finite, and taken at integrals that span all of the channels."""
    for name, values in samples.items():
        if integrals.ndim != 2 or values.ndim != 2 or len(values) != len(integrals):
            raise InputError(
                f"{name}, integrals: shapes {tuple(values.shape)}, {tuple(integrals.shape)}; "
                "allowed: (samples, ...) and (samples, channels), as many samples in both"
            )
    require_finite(**samples, integrals=integrals)
    channels, rank = integrals.shape[1], int(torch.linalg.matrix_rank(integrals))
    if rank < channels:
        raise InputError(f"integrals: samples along {rank} directions; allowed: {channels}, as many as channels")
