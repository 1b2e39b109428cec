"""Findings: what is wrong with gold, as a value, and gold that is corrected by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from karat.data.gold import Gold, Item
from karat.data.tables import Table, counted
from karat.diagnosis.diagnosis import unexamined_notes
from karat.results.plain_values import PlainResult

TWO_RUNS = "two runs, or one with a corpus and texts of queries"
KINDS = {
    "unreadable": "",
    "empty text": "",
    "dangling id": "--corpus",
    "other id form": "--corpus",
    "not covered": "--corpus",
    "near-duplicate items": "",
    "unlabelled duplicate": "--corpus",
    "conflicting grades": "",
    "conflicting queries": "texts of queries",
    "duplicate query": "texts of queries",
    "unwinnable": "",
    "no relevant gold": "",
    "suspicious label": TWO_RUNS,
}
"""What can be found, and what must be given to find it."""

_SHOWN = 20


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with the gold of a query.

    Attributes:
        kind: one of `KINDS`.
        query: id of the query.
        item: name of the gold item; empty when it is about all of them.
        sentence: what is wrong.
        other: what it is at odds with, such as the id that is right.
        fix: what `fix_gold` does: `remove`, `rename`, `alternatives`, or nothing.
    """

    kind: str
    query: str
    item: str
    sentence: str
    other: str = ""
    fix: str = ""


@dataclass(frozen=True)
class GoldFindings(PlainResult):
    """What is wrong with gold: a plain value that saves and loads.

    Attributes:
        gold: name of the gold.
        queries: how many queries it has.
        items: how many gold items.
        findings: what was found, by kind.
        not_examined: kind -> what must be given to look for it.
    """

    saved_as: ClassVar[str] = "findings"

    gold: str
    queries: int
    items: int
    findings: tuple[Finding, ...] = ()
    not_examined: Mapping[str, str] = field(default_factory=dict)

    def summary(self) -> Table:
        """A row per kind: how often, in how many queries, and an example."""
        rows = []
        for kind in KINDS:
            own = [finding for finding in self.findings if finding.kind == kind]
            if own:
                queries = str(len({finding.query for finding in own}))
                fixed = str(sum(bool(finding.fix) for finding in own))
                rows.append([kind, str(len(own)), queries, fixed, own[0].sentence])
        title = (
            f"{self.gold}: {counted(self.queries, 'query')}, "
            f"{counted(self.items, 'gold item')}, "
            f"{counted(len(self.findings), 'finding')}"
        )
        notes = [] if self.findings else ["nothing was found to be wrong"]
        notes += unexamined_notes(self.not_examined)
        columns = ["finding", "n", "queries", "fixable", "for example"]
        return Table(columns, rows, title=title, notes=notes, texts=(0, 4))

    def finding_table(self, most: int = _SHOWN) -> Table:
        """The findings one by one, the first ones."""
        rows = [[one.query, one.kind, one.sentence] for one in self.findings[:most]]
        title = f"findings: {len(rows)} of {len(self.findings)}"
        return Table(["query", "finding", "what"], rows, title=title, texts=range(3))

    def tables(self) -> list[Table]:
        """All that a person is shown."""
        return [self.summary(), *([self.finding_table()] if self.findings else [])]


def fix_gold(gold: Gold, findings: Sequence[Finding]) -> Gold:
    """The gold with what can safely be corrected; the rest is as it was.

    Empty and repeated texts go, ids get the form that the corpus has, and documents
    that say the same become alternatives, of which any one will do.
    """
    documents = {query: dict(row) for query, row in gold.documents.items()}
    groups = {query: dict(row) for query, row in gold.groups.items()}
    removed = {(f.query, f.item) for f in findings if f.fix == "remove"}
    for one in findings:
        row = documents.get(one.query, {})
        if one.fix == "rename" and one.item in row:
            documents[one.query] = {
                one.other if name == one.item else name: grade
                for name, grade in row.items()
                if name == one.item or name != one.other
            }
        elif one.fix == "alternatives" and one.item in row:
            row.setdefault(one.other, row[one.item])
            told = groups.setdefault(one.query, {})
            group = told.get(one.item) or told.get(one.other) or one.item
            told[one.item] = told[one.other] = group

    def kept(kind: str) -> dict[str, tuple[Item, ...]]:
        return {
            query: tuple(item for item in items if (query, item.id) not in removed)
            for query, items in getattr(gold, kind).items()
        }

    return replace(
        gold,
        documents=documents,
        groups=groups,
        passages=kept("passages"),
        answers=kept("answers"),
        claims=kept("claims"),
    )
