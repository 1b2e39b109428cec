"""Labels: grades that people gave in a report or a sheet, merged into gold.

A label is a JSON line, or a row of a sheet: `query`, `document` or `text`, `grade` (a
number, or "can't tell"), and `who` gave it, `when` and `why`. A row without a grade is
none yet.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from karat.data.gold import PEOPLE, Gold, Item
from karat.data.tables import counted
from karat.errors import DataError, FormatError
from karat.reading.format import open_source
from karat.reading.meaning.shapes import records_of
from karat.reading.meaning.values import read_id, read_number
from karat.reading.readers import read
from karat.reading.source import Batched, Notes, Source, placed

UNDECIDED: Final = "can't tell"
"""What stands for a grade where somebody looked and could not say."""

_QUOTED = re.compile("'[=+@-]")
_LARGEST = 1_000_000


@dataclass(frozen=True)
class LabelChanges:
    """Gold with labels merged into it, and what they changed.

    Attributes:
        gold: with the labels.
        added: how many items had no label before.
        changed: (query, item, grade before, grade now) of those that had another.
        same: how many had the same grade already.
        outdated: queries whose gold is not what it was when they were labelled.
        undecided: how many labels say "can't tell"; they change nothing.
    """

    gold: Gold
    added: int
    changed: tuple[tuple[str, str, float, float], ...]
    same: int
    outdated: tuple[str, ...]
    undecided: int = 0

    def __str__(self) -> str:
        parts = [f"{counted(self.added, 'label')} added"]
        parts.append(f"{len(self.changed)} changed, {self.same} as before")
        if self.undecided:
            parts.append(f"{self.undecided} {UNDECIDED}")
        if self.outdated:
            shown = ", ".join(self.outdated[:3])
            what = counted(len(self.outdated), "query")
            parts.append(f"the gold of {what} has changed since ({shown})")
        return "; ".join(parts)


def apply_labels(labels: Any, gold: Any = None) -> LabelChanges:
    """Merge labels into gold, each with who gave it and when.

    A label of a document goes by its id; where the gold holds no ids but passages, the
    document's text becomes one. Of several labels of a document the last one counts.

    Args:
        labels: a file that an HTML report saved (.jsonl), or the records in it; or a
            sheet of `karat pool` (.csv) in which grades were filled in.
        gold: what they are merged into, in any form that `evaluate` takes; None where
            there is none yet.

    Raises:
        FormatError: a label is not one, or is of a query that the gold lacks.

    Example:
        >>> label = {"query": "q", "document": "b", "grade": 2, "when": "2026-11-15"}
        >>> done = apply_labels([label], {"q": {"a": 1}})
        >>> done.gold.documents, str(done)
        ({'q': {'a': 1.0, 'b': 2.0}}, '1 label added; 0 changed, 0 as before')
    """
    before = None if gold is None else read(gold, "gold").gold
    where, path = Source("labels", "gold"), None
    if isinstance(labels, str | os.PathLike):
        chosen, where = open_source(labels, Notes(), "gold", None, None)
        labels, path = chosen.records(where), where.path
    try:
        return _merge(_read_labels(labels, where), before or Gold())
    except DataError as error:
        raise placed(error, path=path) from None


class _Label(NamedTuple):
    query: str
    document: str | None
    text: str | None
    grade: float | None
    signature: str
    fingerprint: str | None


def _read_labels(rows: Any, where: Source) -> Iterator[_Label]:
    """The rows that have a grade."""
    rows = [rows] if isinstance(rows, Mapping) else rows
    sheet = isinstance(rows, Batched) and rows.header
    if sheet and (lacking := {"query", "document", "text", "grade"} - {*sheet}):
        raise FormatError(f"has no column {', '.join(sorted(lacking))}")
    number = graded = 0
    for line, row in records_of(rows, where, ", as a report or a sheet holds"):
        number += 1
        try:
            if not isinstance(row, Mapping) or "query" not in row:
                raise FormatError("a label needs a query, a document and a grade")
            if row.get("grade") in (None, ""):
                continue
            graded += 1
            yield _read_label(row, where.notes, sheet=bool(sheet))
        except DataError as error:
            if line is None:
                error.problem = f"label {number}: {error.problem}"
            raise placed(error, line=line) from None
    if number and not graded:
        raise FormatError("has no row with a grade yet")


def _read_label(row: Mapping[str, Any], notes: Notes, *, sheet: bool) -> _Label:
    if sheet:
        row = unquoted(row)
    names = ("query", "document", "text", "grade", "who", "when")
    query, document, text, grade, who, when = map(row.get, names)
    if query is None or (document is None and text is None):
        raise FormatError("a label needs a query, a document or a text, and a grade")
    number = None if grade == UNDECIDED else read_number(grade, "grade")
    if number is not None and abs(number) >= _LARGEST:
        raise FormatError(f"grade must be smaller than {_LARGEST:,}, got {grade}")
    # In one word, as qrels can hold it.
    name = "_".join(str(who or ("sheet" if sheet else "")).split()) or "unnamed"
    return _Label(
        read_id(query, "query", notes),
        None if document is None else read_id(document, "document", notes),
        None if text is None else str(text),
        number,
        f"{PEOPLE}{name}" + (f"@{str(when)[:10]}" if when else ""),
        row.get("gold_fingerprint"),
    )


def unquoted(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a sheet without the quotes before what would be formulas there."""
    return {n: c[1:] if _QUOTED.match(c or "") else c for n, c in row.items()}


