"""The end of a command: at once, also where Python would take its time."""

import atexit
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from rni.core.interrupt import at_hand

AT_ONCE, PATIENCE = 0.5, 1.5  # seconds from Ctrl-C to a word about it, and to the end, whatever is computed then


def end_at_once(main: Callable[[], object]) -> NoReturn:
    """Run a command and leave: Python takes apart the modules of torch one by one, a second and more."""
    end_soon_after_signals()
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    leave(code)


def leave(code: int) -> NoReturn:
    """End the process with all that is due at its exit but the taking apart."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # closed, or nobody reads it
            continue
    os._exit(code)


def end_soon_after_signals() -> None:
    """From Ctrl-C on, the process has a moment to end: Python itself waits for a product of matrices to be over.

    The system's own handler writes the signal's number into a socket, and a thread that waits there ends the process.
    Files are written whole or not at all, so that any moment is as good as another; only a step of a training is waited
    for, since it is saved then, unless Ctrl-C comes again. Batch systems, which send SIGTERM, have their own patience.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_after_ctrl_c, args=(ours, theirs), daemon=True).start()


def _end_after_ctrl_c(ours: socket.socket, theirs: socket.socket) -> None:
    while not _came(ours, None):
        pass
    if not _came(ours, AT_ONCE):
        soon = "as soon as the step is saved; Ctrl-C again: now" if at_hand.is_set() else "within a second"
        print(f"rni: interrupted; ends {soon}", file=sys.stderr, flush=True)
        again, waited = _came(ours, PATIENCE - AT_ONCE), at_hand.is_set()
        while at_hand.is_set() and not again:
            again = _came(ours, 0.05)
        if waited and not again:
            _came(ours, PATIENCE)  # to say so
    del theirs  # open until now
    print("rni: ended in a long step; what was written before is whole", file=sys.stderr, flush=True)
    os._exit(130)


def _came(ours: socket.socket, within: float | None) -> bool:
    """Whether Ctrl-C comes within so many seconds, or as the next signal."""
    return bool(select.select([ours], [], [], within)[0]) and signal.SIGINT in ours.recv(64)
