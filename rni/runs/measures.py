"""What can be measured of a run, by name, and is kept beside it in the store.

loss              of the last step
steps             of its training; steps@0.001: until the loss is below 0.001, empty if it never is
seconds           that its training took; empty where the run was in the store before
certificate       largest bound on an error relative to its largest integral, and whether it is proven
error             largest relative error, over all tests and channels
ratio, ...        everything that `rni.analyze` gives: a column for each where there are several
MODULE:FUNCTION   yours: a network in, a number or a dict of numbers out; measured again when its file changes
"""

import hashlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from rni.analysis import Analysis, analyze
from rni.core.errors import Diverged, InputError, did_you_mean
from rni.core.threads import threads
from rni.designs import certify
from rni.runs.execution import Result
from rni.runs.specification import Specification
from rni.runs.store import Store
from rni.training.descent import Callback

Watching = Callable[[Specification], AbstractContextManager[Callback]]
OF_ANALYSIS = ("error", *(field.name for field in fields(Analysis) if field.name not in ("data", "dynamics", "notes")))


class Source(NamedTuple):
    """Where measures come from: the name that its value is kept under, or None, and how it is found."""

    kept_as: str | None
    measure: Callable[[Result], Any]


def sources(names: Sequence[str]) -> dict[str, Source]:
    """By measure; what can't be measured is refused. A user's function is imported here."""
    return {name: _source(name) for name in names}


def columns(wanted: Mapping[str, Source], values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The columns of measures, from values by source, and the reasons where there are none.

    KeyError where a value is not there: not measured yet.
    """
    found: dict[str, Any] = {}
    reasons = []
    for name, source in wanted.items():
        value = values[source.kept_as or name]
        if isinstance(value, dict) and "failure" in value:
            reasons.append(f"{name}: {value['failure']}")
            value = None
        elif name in OF_ANALYSIS:
            value = value[name]
        found |= dict(_flat(name, value))
    return found, reasons


class Measuring:
    """A worker's task in a sweep: compute a run and measure what is not kept of it yet. Returns values by source."""

    def __init__(self, names: Sequence[str], watching: Watching | None = None):
        self.names, self.watching = tuple(names), watching

    def __call__(self, specification: Specification, root: Path, report: Callback) -> dict[str, Any]:
        store, key = Store(root), specification.key()
        begun, known = time.perf_counter(), store.has(key)
        try:
            if self.watching is None or known:
                run = store.compute(specification, [report])
            else:
                with self.watching(specification) as callback:
                    run = store.compute(specification, [report, callback])
        except Diverged as error:
            store.keep(key, {"diverged": str(error)})
            raise
        values = {"seconds": None if known else time.perf_counter() - begun} | store.measured(key)
        new = {"seconds": values["seconds"]}
        for name, source in sources(self.names).items():
            if (source.kept_as or name) not in values:
                value, lasting = _tried(source, run)
                values[source.kept_as or name] = value
                if lasting:
                    new[source.kept_as or name] = value
        store.keep(key, new)
        return values


def _tried(source: Source, run: Result) -> tuple[Any, bool]:
    """The value, or why there is none; and whether that will be so for ever."""
    try:
        with threads(1):  # the same bits anywhere
            return _plain(source.measure(run)), source.kept_as is not None
    except InputError as error:
        return {"failure": " ".join(str(error).split())}, source.kept_as is not None
    except Exception as error:  # a user's function may raise anything
        return {"failure": " ".join(f"{type(error).__name__}: {error}".split())}, False


def _source(name: str) -> Source:
    if name in OF_ANALYSIS:
        return Source("analysis", _analysis)
    if name in OF_RUN:
        return Source(name, OF_RUN[name])
    if name.startswith("steps@"):
        with suppress(ValueError):
            limit = float(name.removeprefix("steps@"))
            return Source(name, lambda run: next((k for k, loss in enumerate(run.losses) if loss < limit), None))
    if ":" in name:
        function, version = _imported(name)
        return Source(f"{name} {version}" if version else None, lambda run: function(run.network))
    known = ", ".join([*OF_RUN, "steps@LOSS", *OF_ANALYSIS])
    raise InputError(f"measure: {name!r}; allowed: {known}, or MODULE:FUNCTION{did_you_mean(name, known.split(', '))}")


def _imported(name: str) -> tuple[Callable[[Any], Any], str]:
    """A user's function, also from the folder one is in, and the hash of its file."""
    module_name, _, path = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        function: Any = module
        for part in path.split("."):
            function = getattr(function, part)
    except Exception as error:  # whatever the module does when it is imported
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"measure: {name!r} ({reason}); allowed: MODULE:FUNCTION that can be imported") from None
    if not callable(function):
        raise InputError(f"measure: {name!r}, a {type(function).__name__}; allowed: a function")
    try:
        return function, hashlib.sha256(Path(module.__file__ or "").read_bytes()).hexdigest()[:16]
    except (OSError, AttributeError):
        return function, ""


def _analysis(run: Result) -> dict[str, Any]:
    analysis = analyze(run.network)
    found = {name: value for name, value in asdict(analysis).items() if name in OF_ANALYSIS}
    by_test = [by_channel for errors in analysis.errors.values() for by_channel in errors.values()]
    return found | {"verdict": analysis.verdict.kind, "error": float(np.max(by_test))}


def _certificate(run: Result) -> dict[str, Any]:
    certificate = certify(run.network)
    return {"": max(certificate.relative), "rigorous": certificate.rigorous}


OF_RUN: dict[str, Callable[[Result], Any]] = {
    "loss": lambda run: run.losses[-1] if run.losses else None,
    "steps": lambda run: len(run.losses),
    "seconds": lambda run: None,
    "certificate": _certificate,
}


def _plain(value: Any) -> Any:
    """Numbers, texts, and lists and tables of them, as they come out of a JSON file."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Tensor() | np.ndarray() | np.generic():
            return _plain(value.tolist())
        case list() | tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
    raise InputError(f"returned {type(value).__name__}; allowed: a number, or a dict of numbers")


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A column for each number: errors.bursts.200.1 is that of the first channel."""
    if isinstance(value, list):
        value = dict(enumerate(value, 1))
    if not isinstance(value, dict):
        yield name, value
        return
    for key, each in value.items():
        yield from _flat(f"{name}.{key}" if key != "" else name, each)
