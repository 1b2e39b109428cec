"""Reports that are written to files, and results as other tools take them."""

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.gold import Gold
from karat.data.tables import Table, counted
from karat.errors import DataError, MissingExtraError
from karat.reading.queries import read_queries
from karat.reading.readers import read_gold
from karat.reading.syntax.delimited import write_rows
from karat.reports.details import lowest_queries
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import WIDTH, Leaderboard
from karat.retrieving.retrievers import Question, fill

_DEPTH = 10

# What may be the matter with a score of a query, the worst first.
_STATUSES = ("failed", "missing", "undefined")
# A cell that starts with one of these would be a formula in a spreadsheet.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def as_json(board: Leaderboard, tables: Sequence[Table] = ()) -> str:
    """Everything about one run, or a list for several; `karat.load` reads it back."""
    del tables
    return board.to_json() + "\n"


def as_jsonl(board: Leaderboard, tables: Sequence[Table] = ()) -> str:
    """A line per run and query; null is an undefined score."""
    del tables
    lines = (
        json.dumps(row, ensure_ascii=False, allow_nan=False) for row in _rows(board)
    )
    return "".join(f"{line}\n" for line in lines)


def as_csv(board: Leaderboard, tables: Sequence[Table] = ()) -> str:
    """A row per run and query; an empty cell is an undefined score."""
    del tables
    rows = _rows(board)
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = ([_cell(row.get(name)) for name in columns] for row in rows)
    write_rows([columns, *cells], text)
    return text.getvalue()


def as_markdown(board: Leaderboard, tables: Sequence[Table]) -> str:
    """The tables, and the queries that score lowest, for a pull request or a README."""
    lowest = lowest_queries(board)
    tables = [*tables, *([] if lowest is None or not lowest.rows else [lowest])]
    return "\n\n".join(table.as_markdown() for table in tables) + "\n"


def as_text(board: Leaderboard, tables: Sequence[Table]) -> str:
    """The tables in plain characters."""
    del board
    return "\n\n".join(table.as_text(WIDTH) for table in tables) + "\n"


def _rows(board: Leaderboard) -> list[dict[str, Any]]:
    """A row per run and query: what it asks, whether all went well, and the scores."""
    rows = []
    for evaluation in board.values():
        for place, row in enumerate(evaluation.per_query):
            said = {evaluation.status(metric, place) for metric in evaluation}
            status = next((s for s in _STATUSES if s in said), "ok")
            first = ("query", "question", "tags", "missing")
            head = {name: row[name] for name in first if name in row}
            rows.append({"run": evaluation.run, **head, "status": status} | row)
    return rows


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        value = "\n".join(value)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


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
