"""The gold of a project: what its file says, and what people say, by version.

Labels are only ever added. What the gold file says of a document counts until people
label it; then the median of each person's last word does.
"""

import json
import sqlite3
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple, TypeGuard, cast

from karat.data.gold import KINDS, Gold
from karat.errors import DataError, UnknownNameError, UsageError
from karat.history.schema import StoredRows, from_json, store_damage
from karat.reading.labels import UNDECIDED, apply_labels
from karat.reading.meaning.values import show
from karat.results.plain_values import as_plain, from_plain

_BY_QUERY: Final = tuple(
    field.name
    for field in fields(Gold)
    # Texts are stored with the documents.
    if field.name not in {"order", "name", "notices", "texts"}
)
_GRADE = "grade"
_LATEST = 2**62
_LARGEST = 1e150
WITHDRAWN = "withdrawn"


class StoredLabel(NamedTuple):
    """A label as somebody gave it.

    Attributes:
        id: its number.
        version: of the gold that it made.
        at: when.
        query: of which query.
        document: id of the document; None where it has none.
        text: of the document, where it has no id.
        grade: None where there is none.
        verdict: `grade`, `can't tell`, or `withdrawn` where it was undone.
        who: gave it.
        why: in their words.
    """

    id: int
    version: int
    at: str
    query: str
    document: str | None
    text: str | None
    grade: float | None
    verdict: str
    who: str
    why: str


class GoldChange(NamedTuple):
    """A grade that is another in a later version of the gold.

    Attributes:
        query: of which query.
        item: id of the document, or the text where it has none.
        before: the grade; None where there was none.
        after: the grade now; None where there is none any more.
        who: the people who labelled it in between; none where only the file changed.
    """

    query: str
    item: str
    before: float | None
    after: float | None
    who: tuple[str, ...]


def gold_for(gold: Gold, names: Mapping[str, str]) -> Gold:
    """The gold of queries under other names: name -> the query whose gold it has."""
    parts: dict[str, Any] = {
        kind: {name: by[query] for name, query in names.items() if query in by}
        for kind in _BY_QUERY
        if (by := getattr(gold, kind))
    }
    return Gold(**parts, order=tuple(names), name=gold.name)


def _merged(bodies: Mapping[str, str], name: str = "gold") -> Gold:
    """One gold of what is stored of several queries."""
    plain: dict[str, Any] = {"order": [*bodies], "name": name}
    for query, body in bodies.items():
        part = from_json(None, body, "gold")
        for kind in _BY_QUERY:
            by = part.get(kind, {}) if isinstance(part, dict) else None
            if not isinstance(by, dict):
                raise store_damage(
                    f"in gold: {kind} of {query!r:.80} must be an object"
                )
            if query in by:
                plain.setdefault(kind, {})[query] = by[query]
    return cast("Gold", from_plain(Gold, plain, "gold"))


