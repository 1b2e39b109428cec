"""Label patches: grades given in an HTML report or a sheet, to be merged into gold."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from karat.data.gold import PEOPLE, Gold, Item
from karat.data.tables import counted
from karat.errors import DataError, FormatError
from karat.reading.files import decode_text, open_binary, read_value
from karat.reading.readers import take_gold
from karat.reading.source import placed

_VERSION = 1
_COLUMNS = ("query", "document", "text")
_QUOTED = re.compile("'[=+@-]")


@dataclass(frozen=True)
class Labelled:
    """Gold with labels merged into it, and what they changed.

    Attributes:
        gold: with the labels.
        added: how many items had no label before.
        changed: (query, item, grade before, grade now) of those that had another.
        same: how many had the same grade already.
        outdated: queries whose gold is not what it was when they were labelled.
    """

    gold: Gold
    added: int
    changed: tuple[tuple[str, str, float, float], ...]
    same: int
    outdated: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{counted(self.added, 'label')} added"]
        parts.append(f"{len(self.changed)} changed, {self.same} as before")
        if self.outdated:
            shown = ", ".join(self.outdated[:3])
            what = counted(len(self.outdated), "query")
            parts.append(f"the gold of {what} has changed since ({shown})")
        return "; ".join(parts)


def apply_labels(patch: Any, gold: Any = None) -> Labelled:
    """Merge the labels of a patch into gold, each with who gave it and when.

    A label of a document goes by its id; where the gold holds no ids but passages, the
    document's text becomes one.

    Args:
        patch: a file that an HTML report saved, or what it holds; or a sheet of
            `karat pool` (.csv) in which grades were filled in.
        gold: what they are merged into, in any form that `evaluate` takes; None where
            there is none yet.

    Raises:
        FormatError: the patch is not one, or labels a query that the gold lacks.

    Example:
        >>> label = {"query": "q", "document": "b", "grade": 2, "at": "2026-11-15"}
        >>> patch = {"kind": "label patch", "schema_version": 1, "labels": [label]}
        >>> done = apply_labels(patch, {"q": {"a": 1}})
        >>> done.gold.documents, str(done)
        ({'q': {'a': 1.0, 'b': 2.0}}, '1 label added; 0 changed, 0 as before')
    """
    name = os.fspath(patch) if isinstance(patch, str | os.PathLike) else None
    try:
        before = None if gold is None else take_gold(gold).gold
        return _merged(_read(patch), before or Gold())
    except DataError as error:
        raise placed(error, path=name) if name else error from None


def _read(patch: Any) -> Mapping[str, Any]:
    if isinstance(patch, str | os.PathLike):
        with open_binary(patch) as stream:
            text = decode_text(read_value(stream))
        if os.fspath(patch).endswith(".csv"):
            if not (labels := [*_rows(text)]):
                raise FormatError("has no row with a grade yet")
            return {"labels": labels, "labelled_by": "sheet"}
        try:
            patch = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"is not JSON: {error}") from None
    known = isinstance(patch, Mapping) and patch.get("kind") == "label patch"
    if not known or not isinstance(patch.get("labels"), list):
        raise FormatError(
            "is not a label patch",
            hint="a report saves one: open it, label, and download the labels",
        )
    if patch.get("schema_version") != _VERSION:
        raise FormatError("is a label patch of another karat")
    return dict(patch)


def _rows(text: str) -> Iterator[dict[str, Any]]:
    """The rows of a sheet that have a grade, as labels."""
    sheet = csv.DictReader(io.StringIO(text, newline=""))
    if lacking := {*_COLUMNS, "grade"} - {*(sheet.fieldnames or ())}:
        raise FormatError(f"has no column {', '.join(sorted(lacking))}")
    for row in sheet:
        if not (grade := (row["grade"] or "").strip()):
            continue
        try:
            number = float(grade)
        except ValueError:
            problem = f"grade must be a number, got {grade!r}"
            raise FormatError(problem, line=sheet.line_num) from None
        # What would be a formula in a spreadsheet was written behind a quote.
        names = {
            name: row[name][1:] if _QUOTED.match(row[name] or "") else row[name] or None
            for name in _COLUMNS
        }
        yield {**names, "grade": number}


def _merged(patch: Mapping[str, Any], gold: Gold) -> Labelled:
    documents = {
        query: {name: float(grade) for name, grade in row.items()}
        for query, row in gold.documents.items()
    }
    sources = {query: dict(row) for query, row in gold.sources.items()}
    passages = {query: [*row] for query, row in gold.passages.items()}
    by_text = bool(gold.kinds()) and "documents" not in gold.kinds()
    queries = set(gold.queries)
    added, same = 0, 0
    changed: list[tuple[str, str, float, float]] = []
    outdated: dict[str, None] = {}
    for place, label in enumerate(patch["labels"]):
        query, item, text, grade = _label(label, place)
        if queries and query not in queries:
            raise FormatError(
                f"labels query {query!r}, which {gold.name} does not have",
                hint="is it the gold that the report was made with?",
            )
        told = label.get("gold_fingerprint")
        if told and told != gold.fingerprint(query):
            outdated[query] = None
        who = _signature(patch.get("labelled_by"), label.get("at"))
        if by_text or item is None:
            if text is None:
                raise FormatError(
                    f"labels[{place}] has no text, and {gold.name} holds passages",
                    hint="a report made with --no-text labels ids only",
                )
            row = passages.setdefault(query, [])
            at = next((n for n, one in enumerate(row) if one.text == text), None)
            old = None if at is None else row[at].grade
            if at is None:
                number = len(row) + 1
                row.append(Item(f"passage-{number}", text, grade, who))
            elif old != grade:
                row[at] = replace(row[at], grade=grade, source=who)
        else:
            labels = documents.setdefault(query, {})
            old = labels.get(item)
            if old != grade:
                labels[item] = grade
                sources.setdefault(query, {})[item] = who
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
    return Labelled(whole, added, tuple(changed), same, tuple(outdated))


def _label(label: Any, place: int) -> tuple[str, str | None, str | None, float]:
    """The query, document, text and grade of a label, whose types are checked."""
    entry = label if isinstance(label, Mapping) else {}
    query, item, text = (entry.get(name) for name in ("query", "document", "text"))
    grade = entry.get("grade")
    right = (
        isinstance(query, str)
        and isinstance(item, str | None)
        and isinstance(text, str | None)
        and not (item is None and text is None)
        and isinstance(grade, int | float)
        and not isinstance(grade, bool)
        and abs(grade) < 1e6  # noqa: PLR2004
    )
    if not right:
        raise FormatError(
            f"labels[{place}] must have a query, a document or a text, and a grade"
        )
    return str(query), item, text, float(grade)  # type: ignore[arg-type]


def _signature(who: Any, at: Any) -> str:
    """Who labelled and on which day, in one word, as qrels can hold it."""
    name = "_".join(str(who or "unnamed").split()) or "unnamed"
    day = str(at or "")[:10]
    return f"{PEOPLE}{name}{f'@{day}' if day else ''}"
