"""Signals of the user's own."""

from pathlib import Path
from typing import TYPE_CHECKING

from rni.cli.files import require_kind
from rni.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


def read_inputs(path: Path, channels: int) -> "Tensor":
    """Finite numbers, (batch, time, channels) or (time, channels)."""
    import numpy as np

    from rni.core.tensors import real, require_file

    require_file(path)
    require_kind(path, ["array"], "an array, X.npy, as numpy.save writes it")
    try:
        with path.open("rb") as file:
            x = np.load(file, allow_pickle=False)
    except Exception:  # numpy raises whatever its reader stumbles on
        raise InputError(f"{path}: can't be read; allowed: an array written by numpy.save") from None
    if not isinstance(x, np.ndarray):
        raise InputError(f"{path}: several arrays; allowed: one, written by numpy.save")
    fits = x.ndim in (2, 3) and x.shape[-1] == channels and x.size
    if x.dtype.kind not in "fiub" or not fits or not np.isfinite(x).all():
        allowed = f"finite numbers, (batch, time, {channels}) or (time, {channels})"
        some = f"{x.dtype} of shape {x.shape}" if x.dtype.kind not in "fiub" or not fits else "NaN or infinite values"
        raise InputError(f"{path}: {some}; allowed: {allowed}")
    return real(str(path), x)
