"""Metrics that pay a document what its grade is worth."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from math import isfinite
from typing import Any, ClassVar, TypeAlias

import numpy as np

from karat.data.arrays import Floats, Ints, ratio, sum_by
from karat.data.hits import Hits
from karat.data.spelling import LETTER, write_value
from karat.errors import ParameterError
from karat.metrics import CutoffMetric, add_up

Gains: TypeAlias = Mapping[float, float]

# Beyond this grade 2^grade, or a sum of them, is no number of double precision.
_HIGHEST = 1000

_MUST_BE = "grade:gain;..., as in 1:1;2:3, gains not negative"


@dataclass(frozen=True)
class GainMetric(CutoffMetric):
    """A metric that pays gains.

    Attributes:
        gain: `linear` pays the grade itself, `exp` pays 2^grade - 1.
        gains: what to read in place of some grades, as in `1:1;2:3`, or as a mapping
            in Python; the others stay as they are.
    """

    choices: ClassVar[dict[str, tuple[str, ...]]] = {"gain": ("linear", "exp")}
    discount: ClassVar[Any] = staticmethod(np.log2)

    gain: str = "linear"
    gains: "str | Gains" = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        # In order, and in the one form in which equal gains are equal.
        gains = _read_gains(self.name, write_value(self.gains))
        object.__setattr__(self, "gains", write_value(dict(sorted(gains.items()))))

    @property
    def needs_judged(self) -> bool:
        """Whether an item with a grade <= 0 gains anything."""
        return any(grade <= 0 < gain for grade, gain in self._gains.items())

    @property
    def _gains(self) -> Gains:
        return _read_gains(self.name, str(self.gains))

    def dcg(self, hits: Hits) -> Floats:
        """The discounted gain of what was found."""
        hits = self._graded(hits)
        query, slot, gain = self._found(hits)
        return sum_by(query, gain / self.discount(slot + 1), hits.size)

    def ideal(self, hits: Hits) -> Floats:
        """The discounted gain of all gold in the best order."""
        hits = self._graded(hits)
        if self.k == LETTER:
            return self._ideal(hits)
        key = (self.discount, self.k, self.gain)
        return hits.gold.keep(key, partial(self._ideal, hits))

    def _graded(self, hits: Hits) -> Hits:
        return hits.with_grades(self._gains) if self.gains else hits

    def _ideal(self, hits: Hits) -> Floats:
        low, high = hits.grade_range
        if low == high and 0 < high <= _HIGHEST:
            # All gold is worth the same: one running sum serves every query.
            count, room = hits.gold_count, hits.cutoff(self.k, slice(None))
            if room is not None:
                count = np.minimum(count, room)
            worth = self._worth(hits, hits.query[:0], np.array([low])).item()
            most = int(count.max(initial=0))
            return _ideal_sums(worth, self.discount, most)[count]
        query, place, gain = self._best(hits)
        return sum_by(query, gain / self.discount(place + 1), hits.size)

    def workings(self, hits: Hits) -> str:
        graded = self._graded(hits)
        shift = self._shift(graded)
        return (
            f"DCG {_discounted(*self._found(graded))} = {self.dcg(hits)[0]:.4f}; "
            f"ideal {_discounted(*self._best(graded))} = {self.ideal(hits)[0]:.4f}"
            + ("" if shift is None else f"; all gains over 2^{shift[0]:.0f}")
        )

    def _found(self, hits: Hits) -> tuple[Ints, Ints, Floats]:
        """Query, slot and gain of what was found."""
        query, slot, grade = self.paid_within(hits)
        return query, slot, self._worth(hits, query, grade)

    def _best(self, hits: Hits) -> tuple[Ints, Ints, Floats]:
        """Query, place and gain of the best order."""
        query, place, grade = hits.ideal_order
        rows = self.within(hits, query, place)
        query = query[rows]
        return query, place[rows], self._worth(hits, query, grade[rows])

    def _worth(self, hits: Hits, query: Ints, grade: Floats) -> Floats:
        if self.gain == "linear":
            return grade
        if (shift := self._shift(hits)) is None:
            return np.exp2(grade) - 1
        return np.exp2(grade - shift[query]) - np.exp2(-shift[query])

    def _shift(self, hits: Hits) -> Floats | None:
        """The power of two that DCG and ideal are both divided by, if they must be."""
        if self.gain == "linear" or hits.gold_grade.max(initial=0) <= _HIGHEST:
            return None
        best = np.zeros(hits.size)
        np.maximum.at(best, hits.gold_query, hits.gold_grade)
        return np.where(best > _HIGHEST, np.floor(best), 0.0)


@lru_cache(maxsize=256)
def _ideal_sums(gain: float, discount: Any, count: int) -> Floats:
    """The discounted gain of the first 0, 1, 2 ... items that all gain the same."""
    sums = np.cumsum(gain / discount(np.arange(2, count + 2)))
    return np.concatenate(([0.0], sums))


@lru_cache(maxsize=256)
def _read_gains(owner: str, text: str) -> Gains:
    gains: dict[float, float] = {}
    for pair in filter(None, text.split(";")):
        grade, colon, gain = pair.partition(":")
        try:
            key, value = float(grade), float(gain)
        except ValueError:
            raise ParameterError(owner, "gains", _MUST_BE, text) from None
        if not colon or not isfinite(key) or not 0 <= value < np.inf or key in gains:
            raise ParameterError(owner, "gains", _MUST_BE, text)
        gains[key] = value
    return gains


def _discounted(_query: Ints, slot: Ints, worths: Floats) -> str:
    pairs = zip(worths.tolist(), slot.tolist(), strict=True)
    return add_up([f"{worth:g}/log2({place + 1})" for worth, place in pairs])


class NDCG(GainMetric):
    """How close the ranking comes to the best one: grades pay less further down.

    The ideal holds all gold, cut at k. Undefined where the ideal is 0.

    Example:
        >>> import karat
        >>> run, gold = {"q": ["a", "b"]}, {"q": {"a": 1, "b": 3}}
        >>> result = karat.evaluate(run, gold, metrics=["ndcg@2", NDCG(2, gain="exp")])
        >>> {metric: round(mean, 4) for metric, mean in result.means.items()}
        {'ndcg@2': 0.7967, 'ndcg(gain=exp)@2': 0.7098}
    """

    name: ClassVar[str] = "ndcg"
    formula: ClassVar[str] = "sum of gain / log2(slot + 1), over the ideal order's"

    def score(self, hits: Hits) -> Floats:
        return ratio(self.dcg(hits), self.ideal(hits))


class _Sum(GainMetric):
    """A sum that is not divided by the best one, so that gains must be numbers."""

    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def _whole(self, hits: Hits, total: Floats) -> Floats:
        shift = self._shift(self._graded(hits))
        if shift is not None:
            with np.errstate(over="ignore"):
                total = np.ldexp(total, shift.astype(np.int64))
        return np.where(self.ideal(hits) > 0, total, np.nan)


class DCG(_Sum):
    """What the grades found are worth: they pay less further down.

    Not comparable between queries that have more or less to find; `ndcg` is. Undefined
    where no gold is worth anything.
    """

    name: ClassVar[str] = "dcg"
    formula: ClassVar[str] = "sum of gain / log2(slot + 1)"

    def score(self, hits: Hits) -> Floats:
        return self._whole(hits, self.dcg(hits))


class IdealDCG(_Sum):
    """What the best ranking of all gold would be worth, which nDCG divides by.

    Undefined where no gold is worth anything.
    """

    name: ClassVar[str] = "ideal_dcg"
    higher_is_better: ClassVar[bool | None] = None
    formula: ClassVar[str] = "sum of gain / log2(place + 1) over gold, best first"

    def score(self, hits: Hits) -> Floats:
        return self._whole(hits, self.ideal(hits))


class NCG(NDCG):
    """The share of the gain that the top k could hold and does, wherever it stands.

    The ideal holds the best k of all gold. Undefined where the ideal is 0.
    """

    name: ClassVar[str] = "ncg"
    formula: ClassVar[str] = "sum of gain in top k, over the ideal order's"
    discount: ClassVar[Any] = staticmethod(np.ones_like)

    def workings(self, hits: Hits) -> str:
        return f"{self.dcg(hits)[0]:g} gained / {self.ideal(hits)[0]:g} at best"
