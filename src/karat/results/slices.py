"""A row per query, for programs and frames; means of queries that share a tag.

And how many queries a table is about: a column only where its rows differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.data.arrays import Floats
from karat.data.tables import Table, number
from karat.results.scores import MetricScores

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation

UNTAGGED = "(untagged)"
COUNTS = ("n", "undefined", "missing", "failed")
"""The columns that say how many queries are in a mean, and why others are not."""


def count_queries(table: Table, queries: str) -> tuple[str, Table]:
    """How many queries all rows are about, and the table without what that says."""
    same = table.same(COUNTS)
    n, _, total = same.get("n", "").partition("/")
    said = f"{n} of {queries}" if n != total else queries
    why = [f"{same[name]} {name}" for name in COUNTS[1:] if same.get(name, "0") != "0"]
    return said + (f" ({', '.join(why)})" if why else ""), table.without(same)


def query_rows(result: "Evaluation") -> list[dict[str, Any]]:
    """A row per query: what it asks, its scores, and what was retrieved, if known."""
    facts, kept = result.facts, result.kept
    asked = any(fact.text for fact in facts.values())
    with_tags = any(fact.tags for fact in facts.values())
    named = any(d.id is not None for top in kept.values() for d in top)
    said = any(d.text is not None for top in kept.values() for d in top)
    rows = zip(
        result.queries, result.missing.tolist(), result.scores_by_query(), strict=True
    )
    table = []
    for query, missing, scores in rows:
        fact, top = facts.get(query), kept.get(query, ())
        row: dict[str, Any] = {"query": query}
        if asked:
            row["question"] = fact.text if fact else None
        if with_tags:
            row["tags"] = list(fact.tags) if fact else []
        row |= {"missing": missing, **scores}
        if named:
            row["documents"] = [d.id or "" for d in top]
        if said:
            row["texts"] = [d.text or "" for d in top]
        table.append(row)
    return table


def tag_table(result: "Evaluation") -> Table:
    """Every metric's mean in each slice, a row per tag."""
    tags = tagged(result)
    table = slice_table(result.columns, tags, title=f"{result.run} by tag")
    hint = "no query has a tag; --queries FILE may bring some"
    return replace(table, notes=[] if tags.keys() - {UNTAGGED} else [hint])


def tagged(
    *runs: "Evaluation", queries: Sequence[str] | None = None
) -> dict[str, list[int]]:
    """The places of each tag's queries, by what the first run says that knows them."""
    tags: dict[str, list[int]] = {}
    for place, query in enumerate(runs[0].queries if queries is None else queries):
        fact = next((run.facts[query] for run in runs if query in run.facts), None)
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
    links = [("tag", tag) for tag in tags]
    return Table(["tag", *columns, "queries"], rows, title=title, links=links)


def _mean(scores: Floats) -> str:
    defined = scores[~np.isnan(scores)]
    return number(float(defined.mean()) if len(defined) else None)
