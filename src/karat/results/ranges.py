"""Ranges: what a mean may be, whatever the claims without a verdict are."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from karat.data.arrays import Ints
from karat.data.hits import Hits
from karat.data.matches import Matches
from karat.errors import UnknownNameError

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation


def mean_ranges(result: "Evaluation") -> dict[str, tuple[float, float]]:
    """The smallest and largest mean of each metric where claims lack a verdict.

    A claim without a verdict may be supported by nothing, by any document or by the
    last one alone, or be contradicted. A query that failed may score anything.
    """
    ranges: dict[str, tuple[float, float]] = {}
    for matcher, matches in result.matches.items():
        unjudged = _unjudged(matches)
        if not unjudged.any() and not (matches.verdicts and matches.failures):
            continue
        variants = [
            replace(result, matches={**result.matches, matcher: variant})
            for variant in _variants(matches, unjudged)
        ]
        names = [name for name in result if result.matchers[name] == matcher]
        for name in names:
            column = result[name]
            if column.average != "mean" or not all(map(math.isfinite, column.bounds)):
                continue
            try:
                scores = np.stack([variant.score(name).scores for variant in variants])
            except UnknownNameError:
                # An instance of a metric that no name leads to.
                continue
            scores[:, [*matches.failures]] = np.array(column.bounds * 2)[:, None]
            defined = scores[:, ~np.isnan(scores).any(axis=0)]
            if defined.size:
                low, high = defined.min(axis=0).mean(), defined.max(axis=0).mean()
                ranges[name] = (float(low), float(high))
    return ranges


def _unjudged(matches: Matches) -> Ints:
    """How many claims of each query have no verdict, though others have one."""
    counts = np.zeros(matches.hits.size, np.int64)
    for place, verdicts in matches.verdicts.items():
        if place not in matches.failures:
            counts[place] = sum(verdict.failure is not None for verdict in verdicts)
    return counts


def _variants(matches: Matches, unjudged: Ints) -> Iterator[Matches]:
    """The matches as they might be: four ways, as `mean_ranges` says."""
    hits = matches.hits
    grade = max(hits.grade_range[1], 0.0) or 1.0
    depth = hits.retrieved
    missed = _with_items(hits, unjudged, grade, depth * 0, depth * 0)
    for variant in (
        missed,
        _with_items(hits, unjudged, grade, np.minimum(depth, 1), depth),
        _with_items(hits, unjudged, grade, depth, depth),
        _with_items(missed, unjudged, -grade, np.minimum(depth, 1), depth),
    ):
        yield replace(matches, hits=variant, failures={})


def _with_items(hits: Hits, added: Ints, grade: float, first: Ints, last: Ints) -> Hits:
    """The hits with so many more items of each query, found from rank to rank."""
    ends, before = hits.gold_count.cumsum(), added.cumsum() - added
    rows = [
        (query, rank, grade, ends[query] + before[query] + number, False)
        for query in np.flatnonzero(added).tolist()
        for number in range(added[query])
        for rank in range(max(1, first[query]), last[query] + 1)
    ]
    joint = np.zeros(len(hits.query), bool) if hits.joint is None else hits.joint
    item = np.arange(len(hits.query)) if hits.item is None else hits.item
    columns = [
        np.concatenate([old, np.array(new, old.dtype)])
        for old, new in zip(
            (hits.query, hits.rank, hits.grade, item + before[hits.query], joint),
            [*zip(*rows, strict=True)] or [()] * 5,
            strict=True,
        )
    ]
    order = np.lexsort((columns[1], columns[0]))
    query, rank, grades, item, joint = (column[order] for column in columns)
    return replace(
        hits,
        query=query,
        rank=rank,
        grade=grades,
        item=item,
        joint=joint if joint.any() else None,
        gold_count=hits.gold_count + added,
        gold_grade=np.insert(hits.gold_grade, ends.repeat(added), grade),
    )
