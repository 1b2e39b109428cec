"""Progress: long work counts its steps for whoever shows how far it is."""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Shower: TypeAlias = Callable[[Iterable[Any], int, str], Iterator[Any]]
"""From items, their number and what is done with them to the same items."""

SHOWN_BY: ContextVar[Shower | None] = ContextVar("SHOWN_BY", default=None)
"""Who shows it; nobody, unless a command does."""


def steps(items: Iterable[T], total: int, doing: str) -> Iterable[T]:
    """The same items, counted where anybody shows progress."""
    shower = SHOWN_BY.get()
    return items if shower is None else shower(items, total, doing)
