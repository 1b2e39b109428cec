"""What trec_eval computes for a topic: karat's metrics, with its own rules around."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from karat.extend import (
    Floats,
    Hits,
    InterpolatedAverage,
    InterpolatedPrecision,
    Ints,
    Metric,
)

__all__ = [
    "Column",
    "Gains",
    "Rules",
    "Score",
    "Shown",
    "interpolated",
    "interpolated_average",
    "plain_score",
    "regraded",
    "relevance_letters",
    "where_relevant",
]

Score = Callable[[Hits], Floats]
Gains = Mapping[float, float]


class Shown(Enum):
    """How a column appears."""

    MEAN = auto()
    """A value per topic, and their mean."""
    SUM = auto()
    """A count per topic, and their sum."""
    GEOMETRIC = auto()
    """Only the geometric mean of the topics' values."""
    LETTERS = auto()
    """Only a text per topic."""
    ONCE = auto()
    """Only a fact about the run as a whole."""


@dataclass(frozen=True)
class Rules:
    """What decides a number besides the files.

    Attributes:
        version: `9` or `10`.
        threshold: the smallest grade that is relevant; None: any positive one.
        collection: number of documents in the collection, for `utility`.
    """

    version: str
    threshold: float | None = None
    collection: int = 0

    @property
    def rounding(self) -> str:
        """How a share of the relevant documents becomes a number of them."""
        return "up" if self.version == "9" else "nearest"


@dataclass(frozen=True)
class Column:
    """One printed name with what stands behind it.

    Attributes:
        name: as printed.
        score: the value of every topic, where there is one.
        shown: how it appears.
        judged: whether it needs rows of documents judged non-relevant.
        letters: how many documents a text per topic describes.
    """

    name: str
    score: Score | None = None
    shown: Shown = Shown.MEAN
    judged: bool = False
    letters: int = 0


def plain_score(metric: Metric) -> Score:
    """The metric, with 0 where it is undefined."""
    return lambda hits: np.nan_to_num(metric.score(hits))


def where_relevant(score: Score, threshold: float | None) -> Score:
    """The score, with 0 where nothing reaches the threshold."""
    return lambda hits: np.where(hits.credits(threshold).relevant > 0, score(hits), 0.0)


def interpolated(recall: float, rules: Rules) -> Score:
    """Interpolated precision at one point of recall."""
    return interpolated_average([recall], rules)


def interpolated_average(points: Sequence[float], rules: Rules) -> Score:
    """The mean of interpolated precision over these points of recall."""
    average = InterpolatedAverage(rules.rounding, rules.threshold)
    lowest = InterpolatedPrecision(min(points), rules.rounding, rules.threshold)

    def score(hits: Hits) -> Floats:
        value = np.nan_to_num(average.over(hits, points))
        # trec_eval divides 0 by 0 where nothing was retrieved and nothing is needed.
        void = (hits.retrieved == 0) & (lowest.needed(hits) == 0)
        return np.where(void, np.nan, value)

    return score


def regraded(score: Score, gains: Gains) -> Score:
    """The score with other gains in place of some grades."""
    if not gains:
        return score
    return lambda hits: score(hits.with_grades(gains))


def relevance_letters(hits: Hits, length: int) -> list[str]:
    """The grades of the first documents of each topic, a letter each.

    A digit is the grade, `>` a higher one, `.` a document that was pooled but not
    judged, `-` one that was not even pooled.
    """
    shown = np.minimum(hits.retrieved, max(length, 0))
    width = int(shown.max(initial=0))
    letters = np.full((hits.size, width), ord("-"), np.uint8)
    rows = hits.rank <= width
    letters[hits.query[rows], hits.rank[rows] - 1] = _letter(hits.grade[rows])
    text = letters.tobytes().decode("ascii")
    return [
        text[start : start + count]
        for start, count in zip(
            range(0, width * hits.size, width) if width else [0] * hits.size,
            shown.tolist(),
            strict=True,
        )
    ]


def _letter(grade: Floats) -> Ints:
    digit = ord("0") + np.clip(grade, 0, 9).astype(np.int64)
    return np.where(grade > 9, ord(">"), np.where(grade < 0, ord("."), digit))  # noqa: PLR2004
