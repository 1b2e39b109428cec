"""Metrics of the C/W/L framework: the chance of going on from each rank says it all.

A reader looks at the first document and goes on from rank i with the chance C(i), which
may depend on what was gained so far. The score is what the reader gains per document
looked at. Gains are grades scaled to 0..1. As in cwl_eval, nobody looks at more than
1,000 documents. With a cutoff, the reader stops at rank k for certain.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats
from karat.data.hits import Hits
from karat.errors import ParameterError
from karat.metrics.metric import CutoffMetric
from karat.metrics.user_models import check_scale

_DEEPEST = 1000
# Queries laid out side by side at a time.
_QUERIES = 256


@dataclass(frozen=True)
class _ContinuationMetric(CutoffMetric):
    """What a reader gains per document looked at.

    Attributes:
        max_grade: the highest grade of the scale, which gains 1.
        min_grade: the grade up to which nothing is gained.
    """

    max_grade: float = 1
    min_grade: float = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.min_grade < self.max_grade:
            must_be = f"from 0 to below max_grade, {self.max_grade:g}"
            raise ParameterError(self.name, "min_grade", must_be, self.min_grade)

    @abstractmethod
    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        """The chance of going on from each rank; gains are laid out query by rank."""

    def score(self, hits: Hits) -> Floats:
        check_scale(self.name, self.max_grade, hits)
        credits = hits.credits()
        scale = self.max_grade - self.min_grade
        worth = np.maximum(credits.grade - self.min_grade, 0) / scale
        rank = np.arange(1, _DEEPEST + 1)
        score = np.empty(hits.size)
        for start in range(0, hits.size, _QUERIES):
            end = min(start + _QUERIES, hits.size)
            rows = (credits.query >= start) & (credits.query < end)
            rows &= credits.slot <= _DEEPEST
            gain = np.zeros((end - start, _DEEPEST))
            np.add.at(
                gain, (credits.query[rows] - start, credits.slot[rows] - 1), worth[rows]
            )
            # One document may hold several items, and satisfies once.
            np.minimum(gain, 1, out=gain)
            onward = self.goes_on(rank.astype(np.float64), gain)
            room = hits.cutoff(self.k, np.arange(start, end))
            if room is not None:
                onward = onward * (rank < np.reshape(room, (-1, 1)))
            reach = np.ones_like(gain)
            np.cumprod(np.broadcast_to(onward, gain.shape)[:, :-1], 1, out=reach[:, 1:])
            score[start:end] = (reach * gain).sum(1) / reach.sum(1)
        return np.where(credits.relevant > 0, score, np.nan)


class ScaledDCG(_ContinuationMetric):
    """Discounted gain, over that of k documents of the highest grade.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "sdcg"
    formula: ClassVar[str] = (
        "sum of gain / log2(rank + 1), over the sum of 1 / log2(rank + 1) to k"
    )

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        del gain
        return np.log2(rank + 1) / np.log2(rank + 2)


class NearERR8(_ContinuationMetric):
    """What a reader gains who stops at a document with the chance of its gain.

    Nearly expected reciprocal rank, equation 8 of Azzopardi et al. (2021). Undefined
    for a query without relevant gold.
    """

    name: ClassVar[str] = "nerr8"
    formula: ClassVar[str] = "mean gain, going on with 1 - gain"

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        del rank
        return 1 - gain


class NearERR9(_ContinuationMetric):
    """What a reader gains who stops at good documents, and tires on the way.

    Nearly expected reciprocal rank, equation 9 of Azzopardi et al. (2021). Undefined
    for a query without relevant gold.
    """

    name: ClassVar[str] = "nerr9"
    formula: ClassVar[str] = "mean gain, going on with rank / (rank + 1) * (1 - gain)"

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        return rank / (rank + 1) * (1 - gain)


@dataclass(frozen=True)
class NearERR10(_ContinuationMetric):
    """What a reader gains who stops at good documents, else goes on with chance p.

    Nearly expected reciprocal rank, equation 10 of Azzopardi et al. (2021). Undefined
    for a query without relevant gold.

    Attributes:
        p: the reader's persistence.
    """

    name: ClassVar[str] = "nerr10"
    formula: ClassVar[str] = "mean gain, going on with p * (1 - gain)"
    limits: ClassVar[dict[str, str]] = {"p": "(0, 1)"}

    p: float = 0.9

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        del rank
        return self.p * (1 - gain)


@dataclass(frozen=True)
class _GoalMetric(_ContinuationMetric):
    """A reader who wants to gain so much.

    Attributes:
        goal: how much gain the reader wants in all.
    """

    # With less, INST would go on with a chance above 1.
    limits: ClassVar[dict[str, str]] = {"goal": "[0.25, inf)"}

    goal: float = 1.0


class BejeweledPlayer(_GoalMetric):
    """What a reader gains who stops at rank k, or once all that is wanted is gained.

    The bejeweled player model of Zhang et al. (2017). Undefined for a query without
    relevant gold.
    """

    name: ClassVar[str] = "bpm"
    formula: ClassVar[str] = "mean gain up to rank k, or to where the goal is reached"

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        del rank
        return (gain.cumsum(1) < self.goal).astype(np.float64)


class INSQ(_GoalMetric):
    """What a reader gains whose patience grows with the rank and with what is wanted.

    Moffat et al. (2012). Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "insq"
    formula: ClassVar[str] = (
        "mean gain, going on with (1 - 1 / (rank + 2 goal)) squared"
    )

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        del gain
        return np.square(1 - 1 / (rank + 2 * self.goal))


class INST(_GoalMetric):
    """What a reader gains whose patience ends as what is wanted was gained.

    Bailey et al. (2015). Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "inst"
    formula: ClassVar[str] = (
        "mean gain, going on with (1 - 1 / (rank + 2 goal - gained)) squared"
    )

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        stops: Floats = 1 / (rank + 2 * self.goal - gain.cumsum(1))
        return np.square(1 - stops)


class NearERR11(INSQ):
    """What a reader gains who stops at good documents, else goes on as for INSQ.

    Nearly expected reciprocal rank, equation 11 of Azzopardi et al. (2021). Undefined
    for a query without relevant gold.
    """

    name: ClassVar[str] = "nerr11"
    formula: ClassVar[str] = (
        "mean gain, going on with (1 - 1 / (rank + 2 goal)) squared * (1 - gain)"
    )

    def goes_on(self, rank: Floats, gain: Floats) -> Floats:
        return super().goes_on(rank, gain) * (1 - gain)
