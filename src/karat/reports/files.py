"""Reports that are written to files, tables for a paper, numbers for other tools."""

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from string import ascii_lowercase
from typing import Any, NamedTuple

from karat.comparison.comparison import Comparison
from karat.data.runs import Document
from karat.data.tables import DASH, Table, clean, counted, number
from karat.reading.delimited import write_rows
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import WIDTH, Leaderboard

_LOWEST, _TOP, _QUESTION, _LONG_NAME = 10, 3, 240, 60

# What may be the matter with a score of a query, the worst first.
_STATUSES = ("failed", "missing", "undefined")
# A cell that starts with one of these would be a formula in a spreadsheet.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_MARKS = {"better": "\u2191", "worse": "\u2193", "different": "\u2260"}
_IN_LATEX = {
    "\u2191": r"\uparrow",
    "\u2193": r"\downarrow",
    "\u2260": r"\neq",
}
_ENDINGS = re.compile(
    r"(?<=.)(\.(run|trec|res|txt|jsonl?|csv|tsv|parquet))?(\.(gz|bz2|zst))?$"
)
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    DASH: "--",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


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


def lowest_queries(board: Leaderboard) -> Table | None:
    """The queries that score lowest; None where nothing is known of any but scores."""
    if not board.metrics or not any(one.facts or one.kept for one in board.values()):
        return None
    metric, runs = board.leading, [*board.values()]
    columns = [
        dict(zip(one.queries, one[metric].scores.tolist(), strict=True))
        if metric in one
        else {}
        for one in runs
    ]
    worst: dict[str, float] = {}
    for query, score in chain.from_iterable(column.items() for column in columns):
        if not math.isnan(score):
            worst[query] = min(score, worst.get(query, score))
    rows = []
    for query in sorted(worst, key=worst.__getitem__)[:_LOWEST]:
        fact = next((one.facts[query] for one in runs if query in one.facts), None)
        rows.append(
            [
                query,
                " ".join((fact.text or "").split())[:_QUESTION] if fact else "",
                ", ".join(fact.tags) if fact else "",
                *(number(column.get(query)) for column in columns),
                *(_top(one.kept.get(query, ())) for one in runs),
            ]
        )
    of = [f" {name}" for name in board] if len(board) > 1 else [""]
    scored = [metric + name for name in of]
    table = Table(
        ["query", "question", "tags", *scored, *(f"first documents{n}" for n in of)],
        rows,
        title=f"queries that score lowest by {metric}",
        texts=(0, 1, 2, *range(3 + len(board), 3 + 2 * len(board))),
    )
    return table.without_empty()


def _top(documents: Sequence[Document]) -> str:
    names = (
        " ".join((d.text or "").split()) if d.id is None else d.id
        for d in documents[:_TOP]
    )
    return "; ".join(name[:_LONG_NAME] for name in names)


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


class _Mean(NamedTuple):
    value: float
    higher_is_better: bool | None


def paper_table(result: Leaderboard | Comparison) -> Table:
    """A row per run, the best first, and a column per metric; the best is bold."""
    if isinstance(result, Comparison):
        return _compared(result)
    # How much is judged tells of the labels, not of the runs.
    metrics = [m for m in result.metrics if not m.startswith("judged@")]
    means: dict[str, dict[str, _Mean]] = {run: {} for run in result}
    counts = set()
    for run, one in result.items():
        for metric in metrics or result.metrics:
            if metric in one:
                column = one[metric]
                means[run][metric] = _Mean(column.mean, column.higher_is_better)
                counts.add(column.n)
    gold = ", ".join(dict.fromkeys(one.gold for one in result.values()))
    about = [f"no test was made; n = {_span(counts)}; gold: {gold}"]
    labels = _labels([*result], {run: one.tag for run, one in result.items()})
    return _table(means, labels, {}, about)


