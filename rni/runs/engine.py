"""Executors for runs: processes of this machine, a Dask cluster, or this process, with one interface.

All of them are `concurrent.futures.Executor`s, so that `executor.submit(function, ...)` computes anything that can be
pickled. `compute_all` computes runs through the store.
"""

import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from rni.core.atomic import os_error_text
from rni.core.errors import Diverged, InputError, require_whole
from rni.core.interrupt import at_hand, no_longer_wanted
from rni.core.threads import cores
from rni.runs.store import Busy, Store

if TYPE_CHECKING:
    import torch

    from rni.runs.run import Run
    from rni.training.descent import Callback

    Work = Callable[[Run, Path, Callback, bool], Any]
else:
    from rni.core.lazy import torch

log = logging.getLogger(__name__)

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
CONNECT_TIMEOUT = 5.0  # seconds for a scheduler to answer
GRACE = 5.0  # seconds for a worker to save its run when the command ends
WINDOW = 256  # runs that are submitted and not finished: enough for as many workers
REPORT_EVERY = 0.5  # seconds between reports of a worker about the run that it computes
TRIES = 2  # how often a worker is started, or a figure measured, before a death is final
NO_MAIN_GUARD = "a script whose main part is below `if __name__ == '__main__':`, because each worker imports the script"


@dataclass(frozen=True)
class RunOutcome:
    """A run that is in the store, or the reason, in one line, why it is not.

    Attributes
    ----------
    seconds, processor : float
        Elapsed time and processor time.
    value : object
        What the work on the run returned.
    busy : bool
        Whether another process computes the run.
    """

    key: str
    label: str
    seconds: float = 0.0
    reason: str | None = None
    value: Any = None
    processor: float = 0.0
    busy: bool = False

    @property
    def ok(self) -> bool:
        return self.reason is None


@dataclass(frozen=True)
class Step:
    """The step that a run has reached in its worker."""

    key: str
    label: str
    step: int
    steps: int
    loss: float


def compute_all(
    specifications: "Iterable[Run]",
    store_root: Path | None,
    executor: Executor,
    on_event: Callable[[RunOutcome], None] | None = None,
    work: "Work | None" = None,
) -> dict[str, RunOutcome]:
    """Compute each distinct run once, the longest first.

    Workers put finished runs into the store themselves, so that the runs outlive this process. A run that diverges,
    fails or kills its worker has an outcome with a reason, and the others finish. Runs that other commands compute at
    this moment come last.

    Parameters
    ----------
    specifications : iterable of Run
        The runs.
    store_root : Path or None
        The folder of the store, which all workers share.
    executor : Executor
        An executor of this module.
    on_event : function, optional
        It is called with each outcome as soon as the run is finished.
    work : function, optional
        What a worker does instead of `store_run`: it computes the run and returns a value.

    Returns
    -------
    dict
        The outcomes by key, in the order of `specifications`.
    """
    given = {specification.key(): specification for specification in specifications}
    store = Store(store_root)
    outcomes: dict[str, RunOutcome] = {}

    def settle(outcome: RunOutcome) -> None:
        if outcome.ok and not store.has(outcome.key):
            reason = f"{store.root}: the finished run is not there; allowed: a folder that all workers share"
            outcome = replace(outcome, reason=reason)
        outcomes[outcome.key] = outcome
        if on_event:
            on_event(outcome)

    left = sorted(given.values(), key=lambda specification: (-specification.cost(), specification.key()))
    deaths: dict[str, str] = {}
    # First whatever no other command computes, then all. A run whose worker dies may have died of the memory that
    # other runs use. It is computed again at the end, with no other run at the same time.
    for wait, window in ((False, WINDOW), (True, WINDOW), (True, 1)):
        task = partial(compute, store_root=store.root, work=work or store_run, wait=wait)
        left = _attempt(task, left, executor, window, settle, deaths)
    for specification in left:
        key = specification.key()
        settle(RunOutcome(key, specification.label(), reason=f"{deaths[key]}, with no other run at the same time"))
    return {key: outcomes[key] for key in given}


def _attempt(
    task: Callable[..., RunOutcome],
    specifications: "Sequence[Run]",
    executor: Executor,
    window: int,
    settle: Callable[[RunOutcome], None],
    deaths: dict[str, str],
) -> "list[Run]":
    """Compute runs, `window` of them at a time, and return those that another process computes or whose worker died."""
    waiting, finished = iter(specifications), SimpleQueue[Future]()
    running: dict[Future, Run] = {}
    left = []
    window = min(window, getattr(executor, "window", window))
    try:
        while True:
            while len(running) < window and (specification := next(waiting, None)):
                future = executor.submit(task, specification)
                running[future] = specification
                future.add_done_callback(finished.put)
            if not running:
                return left
            specification = running.pop(future := finished.get())
            try:
                outcome = result(future)
            except BrokenExecutor as error:
                deaths[specification.key()] = str(error)
                left.append(specification)
            except ClusterLost:
                raise
            except Exception as error:  # an error of the cluster
                settle(RunOutcome(specification.key(), specification.label(), reason=_one_line(error)))
            else:
                if outcome.busy:
                    left.append(specification)
                else:
                    settle(outcome)
    except BaseException:
        for future in running:
            future.cancel()
        raise