def _merge(labels: Iterator[_Label], gold: Gold) -> LabelChanges:
    documents = {
        query: {name: float(grade) for name, grade in row.items()}
        for query, row in gold.documents.items()
    }
    sources = {q: dict(row) for q, row in gold.sources.items()}
    passages = {q: [*row] for q, row in gold.passages.items()}
    by_text = bool(gold.kinds()) and "documents" not in gold.kinds()
    queries = set(gold.queries)
    added = same = undecided = 0
    changed: list[tuple[str, str, float, float]] = []
    outdated: dict[str, None] = {}
    for query, item, text, grade, who, fingerprint in labels:
        if queries and query not in queries:
            raise FormatError(
                f"labels query {query!r}, which {gold.name} does not have",
                hint="is it the gold that the report was made with?",
            )
        if fingerprint and fingerprint != gold.fingerprint(query):
            outdated[query] = None
        if grade is None:
            undecided += 1
            continue
        if item is not None and not by_text:
            old = documents.setdefault(query, {}).get(item)
            if old != grade:
                documents[query][item] = grade
                sources.setdefault(query, {})[item] = who
        elif text is not None:
            old = _label_text(passages.setdefault(query, []), text, grade, who)
        else:
            raise FormatError(
                f"the label of {item!r} has no text, and {gold.name} holds passages",
                query=query,
                hint="a report made with --no-text labels ids only",
            )
        added += old is None
        same += old == grade
        if old is not None and old != grade:
            changed.append((query, item or str(text)[:40], old, grade))
    whole = replace(
        gold,
        documents=documents,
        sources=sources,
        passages={query: tuple(row) for query, row in passages.items()},
        order=tuple(dict.fromkeys((*gold.queries, *documents))),
    )
    return LabelChanges(whole, added, tuple(changed), same, tuple(outdated), undecided)


def _label_text(row: list[Item], text: str, grade: float, who: str) -> float | None:
    """Give a passage its grade; the one it had before, if any."""
    at = next((n for n, item in enumerate(row) if item.text == text), None)
    if at is None:
        row.append(Item(f"passage-{len(row) + 1}", text, grade, who))
        return None
    old = row[at].grade
    if old != grade:
        row[at] = replace(row[at], grade=grade, source=who)
    return old
