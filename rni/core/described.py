"""Results that describe themselves: in lines, as the command line shows them, and in a notebook."""

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator


class Described(ABC):
    """What has something to say."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """One after the other, the most important first."""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__  # what a session shows, in place of all fields with their arrays

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def numbers(values: Iterable[float]) -> str:
    """As people read them."""
    return "  ".join(f"{value:.4g}" for value in values)
