r"""Products of float32 matrices with the widest instructions of the processor, whoever made it.

torch leaves them to MKL, which takes AVX-512 on some processors and half as wide instructions on others that have it.
oneDNN, which comes with torch too, asks the processor what it has.
"""

import os

import torch
from torch import Tensor
from torch.autograd import forward_ad

SMALLEST, FEWEST = 2**21, 16  # multiplications, and terms of each sum: below, a call costs more than it saves
TOGETHER = 2**20  # numbers: what is added at a time is still in the cache


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """left @ right, into `out` if given."""
    if not _wide(left, right):
        return torch.mm(left, right, out=out)
    value = _onednn(left, right)
    return value if out is None else out.copy_(value)


def add_product_(total: Tensor, left: Tensor, right: Tensor, factor: float = 1.0) -> Tensor:
    """total += factor * left @ right, in place."""
    if not _wide(left, right):
        return total.addmm_(left, right, alpha=factor)
    rows = max(1, TOGETHER // total.shape[1])
    for some, part in zip(left.split(rows), total.split(rows), strict=True):
        part.add_(_onednn(some, right), alpha=factor)
    return total


def _onednn(left: Tensor, right: Tensor) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")


def _wide(left: Tensor, right: Tensor) -> bool:
    """Whether the product is one for oneDNN: large, of plain numbers, with nobody who differentiates or records it."""
    if torch.is_grad_enabled() or torch.jit.is_tracing() or torch.compiler.is_compiling() or not _AVAILABLE:
        return False
    large = left.shape[1] >= FEWEST and left.numel() * right.shape[1] >= SMALLEST
    return large and _plain(left) and _plain(right)


def _plain(values: Tensor) -> bool:
    """float32 on the CPU, without a tangent, which is there without gradients too."""
    return (
        values.dtype == torch.float32 and values.device.type == "cpu" and forward_ad.unpack_dual(values).tangent is None
    )


_AVAILABLE = (
    torch.backends.cpu.get_cpu_capability() == "AVX512"
    and os.environ["MKL_CBWR"] == "AUTO"  # else MKL is asked for the bits of other processors
    and torch.backends.mkldnn.is_available()
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)
