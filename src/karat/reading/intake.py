"""Whatever a caller hands over as run or gold, taken in through one door."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.data.tables import counted
from karat.errors import DataError, MismatchError
from karat.reading.columnar.frames import is_frame, load_frame
from karat.reading.format import Role, Source
from karat.reading.gc_paused import gc_paused
from karat.reading.loading import load
from karat.reading.mapping import fitting, mapping_of, shared_names
from karat.reading.meaning.shapes import load_value
from karat.reading.objects import PLAIN, plain_gold, plain_run

__all__ = ["check_places", "take_gold", "take_run"]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def take_run(
    source: Any,
    *,
    with_gold: bool = False,
    mapping: Mapping[str, str] = _NOTHING,
    gold: Dataset | None = None,
) -> Dataset:
    """A run from any kind of object or a path.

    Args:
        source: what the caller handed over.
        with_gold: the gold must be in it too, as in samples.
        mapping: our field name -> theirs, where the inference should not decide.
        gold: the gold, if it comes apart; the mapping may be about it only.
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, Run):
        return Dataset(run=source)
    found = None if with_gold else plain_run(source)
    if found is not None:
        return found
    role: Role = "samples" if with_gold else "run"
    shared = frozenset() if gold is None else shared_names(mapping, gold)
    return fitting(
        partial(_take, source, role), source, mapping_of(role, mapping), shared
    )


def take_gold(source: Any, mapping: Mapping[str, str] = _NOTHING) -> Dataset:
    """Gold from any kind of object or a path; the mapping may be about a run only."""
    if isinstance(source, Dataset):
        return source
    if isinstance(source, Gold):
        return Dataset(gold=source)
    found = plain_gold(source)
    if found is not None:
        return found
    told = mapping_of("gold", mapping)
    return fitting(partial(_take, source, "gold"), source, told, shared_names(mapping))


def check_places(run: tuple[Any, Dataset], gold: tuple[Any, Dataset]) -> None:
    """Lists without ids go together by position: they must be equally long.

    Args:
        run: what the caller handed over, and what was taken in.
        gold: the same of the gold.
    """
    if not (_by_position(*run) and _by_position(*gold)):
        return
    assert run[1].run is not None  # noqa: S101
    assert gold[1].gold is not None  # noqa: S101
    retrieved, wanted = len(run[1].run.queries()), len(gold[1].gold.queries)
    if retrieved != wanted:
        raise MismatchError(
            "run and gold have no query ids and go together by position, but the run "
            f"has {counted(retrieved, 'query')} and the gold {wanted}",
            hint="an empty list stands for a query without documents",
        )


def _by_position(source: Any, loaded: Dataset) -> bool:
    if any(notice.kind == "numbered" for notice in loaded.notices):
        return True
    return isinstance(source, list | tuple) and loaded.format == PLAIN


def _take(source: Any, role: Role, *, mapping: Mapping[str, str]) -> Dataset:
    if isinstance(source, str | os.PathLike):
        return load(source, role=role, mapping=mapping)
    if is_frame(source):
        return load_frame(source, role=role, mapping=mapping, name=role)
    if isinstance(source, Mapping | Sequence) and not isinstance(source, bytes):
        with gc_paused():
            return load_value(source, Source(role, role, mapping), "objects")
    raise DataError(
        f"cannot read {role} from {type(source).__name__}",
        hint="pass a mapping, a list, a path or a DataFrame",
    )
