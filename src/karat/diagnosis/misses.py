"""Misses: gold items that are not in the top k, their causes, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from karat.data.coverage import Range

__all__ = ["CAUSES", "Cause", "Miss", "Related", "ToDo"]


class Cause(NamedTuple):
    """A reason why a gold item is not in the top k.

    Attributes:
        advice: which piece of advice helps: higher k, chunking, embedding or hybrid,
            split questions, labels, ingestion.
        action: what to do, as the beginning of a sentence.
        needs: what must be given to examine it; empty when nothing more.
    """

    advice: str
    action: str
    needs: str = ""


_TEXTS = "texts: --corpus, or documents with texts"
CAUSES: dict[str, Cause] = {
    "wrong id form": Cause("labels", "Write ids of gold and run in the same form"),
    "not in the corpus": Cause(
        "ingestion", "Ingest what is missing, and check the parser", "--corpus"
    ),
    "unlabelled twin retrieved": Cause(
        "labels", "Label the documents that say the same as a gold item", _TEXTS
    ),
    "split over chunks": Cause(
        "chunking",
        "Use larger or overlapping chunks, or join neighbours when retrieving",
        _TEXTS,
    ),
    "displaced by near-duplicates": Cause(
        "higher k", "Remove near-duplicates before cutting at k", _TEXTS
    ),
    "dropped by the reranker": Cause(
        "higher k",
        "Check the reranker, or keep more of what it is given",
        "--candidates",
    ),
    "below k": Cause("higher k", "Retrieve more documents, or rerank those retrieved"),
    "near miss in text": Cause(
        "labels", "Compare gold with the text retrieved, and correct either", _TEXTS
    ),
    "partial multi-hop": Cause(
        "split questions",
        "Split such questions, or search again with what was found first",
    ),
    "embedding miss": Cause(
        "embedding or hybrid",
        "Add lexical search (hybrid retrieval), or improve the embedding model",
        "--corpus and the texts of queries",
    ),
    "lexical gap": Cause(
        "embedding or hybrid",
        "Improve the embedding model, or rewrite queries: they share few words with "
        "their gold",
        "--corpus and the texts of queries",
    ),
    "never retrieved": Cause(
        "embedding or hybrid", "Improve the embedding model, or add lexical search"
    ),
}
"""Every cause, in the order in which they are looked for."""


@dataclass(frozen=True)
class Related:
    """A document that shows why a gold item was missed.

    Attributes:
        id: of the document, if it has one.
        rank: in the run; None for a document of the corpus that was not retrieved.
        text: what it says, if known.
        similarity: how much of the gold item it has, from 0 to 1.
        gold: ranges of the gold text that it covers.
        spans: ranges of its own text that cover them.
        differs: numbers, negations and names that are not the same: "30 -> 14".
    """

    id: str | None = None
    rank: int | None = None
    text: str | None = None
    similarity: float | None = None
    gold: tuple[Range, ...] = ()
    spans: tuple[Range, ...] = ()
    differs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Miss:
    """A gold item that is not in the top k, and why.

    Attributes:
        query: id of the query.
        item: name of the gold item.
        cause: one of `CAUSES`.
        reason: the evidence in a sentence.
        fix: what would find it.
        rank: its first rank in the run, which is below k; None: it is not there.
        needed_k: the smallest k that finds it, where one does.
        text: what the item says, if known.
        related: documents that show it.
        facts: numbers by name, such as `bm25_rank`, `candidate_rank`, `coverage`.
    """

    query: str
    item: str
    cause: str
    reason: str
    fix: str
    rank: int | None = None
    needed_k: int | None = None
    text: str | None = None
    related: tuple[Related, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ToDo:
    """Something to do, and how much recall it could win.

    Attributes:
        cause: of the misses that it would find.
        advice: which piece of advice it is, as of its cause.
        sentence: what to do, with the numbers.
        misses: how many misses it is about.
        queries: how many queries.
        wins: mean recall that it adds at most.
        k: the k to retrieve, where that is the advice.
    """

    cause: str
    advice: str
    sentence: str
    misses: int
    queries: int
    wins: float
    k: int | None = None
