"""Checks of arrays: their numbers, shapes and sizes.

Public functions and readers of files call these functions once, where an array enters the package. The code inside the
package trusts its arrays.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rni.core import memory
from rni.core.errors import InputError

_SINGLE = (torch.float16, torch.bfloat16, torch.float32)
_DOUBLE = (torch.float64, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def as_real_tensor(field: str, values: Any) -> Tensor:
    """Convert real numbers of any kind to a plain float32 or float64 tensor on the CPU.

    float16, bfloat16 and float32 become float32. All other real numbers, also those of Python, become float64. A tensor
    keeps its autograd graph.

    Parameters
    ----------
    field : str
        The name of the array in the error message.
    values : Tensor, array, sequence or number
        Real numbers.

    Raises
    ------
    InputError
        If the values are not real numbers, if the rows of a sequence differ in length, or if the tensor does not fit
        into memory.

    Examples
    --------
    >>> from rni.core.arrays import as_real_tensor
    >>> as_real_tensor("scales", [1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    allowed = "an array of real numbers"
    if isinstance(values, Tensor):
        if values.layout != torch.strided or values.is_quantized or values.is_meta or values.is_nested:
            raise InputError(field, "a sparse, quantized, nested or meta tensor", "a plain tensor of real numbers")
        if values.dtype not in _SINGLE + _DOUBLE:
            raise InputError(field, str(values.dtype), allowed)
        _require_memory(field, values.numel(), values.shape)
        return values.cpu().to(torch.float32 if values.dtype in _SINGLE else torch.float64)

    kind = values.dtype.name if isinstance(values, np.ndarray) else type(values).__name__
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # rows of unequal length, tensors with a graph
        raise InputError(field, kind, allowed) from None
    if array.dtype.kind not in "biuf":
        raise InputError(field, kind, allowed)
    _require_memory(field, array.size, array.shape)
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    # torch accepts neither negative strides nor, without a warning, arrays that are read-only
    return torch.from_numpy(np.require(array, np.float32 if single else np.float64, ["C", "W"]))


def _require_memory(field: str, size: int, shape: tuple[int, ...]) -> None:
    memory.require(4 * size, f"{field}: shape {tuple(shape)}", "a smaller one")


def as_matrix(field: str, values: Any, neurons: int | None = None) -> Tensor:
    """Convert recurrent weights to a finite float64 tensor (neurons, neurons)."""
    matrix = as_real_tensor(field, values).double()
    size = neurons or "neurons"
    require_shape(field, matrix, size, size)
    require_finite(field, matrix)
    return matrix


def as_columns(field: str, values: Any, neurons: int | None = None) -> Tensor:
    """Convert encoders or decoders to a finite float64 tensor (neurons, channels). One vector is one channel."""
    vectors = as_real_tensor(field, values).double()
    if vectors.ndim == 1:
        vectors = vectors[:, None]
    require_shape(field, vectors, neurons or "neurons", "channels")
    require_finite(field, vectors)
    return vectors


def as_vector_pair(encoders: Any, decoders: Any, neurons: int | None = None) -> tuple[Tensor, Tensor]:
    """Convert encoders and decoders to finite float64 tensors of one shape, (neurons, channels)."""
    e, d = as_columns("encoders", encoders, neurons), as_columns("decoders", decoders, neurons)
    require_shape("decoders", d, *e.shape)
    return e, d


def as_row(field: str, values: Any, channels: int) -> Tensor:
    """Convert decays or scales to a finite float64 tensor (channels,). One number stands for all channels."""
    row = as_real_tensor(field, values).double().reshape(-1)
    if len(row) not in (1, channels):
        raise InputError(field, row.tolist(), f"1 or {channels} numbers", problem=f"{len(row)} numbers")
    require_finite(field, row)
    return row.expand(channels)


def require_shape(field: str, values: Tensor | np.ndarray, *shape: int | str) -> None:
    """Raise an error if an array does not have the given shape.

    Parameters
    ----------
    field : str
        The name of the array in the error message.
    values : Tensor or array
        The array.
    *shape : int or str
        One entry for each dimension. A number is the length of the dimension. A name stands for any length from 1 on,
        and dimensions of the same name have the same length. "..." as the first entry stands for any dimensions.

    Raises
    ------
    InputError
        If the array has another shape. The shape is the `value` of the error.

    Examples
    --------
    >>> from rni.core.arrays import require_shape
    >>> require_shape("recurrent", torch.zeros(3, 3), "neurons", "neurons")
    >>> require_shape("decoders", torch.zeros(3, 2), "neurons", 1)
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: decoders: shape (3, 2); allowed: (neurons, 1)
    """
    lengths, dimensions = tuple(values.shape), shape
    if shape[0] == "...":
        dimensions = shape[1:]
        lengths = lengths[-len(dimensions) :]

    fits = len(lengths) == len(dimensions)
    length_of: dict[str, int] = {}
    for length, dimension in zip(lengths, dimensions, strict=False):
        expected = dimension if isinstance(dimension, int) else length_of.setdefault(dimension, max(1, length))
        fits = fits and length == expected
    if not fits:
        allowed = f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
        given = tuple(values.shape)
        raise InputError(field, given, allowed, problem=f"shape {given}")


def require_finite(field: str, values: Tensor) -> None:
    """Raise an error if an array contains NaN or infinite values."""
    if not bool(torch.isfinite(values).all()):
        raise InputError(field, None, "finite numbers", problem="NaN or infinite values")


def require_independent_columns(field: str, values: Tensor) -> None:
    """Raise an error if the columns of a matrix (rows, columns) are linearly dependent. `value` is the rank."""
    columns, rank = values.shape[1], int(torch.linalg.matrix_rank(values))
    if rank < columns:
        raise InputError(field, rank, f"{columns} linearly independent columns", problem=f"rank {rank}")


def require_squarable(field: str, values: Tensor) -> None:
    """Raise an error if the sum of the squares of the values could overflow or underflow in float64."""
    largest = float(values.double().abs().max())
    if largest and not 1e-100 < largest < 1e100:
        allowed = "a largest value between 1e-100 and 1e100, for example in another unit"
        raise InputError(field, largest, allowed, problem=f"largest value {largest:.2g}")
