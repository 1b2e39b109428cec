"""A table for a paper: the mean of every run by every metric, in LaTeX and Markdown.

What differs from the baseline is marked by its verdict, and by its direction; of all
pairs, each run names by letters the runs that it is better than.
"""

import math
import re
from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import NamedTuple

from karat.comparison.comparison import Comparison
from karat.data.tables import DASH, Table, clean, counted, number
from karat.results.leaderboard import Leaderboard

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
            _cell(cell, bold=(number_, place) in table.bold)
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


def _cell(text: str, *, bold: bool) -> str:
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
