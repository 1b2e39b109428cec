"""Retesting: how many grades change when a judge is asked again in other words."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.runs import Labels
from karat.data.scores import Interval
from karat.data.tables import Table, counted, number
from karat.judging.relevance import Graded, Pool, grade_pool, tolerant
from karat.judging.session import JudgeSession
from karat.stats import mean_interval

__all__ = ["COLUMNS", "Flips", "flips", "limits", "paired", "retest"]

COLUMNS = ("agreement", "value", "95% interval", "n")
"""What a table of agreement shows of each figure."""


class Flips(NamedTuple):
    """How many grades changed when the same was asked again.

    Attributes:
        changed: number of grades that changed.
        n: number of documents that were graded both times.
        interval: how far their share may be off, for other queries than these.
        failed: number of documents without a grade the second time, which count
            neither way.
    """

    changed: int
    n: int
    interval: Interval | None = None
    failed: int = 0

    @property
    def rate(self) -> float:
        """The share that changed."""
        return self.changed / self.n if self.n else float("nan")

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        interval = limits(self.interval)
        return ["changed when asked again", number(self.rate), interval, str(self.n)]

    def notes(self) -> list[str]:
        """What could not be asked again."""
        if not self.failed:
            return []
        failed = counted(self.failed, "document")
        return [f"asked again: {failed} without a grade, which count neither way"]

    def table(self) -> Table:
        """What a person is shown when nothing else was measured."""
        return Table(COLUMNS, [self.row()], notes=self.notes())

    def to_dict(self) -> dict[str, Any]:
        """Its fields in plain values."""
        return {**self._asdict(), "interval": self.interval and self.interval[:2]}


def retest(
    pooled: Pool, questions: Mapping[str, str], bench: JudgeSession, *, votes: int = 1
) -> Graded:
    """Grade a pool once more, by assessors after those that voted.

    They are asked in other words, so that no kept reply is taken for a new one. What
    fails here is a finding, and stops nothing.
    """
    return grade_pool(pooled, questions, tolerant(bench), votes=votes, first=votes + 1)


def flips(before: Labels, after: Labels, *, failed: int = 0) -> Flips:
    """Compare two passes of one judge over the same pairs."""
    one, other, query = paired(before, after)
    changed = one != other
    interval = mean_interval(changed.astype(float), binary=True, clusters=query)
    return Flips(int(np.count_nonzero(changed)), len(one), interval, failed)


def paired(one: Labels, other: Labels) -> tuple[Floats, Floats, Ints]:
    """The labels that both gave, side by side, and the number of their query."""
    both = [
        [(grade, given[name]) for name, grade in row.items() if name in given]
        for query, row in one.items()
        if (given := other.get(query, {}))
    ]
    both = [row for row in both if row]
    pairs = np.array([pair for row in both for pair in row], float).reshape(-1, 2)
    query = np.repeat(np.arange(len(both)), [len(row) for row in both])
    return pairs[:, 0], pairs[:, 1], query


def limits(interval: Interval | None) -> str:
    """An interval on paper; nothing where there is none."""
    if interval is None:
        return ""
    return f"{number(interval.low)} .. {number(interval.high)}"
