"""Ctrl-C, held back until what is at hand is whole."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

no_longer_wanted = threading.Event()  # set by a thread of this process: to save and stop, as by Ctrl-C
at_hand = threading.Event()  # set while something is that will be whole, and saved, soon after Ctrl-C


@contextmanager
def held_interrupt(*, hold: bool = True) -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C and SIGTERM back until the step is whole, so that what is saved can go on to the same bits.

    Ask if one came. The same one again does not wait: the step may be long. (One of each is no second wish: where
    Ctrl-C has ended one worker, the others get SIGTERM.)
    """
    if not hold or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)
        if came.count(number) > 1:
            raise KeyboardInterrupt

    before: dict[int, Any] = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    nested = at_hand.is_set()
    at_hand.set()
    try:
        yield lambda: bool(came) or no_longer_wanted.is_set()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if not nested:
            at_hand.clear()
        if came and sys.exc_info()[0] is not KeyboardInterrupt:  # nobody asked any more
            handler = before[came[0]]  # called, and not raised again: whoever counts signals would see two
            handler(came[0], None) if callable(handler) else signal.raise_signal(came[0])
