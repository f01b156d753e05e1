r"""Products of float32 matrices with the widest instructions of the processor, whoever made it.

torch leaves them to MKL, which takes AVX-512 on some processors and half as wide instructions on others that have it.
oneDNN, which comes with torch too, asks the processor what it has.
"""

import os

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

SMALLEST, FEWEST = 7_000_000, 16  # multiplications, and terms of each sum: below, a call costs more than it saves
TOGETHER = 2**20  # numbers: what is added at a time is still in the cache


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """left @ right, (rows, terms) @ (terms, columns), into `out` if given."""
    if not _wide(left, right, out):
        return torch.mm(left, right, out=out)
    value = _onednn(left, right)
    return value if out is None else out.copy_(value)


def add_product_(total: Tensor, left: Tensor, right: Tensor, factor: float = 1.0) -> Tensor:
    """total += factor * left @ right, (rows, columns) in place."""
    if not _wide(left, right, total):
        return total.addmm_(left, right, alpha=factor)
    rows = max(1, TOGETHER // total.shape[1])
    for some, part in zip(left.split(rows), total.split(rows), strict=True):
        part.add_(_onednn(some, right), alpha=factor)
    return total


def _onednn(left: Tensor, right: Tensor) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")


def _wide(left: Tensor, right: Tensor, into: Tensor | None) -> bool:
    """Whether the product is one for oneDNN: large, of plain numbers, and watched by nobody.

    All else is torch's, with its errors.
    """
    if not _AVAILABLE or _watched() or not (_matrix(left) and _matrix(right)):
        return False
    (rows, terms), (same, columns) = left.shape, right.shape
    if terms < FEWEST or terms != same or rows * terms * columns < SMALLEST:
        return False
    fits = into is None or (_matrix(into) and into.shape == (rows, columns))
    return fits and _plain(left) and _plain(right) and (into is None or _plain(into))


def _watched() -> bool:
    """Whether somebody differentiates, converts, records or counts what torch does."""
    return (
        torch.is_grad_enabled()
        or torch._C._get_tracing_state() is not None
        or torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch.is_autocast_enabled("cpu")
    )


def _matrix(values: Tensor) -> bool:
    """Of torch's own kind, not one that stands for another."""
    return type(values) in _KINDS and values.ndim == 2


def _plain(values: Tensor) -> bool:
    """float32 on the CPU, without a tangent."""
    own = values.dtype == torch.float32 and values.is_cpu and values.layout == torch.strided
    return own and forward_ad.unpack_dual(values).tangent is None


_KINDS = (Tensor, Parameter)
_AVAILABLE = (
    torch.backends.cpu.get_cpu_capability() == "AVX512"
    and os.environ.get("MKL_CBWR", "AUTO") == "AUTO"  # else MKL is asked for the bits of other processors
    and not {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"} & os.environ.keys()  # else oneDNN has fewer instructions
    and torch.backends.mkldnn.is_available()
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)
