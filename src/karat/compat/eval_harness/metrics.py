"""The five retrieval metrics: formulas of karat under the rules of the original."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Any, ClassVar, TypeAlias, TypeGuard

from karat.compat.eval_harness.dataset import (
    BLANK,
    DatasetSample,
    MetricException,
    RankedRetrieval,
)
from karat.compat.exact_matching import hits_of_ids, score_of
from karat.extend import NDCG, Hits, UnknownNameError

Ids: TypeAlias = Sequence[str]
Gains: TypeAlias = Mapping[str, float]

_DEFAULT_K = 5
# What /\s+/u matches in PCRE: not quite what it matches in Python.
_BLANKS = re.compile(
    "[\t-\r \x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class MetricScore:
    """What a metric says of one sample: a number from 0 to 1, and how it came about."""

    score: float
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        score: object = self.score
        if not isinstance(score, int | float) or not 0.0 <= score <= 1.0:
            raise MetricException(f"a score must be from 0 to 1, got {score!r}")


class Metric(ABC):
    """What a metric of your own must offer; inheriting from this is not required."""

    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @abstractmethod
    def score(self, sample: DatasetSample, actual_output: str) -> MetricScore:
        """Score what the system under test gave for a sample."""


@dataclass(frozen=True)
class _RetrievalMetric(Metric):
    """What the five have in common: an alias, and how the cutoff k is found.

    Attributes:
        k: the constructor's cutoff; a sample's own `metadata.k` comes before it.
        default_k: `metrics.retrieval.default_k` of the configuration, for when neither
            says; anything but a positive integer means 5.
    """

    alias: ClassVar[str]

    k: int | None = None
    default_k: object = None

    def name(self) -> str:
        """The alias, whatever k is."""
        return self.alias

    def resolve_k(self, sample: DatasetSample) -> int:
        """The k of the sample, else the constructor, else the configuration, else 5."""
        # resolveK() passes over a metadata.k such as 0, "2" or 2.5 without a word ...
        if _is_cutoff(own := sample.metadata.get("k")):
            return own
        if self.k is None:
            return self.default_k if _is_cutoff(self.default_k) else _DEFAULT_K
        # ... but refuses a bad k of the constructor, even for MRR, which reads none.
        if not _is_cutoff(self.k):
            raise MetricException(
                f"k must be a positive integer, got {self.k!r}", query=sample.id
            )
        return self.k


class _RankingMetric(_RetrievalMetric):
    """What the four that go by ids have in common."""

    def score(self, sample: DatasetSample, actual_output: str) -> MetricScore:
        """Score the ranking against the relevant ids of the sample."""
        ids = RankedRetrieval.from_actual_output(actual_output, sample.id).ids
        gains = RankedRetrieval.relevance_gains_from_expected(
            sample.expected_output, sample.id
        )
        return self._score(ids, gains, self.resolve_k(sample))

    @abstractmethod
    def _score(self, ids: Ids, gains: Gains, k: int) -> MetricScore:
        """The score of a ranking, and its details under the original's names."""


class RetrievalHitAtKMetric(_RankingMetric):
    """Whether any relevant id is in the top k: 1 or 0.

    Example:
        >>> sample = DatasetSample("q-1", {}, ["b", "c"])
        >>> RetrievalHitAtKMetric(k=2).score(sample, '["a", "b"]').score
        1.0
    """

    alias = "retrieval-hit-at-k"

    def _score(self, ids: Ids, gains: Gains, k: int) -> MetricScore:
        relevant = [_as_key(name) for name in gains]
        details = {"k": k, "relevant": relevant, "top_k": list(ids[:k])}
        return MetricScore(score_of("hit", _hits_of(ids, gains), k), details)


class RetrievalRecallAtKMetric(_RankingMetric):
    """The share of the relevant ids that the top k holds.

    Example:
        >>> sample = DatasetSample("q-1", {}, ["b", "c"])
        >>> RetrievalRecallAtKMetric(k=2).score(sample, '["a", "b"]').score
        0.5
    """

    alias = "retrieval-recall-at-k"

    def _score(self, ids: Ids, gains: Gains, k: int) -> MetricScore:
        hits = _hits_of(ids, gains)
        count, top_k = int((hits.rank <= k).sum()), list(ids[:k])
        counts = {"relevant_count": len(gains), "found": count}
        return MetricScore(
            score_of("recall", hits, k), {"k": k, **counts, "top_k": top_k}
        )


class RetrievalMrrMetric(_RankingMetric):
    """1 / the rank of the first relevant id in the whole ranking, for any k.

    Example:
        >>> sample = DatasetSample("q-1", {}, ["b", "c"])
        >>> RetrievalMrrMetric(k=2).score(sample, '["a", "b"]').score
        0.5
    """

    alias = "retrieval-mrr"

    def _score(self, ids: Ids, gains: Gains, k: int) -> MetricScore:
        del k
        hits = _hits_of(ids, gains)
        rank = int(hits.rank[0]) if len(hits.rank) else None
        return MetricScore(score_of("rr", hits), {"first_relevant_rank": rank})


