"""Runs and gold of texts, written briefly."""

from collections.abc import Sequence
from typing import Any

from karat import Gold
from karat.data.memory_runs import DocumentRun
from karat.extend import Document, Hits, Item, Matches, Policies, read_matcher


def run_of(**rankings: Sequence[str | Document]) -> DocumentRun:
    """Documents by query; a string is a document with that text and no id."""
    return DocumentRun(
        {
            query: [d if isinstance(d, Document) else Document(text=d) for d in row]
            for query, row in rankings.items()
        }
    )


def gold_of(kind: str = "passages", /, **items: Sequence[str | Item]) -> Gold:
    """Gold texts by query; a string is an item with that text."""
    rows = {
        query: tuple(
            item if isinstance(item, Item) else Item(f"{kind}-{number}", item)
            for number, item in enumerate(row, 1)
        )
        for query, row in items.items()
    }
    kinds: dict[str, Any] = {kind: rows}
    return Gold(**kinds, order=tuple(items))


def matched(
    matcher: str, run: DocumentRun, gold: Gold, policies: Policies | None = None
) -> Matches:
    """What a matcher finds, judged non-relevant items included."""
    return read_matcher(matcher).match(
        run, gold, judged=True, policies=policies or Policies()
    )


def rows_of(hits: Hits) -> list[tuple[int, int, int]]:
    """Query, rank and item of every row."""
    assert hits.item is not None
    columns = (hits.query.tolist(), hits.rank.tolist(), hits.item.tolist())
    return list(zip(*columns, strict=True))


def satisfies(matcher: str, gold: str, document: str) -> bool:
    """Whether one text satisfies one gold passage or answer."""
    kind = read_matcher(matcher).reads[0]
    hits = matched(matcher, run_of(q=[document]), gold_of(kind, q=[gold])).hits
    return len(hits.query) == 1
