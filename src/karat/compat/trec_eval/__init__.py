"""trec_eval, line for line: the same output as its versions 9.0.8 and 10.0.

The numbers are those of karat's metrics; here are only the order, the names and the
averages that trec_eval prints, and its own rules for what a formula leaves open.

docs/coming-from/trec_eval.md says where it differs from the original.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from math import exp, log
from typing import Any

import numpy as np
import numpy.typing as npt

from karat import Gold, Run
from karat.compat.trec_eval.measures import Column, Options, Shown, columns_for
from karat.extend import (
    Bools,
    Floats,
    Hits,
    Labels,
    MismatchError,
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


@dataclass(frozen=True, eq=False)
class _Results:
    """The topics to print, in order, with the value of every column for each.

    Means are taken over `count` topics, which have so many `relevant` documents.
    """

    columns: Mapping[Column, npt.NDArray[Any]]
    topics: Sequence[str]
    count: int
    relevant: int
    run: str

    def pages(self) -> Iterator[str]:
        """The lines of each topic; one form for all of them, filled in at once."""
        form, cells = "", []
        for column, values in self.columns.items():
            if column.shown in {Shown.ONCE, Shown.GEOMETRIC}:
                continue
            cell, shown = "%6.4f", values
            if column.shown is Shown.LETTERS:
                cell = "%s"
            elif column.shown is Shown.SUM:
                cell = "%d"
            elif np.isnan(values).any():
                cell, shown = "%s", np.array([*map(_number, values.tolist())])
            form += f"{column.name.replace('%', '%%'):<22}\t{_TOPIC}\t{cell}\n"
            cells.append(shown)
        for start in range(0, len(self.topics) if cells else 0, _BATCH):
            part = slice(start, start + _BATCH)
            rows = zip(*(shown[part].tolist() for shown in cells), strict=True)
            for topic, row in zip(self.topics[part], rows, strict=True):
                yield (form % row).replace(_TOPIC, topic)

    def total(self, column: Column, values: Floats) -> str:
        """The column over all topics."""
        if column.shown is Shown.ONCE:
            return self.run if column.name == "runid" else str(self.count)
        if column.name == "num_rel":
            return str(self.relevant)
        if column.shown is Shown.GEOMETRIC:
            # Topics that have no line of their own contribute the floor.
            rest = (self.count - len(values)) * log(_FLOOR)
            return _number(exp((_sum(_logarithms(values)) + rest) / self.count))
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
    results = _evaluate(qrels, run, options)
    summary = "".join(
        f"{column.name:<22}\tall\t{results.total(column, values)}\n"
        for column, values in results.columns.items()
        if options.summary and column.shown is not Shown.LETTERS
    )
    return chain(results.pages() if options.per_query else (), [summary])


def trec_eval_values(
    qrels: Labels, run: Run, options: Options
) -> tuple[Sequence[str], dict[str, Floats]]:
    """The topics, and for each measure that is a number its value for each of them."""
    results = _evaluate(qrels, run, options)
    return results.topics, {
        column.name: _logarithms(values) if column.shown is Shown.GEOMETRIC else values
        for column, values in results.columns.items()
        if column.shown not in {Shown.ONCE, Shown.LETTERS}
    }


def _evaluate(qrels: Labels, run: Run, options: Options) -> _Results:
    """Match the run, decide which topics count, and score them."""
    columns = columns_for(options)
    # trec_eval goes through topics by the bytes of their names.
    topics = sorted(qrels, key=lambda name: name.encode("utf-8", "surrogateescape"))
    matched = read_matcher("id").match(
        run,
        Gold({topic: qrels[topic] for topic in topics}),
        judged=options.level < 1 or any(column.judged for column in columns),
        policies=policies_for(
            f"trec_eval-{options.version}",
            depth=options.depth,
            judged_only=options.judged_only,
            force=True,
        ),
    )
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
    # With -c, trec_eval counts every positive grade, whatever -l says.
    relevant = hits.credits(None if options.complete else options.threshold).relevant
    if options.version == "10":
        if not options.complete and missing.any():
            _refuse(run, topics, missing)
        # A topic the run lacks is scored as if one unknown document had been retrieved.
        unknown = 0 if options.judged_only else 1
        hits = replace(hits, retrieved=np.where(missing, unknown, hits.retrieved))
    else:
        shown = ~missing
        hits, topics = _only(hits, shown), [*compress(topics, shown)]
        relevant = relevant if options.complete else relevant[shown]
        missing = missing[shown]
    values = {column: _values(column, hits, missing) for column in columns}
    # A TREC file says what the run is called; other runs have only a name.
    tag = getattr(run, "tag", None) or run.name
    return _Results(values, topics, len(relevant), int(relevant.sum()), tag)


def _values(column: Column, hits: Hits, missing: Bools) -> npt.NDArray[Any]:
    """The column's value for each topic, cleared where trec_eval clears it."""
    values = column.score(hits)
    if column.name in _CLEARED or column.name.startswith("unj"):
        nothing = "''" if column.shown is Shown.LETTERS else 0.0
        values = np.where(missing, nothing, values)
    return values


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


def _logarithms(values: Floats) -> Floats:
    return np.log(np.maximum(values, _FLOOR))


def _sum(values: Floats) -> float:
    """One after the other, as trec_eval adds; pairwise could flip a decimal."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def _number(value: float) -> str:
    # 0 / 0 has its sign bit set on the machines trec_eval runs on, and C prints it.
    return "  -nan" if np.isnan(value) else f"{value:6.4f}"