class StoredGold:
    """The gold of one project in a store's tables."""

    def __init__(self, db: sqlite3.Connection, project: int) -> None:
        self._db = db
        self._project = project

    @property
    def version(self) -> int:
        """How often it changed."""
        row = self._db.execute(
            "select version from project where id=?", (self._project,)
        )
        return int(row.fetchone()[0])

    def check(self, *versions: int) -> None:
        """Refuse versions that there are not, or that are in the wrong order."""
        every = [0, *versions, self.version]
        if every != sorted(every):
            problem = f"there are gold versions 0 to {self.version}, the earlier first"
            raise UsageError(problem)

    def fingerprints(self) -> dict[str, str | None]:
        """The digest of each query's gold; None of those that have none."""
        query = "select name, fingerprint from query where project=?"
        return StoredRows(self._db.execute(query, (self._project,)).fetchall())

    def of(self, queries: Iterable[str], name: str = "gold") -> Gold:
        """Today's gold of some queries, in their order."""
        rows = self._db.execute(
            "select name, gold from json_each(?) cross join query on project=? and "
            "name=value where gold is not null",
            (json.dumps([*queries]), self._project),
        )
        return _merged(dict(rows.fetchall()), name)

    def at_version(self, version: int, name: str) -> Gold:
        """The gold as it was."""
        every = ((q, self._resolved(q, version)) for q in self.fingerprints())
        return _merged({query: body for query, body in every if body}, name)

    def changes(self, first: int, second: int) -> list[GoldChange]:
        """The grades that differ between two versions, query by query."""
        words: dict[str, dict[str, dict[str, None]]] = {}
        for query, item, who in self._db.execute(
            "select query, coalesce(document, text), who from label "
            "where project=:project and version>:first and version<=:second union all "
            "select query, null, null from gold "
            "where project=:project and version>:first and version<=:second",
            {"project": self._project, "first": first, "second": second},
        ):
            words.setdefault(query, {}).setdefault(item, {})[who] = None
        changes = []
        for query, said in words.items():
            old, new = (
                _grades(self._resolved(query, version), query)
                for version in (first, second)
            )
            for item in {**old, **new}:
                before, after = old.get(item), new.get(item)
                if before != after:
                    who = tuple(said.get(item, ()))
                    changes.append(GoldChange(query, item, before, after, who))
        return changes

    def labels(self, query: str | None = None) -> list[StoredLabel]:
        """Every label ever given, or those of one query, the oldest first."""
        rows = self._db.execute(
            f"select {', '.join(StoredLabel._fields)} from label where project=? "  # noqa: S608
            "and (? is null or query=?) order by id",
            (self._project, query, query),
        )
        return [StoredLabel(*row) for row in rows]

    def replace(self, gold: Gold, queries: Iterable[str]) -> list[str]:
        """Take what a gold file says of queries; those of which that is new."""
        changed = [
            query for query in queries if self._base(query) != _body(gold, query)
        ]
        if changed:
            version = self._next_version()
            self._db.executemany(
                "insert into gold values(?,?,?,?)",
                [(self._project, q, version, _body(gold, q)) for q in changed],
            )
            self._resolve(changed)
        return changed

    def add_labels(self, labels: Iterable[Mapping[str, Any]], at: str) -> list[int]:
        """Add labels; their numbers."""
        rows = [_checked(label) for label in labels]
        known = self.fingerprints()
        for query, *_ in rows:
            if query not in known:
                raise DataError(f"labels query {query!r}, which no run has")
        return self._add(rows, at)

    def undo(self, label: int, who: str, at: str) -> str:
        """Let what somebody said before count again; the query."""
        row = self._db.execute(
            "select query, document, text, who from label where id=? and project=?",
            (label, self._project),
        ).fetchone()
        if row is None or row[3] != who:
            why = f"{who} gave no label {label}"
            raise UnknownNameError("label", str(label), [], why)
        earlier = self._db.execute(
            "select grade, verdict from label where project=? and query=? and "
            "document is ? and text is ? and who=? and id<? order by id desc",
            (self._project, *row, label),
        ).fetchone()
        grade, verdict = earlier or (None, WITHDRAWN)
        self._add([(*row[:3], grade, verdict, who, "undone")], at)
        return str(row[0])

    def _add(self, rows: Sequence[tuple[Any, ...]], at: str) -> list[int]:
        version = self._next_version()
        added = (
            "insert into label(project, version, at, query, document, text, grade, "
            "verdict, who, why) values(?,?,?,?,?,?,?,?,?,?) returning id"
        )
        every = [(self._project, version, at, *row) for row in rows]
        numbers = [int(self._db.execute(added, row).fetchone()[0]) for row in every]
        self._resolve(dict.fromkeys(row[0] for row in rows))
        return numbers

    def _next_version(self) -> int:
        raised = "update project set version=version+1 where id=? returning version"
        return int(self._db.execute(raised, (self._project,)).fetchone()[0])

    def _base(self, query: str, version: int = _LATEST) -> str | None:
        """What the gold file said."""
        row = self._db.execute(
            "select body from gold where project=? and query=? and version<=? "
            "order by version desc",
            (self._project, query, version),
        ).fetchone()
        return None if row is None else str(row[0])

    def _resolved(self, query: str, version: int = _LATEST) -> str | None:
        """The file's word on a query, and where people labelled, theirs."""
        body = self._base(query, version)
        if body is None:
            return None
        last: dict[tuple[str | None, str | None], dict[str, float | None]] = {}
        for document, text, grade, who in self._db.execute(
            "select document, text, grade, who from label where project=? and query=? "
            "and version<=? order by id",
            (self._project, query, version),
        ):
            last.setdefault((document, text), {})[who] = grade
        labels = []
        for (document, text), words in last.items():
            grades = {who: grade for who, grade in words.items() if grade is not None}
            if grades:
                label = {"query": query, "document": document, "text": text}
                middle = statistics.median(grades.values())
                who = "+".join(sorted(grades))
                labels.append({**label, "grade": middle, "who": who})
        if not labels:
            return body
        return _body(apply_labels(labels, _merged({query: body})).gold, query)

    def _resolve(self, queries: Iterable[str]) -> None:
        for query in queries:
            if (body := self._resolved(query)) is not None:
                self._db.execute(
                    "update query set fingerprint=?, gold=? where project=? and name=?",
                    (
                        _merged({query: body}).fingerprint(query),
                        body,
                        self._project,
                        query,
                    ),
                )


def _grades(body: str | None, query: str) -> dict[str, float]:
    """The grade of each document, and of each text."""
    gold = _merged({} if body is None else {query: body})
    grades = dict(gold.documents.get(query, {}))
    for kind in KINDS[1:]:
        for item in getattr(gold, kind).get(query, ()):
            grades[item.text or item.id] = item.grade
    return grades


def _body(gold: Gold, query: str) -> str:
    """The gold of one query, as it is stored."""
    plain = as_plain(gold_for(gold, {query: query}))
    return json.dumps(plain, ensure_ascii=False, sort_keys=True)


def _is_number(grade: Any) -> TypeGuard[float]:
    is_real = isinstance(grade, int | float) and not isinstance(grade, bool)
    return is_real and -_LARGEST <= grade <= _LARGEST


def _checked(label: Mapping[str, Any]) -> tuple[Any, ...]:
    """A label as a row: query, document, text, grade, verdict, who, why."""
    names = ("query", "document", "text", "grade", "who")
    query, document, text, grade, who = map(label.get, names)
    if not all(one and isinstance(one, str) for one in (query, document or text)):
        raise DataError("a label needs a query, and a document or a text")
    if not isinstance(who, str) or not who.strip():
        raise DataError("a label needs who gave it", query=query)
    if grade == UNDECIDED:
        grade, verdict = None, UNDECIDED
    elif _is_number(grade):
        grade, verdict = float(grade), _GRADE
    else:
        problem = f"the grade must be a number or {UNDECIDED!r}, got {show(grade)}"
        raise DataError(problem, query=query)
    why = str(label.get("why") or "")
    # A text stands for the document only where it has no id.
    text = None if document else text
    return query, document or None, text, grade, verdict, who.strip(), why
