"""Metrics that follow an imagined reader down the ranking."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, ratio, running_sum, sum_by
from karat.data.hits import Hits
from karat.errors import ParameterError
from karat.metrics import CutoffMetric, Metric, add_up

_ALL_BUT_SURE = 1 - 2.0**-53


def check_scale(owner: str, max_grade: float, hits: Hits) -> None:
    """Refuse gold whose grades go beyond the scale."""
    highest = hits.gold_grade.max(initial=0)
    if highest > max_grade:
        must_be = f"at least the highest grade, {highest:g}"
        raise ParameterError(owner, "max_grade", must_be, max_grade)


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
    limits: ClassVar[dict[str, str]] = {"p": "(0, 1)"}

    p: float = 0.8
    gain: str = "binary"
    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        query, paid = self._paid(hits)
        score = (1 - self.p) * sum_by(query, paid, hits.size)
        return np.where(hits.credits(self.threshold).relevant > 0, score, np.nan)

    def workings(self, hits: Hits) -> str:
        return f"{1 - self.p:.4g} x ({add_up(self._paid(hits)[1])})"

    def _paid(self, hits: Hits) -> tuple[Ints, Floats]:
        query, slot, grade = self.paid_within(hits)
        paid = _reach(self.p, slot)
        if self.gain == "scaled":
            best = np.ones(hits.size)
            np.maximum.at(best, hits.gold_query, hits.gold_grade)
            paid *= grade / best[query]
        return query, paid


@dataclass(frozen=True)
class RankBiasedResidual(Metric):
    """How much rank-biased precision could still rise if all unjudged were relevant.

    The part below the last rank counts as unjudged, unless everything retrieved is
    judged: then it is 0, as in trec_eval 10. Undefined for a query in which nothing is
    judged.

    Attributes:
        p: the reader's persistence.
    """

    name: ClassVar[str] = "rbp_resid"
    higher_is_better: ClassVar[bool | None] = False
    formula: ClassVar[str] = "1 - (1 - p) * sum over judged documents of p^(rank - 1)"
    reads_judged: ClassVar[bool] = True
    limits: ClassVar[dict[str, str]] = {"p": "(0, 1)"}

    p: float = 0.8

    def score(self, hits: Hits) -> Floats:
        query, rank = hits.positions(0)
        judged = (1 - self.p) * sum_by(query, _reach(self.p, rank), hits.size)
        open_ = count_by(query, hits.size) < hits.retrieved
        residual = np.where(open_, 1 - judged, 0.0)
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
    limits: ClassVar[dict[str, str]] = {"max_grade": "[1, 1000000]"}

    max_grade: int = 4

    def score(self, hits: Hits) -> Floats:
        query, paid = self._paid(hits)
        score = sum_by(query, paid, hits.size)
        return np.where(hits.credits().relevant > 0, score, np.nan)

    def workings(self, hits: Hits) -> str:
        return add_up(self._paid(hits)[1])

    def _paid(self, hits: Hits) -> tuple[Ints, Floats]:
        check_scale(self.name, self.max_grade, hits)
        query, slot, grade = self.paid_within(hits)
        scale = float(self.max_grade)
        stops = np.exp2(grade - scale) - np.exp2(-scale)
        # A chance that rounds to 1 still leaves one that some reader goes on.
        passed = np.log1p(-np.minimum(stops, _ALL_BUT_SURE))
        reaches = np.exp(running_sum(query, passed) - passed)
        return query, reaches * stops / slot


@dataclass(frozen=True)
class Compatibility(Metric):
    """How much the ranking overlaps with the best one, the top weighing most.

    The rank-biased overlap with the ideal ranking that is nearest to what was
    retrieved: best grades first, those of one grade in the order in which they were
    found. Undefined for a query without relevant gold.

    Attributes:
        p: the reader's persistence.
        normalize: divide by the overlap of the ideal ranking with itself, so that the
            best is 1.
    """

    name: ClassVar[str] = "compat"
    formula: ClassVar[str] = (
        "sum over depths d of p^(d - 1) overlap(d) / d, over the best"
    )
    limits: ClassVar[dict[str, str]] = {"p": "(0, 1)"}

    p: float = 0.95
    normalize: bool = True

    def score(self, hits: Hits) -> Floats:
        query, place, _ = hits.ideal_order
        size = count_by(query, hits.size)
        depth = np.maximum(hits.retrieved, size)
        every = np.arange(1, int(depth.max(initial=0)) + 1)
        reach = _reach(self.p, every)
        # What an item pays that both rankings hold from a depth on, down to the last.
        paid = np.concatenate(([0.0], np.cumsum(reach / every)))
        own = hits.credits().query
        both = np.maximum(hits.credits().slot, _ideal_places(hits))
        score = sum_by(own, paid[depth[own]] - paid[both - 1], hits.size)
        if self.normalize:
            best = sum_by(query, paid[depth[query]] - paid[place - 1], hits.size)
        else:
            best = np.concatenate(([0.0], np.cumsum(reach)))[depth]
        return np.where(size > 0, ratio(score, best), np.nan)


def _ideal_places(hits: Hits) -> Ints:
    """The place of each credited item in the ideal ranking nearest to the run."""
    credits = hits.credits()
    query, _, grade = hits.ideal_order
    levels = np.unique(grade)
    # One number per query and grade, ascending along the ideal order.
    wide = len(levels)
    order = query * wide - np.searchsorted(levels, grade)
    mine = credits.query * wide - np.searchsorted(levels, credits.grade)
    better = np.searchsorted(order, mine) - np.searchsorted(query, credits.query)
    by_grade = np.argsort(mine, kind="stable")
    within = np.arange(len(mine)) - np.searchsorted(mine[by_grade], mine[by_grade])
    places: Ints = better + 1
    places[by_grade] += within
    return places


_DEEPEST = 1000
# Queries laid out side by side at a time.
_QUERIES = 256


@dataclass(frozen=True)
class _ContinuationMetric(CutoffMetric):
    """What a reader gains per document looked at, by the C/W/L framework.

    The reader goes on from rank i with a chance that may depend on what was gained so
    far. As in cwl_eval, nobody looks at more than 1,000 documents. With a cutoff, the
    reader stops at rank k for certain.

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
