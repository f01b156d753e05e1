"""The errors a user can act on. Messages read `thing: value; allowed: ...`, in one line."""

import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import Any

LONGEST = 1000  # characters of a line


def printable(text: str) -> str:
    """In one line that can be shown: names in a file may be of any length and hold line breaks or escape sequences."""
    escaped = "".join(c if c.isprintable() else repr(c)[1:-1] for c in _cut(text))
    return _cut(escaped)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 3 :]}"


class InputError(ValueError):
    """A value, a file or a combination of options that can't be used, and what could be; a line for each argument.

    >>> rni.Integration([1.2])
    Traceback (most recent call last):
        ...
    rni.errors.InputError: Integration.decays: [1.2]; allowed: one or more numbers between 0 and 1
    """

    def __str__(self) -> str:
        return "\n".join(printable(str(line)) for line in self.args)


class Diverged(RuntimeError):
    """Training ran away. `losses` has all of them up to then; the network keeps the weights it had.

    >>> task = rni.Integration(0.9)
    >>> net = rni.Network(task, *rni.vectors.independent(20, 1), torch.zeros(20, 20).double())
    >>> try:
    ...     rni.train(net, rni.BatchLoss(task), learning_rate=100.0, steps=50)
    ... except rni.Diverged as error:
    ...     print(error.learning_rate, len(error.losses) == error.step)
    100.0 True
    """

    def __init__(self, step: int, loss: float, learning_rate: float, reference: float, losses: list[float]):
        super().__init__(step, loss, learning_rate, reference, losses)
        self.step, self.loss, self.learning_rate, self.reference, self.losses = self.args

    def __str__(self) -> str:
        cure = f"learning_rate: {self.learning_rate:.3g}; allowed: a smaller one"
        if self.step == 0:
            allowed = "finite weights and inputs" if self.loss != self.loss else "smaller weights to start from"
            cure = f"before anything was learned; allowed: {allowed}"
        return (
            f"training diverged at step {self.step}: loss {self.loss:.3g} (a silent network has {self.reference:.3g}); "
            f"{cure}"
        )


def require_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number from `least` on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: {value!r}; allowed: a whole number from {least} on")


def require_is(name: str, value: Any, kind: type | tuple[type, ...], allowed: str) -> None:
    """Refuse what is not of that kind; a class is not one of its instances."""
    if not isinstance(value, kind):
        raise InputError(f"{name}: {found(value)}; allowed: {allowed}")


def found(value: Any) -> str:
    """What was given: as Python writes it where that is short, or what kind of thing it is."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    short = isinstance(value, str | int | float | list | tuple | None) and len(repr(value)) < 80
    return repr(value) if short else type(value).__name__


def path_of(value: Any) -> Path:
    """The name of a file, of Python's kinds."""
    require_is("path", value, (str, os.PathLike), "the name of a file")
    return Path(value)


def nearest(name: Any, allowed: Iterable[str]) -> str:
    """`; did you mean ...?`, where one of those allowed is spelt almost so."""
    known = {each.casefold(): each for each in allowed}
    near = get_close_matches(str(name)[:LONGEST].casefold(), known, 1)
    return f"; did you mean {known[near[0]]}?" if near else ""


def require_one_of(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse a name that is none of those allowed."""
    if value not in (names := tuple(allowed)):
        raise InputError(f"{name}: {value!r}; allowed: {', '.join(map(repr, names))}{nearest(value, names)}")


def in_words(message: str) -> str:
    """What a value should be, of a sentence of pydantic's: `Input should be greater than 0` as `above 0`."""
    words = re.sub(r"^Input should be (a valid )?", "", message)
    for theirs, ours in _WORDS.items():
        words = re.sub(theirs, ours, words)
    return words


_WORDS = {
    r"^integer\b.*": "a whole number",
    r"^number\b.*": "a number",
    r"^string$": "text",
    r"^boolean\b.*": "true or false",
    r"^greater than or equal to (\S+)$": r"\1 or more",
    r"^less than or equal to (\S+)$": r"at most \1",
    r"^greater than (\S+)$": r"above \1",
    r"^less than (\S+)$": r"below \1",
}
