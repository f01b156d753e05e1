"""What a flag says. A list of numbers is `0.9 0.8`, `0.9,0.8` or `[0.9, 0.8]`, wherever one is taken."""

import re
from contextlib import suppress
from itertools import pairwise
from typing import Any

from rni.core.errors import InputError
from rni.core.toml import parse_toml


def numbers(flag: str, text: str) -> list[float]:
    """The numbers of a list in any of the three forms."""
    try:
        return _numbers(text)
    except ValueError:
        raise InputError(f"{flag}: {text!r}; allowed: numbers, e.g. 0.95,0.9") from None


def value(text: str) -> Any:
    """TOML, or a number as people write it (.5), or a list of them, or else text."""
    with suppress(ValueError, KeyError, RecursionError):  # what is no TOML, or nests too deeply for it
        return parse_toml(f"value = {text}")["value"]
    for read in (float, _numbers):
        with suppress(ValueError):
            return read(text)
    if text.lstrip().startswith("{"):
        raise InputError(f"{text}: no table; allowed: {{name = 'sigmoid', slope = 50}}, as in TOML")
    return text


def joined(arguments: list[str]) -> list[str]:
    """`--decays 0.9 0.8` as `--decays '0.9 0.8'`: all numbers that follow a flag are its value."""
    whole: list[str] = []
    for part in (part for argument in arguments for part in _apart(argument)):
        if len(whole) > 1 and re.match(r"--\w", whole[-2]) and are_numbers(whole[-1]) and are_numbers(part):
            whole[-1] += f" {part}"
        else:
            whole.append(part)
    given: dict[str, str] = {}
    for flag, numbers in pairwise(whole):
        if re.match(r"--\w", flag) and are_numbers(numbers):
            if flag in given:
                raise InputError(f"{flag}: {given[flag]}, and {numbers} again; allowed: once, with all its numbers")
            given[flag] = numbers
    return whole


def are_numbers(text: str) -> bool:
    """Whether it is a list, of one number or more."""
    with suppress(ValueError):
        return bool(_numbers(text))
    return False


def _numbers(text: str) -> list[float]:
    parts = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    if not parts:
        raise ValueError("none")
    return [float(part) for part in parts]


def _apart(argument: str) -> list[str]:
    """`--decays=0.9` in two, for more numbers to follow."""
    flag, equals, text = argument.partition("=")
    return [flag, text] if equals and flag.startswith("--") and are_numbers(text) else [argument]
