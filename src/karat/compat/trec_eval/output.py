"""The lines trec_eval prints, topic by topic and then over all."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp, log
from typing import Any

import numpy as np
import numpy.typing as npt

from karat import Gold, Run
from karat.compat.trec_eval.columns import Column, Rules, Shown, relevance_letters
from karat.compat.trec_eval.measures import columns_for
from karat.extend import (
    Bools,
    Floats,
    Hits,
    Labels,
    MismatchError,
    ParameterError,
    policies_for,
    read_matcher,
)

__all__ = ["Options", "trec_eval_lines", "trec_eval_pages", "trec_eval_values"]

_log = logging.getLogger("karat")

# The least a topic contributes to a geometric mean.
_FLOOR = 0.00001

# What trec_eval 10 sets to 0 for a topic the run lacks, by the name printed: the same
# measure with parameters in its name is left as it came out.
_CLEARED = ("num_ret", "utility", "relstring", "rbp_resid")

# Topics turned into Python numbers at once: enough to be fast, few enough to fit.
_BATCH = 1000

# A name cannot hold this, so the topic can be put in its place afterwards.
_TOPIC = "\0"


@dataclass(frozen=True)
class Options:
    """The command line of trec_eval.

    Attributes:
        measures: as after `-m`: `map`, `P.5,10`, `all_trec`; none means `official`.
        version: which trec_eval, `9` (9.0.8) or `10` (10.0).
        per_query: lines for each topic first (`-q`).
        complete: average over all judged topics; those the run lacks count 0 (`-c`).
        level: the smallest grade that is relevant (`-l`).
        judged_only: remove documents without judgement from the rankings (`-J`).
        depth: read only so many documents of each topic (`-M`).
        summary: lines over all topics at the end (not with `-n`).
        collection: number of documents in the collection, for `utility` (`-N`).
    """

    measures: Sequence[str] = ()
    version: str = "10"
    per_query: bool = False
    complete: bool = False
    level: int = 1
    judged_only: bool = False
    depth: int | None = None
    summary: bool = True
    collection: int = 0

    def __post_init__(self) -> None:
        if self.version not in {"9", "10"}:
            raise ParameterError("trec-eval", "version", "'9' or '10'", self.version)
        if self.level < 0:
            raise ParameterError("trec-eval", "level", "an integer >= 0", self.level)

    @property
    def rules(self) -> Rules:
        """What decides a number besides the files."""
        # Grades are whole numbers, so from 1 on means any positive one.
        threshold = None if self.level == 1 else float(self.level)
        return Rules(self.version, threshold, self.collection)


@dataclass(frozen=True, eq=False)
class _Results:
    """The topics to print, in order, and what is known of them.

    Attributes:
        hits: one block per topic.
        topics: their names.
        missing: which of them the run lacks.
        count: how many topics means are taken over.
        relevant: relevant documents over all of these.
        run: the tag of the run.
    """

    hits: Hits
    topics: Sequence[str]
    missing: Bools
    count: int
    relevant: int
    run: str

    def values(self, column: Column) -> Floats:
        """The column's value for each topic, 0 where trec_eval clears it."""
        if column.score is None:
            return np.zeros(self.hits.size)
        values = column.score(self.hits)
        if column.name in _CLEARED or column.name.startswith("unj"):
            values = np.where(self.missing, 0.0, values)
        return values

    def letters(self, column: Column) -> list[str]:
        """The column's text for each topic."""
        texts = relevance_letters(self.hits, column.letters)
        if column.name in _CLEARED:
            texts = [
                "" if gone else t for t, gone in zip(texts, self.missing, strict=True)
            ]
        return [f"'{text}'" for text in texts]

    def total(self, column: Column, values: Floats) -> str:
        """The column over all topics."""
        if column.name == "runid":
            return self.run
        if column.name == "num_q":
            return str(self.count)
        if column.name == "num_rel":
            return str(self.relevant)
        if column.shown is Shown.GEOMETRIC:
            # Topics that have no line of their own contribute the floor.
            values = np.log(np.maximum(values, _FLOOR))
            rest = (self.count - len(values)) * log(_FLOOR)
            return _number(exp((_sum(values) + rest) / self.count))
        if column.shown is Shown.SUM:
            return str(int(_sum(values)))
        return _number(_sum(values) / self.count)


def trec_eval_lines(qrels: Labels, run: Run, **options: Any) -> Iterator[str]:
    """What trec_eval prints for these judgements and this run, line by line.

    Args:
        qrels: the judgements.
        run: what was retrieved.
        options: those of `Options`.

    Raises:
        MismatchError: the run lacks a judged topic, where version 10 refuses that.
        UsageError: a measure or parameter that does not exist.

    Example:
        >>> from karat import read_run
        >>> run = read_run({"q1": {"a": 0.9, "b": 0.8}})
        >>> for line in trec_eval_lines({"q1": {"b": 1}}, run, measures=["map", "P.5"]):
        ...     line.split()
        ['map', 'all', '0.5000']
        ['P_5', 'all', '0.2000']
    """
    pages = trec_eval_pages(qrels, run, Options(**options))
    return chain.from_iterable(page.splitlines() for page in pages)


def trec_eval_pages(qrels: Labels, run: Run, options: Options) -> Iterator[str]:
    """The same as `trec_eval_lines`, all lines of a topic at once.

    Everything is computed before the first page, so an error comes before any output.
    """
    columns = columns_for(options.measures, options.rules)
    judged = options.level < 1 or any(column.judged for column in columns)
    results = _lay_out(qrels, run, options, judged=judged)
    values = {column.name: results.values(column) for column in columns}
    pages: list[Iterator[str]] = []
    if options.per_query:
        pages.append(_topic_pages(results, columns, values))
    if options.summary:
        pages.append(_summary_page(results, columns, values))
    return chain.from_iterable(pages)


