"""Turns rolled up to the sessions they belong to: chunks to documents, in general."""

from collections.abc import Callable

from karat.data.memory_runs import RankedRun
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Run
from karat.errors import DataError

__all__ = ["roll_up", "roll_up_labels", "session_of", "source_of"]


def session_of(turn: str, sep: str = "_") -> str:
    """The session a turn's id names: all that stands before its last separator.

    Example:
        >>> session_of("answer_4be1_2"), session_of("D1:3", ":"), session_of("s7")
        ('answer_4be1', 'D1', 's7')
    """
    return turn.rpartition(sep)[0] or turn


def source_of(document: Document) -> str:
    """The source that a document itself says it comes from."""
    if document.source is None:
        raise DataError(
            f"document {document.id or document.text or ''!r:.60} names no source",
            hint="level=source needs a field such as source beside each document's id",
        )
    return document.source


def roll_up(
    run: Run, session: Callable[[Document], str], policies: Policies
) -> RankedRun:
    """The run with every document known by its session.

    A session keeps the rank of its first turn; how its later turns are treated is the
    policy on duplicates. `collapse` lets k count sessions instead of turns, which is
    the growing cutoff of LongMemEval.

    Args:
        run: what was retrieved.
        session: the session of a document, such as a look-up in a mapping.
        policies: how ties are ordered.

    Example:
        >>> sessions = {"t1": "s1", "t2": "s1", "t3": "s2"}
        >>> run = RankedRun({"q": ["t1", "t2", "t3"]})
        >>> rolled = roll_up(run, lambda turn: sessions[turn.id], Policies())
        >>> [d.id for _, documents in rolled.rankings(Policies()) for d in documents]
        ['s1', 's1', 's2']
    """
    rankings = {
        query: [session(document) for document in documents]
        for query, documents in run.rankings(policies)
    }
    return RankedRun(rankings, run.name)


def roll_up_labels(labels: Labels, session: Callable[[str], str]) -> Labels:
    """The labels of sessions: the best grade among the turns of each."""
    rolled: dict[str, dict[str, float]] = {}
    for query, row in labels.items():
        best = rolled[query] = dict[str, float]()
        for turn, grade in row.items():
            name = session(turn)
            best[name] = max(grade, best.get(name, grade))
    return rolled
