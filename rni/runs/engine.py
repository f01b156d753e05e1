"""The engine: computes runs on the cores of this machine or on a Dask cluster, behind `concurrent.futures.Executor`.

Anything else that can be pickled runs on the same executors by `executor.submit(function, ...)`.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from rni.core.atomic import said
from rni.core.errors import Diverged, InputError, require_whole
from rni.core.interrupt import no_longer_wanted
from rni.core.threads import cores
from rni.runs.progress import remove_stale, reported, require_sign, signed, statuses
from rni.runs.store import Store

if TYPE_CHECKING:
    from rni.runs.specification import Specification
    from rni.training.descent import Callback

    Work = Callable[[Specification, Path, Callback], Any]

log = logging.getLogger(__name__)

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
REACHED_WITHIN = 5.0  # seconds for a scheduler to answer
GRACE = 5.0  # seconds for a worker to save what it computes when it is no longer wanted
WINDOW = 256  # runs that are submitted and not finished: enough for as many workers
BARREN = "the worker processes die before they begin a run; allowed in a script: below `if __name__ == '__main__':`"
TRIES = 2  # of a run alone on a worker, after it was running when one died


@dataclass(frozen=True)
class RunOutcome:
    """A run that is in the store, or the reason, in one line, why it is not. value: what the work on it returned.

    `seconds` by the clock, `processor` of processor time: how long it would take on an idle machine.
    """

    key: str
    label: str
    seconds: float = 0.0
    reason: str | None = None
    value: Any = None
    processor: float = 0.0

    @property
    def ok(self) -> bool:
        return self.reason is None


def compute_all(
    specifications: "Iterable[Specification]",
    store_root: Path | None,
    executor: Executor,
    on_event: Callable[[RunOutcome], None] | None = None,
    work: "Work | None" = None,
) -> dict[str, RunOutcome]:
    """Compute each distinct run once, the longest first; outcomes by key, in the order given.

    Workers put finished runs into the store themselves, so that they outlive this process. A run that diverges, fails
    or kills its worker is an outcome with a reason; the others finish. `on_event` gets each outcome as it comes.
    `work`, if given, is what a worker does in place of computing the run: it does that too, and returns a value.
    """
    task = compute if work is None else partial(compute, work=work)
    given = {specification.key(): specification for specification in specifications}
    store = Store(store_root)
    remove_stale(store.root)
    outcomes: dict[str, RunOutcome] = {}

    def settle(outcome: RunOutcome) -> None:
        if outcome.ok and not store.has(outcome.key):
            reason = f"{store.root}: not seen from here once computed; allowed: a folder that all workers share"
            outcome = replace(outcome, reason=reason)
        outcomes[outcome.key] = outcome
        if on_event:
            on_event(outcome)

    def left() -> set[str]:
        return given.keys() - outcomes.keys()

    with signed(store.root) as sign:
        suspects: set[str] = set()
        barren = 0
        while (batch := left() - suspects) and barren < TRIES:
            _round(task, _longest_first(given, batch), store.root, sign, executor, settle)
            # whatever is unsettled now, a worker died; those that were running are tried again at the end
            found = {status.key for status in statuses(store.root)} & left() - suspects
            remove_stale(store.root)
            suspects |= found
            barren += not found
        for key in left() - suspects:
            settle(RunOutcome(key, given[key].label(), reason=BARREN))
        for key in _longest_first(given, suspects):  # one at a time: the one that dies now is the one to blame
            for _ in range(TRIES):
                if key in left():
                    _round(task, {key: given[key]}, store.root, sign, executor, settle)
            if key in left():
                reason = "the worker process died, twice, with this run alone: killed, or out of memory"
                settle(RunOutcome(key, given[key].label(), reason=reason))
    remove_stale(store.root)
    return {key: outcomes[key] for key in given}


def compute(specification: "Specification", store_root: Path, sign: str = "", work: "Work | None" = None) -> RunOutcome:
    """Compute one run through the store; what a worker does. The sign is in the store of who asks for it."""
    begun, used, key, name = time.monotonic(), time.process_time(), specification.key(), specification.label()
    reason = value = None
    try:
        require_sign(store_root, sign)
        with reported(store_root, key, name, specification.training.steps) as report:
            value = _compute(work or _store, specification, store_root, report)
    except (Diverged, InputError) as error:
        reason = str(error)
    except OSError as error:
        reason = said(error)
    except Exception as error:
        log.exception("%s", name)
        reason = f"{type(error).__name__}: {error}"
    seconds, processor = time.monotonic() - begun, time.process_time() - used
    return RunOutcome(key, name, seconds, reason and " ".join(reason.split()), value, processor)


class ClusterLost(InputError):
    """The cluster can't be used, or no longer."""