class RetrievalNdcgAtKMetric(_RankingMetric):
    """How close the top k comes to the best order of all gains.

    Example:
        >>> sample = DatasetSample("q-1", {}, ["b", "c"])
        >>> RetrievalNdcgAtKMetric(k=2).score(sample, '["a", "b"]').score
        0.38685280723454163
    """

    alias = "retrieval-ndcg-at-k"

    def _score(self, ids: Ids, gains: Gains, k: int) -> MetricScore:
        """The DCG of karat for this ranking, over that for the ids ordered by gain."""
        best = sorted(gains, key=lambda name: _no_nan(gains[name]), reverse=True)
        dcg, idcg = _discounted(ids, gains, k), _discounted(best, gains, k)
        # RetrievalNdcgAtKMetric clips to 0..1 and scores 0.0 without an ideal gain; of
        # inf / inf it makes 1.0, as min(1.0, NaN) is its first argument here and there.
        share = max(0.0, min(1.0, dcg / idcg)) if idcg > 0.0 else 0.0
        return MetricScore(share, {"k": k, "dcg": dcg, "idcg": idcg})


@dataclass(frozen=True)
class AnswerContainmentAtKMetric(_RetrievalMetric):
    """Whether the expected answer occurs in the text of a document in the top k.

    Attributes:
        case_sensitive: compare letters as they are; blanks are collapsed all the same.

    Example:
        >>> sample = DatasetSample("q-1", {}, "two days")
        >>> output = '[{"id": "a", "text": "It takes two days."}]'
        >>> AnswerContainmentAtKMetric(k=1).score(sample, output).score
        1.0
    """

    alias = "answer-containment-at-k"

    case_sensitive: bool = False

    def score(self, sample: DatasetSample, actual_output: str) -> MetricScore:
        """The `hit@k` of karat over documents that hold the answer."""
        span = sample.expected_output
        if not isinstance(span, str) or not span.strip(BLANK):
            raise MetricException(
                "expected_output must be a non-empty string, the answer to look for",
                query=sample.id,
            )
        ranked = RankedRetrieval.from_actual_output(actual_output, sample.id)
        k = self.resolve_k(sample)
        wanted, *texts = map(self._folded, [span, *ranked.texts])
        # A span of no-break spaces folds to nothing, which every text but "" contains.
        held = [text != "" and wanted in text for text in texts]
        hits = hits_of_ids([[True]], [held])
        value = score_of("hit", hits, k)
        rank = int(hits.rank[0]) if value else None
        return MetricScore(value, {"k": k, "expected_span": span, "matched_rank": rank})

    def _folded(self, text: str) -> str:
        collapsed = _BLANKS.sub(" ", text).strip(BLANK)
        return collapsed if self.case_sensitive else collapsed.lower()


ALIASES: Mapping[str, type[_RetrievalMetric]] = {
    metric.alias: metric
    for metric in (
        RetrievalHitAtKMetric,
        RetrievalRecallAtKMetric,
        RetrievalMrrMetric,
        RetrievalNdcgAtKMetric,
        AnswerContainmentAtKMetric,
    )
}
"""The metrics by the names that samples and the command use."""


def find_metric(alias: str) -> type[_RetrievalMetric]:
    """The metric an alias stands for."""
    if alias in ALIASES:
        return ALIASES[alias]
    raise MetricException(str(UnknownNameError("metric", str(alias), ALIASES)))


def score(
    alias: str,
    expected_output: Any,
    actual_output: str,
    metadata: Mapping[str, Any] | None = None,
    k: int | None = None,
    default_k: object = None,
    **options: Any,
) -> MetricScore:
    """Score one output with one of the five metrics.

    Args:
        alias: such as `retrieval-recall-at-k`.
        expected_output: relevant ids, gains by id, the JSON text of either; or, for
            `answer-containment-at-k`, the answer.
        actual_output: the JSON text that the system under test printed.
        metadata: the sample's; its `k` comes first.
        k: the metric's own cutoff, the constructor's in the original.
        default_k: `metrics.retrieval.default_k`, for when neither says.
        options: more of the metric's constructor, such as `case_sensitive=True`.

    Raises:
        MetricException: what cannot be scored, and why.

    Example:
        >>> score("retrieval-recall-at-k", ["a", "b"], '["x", "a"]').score
        0.5
    """
    sample = DatasetSample("sample", {}, expected_output, metadata or {})
    metric = find_metric(alias)(k=k, default_k=default_k, **options)
    return metric.score(sample, actual_output)


def _is_cutoff(value: object) -> TypeGuard[int]:
    return type(value) is int and value > 0


def _hits_of(ids: Ids, gains: Gains) -> Hits:
    # Hit, recall and MRR of the original read keys only: a gain of 0 or -1 is relevant.
    return hits_of_ids([[*gains]], [ids])


def _discounted(ids: Ids, gains: Gains, k: int) -> float:
    """The DCG of a ranking in which negative gains cost: they are paid apart."""
    # A gain of NaN is inf - inf.
    paid = {name: _no_nan(gain) for name, gain in gains.items() if not gain <= 0}
    cost = {name: _no_nan(-gain) for name, gain in gains.items() if not gain >= 0}
    gained, lost = NDCG(k).dcg(hits_of_ids([paid, cost], [ids, ids])).tolist()
    return float(gained - lost)


def _no_nan(gain: float) -> float:
    return inf if isnan(gain) else gain


def _as_key(name: str) -> str | int:
    # As a key of a PHP array "7" becomes 7, and details.relevant shows the keys.
    if _INTEGER.fullmatch(name) and -(2**63) <= int(name) < 2**63:
        return int(name)
    return name
