"""The number of threads that products run on, which their rounding hangs on: so it belongs to what is computed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


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


@lru_cache(maxsize=1)
def _libraries(modules: int) -> "ThreadpoolController":
    """Those that are loaded. Looking for them takes longer than a small run; new ones come with new modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
