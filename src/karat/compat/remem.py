"""REMem's retrieval metrics: the same classes, calls, keys and numbers.

    metric = RetrievalRecallAll()
    pooled, per_example = metric.calculate_metric_scores(gold_docs, retrieved_docs)

`RetrievalRecall` compares documents for equality; `RetrievalRecallAll` and
`RetrievalNDCGAny` take a chunk for its gold document when `is_chunk_from_original` says
so. Empty gold scores 0 and counts in the pool, pooled values have four decimals, and k
cuts as a Python slice does: 0 leaves nothing and -1 all but the last.
`evaluate_retrieval` and its twin are LongMemEval's, which the metrics come from.

docs/coming-from/remem.md says where it differs from the original.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from karat import Gold, Run
from karat.compat.exact_matching import hits_of_ids, hits_of_texts
from karat.compat.longmemeval import (
    evaluate_retrieval,
    evaluate_retrieval_turn2session,
    read_cutoff,
)
from karat.extend import (
    Bools,
    DataError,
    Document,
    Floats,
    Hits,
    Ints,
    Matcher,
    Matches,
    MismatchError,
    NDCGAny,
    Policies,
    UsageError,
    make_metric,
    ratio,
)

__all__ = [
    "RememChunk",
    "RetrievalMetric",
    "RetrievalNDCGAny",
    "RetrievalRecall",
    "RetrievalRecallAll",
    "evaluate_retrieval",
    "evaluate_retrieval_turn2session",
    "is_chunk_from_original",
]

_DATE = "Date: "
_ROLES = ("user: ", "assistant: ")

Lists = Sequence[Sequence[Any]]


def is_chunk_from_original(chunk: str, original: str) -> bool:
    """Whether REMem takes a chunk for a part of the original text.

    Example:
        >>> is_chunk_from_original("user: hi there", "hi there, friend")
        True
    """
    return _holds(original, _pieces(chunk))


@dataclass(frozen=True)
class RememChunk(Matcher):
    """A chunk satisfies a gold passage when `is_chunk_from_original` says so.

    It sees every passage and every document, blank or repeated.

    Example:
        >>> import karat
        >>> samples = [{"contexts": ["user: hi there"], "passages": ["hi there, you"]}]
        >>> karat.evaluate(samples, metrics="recall", match=RememChunk()).means
        {'recall': 1.0}
    """

    name: ClassVar[str] = "remem_chunk"
    reads: ClassVar[tuple[str, ...]] = ("passages",)

    def satisfied(self, documents: Sequence[str], golds: Sequence[str]) -> Bools:
        """Whether each chunk (a row) is from each gold passage (a column)."""
        chunks = [_pieces(document) for document in documents]
        return np.array([[_holds(gold, chunk) for gold in golds] for chunk in chunks])

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Compare the texts of every query of the gold."""
        del judged
        items = [gold.passages.get(query, ()) for query in gold.queries]
        rankings = dict(run.rankings(policies))
        missing = np.array([query not in rankings for query in gold.queries], np.bool_)
        if missing.all() and len(missing):
            raise MismatchError("run and gold have no query in common", path=run.name)
        hits = hits_of_texts(
            self.satisfied,
            [[item.text for item in row] for row in items],
            [[_text(d) for d in rankings.get(query, ())] for query in gold.queries],
        )
        grade = np.array([item.grade for row in items for item in row], np.float64)
        hits = replace(hits, grade=grade[hits.item], gold_grade=grade)
        names = [item.id for row in items for item in row]
        return Matches(hits, names, missing, len(rankings.keys() - set(gold.queries)))


class RetrievalMetric:
    """What the three metrics have in common.

    Args:
        global_config: kept for those who pass one; nothing in it matters here.
    """

    metric_name: ClassVar[str]
    label: ClassVar[str]
    ours: ClassVar[str]

    def __init__(self, global_config: object = None) -> None:
        self.global_config = global_config

    def calculate_metric_scores(
        self,
        gold_docs: Lists,
        retrieved_docs: Lists | None = None,
        k_list: Iterable[int] = (1, 5, 10, 20),
        *,
        retrieved_chunks: Lists | None = None,
    ) -> tuple[dict[str, float], list[dict[str, float]]]:
        """Score every query at every k.

        Args:
            gold_docs: for each query, the documents to find.
            retrieved_docs: for each query, what was retrieved, best first.
            k_list: cutoffs; each counts once, in ascending order.
            retrieved_chunks: another name for `retrieved_docs`.

        Returns:
            The mean over all queries at each k, rounded to four decimals, and the
            scores of each query, not rounded.
        """
        rankings = [r for r in (retrieved_docs, retrieved_chunks) if r is not None]
        if len(rankings) != 1:
            raise UsageError("give either retrieved_docs or retrieved_chunks")
        ks = sorted({read_cutoff(k, "k_list") for k in k_list})
        keys = [f"{self.label}@{k}" for k in ks]
        # zip() drops lists without a partner, but len(gold_docs) divides the pool.
        pairs = [(list(g), list(r)) for g, r in zip(gold_docs, *rankings, strict=False)]
        if ks and not len(gold_docs):
            raise UsageError("nothing to score: gold_docs is empty")
        if pairs and not ks:
            raise UsageError("nothing to score: k_list is empty")
        scores = self._scores(pairs, ks) if pairs else np.zeros((len(ks), 0))
        pooled = {
            key: self.rounded(_sum(row) / len(gold_docs))
            for key, row in zip(keys, scores, strict=True)
        }
        return pooled, [dict(zip(keys, row, strict=True)) for row in scores.T.tolist()]

    def match(self, golds: Lists, rankings: Lists) -> Hits:
        """Where chunks of the gold documents of each query were found."""
        return hits_of_texts(RememChunk().satisfied, golds, rankings)

    def score(self, hits: Hits, sizes: Sequence[int], k: int) -> Floats:
        """The score of each query at k, given how many documents each retrieved."""
        cut = replace(hits, own_k=_prefixes(sizes, k))
        return make_metric(self.ours, k="k").score(cut)

    @staticmethod
    def rounded(mean: float) -> float:
        """A pooled value as the original rounds it."""
        return round(mean, 4)

    def _scores(self, pairs: Sequence[tuple[Any, Any]], ks: Sequence[int]) -> Floats:
        """A row for each k, a column for each query; empty gold scores 0.0."""
        golds, rankings = zip(*pairs, strict=True)
        hits = self.match(golds, rankings)
        sizes = [len(ranking) for ranking in rankings]
        scores: Floats = np.array([self.score(hits, sizes, k) for k in ks])
        return np.nan_to_num(scores)


