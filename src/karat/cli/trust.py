"""How far a judge that graded a pool can be trusted, in tables and in JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from karat.data.evaluations import SCHEMA_VERSION
from karat.data.gold import Gold
from karat.data.runs import Labels, Run
from karat.data.tables import Table, counted
from karat.errors import DataError
from karat.judging.agreement import Agreement
from karat.judging.prompts import GRADES
from karat.judging.relevance import Graded, Pool
from karat.judging.resistance import Probed
from karat.judging.retesting import Flips
from karat.judging.scales import RELEVANT, is_binary, is_graded
from karat.reading.doors import load
from karat.trust import scores

__all__ = ["Findings", "people_of"]


def people_of(
    options: Mapping[str, Any], pooled: Pool, runs: Mapping[str, Run]
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
        name, run = next(iter(runs.items()))
        scores({name: run}, human, options["metric"])
    return human


@dataclass(frozen=True)
class Findings:
    """What came of grading a pool, to be shown.

    Attributes:
        graded: the grades.
        agreed: the judge against people.
        flipped: the judge against itself.
        probed: the judge against tricks.
        kept: number of documents of the pool whose labels were there already.
        known: the labels that were there already, which the grades are mixed with.
        written: all that the files hold.
    """

    graded: Graded
    agreed: Agreement | None = None
    flipped: Flips | None = None
    probed: Probed | None = None
    kept: int = 0
    known: Labels | None = None
    written: Gold | None = None

    def tables(self) -> list[Table]:
        """What a person is shown."""
        tables = [self._summary()]
        if self.agreed is not None:
            tables.append(self.agreed.table(self.flipped))
        elif self.flipped is not None:
            tables.append(self.flipped.table())
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
        title = f"{counted(len(said), 'document')} graded by {self.graded.gold.name}"
        notes = [*self._labels(), *self._votes()]
        return Table(["grade", "documents", "meaning"], cells, title, notes, (0, 2))

    def _labels(self) -> list[str]:
        """What must be known before runs are scored with these labels."""
        notes = []
        if self.agreed is None:
            text = "--agreement GOLD compares this judge with people"
            notes.append(f"uncalibrated: {text}")
        if line := self._line():
            notes.append(f"relevant: {line}")
        if self.kept:
            text = (
                f"{counted(self.kept, 'document')} of the pool had labels, which stay"
            )
            notes.append(f"kept: {text}; every label says whose it is")
        if self.written is not None and self.known:
            who = self.written.labellers()
            people = counted(who.pop("human", 0), "label")
            others = ", ".join(f"{count} by {name}" for name, count in who.items())
            notes.append(f"written: {people} by people, {others or 'none by a judge'}")
        if scale := self._scale():
            notes.append(f"scale: {scale}")
        return notes

    def _votes(self) -> list[str]:
        """Where votes differ or are missing, and what has no grade at all."""
        rows = self.graded.grades.values()
        said = [grade for row in rows for grade in row.values()]
        notes = []
        if differ := [one.disagreement for one in said if one.disagreement]:
            share = sum(differ) / len(said)
            text = (
                f"{counted(len(differ), 'document')} divided them; {share:.1%} differ"
            )
            notes.append(f"votes: {text}")
        if short := [one.failed for one in said if one.failed]:
            text = f"{counted(sum(short), 'vote')} without a valid answer"
            on = "whose grade rests on the others"
            notes.append(f"votes: {text}, on {counted(len(short), 'document')} {on}")
        if failed := len(self.graded.failures):
            notes.append(f"failed: {counted(failed, 'document')} without a grade")
        return notes

    def _line(self) -> str | None:
        """From which grade on these labels are relevant, unless they are 0 or 1."""
        if self.known and not is_graded(self.known):
            return None
        return (
            f"grades {RELEVANT} and {max(GRADES)}; grade 1 does not help to answer: "
            f"score with --threshold {RELEVANT}, or it counts as relevant too"
        )

    def _scale(self) -> str | None:
        """What a reader must know where people and judge use different grades."""
        if not self.known or is_graded(self.known):
            return None
        last = max(GRADES)
        if is_binary(self.known):
            return (
                f"people say 0 or 1, so the judge's {RELEVANT} and {last} are written "
                "as 1 beside theirs, and all below as 0"
            )
        top = max(grade for row in self.known.values() for grade in row.values())
        return (
            f"people's grades end at {top:g} and are not the judge's 0 to {last}; both "
            "are written as they are"
        )

    def to_dict(self, *, texts: bool) -> dict[str, Any]:
        """Everything in plain values; reasons stay out where texts must."""
        return {
            "schema_version": SCHEMA_VERSION,
            "source": self.graded.gold.name,
            "compared": self.agreed is not None,
            "kept": self.kept,
            "scale": self._scale(),
            "notes": self._summary().notes,
            "grades": [
                {
                    "query": query,
                    "document": name,
                    "grade": said.grade,
                    "disagreement": said.disagreement,
                    "failed_votes": said.failed,
                    "reason": said.reason if texts else "",
                }
                for query, row in self.graded.grades.items()
                for name, said in row.items()
            ],
            "failures": [
                {"query": query, "document": name, "reason": reason}
                for (query, name), reason in self.graded.failures.items()
            ],
            "agreement": None if self.agreed is None else self.agreed.to_dict(),
            "flips": None if self.flipped is None else self.flipped.to_dict(),
            "probe": None if self.probed is None else self.probed.to_dict(),
        }
