"""Means of slices: the queries that share a tag."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from karat.data.arrays import Floats
from karat.data.tables import Table, number
from karat.results.scores import MetricScores

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation

__all__ = ["UNTAGGED", "slice_table", "tag_table", "tagged"]

UNTAGGED = "(untagged)"


def tag_table(result: "Evaluation") -> Table:
    """Every metric's mean in each slice, a row per tag."""
    tags = tagged(result)
    table = slice_table(result.columns, tags, title=f"{result.run} by tag")
    if tags.keys() <= {UNTAGGED}:
        return replace(
            table, notes=["no query has a tag; --queries FILE may bring some"]
        )
    return table


def tagged(result: "Evaluation") -> dict[str, list[int]]:
    """The places of each tag's queries, by tag in order; a query may have several."""
    tags: dict[str, list[int]] = {}
    for place, query in enumerate(result.queries):
        fact = result.facts.get(query)
        for tag in (fact.tags if fact else ()) or (UNTAGGED,):
            tags.setdefault(tag, []).append(place)
    return dict(sorted(tags.items()))


def slice_table(
    columns: Mapping[str, MetricScores],
    tags: Mapping[str, Sequence[int]],
    title: str,
) -> Table:
    """A row per slice with the mean of each column, and the number of its queries."""
    rows = [
        [
            tag,
            *(_mean(column.scores[list(places)]) for column in columns.values()),
            str(len(places)),
        ]
        for tag, places in tags.items()
    ]
    return Table(["tag", *columns, "queries"], rows, title=title)


def _mean(scores: Floats) -> str:
    defined = scores[~np.isnan(scores)]
    return number(float(defined.mean()) if len(defined) else None)
