"""Bounds: what a metric may be, whatever the unjudged documents are worth."""

from dataclasses import dataclass

__all__ = ["Bound", "Unjudged"]


@dataclass(frozen=True)
class Bound:
    """Between which values a metric lies, whatever the unjudged documents are worth.

    Attributes:
        score: the mean as it is, unjudged documents being worth nothing.
        worst: the mean if they were judged as unluckily as can be.
        best: the mean if as luckily.
        exact: whether these are reached; else no judgement leads outside of them.
    """

    score: float | None
    worst: float | None
    best: float | None
    exact: bool = True


@dataclass(frozen=True)
class Unjudged:
    """A retrieved document that nobody judged, to be labelled.

    Attributes:
        query: id of the query.
        document: id of the document.
        rank: where it was retrieved.
        moves: by how much its label can move the metric of its query.
        text: what it says, if known.
    """

    query: str
    document: str
    rank: int
    moves: float
    text: str | None = None
