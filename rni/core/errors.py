"""The errors a user can act on. Messages read `thing: value; allowed: ...`, in one line."""

import os
import re
import reprlib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

LONGEST = 1000  # characters of a line


def printable(text: str) -> str:
    """Return a text in one line of at most about 1000 characters, without escape sequences.

    Names in a file may have any length and contain line breaks or escape sequences, which a terminal would obey. All
    texts from files have to pass through this function before they are shown; messages of `InputError` do.

    Examples
    --------
    >>> from rni.core.errors import printable
    >>> printable("weights\x1b[31m")
    'weights\\x1b[31m'
    """
    escaped = "".join(c if c.isprintable() else repr(c)[1:-1] for c in _cut(text))
    return _cut(escaped)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 3 :]}"


class InputError(ValueError):
    """A value that a user gave is not allowed. The message is one line: ``field: value; allowed: ...``.

    Parameters
    ----------
    field : str
        The name of the field, argument, flag or file, with dots between the names of nested fields.
    value : object
        The value that the user gave.
    allowed : str
        What is allowed.
    problem : str, optional
        What is wrong, where this says more than the value itself, for example ``"shape (3, 2)"``.
    hint : str, optional
        The allowed name that is spelt most like the given one, if there is one.

    Attributes
    ----------
    field, value, allowed, problem, hint
        The arguments. No decision may depend on the text of the message.
    file : str
        The file that the value is in, or an empty string.

    Examples
    --------
    >>> error = rni.InputError("leak", 1.5, "a number above 0, up to 1")
    >>> print(error)
    leak: 1.5; allowed: a number above 0, up to 1
    >>> error.field, error.value
    ('leak', 1.5)
    """

    def __init__(self, *args: Any, problem: str = "", hint: str = ""):
        super().__init__(*args)
        self.problem, self.hint = problem, hint
        self.file = self._note = ""
        self.field, self.value, self.allowed = args if len(args) == 3 else ("", None, "")

    def __str__(self) -> str:
        file, note = self.file and f"{self.file}: ", self._note and f"; {self._note}"
        if len(self.args) != 3:  # the older form: a whole line for each argument
            return "\n".join(printable(f"{file}{line}{note}") for line in self.args)
        value = self.problem or describe_value(self.value)
        hint = f"; did you mean {self.hint}?" if self.hint else ""
        return printable(f"{file}{self.field}: {value}; allowed: {self.allowed}{hint}{note}")

    def __reduce__(self) -> Any:  # so that an error from a worker process keeps what is wrong
        return _input_error, (self.args, self.problem, self.hint, self.file, self._note)

    def in_file(self, path: "str | Path", note: str = "") -> "InputError":
        """Return the same error about a value in a file, with a note at the end of the message if there is one."""
        return _input_error(self.args, self.problem, self.hint, str(path), note)

    def within(self, outer: str) -> "InputError":
        """Return the same error about a field that is nested in the field `outer`."""
        field = f"{outer}.{self.field}" if self.field and self.field != outer.rpartition(".")[2] else outer
        return InputError(field, self.value, self.allowed, problem=self.problem, hint=self.hint)

    @classmethod
    def from_pydantic(cls, error: "ValidationError", fields: Sequence[str]) -> "InputError":
        """Convert the first problem that pydantic found in an object with these fields."""
        problems = error.errors(include_url=False)
        problem = next((p for p in problems if p["type"] not in _FOLLOWS_FROM_ANOTHER), problems[0])
        first, *inner = problem["loc"] or ("",)
        # pydantic gives the position of a positional argument instead of its name
        outer = fields[first] if isinstance(first, int) and first < len(fields) else str(first)
        field = ".".join([outer, *(str(index) for index in inner if isinstance(index, int))])

        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, InputError):
            return cause.within(field) if field else cause
        if problem["type"] == "missing":
            return cls(field, None, "a value, because the field has no default", problem="missing")
        if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            return cls(
                field,
                problem["input"],
                ", ".join(fields) or "none",
                problem="no such field",
                hint=nearest(field, fields),
            )
        if problem["type"] == "unexpected_positional_argument":
            return cls("arguments", problem["input"], f"at most {len(fields)}: {', '.join(fields)}")
        return cls(field, problem["input"], in_words(problem["msg"].removeprefix("Value error, ")))


_FOLLOWS_FROM_ANOTHER = ("default_factory_not_called",)  # the default is computed from a field that is wrong itself


def _input_error(args: tuple[Any, ...], problem: str, hint: str, file: str, note: str) -> InputError:
    error = InputError(*args, problem=problem, hint=hint)
    error.file, error._note = file, note
    return error


_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 20
_brief.maxstring = _brief.maxother = 80


def describe_value(value: Any) -> str:
    """Return a short text for a value: as Python writes it, cut after 80 characters."""
    value = list(value) if isinstance(value, tuple) else value
    try:
        text = _brief.repr(value)
    except ValueError:  # Python writes no whole numbers of more than 4300 digits
        text = "a huge number"
    return text if len(text) <= 80 else f"{text[:77]}..."


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
    """Raise an error if the value is not a whole number from `least` on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(name, value, f"a whole number from {least} on")


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
    """Return the allowed name that is spelt almost like `name`, or an empty string if there is none."""
    known = {each.casefold(): each for each in allowed}
    near = get_close_matches(str(name)[:LONGEST].casefold(), known, 1)
    return known[near[0]] if near else ""


def did_you_mean(name: Any, allowed: Iterable[str]) -> str:
    """Return `; did you mean ...?` where an allowed name is spelt almost like `name`."""
    near = nearest(name, allowed)
    return f"; did you mean {near}?" if near else ""


def require_one_of(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse a name that is none of those allowed."""
    if value not in (names := tuple(allowed)):
        raise InputError(name, value, ", ".join(map(repr, names)), hint=nearest(value, names))


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
    r"^tuple$": "a number or a list of numbers",
    r"^boolean\b.*": "true or false",
    r"^greater than or equal to (\S+)$": r"\1 or more",
    r"^less than or equal to (\S+)$": r"at most \1",
    r"^greater than (\S+)$": r"above \1",
    r"^less than (\S+)$": r"below \1",
    r"^(Tuple|Value) should have at least (\d+) items?.*": r"at least \2",
}
