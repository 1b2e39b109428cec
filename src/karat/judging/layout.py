"""Layout: verdicts become the hits that every metric reads."""

from collections.abc import Mapping, Sequence

import numpy as np

from karat.data.gold import Gold, Item
from karat.data.hits import Hits
from karat.data.policies import Policies
from karat.data.runs import Document
from karat.data.verdicts import Verdict

__all__ = ["lay_out"]


def lay_out(
    gold: Gold,
    rankings: Mapping[str, Sequence[Document]],
    verdicts: Mapping[str, Sequence[Verdict]],
    policies: Policies,
) -> tuple[Hits, list[str]]:
    """A row for each rank that supports a claim, and the names of all claims."""
    rows: list[tuple[int, int, float, int]] = []
    grades: list[float] = []
    counts: list[int] = []
    names: list[str] = []
    for place, query in enumerate(gold.queries):
        said = {verdict.claim: verdict.ranks for verdict in verdicts.get(query, ())}
        # Claims of one group are alternatives: one item, found wherever any of them is.
        groups: dict[tuple[str, str], list[Item]] = {}
        for item in gold.claims.get(query, ()):
            name = ("group", item.group) if item.group else ("claim", item.id)
            groups.setdefault(name, []).append(item)
        counts.append(len(groups))
        names += [name for _, name in groups]
        for items in groups.values():
            grade = max(item.grade for item in items)
            ranks = {rank for item in items for rank in said.get(item.id, ())}
            rows += [(place, rank, grade, len(grades)) for rank in ranks]
            grades.append(grade)
    rows.sort()
    columns = [*zip(*rows, strict=True)] or [(), (), (), ()]
    retrieved = [len(rankings.get(query, ())) for query in gold.queries]
    if policies.duplicates == "collapse":
        texts = ({d.text for d in rankings.get(q, ())} for q in gold.queries)
        retrieved = [*map(len, texts)]
    if policies.depth is not None:
        retrieved = [min(count, policies.depth) for count in retrieved]
    hits = Hits(
        query=np.array(columns[0], np.int64),
        rank=np.array(columns[1], np.int64),
        grade=np.array(columns[2], np.float64),
        gold_count=np.array(counts, np.int64),
        gold_grade=np.array(grades, np.float64),
        retrieved=np.array(retrieved, np.int64),
        item=np.array(columns[3], np.int64),
    )
    return hits, names
