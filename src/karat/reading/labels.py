"""Labels: grades that people gave in a report or a sheet, merged into gold.

A label is a JSON line, or a row of a sheet: `query`, `document` or `text`, `grade` (a
number, or "can't tell"), and `who` gave it, `when` and `why`. A row without a grade is
none yet.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

from karat.data.gold import PEOPLE, Gold, Item
from karat.data.tables import counted
from karat.errors import DataError, FormatError
from karat.reading.format import open_source
from karat.reading.meaning.shapes import records_of
from karat.reading.meaning.values import read_id, read_number
from karat.reading.readers import read
from karat.reading.source import Batched, Notes, Source, placed

T = TypeVar("T")
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
        parts.append(f"{len(self.changed)} changed, {self.same} unchanged")
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
        ({'q': {'a': 1.0, 'b': 2.0}}, '1 label added; 0 changed, 0 unchanged')
    """
    before = None if gold is None else read(gold, "gold").gold
    try:
        rows = [*parse_rows(labels, _read_label, _Label._fields[:4])]
        if rows and not any(rows):
            raise FormatError("has no row with a grade yet")
        return _merge(filter(None, rows), before or Gold())
    except DataError as error:
        path = labels if isinstance(labels, str | os.PathLike) else None
        raise placed(error, path=path) from None


class _Label(NamedTuple):
    query: str
    document: str | None
    text: str | None
    grade: float | None
    signature: str
    fingerprint: str | None


def parse_rows(
    rows: Any,
    parse: Callable[[Any, Source], T],
    needed: Sequence[str] = (),
) -> Iterator[T]:
    """What each row of a file, or each record, is read as; an error names its row.

    A sheet must have the columns that are needed.
    """
    where, path = Source("labels", "gold"), None
    if isinstance(rows, str | os.PathLike):
        chosen, where = open_source(rows, Notes(), "gold", None, None)
        rows, path = chosen.records(where), where.path
    rows = [rows] if isinstance(rows, Mapping) else rows
    sheet = isinstance(rows, Batched) and rows.header
    if sheet and (lacking := {*needed} - {*sheet}):
        raise FormatError(f"has no column {', '.join(sorted(lacking))}", path=path)
    found = records_of(rows, where, ", as a report or a sheet holds")
    for number, (line, row) in enumerate(found, 1):
        try:
            yield parse(_unquoted(row) if sheet else row, where)
        except DataError as error:
            if line is None:
                error.problem = f"label {number}: {error.problem}"
            raise placed(error, path=path, line=line) from None


def first_row(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The first row of a file, which shows whether it holds labels or something else.

    It is empty where a file is not of rows, or cannot be read twice.
    """
    if os.fspath(path).endswith((".jsonl", ".csv")):
        with suppress(DataError):
            first = next(parse_rows(path, lambda row, _: row), None)
            return first if isinstance(first, Mapping) else {}
    return {}


def _read_label(row: Any, where: Source) -> _Label | None:
    if not isinstance(row, Mapping) or "query" not in row:
        raise FormatError("a label needs a query, a document and a grade")
    query, document, text, grade = map(row.get, _Label._fields[:4])
    if grade in (None, ""):
        return None
    if query is None or (document is None and text is None):
        raise FormatError("a label needs a query, a document or a text, and a grade")
    number = None if grade == UNDECIDED else read_number(grade, "grade")
    if number is not None and abs(number) >= _LARGEST:
        raise FormatError(f"grade must be smaller than {_LARGEST:,}, got {grade}")
    return _Label(
        read_id(query, "query", where.notes),
        None if document is None else read_id(document, "document", where.notes),
        None if text is None else str(text),
        number,
        signature(row),
        row.get("gold_fingerprint"),
    )


def _unquoted(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a sheet without the quotes before what would be formulas there."""
    cells = {n: c[1:] if _QUOTED.match(c or "") else c for n, c in row.items()}
    return {**cells, "who": cells.get("who") or "sheet"}


def signature(row: Mapping[str, Any]) -> str:
    """Who gave a label, in one word as qrels can hold it, and on which day."""
    name = "_".join(str(row.get("who") or "").split()) or "unnamed"
    when = row.get("when")
    return f"{PEOPLE}{name}" + (f"@{str(when)[:10]}" if when else "")


def _merge(labels: Iterable[_Label], gold: Gold) -> LabelChanges:
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
