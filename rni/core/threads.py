"""The number of threads that products run on, which their rounding hangs on: so it belongs to what is computed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from rni.core.memory import control_groups, text_of

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

LARGE = 2000  # neurons


@contextmanager
def threads(number: int) -> Iterator[None]:
    """For as long as it is entered, torch's and NumPy's products run on so many threads; then on as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with _libraries(len(sys.modules)).limit(limits=number, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def fitting(neurons: int) -> int:
    """As many threads as products with W pay for: below some thousand neurons a second one only waits for the first."""
    return 1 if neurons < LARGE else cores()


def cores() -> int:
    """Those that this process may use: of the machine, by its affinity, by the quotas of its control groups."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([there, *(max(1, ceil(quota)) for quota in _quotas())])


def _quotas() -> Iterator[float]:
    """Processor time over time, where it is limited."""
    for version, group in control_groups("cpu"):
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version == 1 else ("cpu.max",)
        quota, period, *_ = (*" ".join(text_of(group / name) for name in files).split(), "", "")
        if quota.isdigit() and period.isdigit():  # "max", or -1, where there is none
            yield int(quota) / int(period)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> "ThreadpoolController":
    """Those that are loaded. Looking for them takes longer than a small run; new ones come with new modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