def result(future: Future) -> Any:
    """What a worker returned. BrokenExecutor where the worker died; ClusterLost where there is no hope of another."""
    try:
        return future.result()
    except CancelledError:  # not by us: Dask does it when the scheduler is gone
        raise ClusterLost(
            "scheduler: gone in the middle, finished runs are kept; allowed: the same command, with a running scheduler"
        ) from None
    except Exception as error:
        if missing := _missing_module(error):
            raise ClusterLost(
                f"scheduler: {missing} there, or on a worker; allowed: the packages of this command on each of them"
            ) from None
        raise


def local(workers: int | None = None) -> "LocalExecutor":
    """Processes of this machine, by default one for each core it may use; they stay from the first task to the last."""
    workers = cores() if workers is None else workers
    require_whole("workers", workers, 1)
    if getattr(current_process(), "_inheriting", False):  # a worker, which reads the script that started it
        sys.exit(1)
    return LocalExecutor(workers)


def cluster(address: str) -> "ClusterExecutor":
    """A Dask cluster, by the address of its scheduler. The store must be in a folder that its workers share."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError("scheduler: needs Dask, which is not installed; allowed: pip install 'rni[cluster]'") from None
    client = Client.__new__(Client)
    try:
        client.__init__(address, timeout=REACHED_WITHIN, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        if hasattr(client, "status"):  # closed here: while another one starts, it would wait for a lock of that start
            client.close(timeout=60)
        found = " ".join(str(error).split()) or type(error).__name__
        allowed = "the address of a running Dask scheduler, such as tcp://127.0.0.1:8786"
        raise InputError(f"scheduler: {address!r}, not reached ({found[:120]}); allowed: {allowed}") from None
    if not client.scheduler_info()["workers"]:
        log.warning("%s: the scheduler has no workers yet; waiting for them", address)
    client.wait_for_workers(1)
    try:  # a worker that can't read what it is sent ends without a word to us
        client.run(eval, f"__import__({__name__!r}) and None")
    except ImportError as error:
        client.close()
        allowed = "workers with the packages of this command"
        raise InputError(f"scheduler: {address}, a worker says: {error}; allowed: {allowed}") from None
    return ClusterExecutor(client)


class Here(Executor):
    """This process itself: for notebooks, and what is over before workers have started."""

    window = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class LocalExecutor(Executor):
    """A process pool that is replaced when one of its processes dies. One BLAS thread each.

    Left by an exception (Ctrl-C is one), it stops what is running; a run saves a checkpoint first. The workers also end
    when this process is killed.
    """

    def __init__(self, workers: int):
        self.workers = workers
        self._guard = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        context = get_context("spawn")  # forking a process that has used torch is not safe
        theirs, self._lifeline = context.Pipe(duplex=False)
        try:
            self._pool = ProcessPoolExecutor(self.workers, context, _start_worker, (theirs,))
        except OSError as error:  # its locks are in shared memory, which may be full; the system's word can be "Error"
            raise InputError(
                f"workers: {self.workers}, the system gives them no shared memory ({error}); allowed: some room in it"
            ) from None

    def start(self) -> "LocalExecutor":
        """All workers at once: they import what they need while this process does."""
        for _ in range(self.workers):
            self.submit(_prepare)
        return self

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        with self._guard:
            try:
                return self._submit(fn, *args, **kwargs)
            except BrokenExecutor:
                self._end()
                self._begin()
                return self._submit(fn, *args, **kwargs)

    def _submit(self, *task: Any, **options: Any) -> Future:
        with _held_back(signal.SIGINT):  # the first task starts the workers, which begin with signals as they are here
            return self._pool.submit(*task, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._guard:
            if cancel_futures:
                self._lifeline.close()
            self._end(wait, cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown(cancel_futures=kind is not None)

    def _end(self, wait: bool = True, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._lifeline.close()


class ClusterExecutor(Executor):
    """Dask's executor with the client that belongs to it. Dask moves the tasks of a worker that died to another."""

    def __init__(self, client: Any):
        self._client = client
        self._executor = client.get_executor(pure=False, retries=2)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        if self._client.status != "running":  # it would wait for ever
            future = Future()
            future.cancel()
            return future
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._client.status != "running":  # giving up the way back to a lost scheduler, it logs a traceback
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._executor.shutdown(wait and not cancel_futures)
        self._client.close()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown(cancel_futures=kind is not None)


