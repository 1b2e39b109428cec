"""Scales: from which grade on a document is relevant, and what can be compared."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from karat.data.gold import Gold
from karat.data.runs import Labels
from karat.judging.prompts import GRADES

__all__ = ["RELEVANT", "is_binary", "is_graded", "on_scale_of", "relevance"]

RELEVANT = 2
"""The grade from which on a document helps to answer, as a judge is told.

Metrics count any positive grade, unless `--threshold 2` draws this line for them.
"""


def is_binary(labels: Labels) -> bool:
    """Whether the labels say relevant or not, and nothing in between.

    Example:
        >>> is_binary({"q": {"a": 1, "b": 0}}), is_binary({"q": {"a": 3, "b": 1}})
        (True, False)
    """
    grades = _grades(labels)
    return 1 in grades and all(grade <= 0 or grade == 1 for grade in grades)


def is_graded(labels: Labels) -> bool:
    """Whether the labels are grades as a judge gives them, from 0 to 3.

    Example:
        >>> is_graded({"q": {"a": 3, "b": 1}}), is_graded({"q": {"a": 2, "b": 0}})
        (True, False)
    """
    grades = _grades(labels)
    return max(GRADES) in grades and all(g <= 0 or g in GRADES for g in grades)


def relevance(labels: Labels, line: float | None = None) -> Labels:
    """1 for what is relevant, 0 for the rest.

    Args:
        labels: grades on any scale.
        line: the smallest grade that is relevant; any positive one unless told.

    Example:
        >>> relevance({"q": {"a": 2, "b": 1}}, RELEVANT)
        {'q': {'a': 1.0, 'b': 0.0}}
    """
    enough: Callable[[float], bool] = (
        (lambda grade: grade > 0) if line is None else (lambda grade: grade >= line)
    )
    return {
        query: {name: float(enough(grade)) for name, grade in row.items()}
        for query, row in labels.items()
    }


def on_scale_of(labels: Labels, judged: Gold) -> Gold:
    """The judge's grades as they are written among other labels.

    Where those say 0 or 1 alone, a document is 1 if it answers the question at least in
    part, which is grade 2 or 3. Otherwise the grades stay as they are.
    """
    if not is_binary(labels):
        return judged
    return replace(judged, documents=relevance(judged.documents, RELEVANT))


def _grades(labels: Labels) -> set[float]:
    rows: Iterable[Iterable[float]] = (row.values() for row in labels.values())
    return {grade for row in rows for grade in row}