def compute(specification: "Run", store_root: Path, work: "Work", wait: bool) -> RunOutcome:
    """Compute one run in a worker, and catch its errors."""
    started, started_processor = time.monotonic(), time.process_time()
    key, label, steps = specification.key(), specification.label(), specification.steps
    reason = value = None
    try:
        value = work(specification, store_root, _reporter(key, label, steps), wait)
    except Busy:
        return RunOutcome(key, label, busy=True)
    except (Diverged, InputError) as error:
        reason = " ".join(str(error).split())
    except OSError as error:
        reason = " ".join(os_error_text(error).split())
    except Exception as error:
        log.exception("%s", label)
        reason = _one_line(error)
    seconds, processor = time.monotonic() - started, time.process_time() - started_processor
    return RunOutcome(key, label, seconds, reason, value, processor)


def store_run(specification: "Run", store_root: Path, report: "Callback", wait: bool) -> None:
    """Compute a run through the store."""
    Store(store_root).compute(specification, [report], wait=wait)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


class ClusterLost(InputError):
    """Workers cannot be started or reached, or no longer."""


class WorkerDied(BrokenExecutor):
    """The worker process ended while it computed this task. Other tasks are not concerned."""


def result(future: Future) -> Any:
    """Return what a worker returned, or raise its error.

    Raises
    ------
    BrokenExecutor
        If the worker died.
    ClusterLost
        If the scheduler is gone, or workers lack the package.
    """
    try:
        return future.result()
    except CancelledError:  # Dask cancels the tasks when its scheduler is gone
        allowed = "the same command, with a running scheduler"
        raise ClusterLost("scheduler", None, allowed, problem="lost; finished runs are stored") from None
    except Exception as error:
        cause: BaseException | None = error  # Dask wraps the error of a task that cannot be unpickled
        while cause is not None:
            if isinstance(cause, ModuleNotFoundError) and (cause.name or "").split(".")[0] == "rni":
                allowed = "this package on the scheduler and on each worker"
                raise ClusterLost("scheduler", None, allowed, problem=str(cause)) from None
            cause = cause.__cause__ or cause.__context__
        raise