def _longest_first(given: "dict[str, Specification]", keys: set[str]) -> "dict[str, Specification]":
    return {key: given[key] for key in sorted(keys, key=lambda key: (-given[key].cost(), key))}


def _round(
    task: Callable[..., RunOutcome],
    batch: "dict[str, Specification]",
    root: Path,
    sign: str,
    executor: Executor,
    settle: Callable[[RunOutcome], None],
) -> None:
    """Compute a batch as far as no worker dies, some of it submitted at a time."""
    waiting, finished = iter(batch.values()), SimpleQueue[Future]()
    futures: dict[Future, Specification] = {}
    window = getattr(executor, "window", WINDOW)
    try:
        while True:
            while len(futures) < window and (specification := next(waiting, None)):
                future = executor.submit(task, specification, root, sign)
                futures[future] = specification
                future.add_done_callback(finished.put)
            if not futures:
                return
            future = finished.get()
            try:
                settle(_outcome(future, futures.pop(future)))
            except BrokenExecutor:
                waiting = iter(())
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _outcome(future: Future, specification: "Specification") -> RunOutcome:
    try:
        return result(future)
    except (BrokenExecutor, ClusterLost):
        raise
    except Exception as error:  # the cluster's own: killed too often
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return RunOutcome(specification.key(), specification.label(), reason=reason)


def _store(specification: "Specification", root: Path, report: "Callback") -> None:
    Store(root).compute(specification, [report])


def _compute(work: "Work", specification: "Specification", root: Path, report: "Callback") -> Any:
    try:
        return work(specification, root, report)
    except KeyboardInterrupt:
        if parent_process() is None:
            raise
        os._exit(1)  # saved, and no longer wanted; like any death it leaves word of what it was at


def _missing_module(error: BaseException | None) -> str:
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and "rni" in str(error):
            return str(error)
        error = error.__cause__ or error.__context__
    return ""


def _start_worker(lifeline: Connection) -> None:
    """Prepare a process of the pool. The lifeline is closed at its other end when the process is no longer wanted."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    # Ctrl-C reaches the whole process group: a training takes it as the wish to save and stop, an idle worker waits
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _mask("SIG_UNBLOCK", signal.SIGINT)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    import torch

    torch.set_num_threads(1)


def _prepare() -> None:
    import rni.runs.execution  # noqa: F401


def _end_with(lifeline: Connection) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    no_longer_wanted.set()
    begun = time.monotonic()
    while _saves() and time.monotonic() - begun < GRACE:
        time.sleep(0.01)
    os._exit(1)


def _saves() -> bool:
    """Whether the process is at a run, of which it saves what it has."""
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@contextmanager
def _held_back(number: signal.Signals) -> Iterator[None]:
    """Hold a signal back for a moment, here and in the processes that are started."""
    before = _mask("SIG_BLOCK", number)
    try:
        yield
    finally:
        if number not in before:
            _mask("SIG_UNBLOCK", number)


def _mask(how: str, number: signal.Signals) -> set[Any]:
    """What was held back before."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return set()
    return signal.pthread_sigmask(getattr(signal, how), {number})
