"""Bring a metric of your own: a frozen dataclass with one formula over hits."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import karat
from karat.extend import CutoffMetric, Floats, Hits, ratio


@dataclass(frozen=True)
class Best(CutoffMetric):
    """How close the best document of the top k comes to the best there is.

    The highest grade in the top k over the highest grade in gold. A reader who needs
    just one good document cares for this. Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "best"
    formula: ClassVar[str] = "highest grade in top k / highest grade in gold"

    def score(self, hits: Hits) -> Floats:
        """Best found over best there is."""
        rows = self.within(hits, hits.query, hits.rank)
        found = np.zeros(hits.size)
        np.maximum.at(found, hits.query[rows], hits.grade[rows])
        ideal = np.zeros(hits.size)
        np.maximum.at(ideal, hits.gold_query, hits.gold_grade)
        return ratio(found, ideal)


run = {"q1": ["a", "b", "c"], "q2": ["d", "e", "f"]}
gold = {"q1": {"a": 1, "b": 2, "c": 3}, "q2": {"f": 3, "x": 3}}

evaluation = karat.evaluate(run, gold=gold, metrics=[Best(1), Best(2), Best(3), "rr"])
for metric, mean in evaluation.means.items():
    print(f"{metric:8} {mean:.4f}")
