"""Metrics that ask how much of the gold text was retrieved, and how much besides."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, count_by, ratio, running_sum, sum_by
from karat.data.hits import Coverage, Hits
from karat.errors import ParameterError, UsageError
from karat.metrics import CutoffMetric, Metric

_SLACK = 1e-9


class Characters(NamedTuple):
    """Characters of each query: covered, of the gold, and of the documents read."""

    covered: Floats
    gold: Floats
    read: Floats


def measured(metric: Metric, hits: Hits) -> Coverage:
    """What the matcher measured."""
    if hits.coverage is None:
        raise UsageError(
            f"{metric.name} needs a matcher that measures how much of a text is "
            f"covered: leave the matcher out, or say {metric.name}[span]"
        )
    return hits.coverage


def count_characters(
    metric: CutoffMetric, hits: Hits, *, merged: bool = True
) -> Characters:
    """The characters of the top k; where documents overlap, merged or not."""
    coverage = measured(metric, hits)
    rows = metric.within(hits, coverage.query, coverage.rank)
    read = coverage.fresh if merged else coverage.length
    query = coverage.query[rows]
    return Characters(
        sum_by(query, coverage.gold[rows], hits.size),
        coverage.size,
        sum_by(query, read[rows], hits.size),
    )


@dataclass(frozen=True)
class CoveredShare(CutoffMetric):
    """The share of the gold text that the top k holds, however it was cut into chunks.

    No character is paid twice. Undefined for a query without relevant gold text.
    """

    name: ClassVar[str] = "coverage"
    formula: ClassVar[str] = "gold characters in the top k / gold characters"
    matcher: ClassVar[str | None] = "span"

    def score(self, hits: Hits) -> Floats:
        covered, gold, _ = count_characters(self, hits)
        return ratio(covered, gold)

    def workings(self, hits: Hits) -> str:
        covered, gold, _ = count_characters(self, hits)
        return f"{covered[0]:.0f} characters covered / {gold[0]:.0f} in the gold"


@dataclass(frozen=True)
class Complete(CutoffMetric):
    """Whether the top k covers every gold item, to a share of tau at least: 1 or 0.

    Undefined for a query without relevant gold text.

    Attributes:
        tau: the share from which on an item counts as covered.
    """

    name: ClassVar[str] = "complete"
    formula: ClassVar[str] = "1 if each gold item is covered to tau in the top k else 0"
    matcher: ClassVar[str | None] = "span"
    binary: ClassVar[bool] = True
    limits: ClassVar[dict[str, str]] = {"tau": "(0, 1]"}

    tau: float = 0.9

    def score(self, hits: Hits) -> Floats:
        whole, relevant = self._parts(hits)
        defined = (relevant > 0) & (measured(self, hits).size > 0)
        return np.where(defined, (whole == relevant).astype(float), np.nan)

    def workings(self, hits: Hits) -> str:
        whole, relevant = self._parts(hits)
        return f"{whole[0]} covered to {self.tau:g} of {relevant[0]} relevant"

    def _parts(self, hits: Hits) -> tuple[Ints, Ints]:
        coverage = measured(self, hits)
        positive = hits.gold_grade > 0
        rows = (coverage.share >= self.tau - _SLACK) & positive[coverage.item]
        item, rank = coverage.item[rows], coverage.item_rank[rows]
        within = self.within(hits, hits.gold_query[item], rank)
        whole = np.unique(item[within])
        return (
            count_by(hits.gold_query[whole], hits.size),
            count_by(hits.gold_query[positive], hits.size),
        )


@dataclass(frozen=True)
class _TextInTopK(CutoffMetric):
    """A metric of all text in the top k, where documents may overlap."""

    matcher: ClassVar[str | None] = "span"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"overlap": ("merged", "counted")}

    overlap: str = "merged"

    def counted(self, hits: Hits) -> Characters:
        """The characters of the top k, overlaps as the parameter says."""
        return count_characters(self, hits, merged=self.overlap == "merged")


class CharPrecision(_TextInTopK):
    """The share of the text in the top k that is gold.

    Text that several documents share is read once; `overlap=counted` charges it each
    time. 0 where nothing was retrieved. Undefined for a query without relevant gold
    text.

    Attributes:
        overlap: `merged` or `counted`.
    """

    name: ClassVar[str] = "char_precision"
    formula: ClassVar[str] = "gold characters in the top k / characters in the top k"

    def score(self, hits: Hits) -> Floats:
        covered, gold, read = self.counted(hits)
        return _share(covered, read, gold > 0)

    def workings(self, hits: Hits) -> str:
        covered, _, read = self.counted(hits)
        return f"{covered[0]:.0f} characters covered / {read[0]:.0f} retrieved"


class IOU(_TextInTopK):
    """How well the text in the top k and the gold coincide: common over all text.

    Text that several documents share is read once; `overlap=counted` charges it each
    time, as chunking_evaluation does. Undefined for a query without relevant gold text.

    Attributes:
        overlap: `merged` or `counted`.
    """

    name: ClassVar[str] = "iou"
    formula: ClassVar[str] = "gold characters in the top k / (read + gold not covered)"

    def score(self, hits: Hits) -> Floats:
        covered, gold, read = self.counted(hits)
        return _share(covered, np.maximum(read, covered) + gold - covered, gold > 0)

    def workings(self, hits: Hits) -> str:
        covered, gold, read = self.counted(hits)
        return (
            f"{covered[0]:.0f} characters covered / ({read[0]:.0f} retrieved + "
            f"{gold[0] - covered[0]:.0f} not covered)"
        )


def _share(part: Floats, whole: Floats, defined: Bools) -> Floats:
    # Two gold texts may say the same: then more of them is covered than was read.
    share = np.minimum(ratio(part, whole), 1.0)
    return np.where(defined, np.where(part > 0, share, 0.0), np.nan)


@dataclass(frozen=True)
class RecallAtBudget(Metric):
    """The share of the gold items found before a budget of tokens is used up.

    Documents are read in rank order as long as they fit, so systems with chunks of
    different sizes compete for the same room. A document's tokens are its own count
    (`tokens` in its metadata), else a quarter of its bytes. Undefined for a query
    without relevant gold.

    Attributes:
        tokens: the budget.
    """

    name: ClassVar[str] = "recall_at_budget"
    formula: ClassVar[str] = "found in the documents that fit into the budget / R"
    matcher: ClassVar[str | None] = "span"

    tokens: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.tokens) is not int or self.tokens < 1:
            raise ParameterError(self.name, "tokens", "an integer >= 1", self.tokens)

    def score(self, hits: Hits) -> Floats:
        credits = hits.credits()
        inside = credits.rank <= self._last(hits)[credits.query]
        return count_by(credits.query[inside], hits.size) / credits.whole

    def workings(self, hits: Hits) -> str:
        credits, last = hits.credits(), int(self._last(hits)[0])
        count = int((credits.rank <= last).sum())
        return f"{count} found down to rank {last} / {credits.relevant[0]} relevant"

    def _last(self, hits: Hits) -> Ints:
        """The last rank of each query that fits."""
        coverage = measured(self, hits)
        used = running_sum(coverage.query, coverage.tokens)
        rows = np.flatnonzero(used <= self.tokens + _SLACK)
        last = np.zeros(hits.size, np.int64)
        np.maximum.at(last, coverage.query[rows], coverage.rank[rows])
        return last
