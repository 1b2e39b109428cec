"""Reports that are written to files, and results as other tools take them."""

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.tables import Table
from karat.reading.delimited import write_rows
from karat.reports.details import lowest_queries
from karat.reports.paper import paper_table
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import WIDTH, Leaderboard

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
    return rows_as_csv(_rows(board))


def rows_as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, a column per name; an empty cell is a value that is not there."""
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = ([_cell(row.get(name)) for name in columns] for row in rows)
    write_rows([columns, *cells], text)
    return text.getvalue()


def as_markdown(board: Leaderboard, tables: Sequence[Table]) -> str:
    """The tables, and the queries that score lowest, for a pull request or a README."""
    lowest = lowest_queries(board)
    tables = [*tables, *([] if lowest is None or not lowest.rows else [lowest])]
    if len(board) > 1:
        tables = [paper_table(board), *tables]
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
    return "" if value is None or value != value else value  # noqa: PLR0124


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
        if result.latency.concurrency:
            flat["latency_calls_at_once"] = result.latency.concurrency
    return flat
