r"""Products of large float32 matrices with the widest instructions of the processor.

torch leaves matrix products to MKL, which uses AVX-512 on some processors, and instructions of half the width on others
that support AVX-512. oneDNN, which is also part of torch, uses AVX-512 on all of them. This is the only module that
calls oneDNN, through a private operator of torch.
"""

import os

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

SMALLEST = 7_000_000  # multiplications, below which a call of oneDNN costs more than it saves
FEWEST = 16  # terms of each sum, likewise
CACHED = 2**20  # numbers that are added at a time, while they are still in the cache

_AVAILABLE = (
    torch.backends.cpu.get_cpu_capability() == "AVX512"
    and os.environ.get("MKL_CBWR", "AUTO") == "AUTO"  # otherwise MKL has to give the bits of other processors
    and not {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"} & os.environ.keys()  # otherwise oneDNN has fewer instructions
    and torch.backends.mkldnn.is_available()
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Compute left @ right, (rows, terms) @ (terms, columns), into `out` if it is given."""
    if not _uses_onednn(left, right, out):
        return torch.mm(left, right, out=out)
    value = _onednn(left, right)
    return value if out is None else out.copy_(value)


def add_product_(total: Tensor, left: Tensor, right: Tensor, factor: float = 1.0) -> Tensor:
    """Add factor * left @ right to total, (rows, columns), in place."""
    if not _uses_onednn(left, right, total):
        return total.addmm_(left, right, alpha=factor)
    rows = max(1, CACHED // total.shape[1])
    for left_rows, total_rows in zip(left.split(rows), total.split(rows), strict=True):
        total_rows.add_(_onednn(left_rows, right), alpha=factor)
    return total


def _onednn(left: Tensor, right: Tensor) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")


def _uses_onednn(left: Tensor, right: Tensor, out: Tensor | None) -> bool:
    """Return whether the product is large, and no autograd, tracing, functorch transform or autocast is active.

    All other products are left to torch, which also raises the errors for shapes that do not fit.
    """
    if not _AVAILABLE or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return False
    if torch._C._get_tracing_state() is not None or torch.compiler.is_compiling():
        return False
    if torch._C._are_functorch_transforms_active() or torch._C._len_torch_dispatch_stack() > 0:
        return False

    matrices = [left, right] if out is None else [left, right, out]
    if not all(type(matrix) in (Tensor, Parameter) and matrix.ndim == 2 for matrix in matrices):
        return False
    (rows, terms), (right_rows, columns) = left.shape, right.shape
    if terms < FEWEST or terms != right_rows or rows * terms * columns < SMALLEST:
        return False
    if out is not None and out.shape != (rows, columns):
        return False
    return all(
        matrix.dtype == torch.float32
        and matrix.is_cpu
        and matrix.layout == torch.strided
        and forward_ad.unpack_dual(matrix).tangent is None
        for matrix in matrices
    )
