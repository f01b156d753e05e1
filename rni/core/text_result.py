"""Results that print themselves, in the terminal and in a notebook."""

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator


class TextResult(ABC):
    """The base class of results that print themselves as lines of text."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the lines, the most important first."""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__  # so that an interactive session shows the lines instead of all arrays

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def join_numbers(values: Iterable[float], spec: str = ".4g") -> str:
    """Format each number by a format specification, and join them by two spaces."""
    return "  ".join(f"{value:{spec}}" for value in values)
