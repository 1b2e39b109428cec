"""Means of slices: the queries that share a tag."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from karat.data.arrays import Floats
from karat.data.evaluations import Evaluation, MetricScores
from karat.data.tables import Table, number

__all__ = ["UNTAGGED", "by_tag", "slices", "tagged"]

UNTAGGED = "(untagged)"


def by_tag(evaluation: Evaluation) -> Table:
    """Every metric's mean in each slice, a row per tag."""
    tags = tagged(evaluation)
    columns = {name: evaluation[name] for name in evaluation}
    table = slices(columns, tags, title=f"{evaluation.run} by tag")
    if tags.keys() <= {UNTAGGED}:
        return replace(
            table, notes=["no query has a tag; --queries FILE may bring some"]
        )
    return table


def tagged(evaluation: Evaluation) -> dict[str, list[int]]:
    """The places of each tag's queries, by tag in order; a query may have several."""
    tags: dict[str, list[int]] = {}
    for place, query in enumerate(evaluation.queries):
        fact = evaluation.facts.get(query)
        for tag in (fact.tags if fact else ()) or (UNTAGGED,):
            tags.setdefault(tag, []).append(place)
    return dict(sorted(tags.items()))


def slices(
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