def trec_eval_values(
    qrels: Labels, run: Run, options: Options
) -> tuple[Sequence[str], dict[str, Floats]]:
    """The topics, and for each measure that is a number its value for each of them."""
    columns = columns_for(options.measures, options.rules)
    judged = options.level < 1 or any(column.judged for column in columns)
    results = _lay_out(qrels, run, options, judged=judged)
    values = {c.name: results.values(c) for c in columns if c.score is not None}
    for column in columns:
        if column.shown is Shown.GEOMETRIC:
            logarithms = np.log(np.maximum(values[column.name], _FLOOR))
            values[column.name] = logarithms
    return results.topics, values


def _lay_out(qrels: Labels, run: Run, options: Options, *, judged: bool) -> _Results:
    """Match the run and decide which topics count."""
    # trec_eval goes through topics by the bytes of their names.
    topics = sorted(qrels, key=lambda name: name.encode("utf-8", "surrogateescape"))
    policies = policies_for(
        f"trec_eval-{options.version}",
        depth=options.depth,
        judged_only=options.judged_only,
        force=True,
    )
    gold = Gold({topic: qrels[topic] for topic in topics})
    matched = read_matcher("id").match(run, gold, judged=judged, policies=policies)
    missing = matched.missing
    if len(missing) and missing.all():
        raise MismatchError("run and gold have no query in common", path=run.name)
    if not len(matched.hits.query):
        # trec_eval prints zeros and does not say why; we print them, and say so.
        kind = "judged" if matched.hits.judged else "relevant"
        _log.warning("no %s document occurs in the run: all scores are 0", kind)
    # Judgements are whole numbers to trec_eval.
    hits = replace(
        matched.hits,
        grade=np.trunc(matched.hits.grade),
        gold_grade=np.trunc(matched.hits.gold_grade),
    )
    if options.version == "10" and not options.complete and missing.any():
        _refuse(run, topics, missing)
    # With -c, trec_eval counts every positive grade, whatever -l says.
    level = None if options.complete else options.rules.threshold
    relevant = hits.credits(level).relevant
    if options.version == "10":
        # A topic the run lacks is scored as if one unknown document had been retrieved.
        unknown = 0 if options.judged_only else 1
        hits = replace(hits, retrieved=np.where(missing, unknown, hits.retrieved))
        shown = np.ones(len(topics), np.bool_)
    else:
        shown = ~missing
        hits = _only(hits, shown)
        topics = [topics[i] for i in np.flatnonzero(shown).tolist()]
    counted = relevant if options.complete else relevant[shown]
    # A TREC file says what the run is called; other runs have only a name.
    tag = getattr(run, "tag", None) or run.name
    return _Results(hits, topics, missing[shown], len(counted), int(counted.sum()), tag)


def _only(hits: Hits, shown: Bools) -> Hits:
    """The hits of some of the queries; the others must have no rows."""
    return replace(
        hits,
        query=(np.cumsum(shown) - 1)[hits.query],
        gold_count=hits.gold_count[shown],
        gold_grade=hits.gold_grade[shown[hits.gold_query]],
        retrieved=hits.retrieved[shown],
    )


def _refuse(run: Run, topics: Sequence[str], missing: Bools) -> None:
    lacking = [topics[i] for i in np.flatnonzero(missing).tolist()]
    more = f" and {len(lacking) - 1} more judged topics" if len(lacking) > 1 else ""
    raise MismatchError(
        f"the run has no results for this judged topic{more}, "
        "which trec_eval 10 refuses",
        path=run.name,
        query=lacking[0],
        hint="-c scores such topics 0, --profile trec_eval-9 leaves them out",
    )


def _topic_pages(
    results: _Results, columns: Sequence[Column], values: dict[str, Floats]
) -> Iterator[str]:
    """The lines of each topic; one form for all of them, filled in at once."""
    form = ""
    cells: list[Floats | npt.NDArray[np.str_]] = []
    for column in columns:
        if column.shown in {Shown.ONCE, Shown.GEOMETRIC}:
            continue
        cell, shown = "%6.4f", values[column.name]
        if column.shown is Shown.LETTERS:
            cell, shown = "%s", np.array(results.letters(column))
        elif column.shown is Shown.SUM:
            cell = "%d"
        elif np.isnan(shown).any():
            cell, shown = "%s", np.array([*map(_number, shown.tolist())])
        form += f"{column.name.replace('%', '%%'):<22}\t{_TOPIC}\t{cell}\n"
        cells.append(shown)
    for start in range(0, len(results.topics) if cells else 0, _BATCH):
        part = slice(start, start + _BATCH)
        rows = zip(*(shown[part].tolist() for shown in cells), strict=True)
        for topic, row in zip(results.topics[part], rows, strict=True):
            yield (form % row).replace(_TOPIC, topic)


def _summary_page(
    results: _Results, columns: Sequence[Column], values: dict[str, Floats]
) -> Iterator[str]:
    yield "".join(
        f"{column.name:<22}\tall\t{results.total(column, values[column.name])}\n"
        for column in columns
        if column.shown is not Shown.LETTERS
    )


def _sum(values: Floats) -> float:
    """One after the other, as trec_eval adds; pairwise could flip a decimal."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def _number(value: float) -> str:
    # 0 / 0 has its sign bit set on the machines trec_eval runs on, and C prints it.
    return "  -nan" if np.isnan(value) else f"{value:6.4f}"
