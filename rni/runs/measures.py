"""Measures of runs, by name. Their values are kept in the store.

loss              loss of the last step
steps             steps of the training; steps@0.001: steps until the loss is below 0.001, empty if it never is
seconds           time of the training; empty if the run was in the store before
certificate       largest certified error relative to the largest integral, and whether the certificate is rigorous
error             largest relative error over all tests and channels
ratio, ...        every field of `rni.analyze`: one column for each number
MODULE:FUNCTION   a function of the network that returns a number or a dict of numbers; it is called again when its file
                  changes
"""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rni.core.errors import Diverged, InputError, nearest
from rni.core.lazy import LazyModule
from rni.core.registry import import_reference
from rni.core.threads import threads
from rni.runs.store import Store

if TYPE_CHECKING:
    import torch

    from rni import analysis, designs
    from rni.runs.execution import Result
    from rni.runs.run import Run
    from rni.training.descent import Callback
else:
    from rni.core.lazy import torch

    # An analysis imports SciPy and Matplotlib, which the other measures do not need.
    analysis, designs = LazyModule("rni.analysis"), LazyModule("rni.designs")

NOT_MEASURES = ("data", "dynamics", "notes")  # fields of an analysis that are neither numbers nor names


class Source(NamedTuple):
    """Where a measure comes from: the name under which the store keeps it, or None, and how it is computed."""

    kept_as: str | None
    measure: "Callable[[Result], Any]"


class Measuring:
    """What a worker does in a sweep: compute a run, and measure what the store does not have. Returns the measures."""

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)

    def __call__(self, specification: "Run", root: Path, report: "Callback", wait: bool = True) -> dict[str, Any]:
        store, key = Store(root), specification.key()
        started, was_stored = time.perf_counter(), store.has(key)
        try:
            run = store.compute(specification, [report], wait=wait)
        except Diverged as error:
            store.keep(key, {"diverged": str(error)})
            raise
        values = {"seconds": None if was_stored else time.perf_counter() - started} | store.measured(key)
        new = {"seconds": values["seconds"]}
        for name, source in sources(self.names).items():
            if (source.kept_as or name) not in values:
                value, is_lasting = _try(source, run)
                values[source.kept_as or name] = value
                if is_lasting:
                    new[source.kept_as or name] = value
        store.keep(key, new)
        return values


def sources(names: Sequence[str]) -> dict[str, Source]:
    """Return the source of each measure. A user's function is imported here."""
    return {name: _source(name) for name in names}


def columns(wanted: Mapping[str, Source], values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of measures, and the reasons for those that could not be measured.

    Raises
    ------
    KeyError
        If something has not been measured yet.
    """
    found: dict[str, Any] = {}
    reasons = []
    for name, source in wanted.items():
        value = values[source.kept_as or name]
        if isinstance(value, dict) and "failure" in value:
            reasons.append(f"{name}: {value['failure']}")
            value = None
        elif source.kept_as == "analysis":
            value = value[name]
        found |= dict(_flatten(name, value))
    return found, reasons


def _try(source: Source, run: "Result") -> tuple[Any, bool]:
    """Return a value, or why there is none, and whether it would be the same at another time."""
    try:
        with threads(1):  # the rounding depends on the number of threads
            return _plain(source.measure(run)), source.kept_as is not None
    except InputError as error:
        return {"failure": " ".join(str(error).split())}, source.kept_as is not None
    except Exception as error:  # a user's function may raise anything
        return {"failure": " ".join(f"{type(error).__name__}: {error}".split())}, False


def _source(name: str) -> Source:
    if name in OF_RUN:
        return Source(name, OF_RUN[name])
    if name.startswith("steps@"):
        with suppress(ValueError):
            limit = float(name.removeprefix("steps@"))
            return Source(name, lambda run: next((k for k, loss in enumerate(run.losses) if loss < limit), None))
    if ":" in name:
        function, version = _imported(name)
        return Source(f"{name} {version}" if version else None, lambda run: function(run.network))
    of_analysis = ["error", *(field.name for field in fields(analysis.Analysis) if field.name not in NOT_MEASURES)]
    if name in of_analysis:
        return Source("analysis", _analysis)
    known = [*OF_RUN, "steps@LOSS", *of_analysis]
    raise InputError("measure", name, f"{', '.join(known)}, or MODULE:FUNCTION", hint=nearest(name, known))


def _imported(name: str) -> tuple[Callable[[Any], Any], str]:
    """Return a user's function and the hash of its file."""
    try:
        function = import_reference(name, "measure")
    except InputError:
        raise
    except Exception as error:  # whatever the module does when it is imported
        problem = f"{name!r} ({type(error).__name__}: {error})"
        raise InputError("measure", name, "a module:name that can be imported", problem=problem) from None
    if not callable(function):
        raise InputError("measure", name, "a function", problem=f"{name!r}, a {type(function).__name__}")
    module = sys.modules.get(name.partition(":")[0])
    try:
        return function, hashlib.sha256(Path(getattr(module, "__file__", None) or "").read_bytes()).hexdigest()[:16]
    except OSError:
        return function, ""


def _analysis(run: "Result") -> dict[str, Any]:
    analysed = analysis.analyze(run.network)
    values = {name: value for name, value in asdict(analysed).items() if name not in NOT_MEASURES}
    by_test = [by_channel for errors in analysed.errors.values() for by_channel in errors.values()]
    return values | {"verdict": analysed.verdict.kind, "error": float(np.max(by_test))}


def _certificate(run: "Result") -> dict[str, Any]:
    certificate = designs.certify(run.network)
    return {"": max(certificate.relative), "rigorous": certificate.rigorous}


OF_RUN: "dict[str, Callable[[Result], Any]]" = {
    "loss": lambda run: run.losses[-1] if run.losses else None,
    "steps": lambda run: len(run.losses),
    "seconds": lambda run: None,
    "certificate": _certificate,
}


def _plain(value: Any) -> Any:
    """Return numbers, texts, lists and tables as JSON has them."""
    if isinstance(value, np.ndarray | np.generic | torch.Tensor):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    raise InputError("measure", value, "a number, or a dict of numbers", problem=f"returned {type(value).__name__}")


def _flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a column for each number: `errors.bursts.200.1` is the error of the first channel after 200 steps."""
    if isinstance(value, list):
        value = dict(enumerate(value, 1))
    if not isinstance(value, dict):
        yield name, value
        return
    for key, each in value.items():
        yield from _flatten(f"{name}.{key}" if key != "" else name, each)
