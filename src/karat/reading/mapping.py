"""Field names the user told, and which of two inputs, run and gold, each is about."""

from collections.abc import Callable, Mapping, Set as AbstractSet
from typing import TypeVar

from karat.data.queries import Dataset
from karat.errors import MissingFieldError
from karat.reading.meaning.fields import GOLD, RETRIEVED
from karat.reading.streams import STDIN

__all__ = ["fitting", "mapping_of", "renamed", "shared_names"]

T = TypeVar("T")

_OF_RUNS = RETRIEVED | {"retrieved_scores", "score", "rank"}
_OF_GOLD = GOLD | {"grade"}


def mapping_of(role: str | None, mapping: Mapping[str, str]) -> dict[str, str]:
    """The part of a mapping that is about a file of that role.

    Example:
        >>> mapping_of("gold", {"retrieved": "hits", "relevant": "wanted", "id": "nr"})
        {'relevant': 'wanted', 'id': 'nr'}
    """
    others = {"run": _OF_GOLD, "gold": _OF_RUNS}.get(role or "", frozenset())
    return {ours: theirs for ours, theirs in mapping.items() if ours not in others}


def renamed(run: Dataset, gold: Dataset) -> dict[str, dict[str, str]]:
    """The fields of run and gold that were read under other names than ours."""
    if not (run.mapping or gold.mapping):
        return {}
    mappings = {"fields": dict(run.mapping)}
    if gold is not run:
        mappings["fields"] = mapping_of("run", run.mapping)
        mappings["gold_fields"] = mapping_of("gold", gold.mapping)
    others = {
        name: {ours: theirs for ours, theirs in mapping.items() if ours != theirs}
        for name, mapping in mappings.items()
    }
    return {name: mapping for name, mapping in others.items() if mapping}


def shared_names(
    mapping: Mapping[str, str], gold: Dataset | None = None
) -> AbstractSet[str]:
    """Our names in a mapping that may be about the other one of run and gold only.

    Args:
        mapping: our field name -> an input's, as the user wrote it.
        gold: the gold once it is read: a run must have all that it does not have.
    """
    if gold is not None:
        known = gold.mapping.values()
        return {ours for ours, theirs in mapping.items() if theirs in known}
    return mapping_of("run", mapping).keys() & mapping_of("gold", mapping).keys()


def fitting(
    read: Callable[..., T],
    path: object,
    mapping: Mapping[str, str],
    shared: AbstractSet[str],
) -> T:
    """What `read` makes of an input, without the names of a mapping it does not have.

    Args:
        read: reads the input with the `mapping` it is given.
        path: the input; standard input cannot be read again.
        mapping: our field name -> the input's.
        shared: our names that may be about another input only.
    """
    try:
        return read(mapping=mapping)
    except MissingFieldError as error:
        told = mapping.items()
        fits = {o: t for o, t in told if t != error.field or o not in shared}
        once = isinstance(path, str) and path == STDIN
        if once or len(fits) == len(mapping):
            raise
        return fitting(read, path, fits, shared)
