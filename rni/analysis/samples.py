"""Samples from a network or a recording, and which of them can't be used."""

import numpy as np
import torch
from torch import Tensor

from rni.analysis.effective import RECENT
from rni.core.errors import InputError


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


def require_unit(**samples: Tensor) -> None:
    """Refuse numbers whose squares can't be added up."""
    for name, values in samples.items():
        largest = float(values.double().abs().max())
        if largest and not 1e-100 < largest < 1e100:
            raise InputError(f"{name}: up to {largest:.2g}; allowed: from 1e-100 to 1e100, so change the unit")


def require_steps(inputs: Tensor) -> None:
    """Refuse sequences in which nothing could be remembered for longer than what counts as forgotten."""
    if inputs.shape[1] <= RECENT:
        raise InputError(f"inputs: {inputs.shape[1]} steps; allowed: {RECENT + 1} or more, or decays can't be found")


def require_independent(inputs: Tensor, what: str) -> None:
    """Refuse inputs, or changes of inputs, of which the integrals can't be told apart by their decays."""
    channels, rank = inputs.shape[2], int(torch.linalg.matrix_rank(inputs.double().flatten(0, 1)))
    if rank < channels:
        raise InputError(f"inputs: {what} along {rank} directions; allowed: {channels}, as many as channels")


def given_inputs(inputs: Tensor | np.ndarray, channels: int) -> Tensor:
    """(batch, time, channels), finite, with something in each channel; refuses others."""
    allowed = f"finite real numbers, (batch, time, {channels}) or (time, {channels})"
    try:
        x = torch.as_tensor(inputs)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"inputs: {type(inputs).__name__}; allowed: {allowed}") from None
    x = x[None] if x.ndim == 2 else x
    if x.ndim != 3 or x.shape[2] != channels or not x.numel() or x.is_complex() or not bool(torch.isfinite(x).all()):
        raise InputError(f"inputs: shape {tuple(x.shape)}; allowed: {allowed}")
    if empty := [str(c + 1) for c in range(channels) if not bool(x[..., c].any())]:
        raise InputError(f"inputs: 0 throughout in channel {', '.join(empty)}; allowed: inputs in each channel")
    require_unit(inputs=x)
    return x
