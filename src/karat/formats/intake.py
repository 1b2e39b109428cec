"""Whatever a caller hands over as run or gold, taken in through one door."""

from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.gold import Gold
from karat.data.queries import Loaded
from karat.data.runs import Run
from karat.errors import DataError
from karat.formats.objects import gold_from_mapping, number_rows, run_from_mapping

__all__ = ["take_gold", "take_run"]


def take_run(source: Any) -> Loaded:
    """A run, or samples with their run, from any kind of object or a path."""
    if isinstance(source, Mapping):
        return run_from_mapping(source)
    if isinstance(source, Loaded):
        return source
    if isinstance(source, Run):
        return Loaded(run=source)
    if isinstance(source, Sequence):
        return run_from_mapping(number_rows(source))
    raise DataError(f"cannot read a run from {type(source).__name__}")


def take_gold(source: Any) -> Loaded:
    """Gold from any kind of object or a path."""
    if isinstance(source, Mapping):
        return gold_from_mapping(source)
    if isinstance(source, Loaded):
        return source
    if isinstance(source, Gold):
        return Loaded(gold=source)
    if isinstance(source, Sequence):
        return gold_from_mapping(number_rows(source))
    raise DataError(f"cannot read gold from {type(source).__name__}")