def as_latex(result: Leaderboard | Comparison, tables: Sequence[Table] = ()) -> str:
    """The table for a paper in LaTeX, with its caption; it takes booktabs."""
    del tables
    table = paper_table(result)
    caption = ". ".join(_sentence(text) for text in (table.title, *table.notes))
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}.}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        " & ".join(map(_escaped, table.columns)) + r" \\",
        r"\midrule",
    ]
    for number_, row in enumerate(table.rows):
        cells = [
            _latex_cell(cell, bold=(number_, place) in table.bold)
            for place, cell in enumerate(row[1:], 1)
        ]
        lines.append(" & ".join([_escaped(row[0]), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _compared(comparison: Comparison) -> Table:
    means: dict[str, dict[str, _Mean]] = {
        run: {} for run in (comparison.baseline, *comparison.candidates)
    }
    marks: dict[tuple[str, str], list[str]] = {}
    all_pairs = any(d.baseline != comparison.baseline for d in comparison.differences)
    for one in comparison.differences:
        pair = ((one.baseline, one.baseline_mean), (one.candidate, one.candidate_mean))
        for run, mean in pair:
            means[run].setdefault(one.metric, _Mean(mean, one.higher_is_better))
        if all_pairs and one.verdict in ("better", "worse"):
            winner, loser = one.candidate, one.baseline
            if one.verdict == "worse":
                winner, loser = loser, winner
            marks.setdefault((winner, one.metric), []).append(loser)
        elif not all_pairs and one.verdict in _MARKS:
            marks[one.candidate, one.metric] = [_MARKS[one.verdict]]
    tags = comparison.provenance.get("tags", {})
    labels = _labels([*means], tags)
    told = f"{_MARKS['better']} better, {_MARKS['worse']} worse than "
    told += labels[comparison.baseline]
    if all_pairs:
        ranked = _ranked(means)
        known = dict(zip(ranked, _letters(len(ranked)), strict=True))
        marks = {
            place: sorted(known[loser] for loser in losers)
            for place, losers in marks.items()
        }
        labels = {run: f"{labels[run]} ({known[run]})" for run in labels}
        told = "letters name the runs that a run is better than"
    return _table(means, labels, marks, [told, comparison.method])


def _table(
    means: Mapping[str, Mapping[str, _Mean]],
    labels: Mapping[str, str],
    marks: Mapping[tuple[str, str], Sequence[str]],
    about: Sequence[str],
) -> Table:
    metrics = [*dict.fromkeys(metric for row in means.values() for metric in row)]
    best = {metric: _best(means, metric) for metric in metrics}
    rows, bold = [], set()
    for place, run in enumerate(_ranked(means)):
        cells = []
        for column, metric in enumerate(metrics, 1):
            shown = number(means[run][metric].value) if metric in means[run] else DASH
            if shown == best[metric]:
                bold.add((place, column))
            letters = marks.get((run, metric), ())
            joined = (", " if any(map(str.isdigit, letters)) else "").join(letters)
            cells.append(f"{shown} {joined}".rstrip())
        rows.append([labels[run], *cells])
    title = (
        f"Mean {', '.join(metrics)} of {counted(len(rows), 'run')}, the best in bold"
    )
    return Table(["run", *metrics], rows, title=title, notes=about, bold=bold)


def _ranked(means: Mapping[str, Mapping[str, _Mean]]) -> list[str]:
    """The runs from best to worst by the first metric."""
    first = next((metric for row in means.values() for metric in row), "")

    def place(run: str) -> float:
        value, higher = means[run].get(first, _Mean(math.nan, None))
        if math.isnan(value):
            return math.inf
        return value if higher is False else -value

    return sorted(means, key=place)


def _best(means: Mapping[str, Mapping[str, _Mean]], metric: str) -> str | None:
    """The best mean as it is shown; None where neither more nor less is better."""
    found = [row[metric] for row in means.values() if metric in row]
    known = [mean.value for mean in found if not math.isnan(mean.value)]
    higher = found[0].higher_is_better
    if len(known) < 2 or higher is None:  # noqa: PLR2004
        return None
    return number(max(known) if higher else min(known))


def _labels(runs: Sequence[str], tags: Mapping[str, str]) -> dict[str, str]:
    """What runs are called: by their tags, else by their files without endings."""
    for names in (
        [tags.get(run) or run for run in runs],
        [_ENDINGS.sub("", run) for run in runs],
    ):
        if len({*names}) == len(runs):
            return dict(zip(runs, names, strict=True))
    return {run: run for run in runs}


def _letters(count: int) -> Sequence[str]:
    if count <= len(ascii_lowercase):
        return ascii_lowercase[:count]
    return [str(place) for place in range(1, count + 1)]


def _span(counts: set[int]) -> str:
    ends = dict.fromkeys((min(counts, default=0), max(counts, default=0)))
    return " to ".join(map(str, ends))


def _sentence(text: str) -> str:
    return _escaped(text[:1].upper() + text[1:])


def _latex_cell(text: str, *, bold: bool) -> str:
    value, _, marks = text.partition(" ")
    shown = rf"\textbf{{{_escaped(value)}}}" if bold else _escaped(value)
    if not marks:
        return shown
    signs = _IN_LATEX.get(marks, rf"\mathrm{{{marks}}}")
    return rf"{shown}$^{{{signs}}}$"


def _escaped(text: str) -> str:
    """Text that LaTeX prints as it is."""
    signs = {sign: f"${command}$" for sign, command in _IN_LATEX.items()}
    return "".join((_SPECIAL | signs).get(char, char) for char in clean(text))
