"""How far a judge that graded a pool can be trusted, in tables and in JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.data.arrays import Floats
from karat.data.gold import Gold
from karat.data.runs import Labels, Run
from karat.data.tables import Table, counted
from karat.errors import DataError
from karat.evaluation import evaluate
from karat.formats.loading import load
from karat.judging.agreement import Agreement, Flips, agreement, flips
from karat.judging.ordering import Order, order_agreement
from karat.judging.prompts import GRADES
from karat.judging.relevance import Graded, Pool, is_binary, on_scale_of
from karat.judging.resistance import Probed

__all__ = ["Findings", "compare", "people_of"]


def people_of(
    options: Mapping[str, Any], pooled: Pool, runs: Sequence[Run]
) -> Labels | None:
    """The labels by people to compare with; what makes that impossible is an error.

    All of it is found out before a model is asked.
    """
    if options["agreement"] is None:
        return None
    path = options["agreement"]
    human = (load(path, role="gold").gold or Gold()).documents
    if not any(
        name in human.get(query, {}) for query in pooled for name in pooled[query]
    ):
        raise DataError(
            "labels no document of the pool, so there is nothing to compare",
            path=path,
            hint="judge the runs that people judged, with the same ids; or pool deeper",
        )
    if len(runs) > 1:
        _scores(runs[:1], human, options["metric"])
    return human


def compare(
    runs: Sequence[Run],
    graded: Graded,
    again: Graded | None,
    human: Labels | None,
    metric: str,
) -> Agreement | Flips | None:
    """The judge against people, or against itself."""
    judged = graded.gold.documents
    flipped = None if again is None else flips(judged, again.gold.documents)
    if human is None:
        return flipped
    judged = on_scale_of(human, graded.gold).documents
    order = None if len(runs) == 1 else _order(runs, human, judged, metric)
    return agreement(human, judged, order=order, flipped=flipped)


def _order(runs: Sequence[Run], human: Labels, judged: Labels, metric: str) -> Order:
    """How alike people and judge order the runs, on the queries both labelled."""
    both = [query for query in human if judged.get(query)]
    people, judge = (
        _scores(runs, {query: labels[query] for query in both}, metric)
        for labels in (human, judged)
    )
    return order_agreement(people, judge)


def _scores(runs: Sequence[Run], labels: Labels, metric: str) -> Floats:
    """A row per run, a column per query."""
    gold = Gold(labels)
    found = [evaluate(run, gold=gold, metrics=metric, force=True) for run in runs]
    return np.array([result[metric].scores for result in found])


@dataclass(frozen=True)
class Findings:
    """What came of grading a pool, to be shown.

    Attributes:
        graded: the grades.
        trusted: the judge against people, or against itself.
        probed: the judge against tricks.
        kept: number of documents of the pool whose labels were there already.
        people: labels that the grades are compared or mixed with.
    """

    graded: Graded
    trusted: Agreement | Flips | None = None
    probed: Probed | None = None
    kept: int = 0
    people: Labels | None = None

    def tables(self) -> list[Table]:
        """What a person is shown."""
        tables = [self._summary()]
        if self.trusted is not None:
            tables.append(self.trusted.table())
        if self.probed is not None:
            tables += self.probed.tables()
        return tables

    def _summary(self) -> Table:
        """How many documents got which grade."""
        rows = self.graded.grades.values()
        said = [grade for row in rows for grade in row.values()]
        cells = [
            [str(grade), str(sum(one.grade == grade for one in said)), meaning]
            for grade, meaning in GRADES.items()
        ]
        notes = []
        if not isinstance(self.trusted, Agreement):
            text = "--agreement GOLD compares this judge with people"
            notes.append(f"uncalibrated: {text}")
        if self.kept:
            text = (
                f"{counted(self.kept, 'document')} of the pool had labels, which stay"
            )
            notes.append(f"kept: {text}; every label says whose it is")
        if scale := self._scale():
            notes.append(f"scale: {scale}")
        if differ := [one.disagreement for one in said if one.disagreement]:
            share = sum(differ) / len(said)
            text = (
                f"{counted(len(differ), 'document')} divided them; {share:.1%} differ"
            )
            notes.append(f"votes: {text}")
        if failed := len(self.graded.failures):
            notes.append(f"failed: {counted(failed, 'document')} without a grade")
        title = f"{counted(len(said), 'document')} graded by {self.graded.gold.name}"
        return Table(["grade", "documents", "meaning"], cells, title, notes, (0, 2))

    def _scale(self) -> str | None:
        """What a reader must know where people and judge use different grades."""
        if self.people is None or not any(self.people.values()):
            return None
        if is_binary(self.people):
            return "people say 0 or 1, so the judge's 2 and 3 count as 1 beside theirs"
        top = max(grade for row in self.people.values() for grade in row.values())
        if top == max(GRADES):
            return None
        return f"people's grades end at {top:g}, the judge's at {max(GRADES)}"

    def to_dict(self, *, texts: bool) -> dict[str, Any]:
        """Everything in plain values; reasons stay out where texts must."""
        return {
            "source": self.graded.gold.name,
            "calibrated": isinstance(self.trusted, Agreement),
            "kept": self.kept,
            "scale": self._scale(),
            "grades": [
                {
                    "query": query,
                    "document": name,
                    "grade": said.grade,
                    "disagreement": said.disagreement,
                    "reason": said.reason if texts else "",
                }
                for query, row in self.graded.grades.items()
                for name, said in row.items()
            ],
            "failures": [
                {"query": query, "document": name, "reason": reason}
                for (query, name), reason in self.graded.failures.items()
            ],
            "agreement": None if self.trusted is None else self.trusted.to_dict(),
            "probe": None if self.probed is None else self.probed.to_dict(),
        }
