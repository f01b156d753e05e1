"""What the theory accepts as arrays: tensors, numpy arrays or numbers, always computed in double precision."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rni.errors import InputError


def matrix(array: Any) -> Tensor:
    """A tensor in double precision, of the shape it came with."""
    if isinstance(array, np.ndarray):
        # torch takes neither negative strides nor, without a warning, read-only views such as np.diagonal gives
        array = np.require(array, requirements=["C", "W"])
    return torch.as_tensor(array, dtype=torch.float64)


def columns(vectors: Any) -> Tensor:
    """Encoders or decoders as (neurons, channels); a single vector (neurons,) is one channel."""
    vectors = matrix(vectors)
    return vectors[:, None] if vectors.ndim == 1 else vectors


def per_channel(values: Any, channels: int, name: str) -> Tensor:
    """Decays or scales as (channels,); one number stands for every channel."""
    values = matrix(values).reshape(-1)
    if values.numel() not in (1, channels):
        raise InputError(f"{name}: {values.numel()} values; allowed: 1 or {channels}, one a channel")
    return values.expand(channels)
