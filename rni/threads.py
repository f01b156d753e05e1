"""The number of threads that products run on, which their rounding hangs on: so it belongs to what is computed."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def threads(number: int) -> Iterator[None]:
    """For as long as it is entered, torch's and NumPy's products run on so many threads; then on as many as before."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(number, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
