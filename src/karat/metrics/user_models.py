"""Metrics that follow an imagined reader down the ranking."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, running_sum, sum_by
from karat.data.hits import Hits
from karat.errors import ParameterError
from karat.metrics.metric import CutoffMetric, Metric, add_up

__all__ = ["ExpectedReciprocalRank", "RankBiasedPrecision", "RankBiasedResidual"]

_ALL_BUT_SURE = 1 - 2.0**-53
_LONGEST_SCALE = 1_000_000


def _check_persistence(owner: str, p: float) -> None:
    if not 0 < p < 1:
        raise ParameterError(owner, "p", "between 0 and 1", p)


def _reach(p: float, rank: Ints) -> Floats:
    """The chance that a reader gets to each rank: p^(rank - 1)."""
    # One factor after the other, as trec_eval multiplies.
    steps = np.full(int(rank.max(initial=1)), p)
    steps[0] = 1.0
    return np.cumprod(steps)[rank - 1]


@dataclass(frozen=True)
class RankBiasedPrecision(CutoffMetric):
    """What a reader gets who goes on to the next document with probability p.

    Undefined for a query without relevant gold.

    Attributes:
        p: the reader's persistence.
        gain: `binary` pays every relevant item alike; `scaled` pays its grade over the
            highest grade of the query, where that is above 1.
        threshold: the smallest grade that counts as relevant; None: any positive one.
    """

    name: ClassVar[str] = "rbp"
    formula: ClassVar[str] = "(1 - p) * sum over found items of p^(slot - 1)"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"gain": ("binary", "scaled")}

    p: float = 0.8
    gain: str = "binary"
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_persistence(self.name, self.p)

    def score(self, hits: Hits) -> Floats:
        """The discounted share."""
        query, paid = self._paid(hits)
        score = (1 - self.p) * sum_by(query, paid, hits.size)
        return np.where(hits.credits(self.threshold).relevant > 0, score, np.nan)

    def workings(self, hits: Hits) -> str:
        """The chance of reaching each found item."""
        return f"{1 - self.p:.4g} x ({add_up(self._paid(hits)[1])})"

    def _paid(self, hits: Hits) -> tuple[Ints, Floats]:
        credits = hits.credits(self.threshold)
        rows = self.within(hits, credits.query, credits.slot)
        query = credits.query[rows]
        paid = _reach(self.p, credits.slot[rows])
        if self.gain == "scaled":
            best = np.ones(hits.size)
            np.maximum.at(best, hits.gold_query, hits.gold_grade)
            paid *= credits.grade[rows] / best[query]
        return query, paid


@dataclass(frozen=True)
class RankBiasedResidual(Metric):
    """How much rank-biased precision could still rise if all unjudged were relevant.

    The part below the last rank counts as unjudged, unless everything retrieved is
    judged: then it is 0, as in trec_eval 10, whose p is 0.9. Undefined for a query in
    which nothing is judged.

    Attributes:
        p: the reader's persistence.
    """

    name: ClassVar[str] = "rbp_resid"
    formula: ClassVar[str] = "1 - (1 - p) * sum over judged documents of p^(rank - 1)"
    reads_judged: ClassVar[bool] = True

    p: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_persistence(self.name, self.p)

    def score(self, hits: Hits) -> Floats:
        """The weight of the ranks nobody judged."""
        query, rank = hits.positions(0)
        known = (1 - self.p) * sum_by(query, _reach(self.p, rank), hits.size)
        open_ = count_by(query, hits.size) < hits.retrieved
        residual = np.where(open_, 1 - known, 0.0)
        return np.where(hits.gold_count > 0, residual, np.nan)


@dataclass(frozen=True)
class ExpectedReciprocalRank(CutoffMetric):
    """The mean of 1 / rank at which a reader stops, whom good documents satisfy.

    A document satisfies with probability (2^grade - 1) / 2^max_grade. Undefined for a
    query without relevant gold.

    Attributes:
        max_grade: the highest grade of the scale; 4 is what gdeval and with it
            ir_measures take.
    """

    name: ClassVar[str] = "err"
    formula: ClassVar[str] = "sum of P(stops at slot) / slot"

    max_grade: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.max_grade <= _LONGEST_SCALE:
            must_be = f"an integer from 1 to {_LONGEST_SCALE}"
            raise ParameterError(self.name, "max_grade", must_be, self.max_grade)

    def score(self, hits: Hits) -> Floats:
        """Chance of stopping at each item, over its slot."""
        query, paid = self._paid(hits)
        score = sum_by(query, paid, hits.size)
        return np.where(hits.credits().relevant > 0, score, np.nan)

    def workings(self, hits: Hits) -> str:
        """What each found item adds."""
        return add_up(self._paid(hits)[1])

    def _paid(self, hits: Hits) -> tuple[Ints, Floats]:
        highest = hits.gold_grade.max(initial=0)
        if highest > self.max_grade:
            must_be = f"at least the highest grade, {highest:g}"
            raise ParameterError(self.name, "max_grade", must_be, self.max_grade)
        credits = hits.credits()
        rows = self.within(hits, credits.query, credits.slot)
        query, slot = credits.query[rows], credits.slot[rows]
        scale = float(self.max_grade)
        stops = np.exp2(credits.grade[rows] - scale) - np.exp2(-scale)
        # A chance that rounds to 1 still leaves one that some reader goes on.
        passed = np.log1p(-np.minimum(stops, _ALL_BUT_SURE))
        reaches = np.exp(running_sum(query, passed) - passed)
        return query, reaches * stops / slot
