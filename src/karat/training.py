"""Evaluators for training loops: an embedding model scored as it learns."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.data.arrays import Ints
from karat.errors import UsageError
from karat.evaluation import Evaluator
from karat.matching import AUTO
from karat.matching.similarity import read_vectors, unit_vectors
from karat.matching.to_hits import no_common_query
from karat.metrics import Metric
from karat.reading.readers import read_corpus, read_queries
from karat.reports.files import rows_as_csv
from karat.results.evaluation import Evaluation
from karat.results.scores import read_measure
from karat.writing import write_file

_METRICS = ("ndcg@10", "rr@10", "recall@10", "ap(of=capped)@100")
# How many documents are encoded at once, and how many queries they are compared with.
_DOCUMENTS = 4096
_QUERIES = 1024

Vectors = NDArray[np.float32]


class TrainingEvaluator(Evaluator):
    """An evaluator for training with sentence-transformers: `evaluator=` of a trainer.

    Every call encodes queries and corpus with the model, a block at a time, ranks the
    corpus by the model's own similarity and scores that against gold. `evaluations`
    holds what every call found, so that `karat.compare` says whether an epoch was
    better than another one.

    Args:
        queries: texts by id, or whatever `evaluate` takes as queries.
        corpus: texts by id, records, or a file.
        gold: what should be found, as `evaluate` takes it.
        metrics: spellings or instances; the best model is chosen by the first, which
            is the `primary_metric`.
        name: put in front of every metric, as in `dev_ndcg@10`.
        depth: how many documents are ranked at least, for metrics without a cutoff.
        encoding: what the model's `encode` is told besides, such as `batch_size`.
        options: further options of `evaluate`, such as `threshold` or `identical`.

    Example:
        >>> class Letters:
        ...     def encode(self, texts):
        ...         return [[text.count(c) for c in "aeiou"] for text in texts]
        >>> corpus, gold = {"d1": "aa", "d2": "eo"}, {"q1": ["d1"], "q2": ["d2"]}
        >>> evaluator = TrainingEvaluator({"q1": "a", "q2": "a"}, corpus, gold, "rr")
        >>> evaluator(Letters())
        {'rr': 0.75}
        >>> evaluator.evaluations[0]["rr"]["q2"]
        0.5
    """

    description = "Information Retrieval"

    def __init__(
        self,
        queries: Any,
        corpus: Any,
        gold: Any,
        metrics: str | Metric | Iterable[str | Metric] = _METRICS,
        *,
        name: str = "",
        depth: int = 100,
        encoding: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        known = read_queries(queries)
        super().__init__(gold, metrics, queries=known, **options)
        measures = [read_measure(one, AUTO) for one in self._asked["metrics"]]
        wanted = self._asked["gold"].gold.queries
        texts = {q: fact.text for q, fact in known.items() if fact.text is not None}
        self._texts = {query: texts[query] for query in wanted if query in texts}
        if not self._texts:
            raise no_common_query(None, [*known], wanted)
        documents = read_corpus(corpus)
        self.name = name
        self.primary_metric = self._under_name(measures[0].label)
        self.greater_is_better = measures[0].metric.higher_is_better is not False
        self.evaluations: list[Evaluation] = []
        # In the order of equal scores, so that the first of them are the right ones.
        self._documents = {one: documents[one] for one in sorted(documents)[::-1]}
        cutoffs = (one.k for one in measures if isinstance(one.k, int))
        self._depth = min(len(documents), max([depth, *cutoffs]))
        self._encoding = dict(encoding or {})

    def __call__(
        self,
        model: Any,
        output_path: str | None = None,
        epoch: float | None = -1,
        steps: int = -1,
    ) -> dict[str, float]:
        """Score the model as it is now; what a trainer calls.

        Into `output_path` go a CSV of means and intervals, a row per call, and the
        evaluations, a file per call.
        """
        at = [] if epoch in {None, -1} else [f"epoch {epoch:g}"]
        at += [] if steps == -1 else [f"step {steps}"]
        result = self.evaluate(self._search(model), name=" ".join(at) or "model")
        self.evaluations.append(result)
        if output_path is not None:
            self._write(Path(output_path), {"epoch": epoch, "steps": steps}, result)
        means = {self._under_name(one): mean for one, mean in result.means.items()}
        if (card := getattr(model, "model_card_data", None)) is not None:
            card.set_evaluation_metrics(self, means, epoch, steps)
        return means

    def _under_name(self, metric: str) -> str:
        return f"{self.name}_{metric}" if self.name else metric

    def _write(self, folder: Path, at: Mapping[str, Any], result: Evaluation) -> None:
        row = dict(at)
        for metric, column in result.items():
            low, high = column.interval or (None, None)
            row |= {metric: column.mean, f"{metric} low": low, f"{metric} high": high}
        folder.mkdir(parents=True, exist_ok=True)
        start = self._under_name("karat")
        result.save(folder / f"{start}_{result.run.replace(' ', '_')}.json")
        head, _, line = rows_as_csv([row]).partition("\n")
        table = folder / f"{start}_results.csv"
        before = table.read_text("utf-8") if table.exists() else f"{head}\n"
        write_file(table, before + line)

    def _search(self, model: Any) -> dict[str, dict[str, float]]:
        """The documents nearest to each query, with their similarities."""
        similarity = getattr(model, "similarity_fn_name", None) or "cosine"
        if similarity not in {"cosine", "dot", "euclidean"}:
            raise UsageError(
                f"the model compares by {similarity!r}: karat compares embeddings by "
                "'cosine', 'dot' and 'euclidean'"
            )
        queries = self._encode(model, "query", [*self._texts.values()], similarity)
        names, texts = [*self._documents], [*self._documents.values()]
        best = np.full((len(queries), self._depth), -np.inf, np.float32)
        places: Ints = np.zeros(best.shape, np.int64)
        for first in range(0, len(texts), _DOCUMENTS):
            some = texts[first : first + _DOCUMENTS]
            documents = self._encode(model, "document", some, similarity)
            for start in range(0, len(queries), _QUERIES):
                rows = slice(start, start + _QUERIES)
                scores = queries[rows] @ documents.T
                if similarity == "euclidean":
                    scores -= (documents**2).sum(axis=1) / 2
                _keep_best(best[rows], places[rows], scores, first)
        return {
            query: {names[n]: score for n, score in zip(found, scores, strict=True)}
            for query, found, scores in zip(
                self._texts, places.tolist(), best.tolist(), strict=True
            )
        }

    def _encode(
        self, model: Any, kind: str, texts: Sequence[str], similarity: str
    ) -> Vectors:
        encode = getattr(model, f"encode_{kind}", None) or model.encode
        made = encode(texts, **self._encoding)
        vectors: Vectors = read_vectors(made, len(texts), "the model", np.float32)
        return unit_vectors(vectors) if similarity == "cosine" else vectors


def _keep_best(best: Vectors, places: Ints, scores: Vectors, first: int) -> None:
    """Put those of further documents that score higher in place of the worst.

    Documents come in the order of equal scores, and what is kept is ranked.
    """
    depth = best.shape[1]
    both = np.hstack([best, scores])
    top = np.argpartition(both, -depth)[:, -depth:]
    least = np.take_along_axis(both, top, 1).min(axis=1, keepdims=True)
    # Which of several equals a partition keeps is anyone's guess.
    for row in np.flatnonzero((both >= least).sum(axis=1) > depth):
        top[row] = np.argsort(-both[row], kind="stable")[:depth]
    top.sort(axis=1)
    order = np.argsort(-np.take_along_axis(both, top, 1), kind="stable")
    top = np.take_along_axis(top, order, 1)
    earlier = np.take_along_axis(places, np.minimum(top, depth - 1), 1)
    best[:] = np.take_along_axis(both, top, 1)
    places[:] = np.where(top < depth, earlier, first + top - depth)


training_evaluator = TrainingEvaluator
"""What `karat.extend` calls it, since it is called like a function."""
