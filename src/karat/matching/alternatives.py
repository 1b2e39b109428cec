"""Gold documents of which any will do: those of one group are one item."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.policies import Policies
from karat.data.runs import Labels, Located, Run

__all__ = ["Groups", "Items", "items_of"]

Groups = Mapping[str, Mapping[str, str]]
"""Alternatives: query id -> document id -> name of the group it belongs to."""


@dataclass(frozen=True, eq=False)
class Items:
    """The items of gold documents, and which of them each label belongs to.

    Attributes:
        names: the items of each query, a group by its name, a document by its id.
        count: how many there are for each query.
        grade: what they are worth, query after query.
        of_label: index of the item of each label, over all labels in order.
    """

    names: list[list[str]]
    count: Ints
    grade: Floats
    of_label: Ints

    def locate(self, run: Run, labels: Labels, policies: Policies) -> Located:
        """Find the labelled documents; each row says which item it satisfies."""
        located = run.locate(labels, judged=True, policies=policies)
        item = self.of_label[located.item]
        return replace(located, grade=self.grade[item], item=item, distinct=False)


def items_of(labels: Labels, groups: Groups) -> Items:
    """The items: a group is worth its best document, and others are their own item.

    A document judged non-relevant is no alternative to anything.

    Example:
        >>> labels = {"q": {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0}}
        >>> items = items_of(labels, {"q": {"a": "g", "b": "g", "d": "g"}})
        >>> items.names, items.grade.tolist(), items.of_label.tolist()
        ([['g', 'c', 'd']], [2.0, 1.0, 0.0], [0, 0, 1, 2])
    """
    names: list[list[str]] = []
    grades: list[float] = []
    of_label: list[int] = []
    for query, row in labels.items():
        told = groups.get(query, {})
        # A group may be called like a document.
        places: dict[tuple[str, bool], int] = {}
        for document, grade in row.items():
            grouped = grade > 0 and document in told
            key = (told[document] if grouped else document, grouped)
            place = places.setdefault(key, len(grades))
            if place == len(grades):
                grades.append(grade)
            grades[place] = max(grades[place], grade)
            of_label.append(place)
        names.append([name for name, _ in places])
    count = np.fromiter(map(len, names), np.int64, len(names))
    return Items(
        names, count, np.array(grades, np.float64), np.array(of_label, np.int64)
    )
