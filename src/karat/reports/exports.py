"""Results for other tools: flat names and numbers, MLflow, Elasticsearch's ratings."""

import math
import re
from collections.abc import Mapping
from typing import Any

from karat.data.gold import Gold
from karat.data.tables import counted
from karat.errors import DataError, MissingExtraError
from karat.reading.doors import read_gold
from karat.reading.queries import read_queries
from karat.results.evaluation import Evaluation
from karat.retrieving.retrievers import Question, fill

__all__ = ["flat_metrics", "log_mlflow", "rank_eval_requests"]

_DEPTH = 10


def flat_metrics(result: Evaluation) -> dict[str, float]:
    """Every number of an evaluation under a name that any tracker takes.

    A mean goes by its metric without `@`, as in `recall_at_5`; beside it stand the
    limits of its interval and the number of queries in it. A mean without any query is
    left out, since trackers draw NaN as 0.

    Example:
        >>> from karat import evaluate
        >>> result = evaluate({"q": ["b", "a"]}, gold={"q": ["a"]}, metrics=["rr@5"])
        >>> flat_metrics(result)["rr_at_5"]
        0.5
    """
    flat: dict[str, float] = {}
    for metric, column in result.items():
        name = re.sub(r"[\W_]+", "_", metric.replace("@", "_at_")).strip("_")
        if math.isnan(column.mean):
            continue
        flat[name] = column.mean
        if column.interval is not None:
            flat |= {f"{name}_low": column.interval.low}
            flat |= {f"{name}_high": column.interval.high}
        flat |= {f"{name}_n": column.n, f"{name}_undefined": column.undefined}
        flat[f"{name}_failed"] = column.failed
    if result.latency is not None:
        times = result.latency.percentiles.items()
        flat |= {f"latency_{name}_ms": t for name, t in times if t is not None}
    return flat


def log_mlflow(result: Evaluation, *, run_id: str | None = None) -> dict[str, float]:
    """Log an evaluation to MLflow: its numbers, and the whole of it as a file.

    Args:
        result: what was scored.
        run_id: the run of MLflow to log to; the active one by default.

    Returns:
        The metrics that were logged.
    """
    try:
        import mlflow  # noqa: PLC0415  takes seconds to import
    except ImportError:
        raise MissingExtraError("log_mlflow()", "mlflow") from None
    metrics = flat_metrics(result)
    mlflow.log_metrics(metrics, run_id=run_id)
    name = re.sub(r"[^\w.-]+", "_", result.run) or "run"
    mlflow.log_text(result.to_json() + "\n", f"karat/{name}.json", run_id=run_id)
    return metrics


def rank_eval_requests(
    gold: Any, queries: Any, *, index: str, request: Mapping[str, Any], k: int = _DEPTH
) -> dict[str, Any]:
    """The body of Elasticsearch's and OpenSearch's `_rank_eval`, from gold.

    `read_gold` reads the ratings of such a body back.

    Args:
        gold: relevant documents with whole grades, in any form.
        queries: the texts of the queries, in any form.
        index: the index that holds the documents.
        request: the search, in which `{query}` stands for the text.
        k: how many hits are looked at.

    Example:
        >>> body = rank_eval_requests({"q1": {"d1": 2}}, {"q1": "rye"}, index="docs",
        ...                           request={"query": {"match": {"text": "{query}"}}})
        >>> body["requests"][0]["request"], body["requests"][0]["ratings"]
        ({'query': {'match': {'text': 'rye'}}}, \
[{'_index': 'docs', '_id': 'd1', 'rating': 2}])
    """
    labels: Gold = gold if isinstance(gold, Gold) else read_gold(gold)
    texts = read_queries(queries)
    unknown = [q for q in labels.documents if q not in texts or not texts[q].text]
    if unknown:
        raise DataError(
            f"{counted(len(unknown), 'query')} without a text, {unknown[0]!r}"
        )
    requests = []
    for query, row in labels.documents.items():
        for document, grade in row.items():
            if grade != int(grade) or grade < 0:
                raise DataError(
                    f"a rating must be a whole number, got {grade} of {document!r}",
                    query=query,
                )
        ratings = [
            {"_index": index, "_id": d, "rating": int(g)} for d, g in row.items()
        ]
        filled = fill(dict(request), Question(k), str(texts[query].text))
        requests.append({"id": query, "request": filled, "ratings": ratings})
    return {"requests": requests, "metric": {"dcg": {"k": k, "normalize": True}}}