class Here(Executor):
    """This process: for notebooks, and for work that takes less time than the start of workers."""

    window = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class LocalExecutor(ThreadPoolExecutor):
    """Worker processes of this machine, each with one BLAS thread.

    A thread of this process waits for each worker. So it is known which task a worker computed when it died, and only
    that task fails, with `WorkerDied`. `ProcessPoolExecutor` ends all workers when one of them dies.

    If the `with` block is left by an exception, such as Ctrl-C, the workers save the runs that they compute and end.
    They do the same when this process is killed.

    Attributes
    ----------
    steps : dict
        The `Step` that each busy worker has reached, by process id.
    """

    def __init__(self, workers: int):
        # Ctrl-C is for the main thread. Processes that these threads start inherit the block until they are ready.
        super().__init__(workers, initializer=signal.pthread_sigmask, initargs=(signal.SIG_BLOCK, {signal.SIGINT}))
        self.workers = workers
        self.steps: dict[int, Step] = {}
        self._idle = SimpleQueue[tuple[SpawnProcess, Connection] | None]()
        self._processes: set[SpawnProcess] = set()
        self._starting = threading.Lock()
        self._is_stopping = False
        for _ in range(workers):
            self._idle.put(None)  # a worker that has not been started

    def start(self) -> "LocalExecutor":
        """Start all workers now, so that they import their modules while this process does."""
        for _ in range(self.workers):
            self.submit(_import_execution)
        return self

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        return super().submit(self._compute, fn, args, kwargs)

    def _compute(self, fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Let an idle worker compute one task, and start a worker if none of them is left."""
        worker = self._idle.get()
        try:
            worker = worker or self._start_worker()
            process, connection = worker
            try:
                connection.send((fn, args, kwargs))
                kind, value = connection.recv()
                while kind == "step":
                    self.steps[process.pid or 0] = value
                    kind, value = connection.recv()
            except (EOFError, OSError):
                worker = None
                raise WorkerDied(self._buried(process)) from None
            finally:
                self.steps.pop(process.pid or 0, None)
        finally:
            self._idle.put(worker)
        if kind == "error":
            raise value
        return value

    def _start_worker(self) -> tuple[SpawnProcess, Connection]:
        context = get_context("spawn")  # forking a process that has used torch is not safe
        died = ""
        for _ in range(TRIES):
            with self._starting:
                if self._is_stopping:
                    raise WorkerDied("the command is ending")
                connection, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs,), daemon=True)
                process.start()
                self._processes.add(process)
                theirs.close()
            try:
                connection.recv()
                return process, connection
            except EOFError:
                died = self._buried(process)
        raise ClusterLost("workers", self.workers, NO_MAIN_GUARD, problem=f"{died}, before it computed anything")

    def _buried(self, process: SpawnProcess) -> str:
        """Wait for the end of a worker, and return how it ended."""
        process.join()
        self._processes.discard(process)
        code = process.exitcode or 0
        if code >= 0:
            return f"the worker process ended with exit code {code}"
        memory = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return f"the worker process was killed by {signal.Signals(-code).name}{memory}"

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(False, cancel_futures=cancel_futures)
        if cancel_futures:
            with self._starting:
                self._is_stopping = True
                for process in self._processes:
                    process.terminate()  # a training saves a checkpoint first
        super().shutdown(wait)
        if wait:
            while not self._idle.empty():
                if worker := self._idle.get():
                    worker[1].close()
            for process in list(self._processes):
                process.join(GRACE)
                process.kill()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown(cancel_futures=kind is not None)


def local(workers: int | None = None) -> LocalExecutor:
    """Return an executor of worker processes on this machine, by default one for each core that it may use."""
    workers = cores() if workers is None else workers
    require_whole("workers", workers, 1)
    if getattr(current_process(), "_inheriting", False):  # a worker that imports the script which started it
        sys.exit(1)
    return LocalExecutor(workers)


_connection: Connection | None = None  # of a worker, to the process that started it


def _work(connection: Connection) -> None:
    """Compute tasks in a worker process until the connection is closed."""
    global _connection
    _connection = connection
    os.environ.update(dict.fromkeys(THREADS, "1"))
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # warnings about a HOME that cannot be written
    # A terminal sends Ctrl-C to all processes. Only a training handles it, and saves a checkpoint.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    connection.send(("ready", None))
    while True:
        try:
            fn, args, kwargs = connection.recv()
        except EOFError:  # no more tasks
            return
        except Exception as error:  # a function that this process cannot import
            connection.send(("error", error))
            continue
        try:
            answer = ("value", fn(*args, **kwargs))
        except KeyboardInterrupt:  # the run has saved a checkpoint
            os._exit(1)
        except Exception as error:
            answer = ("error", error)
        try:
            connection.send(answer)
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            connection.send(("error", TypeError(_one_line(error))))


def _end_with_parent() -> None:
    """End this worker soon after the process that started it, and let it save its run."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    no_longer_wanted.set()
    ended = time.monotonic()
    while at_hand.is_set() and time.monotonic() - ended < GRACE:
        time.sleep(0.01)
    os._exit(1)


def _reporter(key: str, label: str, steps: int) -> "Callback":
    """Return a callback for training that sends the step to the process that started this worker."""
    last = time.monotonic()

    def report(step: int, loss: float, net: object) -> None:
        nonlocal last
        if _connection is not None and time.monotonic() - last >= REPORT_EVERY:
            last = time.monotonic()
            _connection.send(("step", Step(key, label, step, steps, loss)))

    return report


def _import_execution() -> None:
    import rni.runs.execution  # noqa: F401


class ClusterExecutor(Executor):
    """The executor of a Dask client. Dask moves the tasks of a worker that died to another worker."""

    def __init__(self, client: Any):
        self._client = client
        self._executor = client.get_executor(pure=False, retries=2)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        if self._client.status != "running":  # Dask would wait for ever
            future = Future()
            future.cancel()
            return future
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._client.status != "running":  # Dask logs a traceback when it gives up a lost scheduler
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._executor.shutdown(wait and not cancel_futures)
        self._client.close()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown(cancel_futures=kind is not None)


def cluster(address: str) -> ClusterExecutor:
    """Return an executor of a Dask cluster, by the address of its scheduler. All workers must share the store's folder.

    Anyone who controls the scheduler can run code on the workers and in this process.
    """
    try:
        from distributed import Client
    except ImportError:
        allowed = "after pip install 'rni[cluster]'"
        raise InputError("scheduler", address, allowed, problem="needs Dask, which is not installed") from None
    client = Client.__new__(Client)
    try:
        client.__init__(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        if hasattr(client, "status"):  # closed now, because it would wait for a lock while another client starts
            client.close(timeout=60)
        allowed = "the address of a running Dask scheduler, such as tcp://127.0.0.1:8786"
        problem = f"{address!r} cannot be reached ({_one_line(error)[:120]})"
        raise InputError("scheduler", address, allowed, problem=problem) from None
    if not client.scheduler_info()["workers"]:
        log.warning("%s: the scheduler has no workers yet; waiting for them", address)
    client.wait_for_workers(1)
    try:  # a worker that cannot unpickle its task would end without an error here
        client.run(eval, f"__import__({__name__!r}) and None")
    except ImportError as error:
        client.close()
        allowed = "this package on each worker"
        raise InputError("scheduler", address, allowed, problem=f"{address}, a worker reports: {error}") from None
    return ClusterExecutor(client)
