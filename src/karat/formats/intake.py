"""Whatever a caller hands over as run or gold, taken in through one door."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.gold import Gold
from karat.data.queries import Loaded
from karat.data.runs import Run
from karat.errors import DataError
from karat.formats.arrow.frames import is_frame, load_frame
from karat.formats.format import Role, Source
from karat.formats.loading import load
from karat.formats.objects import plain_gold, plain_run
from karat.formats.records.shapes import load_value

__all__ = ["take_gold", "take_run"]


def take_run(source: Any, *, with_gold: bool = False) -> Loaded:
    """A run from any kind of object or a path.

    Args:
        source: what the caller handed over.
        with_gold: the gold must be in it too, as in samples.
    """
    if isinstance(source, Loaded):
        return source
    if isinstance(source, Run):
        return Loaded(run=source)
    found = None if with_gold else plain_run(source)
    return found or _take(source, "samples" if with_gold else "run")


def take_gold(source: Any) -> Loaded:
    """Gold from any kind of object or a path."""
    if isinstance(source, Loaded):
        return source
    if isinstance(source, Gold):
        return Loaded(gold=source)
    return plain_gold(source) or _take(source, "gold")


def _take(source: Any, role: Role) -> Loaded:
    if isinstance(source, str | os.PathLike):
        return load(source, role=role)
    if is_frame(source):
        return load_frame(source, role=role, name=role)
    if isinstance(source, Mapping | Sequence) and not isinstance(source, bytes):
        return load_value(source, Source(role, role), "objects")
    raise DataError(
        f"cannot read {role} from {type(source).__name__}",
        hint="pass a mapping, a list, a path or a DataFrame",
    )
