"""TOML text to plain data, in bounded memory."""

import re
import tomllib
from pathlib import Path
from typing import Any

from rni.core.errors import InputError, path_of

MAX_BYTES = 10**6  # of a configuration file

MAX_DOTS = 20  # in one key; the fields of a configuration have two, as in network.activation.slope
MAX_KEYS = 2000  # keys, tables and arrays together; a configuration has fewer than 100
MAX_LENGTH = 1_000_000  # characters

_KEY_OR_TABLE = re.compile(r"=+|\[+|\{")  # a row of = in a comment counts once

# Possessive quantifiers (*+) never give back what they matched, so that the search takes linear time for any text.
# The end of a string is optional: after a string that never ends, tomllib does not read any key.
_PART = r"""(?: [\w-]++ | "(?: [^"\\\n] | \\.)*+ "? | '[^'\n]*+ '?)"""
_DOT_PART = rf"(?: [ \t]*+ \. [ \t]*+ {_PART})"
_TOKEN = re.compile(
    rf"""
      \"\"\" (?s: [^"\\] | \\. | "{{1,2}} (?!") )*+ "{{0,5}}  # a string of several lines; its last characters may be "
    | '''    (?:  [^']         | '{{1,2}} (?!') )*+ '{{0,5}}
    | \#[^\n]*+                                               # a comment
    | (?P<long_key> {_PART} {_DOT_PART}{{{MAX_DOTS + 1}}} )
    | {_PART} {_DOT_PART}*+                                   # a shorter key, a number or a string
    """,
    re.VERBOSE | re.ASCII,
)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text of at most 1 000 000 characters with at most 2000 keys, tables and arrays.

    The memory that `tomllib` needs for a dotted key grows with the square of its number of dots: 1.5 GB for a key of
    20 000 dots, which is a file of 40 kB. For each table it needs almost 1 kB, also for the tables that a dotted key
    creates. Longer texts, more keys, and keys of more than 20 dots are therefore refused before the text is parsed.
    Dots in strings and comments do not count.

    Raises
    ------
    ValueError
        The text is no TOML or exceeds one of these limits.

    Examples
    --------
    >>> from rni.core.toml import parse_toml
    >>> parse_toml("network.neurons = 300")
    {'network': {'neurons': 300}}
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"more than {MAX_LENGTH} characters")
    if sum(1 for _ in _KEY_OR_TABLE.finditer(text)) > MAX_KEYS:
        raise ValueError(f"more than {MAX_KEYS} keys, tables and arrays")
    # most texts have so few dots that they need no search
    if text.count(".") > MAX_DOTS and any(token["long_key"] for token in _TOKEN.finditer(text)):
        raise ValueError(f"a key of more than {MAX_DOTS} dots")
    return tomllib.loads(text)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a configuration file as plain data.

    Raises
    ------
    InputError
        The file cannot be read, is larger than 1 MB or no TOML, or contains whole numbers of more than 64 bits.
    """
    path = path_of(path)
    allowed = "a TOML configuration"
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(str(path), None, allowed, problem=f"more than {MAX_BYTES} bytes")
        raw = parse_toml(content.decode())
    except FileNotFoundError:
        raise InputError(str(path), None, allowed, problem="no such file") from None
    except UnicodeDecodeError:
        raise InputError(str(path), None, allowed, problem="not text") from None
    except RecursionError:
        raise InputError(str(path), None, allowed, problem="nested too deeply") from None
    except IsADirectoryError:
        raise InputError(str(path), None, allowed, problem="a folder") from None
    except OSError as error:
        raise InputError(str(path), None, allowed, problem=error.strerror or "cannot be read") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(path), None, allowed, problem=str(error)) from None
    if _has_huge_numbers(raw):
        raise InputError(str(path), None, allowed, problem="whole numbers of more than 64 bits")
    return raw


def _has_huge_numbers(raw: Any) -> bool:
    """Return whether a whole number is beyond the range of TOML."""
    values = [raw]
    while values:
        match values.pop():
            case dict(table):
                values += table.values()
            case list(items):
                values += items
            case int(number) if number.bit_length() > 64:
                return True
    return False
