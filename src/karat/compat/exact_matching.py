"""Ids and texts compared as they are, for fronts whose originals do so.

karat's own ids are text, and its text matchers leave blank texts out and count a gold
text given twice once; the originals do none of this.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from karat.extend import Bools, DataError, Floats, Hits, Ints, make_metric


def hits_of_texts(
    satisfied: Callable[[Sequence[str], Sequence[str]], Bools],
    golds: Sequence[Sequence[str]],
    rankings: Sequence[Sequence[str]],
) -> Hits:
    """Where the gold texts of each query are found in the ranked texts.

    Args:
        satisfied: from documents and gold texts to whether each document (a row)
            satisfies each gold text (a column).
        golds: the gold texts of each query.
        rankings: the ranked texts of each query.
    """
    rows = [
        np.argwhere(satisfied(ranking, gold) if ranking and gold else np.zeros((0, 0)))
        for gold, ranking in zip(golds, rankings, strict=True)
    ]
    return _hits(rows, [np.ones(len(gold)) for gold in golds], rankings)


def hits_of_ids(
    golds: Sequence[Iterable[Hashable]], rankings: Sequence[Iterable[Hashable]]
) -> Hits:
    """Where ids of any kind are found: equal is what Python says is equal.

    Args:
        golds: the ids to find for each query; those of a mapping have its grades.
        rankings: the ranked ids of each query, each as often as it was retrieved.

    Example:
        >>> hits_of_ids([{"a", 1}], [["x", 1.0, "a", "1"]]).rank.tolist()
        [2, 3]
    """
    rows, grades, lists = [], [], [list(ranking) for ranking in rankings]
    for gold, ranking in zip(golds, lists, strict=True):
        try:
            labels = dict(gold) if isinstance(gold, Mapping) else dict.fromkeys(gold, 1)
            place = {value: number for number, value in enumerate(labels)}
            matches = [
                (row, place[value])
                for row, value in enumerate(ranking)
                if value in place
            ]
        except TypeError as error:
            raise DataError(f"ids must be hashable, such as text: {error}") from None
        rows.append(np.array(matches, np.int64).reshape(-1, 2))
        grades.append(np.array([*labels.values()], np.float64))
    return _hits(rows, grades, lists)


def score_of(metric: str, hits: Hits, k: int | None = None) -> float:
    """What a metric of karat says of the first query."""
    return float(make_metric(metric, k).score(hits)[0])


def _hits(
    rows: Sequence[Ints], grades: Sequence[Floats], rankings: Sequence[Sequence[object]]
) -> Hits:
    """Hits from places of document and of item, the grades of items, and rankings."""
    count = np.array([*map(len, grades)], np.int64)
    query = np.repeat(np.arange(len(rows)), [*map(len, rows)])
    place, item = np.concatenate([np.zeros((0, 2), np.int64), *rows]).T
    item = item + (count.cumsum() - count)[query]
    grade = np.concatenate([np.zeros(0), *grades])
    return Hits(
        query=query,
        rank=place + 1,
        grade=grade[item],
        gold_count=count,
        gold_grade=grade,
        retrieved=np.array([*map(len, rankings)], np.int64),
        item=item,
    )
