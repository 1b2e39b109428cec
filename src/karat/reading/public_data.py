"""Public test collections, by their ids in the library ir_datasets.

`ir_datasets:beir/scifact/test` stands for its qrels, queries or documents, by what is
asked for. The library fetches what it has not got yet.
"""

from collections.abc import Collection, Iterator
from typing import Any

from karat.data.gold import Gold
from karat.data.queries import Dataset, Query
from karat.errors import DataError, MissingExtraError, UsageError

_PREFIX = "ir_datasets:"


def is_public(source: Any) -> bool:
    """Whether it is the id of a public collection."""
    return isinstance(source, str) and source.startswith(_PREFIX)


def load_public(source: str, role: str | None) -> Dataset:
    """The qrels of a collection with the texts of its queries, or these alone."""
    if role in ("run", "samples"):
        raise UsageError(f"{source} is gold, queries or a corpus, and no run")
    queries = {}
    if role == "queries" or _load(source).has_queries():
        for query in _part(source, "queries"):
            queries[query.query_id] = Query(query.query_id, query.default_text())
    if role == "queries":
        return Dataset(queries=queries)
    labels: dict[str, dict[str, float]] = {}
    for label in _part(source, "qrels"):
        labels.setdefault(label.query_id, {})[label.doc_id] = float(label.relevance)
    name = source.removeprefix(_PREFIX)
    return Dataset(gold=Gold(labels, name=name), queries=queries, format="ir_datasets")


def public_documents(
    source: str, ids: Collection[str] | None
) -> Iterator[dict[str, str]]:
    """The documents of a collection as records; those of some ids where told."""
    found = _part(source, "docs")
    if ids is not None:
        found = _load(source).docs_store().get_many_iter([*ids])
    for document in found:
        yield {"_id": document.doc_id, "text": document.default_text()}


def _part(source: str, part: str) -> Iterator[Any]:
    found = _load(source)
    if not getattr(found, f"has_{part}")():
        parts = [
            p for p in ("docs", "queries", "qrels") if getattr(found, f"has_{p}")()
        ]
        raise DataError(
            f"has no {part}, only {', '.join(parts) or 'nothing'}", path=source
        )
    try:
        yield from getattr(found, f"{part}_iter")()
    except OSError as error:
        raise DataError(f"cannot be fetched: {error}", path=source) from None


def _load(source: str) -> Any:
    try:
        import ir_datasets  # noqa: PLC0415  slow to import, and seldom needed
    except ImportError:
        raise MissingExtraError(_PREFIX, "ir_datasets") from None
    name = source.removeprefix(_PREFIX)
    try:
        return ir_datasets.load(name)
    except KeyError:
        raise DataError(f"ir_datasets knows no collection {name!r}") from None
