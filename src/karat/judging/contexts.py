"""Contexts: the texts of a ranking as a judge is shown them."""

from collections.abc import Sequence

from karat.data.policies import Policies
from karat.data.runs import Document
from karat.errors import DataError
from karat.judging.packing import Context

__all__ = ["contexts_of"]


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
