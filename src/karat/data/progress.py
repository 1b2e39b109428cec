"""Progress: long work counts its steps for whoever shows how far it is.

The rooms that work know no terminal; a command sets `SHOWN_BY` to what draws a bar.
"""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Shower: TypeAlias = Callable[[Iterable[Any], int, str], Iterator[Any]]
"""From items, their number and what is done with them to the same items."""

SHOWN_BY: ContextVar[Shower | None] = ContextVar("SHOWN_BY", default=None)
"""Who shows it; nobody, unless a command does."""


def steps(items: Iterable[T], total: int, doing: str) -> Iterable[T]:
    """The same items, counted where anybody shows progress.

    Example:
        >>> [*steps("ab", 2, "reading")]
        ['a', 'b']
    """
    shower = SHOWN_BY.get()
    return items if shower is None else shower(items, total, doing)
