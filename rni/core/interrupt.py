"""Ctrl-C and SIGTERM, held back until a training step is complete and can be saved."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

no_longer_wanted = threading.Event()  # set by a thread of this process: save and stop, as after Ctrl-C
at_hand = threading.Event()  # set while something is computed that will be saved soon after Ctrl-C


@contextmanager
def held_interrupt(*, hold: bool = True) -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C and SIGTERM back, and yield a function that tells whether one of them came.

    A second Ctrl-C is not held back, because a step may take long. A second SIGTERM is: a batch system sends one to
    each process, and so does the command to its workers.
    """
    if not hold or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    received: list[int] = []

    def receive(number: int, _: object) -> None:
        received.append(number)
        if received.count(signal.SIGINT) > 1:
            raise KeyboardInterrupt

    before: dict[int, Any] = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    is_nested = at_hand.is_set()
    at_hand.set()
    try:
        yield lambda: bool(received) or no_longer_wanted.is_set()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if not is_nested:
            at_hand.clear()
        if received and sys.exc_info()[0] is not KeyboardInterrupt:  # the signal came after the last question
            handler = before[received[0]]  # called instead of raised again: `rni.cli.ending` counts signals
            handler(received[0], None) if callable(handler) else signal.raise_signal(received[0])