class RetrievalRecall(RetrievalMetric):
    """The share of the gold documents that are in the top k, by equality.

    Example:
        >>> RetrievalRecall().calculate_metric_scores([["a"]], [["b", "a"]], [1, 2])[0]
        {'Recall@1': 0.0, 'Recall@2': 1.0}
    """

    metric_name = "retrieval_recall"
    label = "Recall"
    ours = "recall"

    def match(self, golds: Lists, rankings: Lists) -> Hits:
        """Equal documents: the original intersects sets, of ids or of texts."""
        return hits_of_ids(golds, rankings)


class RetrievalRecallAll(RetrievalMetric):
    """Whether chunks of all gold documents are in the top k: 1 or 0.

    Example:
        >>> gold, retrieved = [["aa bb"]], [["cc dd", "aa bb"]]
        >>> RetrievalRecallAll().calculate_metric_scores(gold, retrieved, [1, 2])[0]
        {'Recall_all@1': 0.0, 'Recall_all@2': 1.0}
    """

    metric_name = "retrieval_recall_all"
    label = "Recall_all"
    ours = "recall_all"

    def _scores(self, pairs: Sequence[tuple[Any, Any]], ks: Sequence[int]) -> Floats:
        scores = super()._scores(pairs, ks)
        # The original compares the size of a set with the length of a list: a document
        # given twice can never be found twice.
        repeats = [any(g.index(d) < n for n, d in enumerate(g)) for g, _ in pairs]
        scores[:, repeats] = 0.0
        # The original asserts this.
        if (np.diff(scores, axis=0) < 0).any():
            raise UsageError(
                f"Recall_all must not fall as k grows, as it does over k = {ks}; "
                "a negative k counts from the end of the list"
            )
        return scores


class RetrievalNDCGAny(RetrievalMetric):
    """How high chunks of any gold document stand among what was retrieved.

    Example:
        >>> gold, retrieved = [["aa bb"]], [["cc dd", "aa bb"]]
        >>> RetrievalNDCGAny().calculate_metric_scores(gold, retrieved, [2])[0]
        {'NDCG_any@2': 1.0}
    """

    metric_name = "retrieval_ndcg_any"
    label = "NDCG_any"

    def score(self, hits: Hits, sizes: Sequence[int], k: int) -> Floats:
        """The two halves of karat's `ndcg_any@k`."""
        metric, once = NDCGAny("k"), _prefixes(sizes, k)
        # ndcg() cuts the ranking and dcg() cuts it again, which tells for a negative k.
        twice = replace(hits, own_k=_prefixes(once.tolist(), k))
        return ratio(metric.dcg(twice), metric.ideal(replace(hits, own_k=once)))

    @staticmethod
    def rounded(mean: float) -> float:
        """As NumPy rounds: 0.00625 to 0.0062, where Python says 0.0063."""
        return float(np.round(mean, 4))


def _prefixes(sizes: Sequence[int], k: int) -> Ints:
    """How many documents `ranking[:k]` holds, for rankings of these sizes."""
    return np.array([len(range(size)[:k]) for size in sizes], np.int64)


def _sum(row: Floats) -> float:
    """The sum, one after the other as the original adds."""
    return float(row.cumsum()[-1]) if len(row) else 0.0


def _pieces(chunk: str) -> tuple[str, str]:
    """The texts of which one must occur in the original."""
    if not isinstance(chunk, str):
        raise DataError(f"a chunk must be text, got {type(chunk).__name__}")
    if chunk.startswith(_DATE):
        # Of a chunk that is all date nothing is left, and nothing is in every text.
        chunk = chunk.partition("\n")[2]
    plain, escaped = chunk, json.dumps(chunk)
    if chunk.startswith(_ROLES):
        # split(": ")[1] ends at the next ": " and keeps the closing quote of the JSON.
        return plain.split(": ")[1], escaped.split(": ")[1]
    return plain, escaped


def _holds(original: str, pieces: tuple[str, str]) -> bool:
    try:
        return any(piece in original for piece in pieces)
    except TypeError:
        raise DataError(
            f"a gold document must be text, got {type(original).__name__}"
        ) from None


def _text(document: Document) -> str:
    """The text; a run of bare strings has them as ids."""
    text = document.id if document.text is None else document.text
    if text is None:
        raise DataError("a retrieved document must be text, got none")
    return text
