"""Rankings and labels laid out as hits, for tests of metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from karat.data.hits import Coverage
from karat.data.memory_runs import RankedRun
from karat.extend import Hits, Policies, place_by, sum_by
from karat.matching.to_hits import match_labels

Rankings = Mapping[str, Sequence[str]]
Grades = Mapping[str, Mapping[str, float]]

_DOCUMENTS = [f"d{number}" for number in range(12)]


def hits_of(rankings: Rankings, labels: Grades, *, judged: bool = True) -> Hits:
    """The hits of rankings matched by id; queries in the order of the labels."""
    grades = {query: dict(row) for query, row in labels.items()}
    policies = Policies(force=True)
    matched = match_labels(
        RankedRun(rankings),
        grades,
        judged=judged,
        policies=policies,
        subtopics={
            query: {name: {str(ord(name[-1]) % 3): row[name]} for name in row}
            for query, row in grades.items()
        },
    )
    return replace(matched.hits, coverage=coverage_of(matched.hits, rankings, grades))


def coverage_of(hits: Hits, rankings: Rankings, labels: Grades) -> Coverage:
    """The same as coverage: documents of one character, that are gold or are not."""
    query = np.repeat(np.arange(hits.size), hits.retrieved)
    ids = [(q, d) for q in labels for d in rankings.get(q, ())]
    gold = np.array([float(labels[q].get(d, 0) > 0) for q, d in ids])
    every = np.ones(len(query))
    numbers = {
        key: n for n, key in enumerate((q, d) for q, row in labels.items() for d in row)
    }
    rank = place_by(query, hits.size)
    rows = [n for n, key in enumerate(ids) if labels[key[0]].get(key[1], 0) > 0]
    item = np.array([numbers[ids[n]] for n in rows], np.int64)
    order = np.argsort(item)
    return Coverage(
        size=sum_by(hits.gold_query, hits.gold_grade > 0, hits.size),
        query=query,
        rank=rank,
        gold=gold,
        length=every,
        fresh=every,
        tokens=every,
        item=item[order],
        item_rank=rank[rows][order],
        share=np.ones(len(rows)),
        sound=np.ones(len(rows), np.bool_),
    )


def one(ranking: str, grades: Mapping[str, float], *, judged: bool = True) -> Hits:
    """One query, its documents named by single letters: `one("axb", {"a": 1})`."""
    return hits_of({"q": list(ranking)}, {"q": grades}, judged=judged)


@st.composite
def judged_runs(
    draw: st.DrawFn, grades: Sequence[float] = (-1, 0, 0, 1, 1, 2, 3)
) -> tuple[Rankings, Grades]:
    """Up to four queries with a ranking, perhaps empty, and at least one label each."""
    rankings, labels = {}, {}
    for number in range(draw(st.integers(1, 4))):
        shuffled = draw(st.permutations(_DOCUMENTS))
        rankings[f"q{number}"] = shuffled[: draw(st.integers(0, len(shuffled)))]
        judged = draw(
            st.lists(st.sampled_from(_DOCUMENTS), min_size=1, max_size=8, unique=True)
        )
        labels[f"q{number}"] = {
            document: float(draw(st.sampled_from(grades))) for document in judged
        }
    return rankings, labels
