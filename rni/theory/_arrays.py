"""What the theory accepts as arrays: tensors, numpy arrays, lists or numbers, always computed in double precision."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rni.core.errors import InputError


def matrix(array: Any, name: str = "array") -> Tensor:
    """A tensor in double precision, of the shape it came with."""
    if isinstance(array, np.ndarray):
        # torch takes neither negative strides nor, without a warning, read-only views such as np.diagonal gives
        array = np.require(array, requirements=["C", "W"])
    try:
        tensor = torch.as_tensor(array)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name}: {type(array).__name__}; allowed: real numbers, all rows of one length") from None
    if tensor.is_complex():
        raise InputError(f"{name}: complex numbers; allowed: real ones")
    # from lists, torch reads single precision
    return tensor.double() if isinstance(array, (Tensor, np.ndarray)) else torch.as_tensor(array, dtype=torch.float64)


def square(array: Any, name: str = "recurrent", neurons: int | None = None) -> Tensor:
    """W or a matrix like it, (neurons, neurons)."""
    values = matrix(array, name)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) != (neurons or len(values) or -1):
        size = neurons or "neurons"
        raise InputError(f"{name}: shape {tuple(values.shape)}; allowed: ({size}, {size})")
    return _finite(values, name)


def columns(vectors: Any, name: str = "vectors", neurons: int | None = None) -> Tensor:
    """Encoders or decoders as (neurons, channels); a single vector (neurons,) is one channel."""
    values = matrix(vectors, name)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.numel() or len(values) != (neurons or len(values)):
        raise InputError(f"{name}: shape {tuple(values.shape)}; allowed: ({neurons or 'neurons'}, channels)")
    return _finite(values, name)


def vector_pair(encoders: Any, decoders: Any, neurons: int | None = None) -> tuple[Tensor, Tensor]:
    """Encoders and decoders, both (neurons, channels)."""
    e, d = columns(encoders, "encoders", neurons), columns(decoders, "decoders", neurons)
    if e.shape != d.shape:
        raise InputError(f"decoders: shape {tuple(d.shape)}; allowed: {tuple(e.shape)}, as the encoders")
    return e, d


def per_channel(values: Any, channels: int, name: str) -> Tensor:
    """Decays or scales as (channels,); one number stands for every channel."""
    values = _finite(matrix(values, name).reshape(-1), name)
    if values.numel() not in (1, channels):
        raise InputError(f"{name}: {values.numel()} values; allowed: 1 or {channels}, one a channel")
    return values.expand(channels)


def whole(value: Any, name: str, least: int = 1) -> int:
    """A number of steps, of neurons or the like."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name}: {value}; allowed: a whole number, at least {least}")
    return int(value)


def precision(*arrays: Any) -> float:
    """The unit in the last place of the least precise numbers given: that of doubles, or of floats where some are."""
    units = [torch.finfo(torch.float64).eps]
    for array in arrays:
        if isinstance(array, Tensor) and array.is_floating_point():
            units.append(torch.finfo(array.dtype).eps)
        elif isinstance(array, np.ndarray) and np.issubdtype(array.dtype, np.floating):
            units.append(float(np.finfo(array.dtype).eps))
    return max(units)


def _finite(values: Tensor, name: str) -> Tensor:
    if not bool(torch.isfinite(values).all()):
        raise InputError(f"{name}: NaN or infinite values; allowed: finite numbers")
    return values
