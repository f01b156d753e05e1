"""The number of threads of matrix products. The rounding depends on it, so that it is part of a configuration."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from rni.core.memory import control_groups, text_of

if TYPE_CHECKING:
    import torch
    from threadpoolctl import ThreadpoolController
else:
    from rni.core.lazy import torch

LARGE = 2000  # neurons


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Compute the products of torch and NumPy on `number` threads, and afterwards on as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with _libraries(len(sys.modules)).limit(limits=number, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def fitting(neurons: int) -> int:
    """Return the number of threads that is worth its cost. Below some thousand neurons that is one."""
    return 1 if neurons < LARGE else cores()


def cores() -> int:
    """Return the number of cores that this process may use, by its affinity and the quotas of its control groups."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for version, group in control_groups("cpu"):
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version == 1 else ("cpu.max",)
        quota, period, *_ = (*" ".join(text_of(group / name) for name in files).split(), "", "")
        if quota.isdigit() and period.isdigit():  # "max" or -1 if there is no quota
            allowed = min(allowed, max(1, ceil(int(quota) / int(period))))
    return allowed


@lru_cache(maxsize=1)
def _libraries(modules: int) -> "ThreadpoolController":
    """Return the loaded libraries. The search takes longer than a small run, so it is repeated only for new modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
