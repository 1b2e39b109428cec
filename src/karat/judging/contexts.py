"""Contexts: the texts of a ranking as a judge is shown them."""

from collections.abc import Mapping, Sequence

from karat.data.policies import Policies
from karat.data.runs import Document, Notice
from karat.errors import DataError
from karat.judging.packing import Context
from karat.llm.budget import tokens_of

__all__ = ["contexts_of", "long_contexts"]


def contexts_of(
    documents: Sequence[Document], query: str, policies: Policies
) -> list[Context]:
    """Rank and text of each document that can earn anything.

    A text retrieved before earns nothing the second time, so it is not shown again
    (`duplicates="keep"` shows it); documents without words support nothing.
    """
    contexts: list[Context] = []
    seen: set[str] = set()
    rank = 0
    for place, document in enumerate(documents, 1):
        if document.text is None:
            raise DataError(
                f"document {document.id!r} has no text, and a judge must read it",
                query=query,
                hint="give the retrieved texts in the samples, or --corpus FILE",
            )
        repeated = document.text in seen
        if repeated and policies.duplicates == "error":
            raise DataError(
                f"rank {place} repeats a text retrieved before", query=query
            )
        if repeated and policies.duplicates == "collapse":
            continue
        rank += 1
        if policies.depth is not None and rank > policies.depth:
            break
        seen.add(document.text)
        if document.text.strip() and not (repeated and policies.duplicates == "first"):
            contexts.append((rank, document.text))
    return contexts


def long_contexts(
    contexts: Mapping[str, Sequence[Context]], budget: int
) -> tuple[Notice, ...]:
    """A word about documents that are read in pieces, since each piece is a call."""
    found = [
        query
        for query, row in contexts.items()
        for _, text in row
        if len(text) > budget and tokens_of(text) > budget
    ]
    if not found:
        return ()
    advice = "read piece by piece, a call for each; cut into chunks they cost less"
    text = f"documents are longer than {budget} tokens and are {advice}"
    one = f"document is longer than {budget} tokens and is {advice}"
    return (Notice("long", len(found), text, tuple(dict.fromkeys(found))[:3], one),)
