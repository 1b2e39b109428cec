"""The layout of a history store: SQL in one place, and how older files catch up."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karat.errors import DataError
from karat.reading.files import gc_paused

_APPLICATION = 0x6B617261
_WAIT = 60.0

MIGRATIONS: tuple[str, ...] = (
    """
    create table project(
        id integer primary key, name text not null unique,
        version integer not null default 0);
    create table query_set(
        id integer primary key, project integer not null, digest text not null,
        ids text not null, unique(project, digest));
    create table query(
        project integer, name text, question text, tags text not null,
        fingerprint text, gold text, primary key(project, name)) without rowid;
    create table text(hash blob primary key, body blob not null) without rowid;
    create table document(
        id integer primary key, project integer not null, name text not null,
        text blob not null, place text not null, unique(project, name, text, place));
    create table gold(
        project integer, query text, version integer, body text not null,
        primary key(project, query, version)) without rowid;
    create table label(
        id integer primary key, project integer not null, version integer not null,
        at text not null, query text not null, document text, text text, grade real,
        verdict text not null, who text not null, why text not null);
    create index label_of_query on label(project, query);
    create table run(
        id integer primary key, project integer not null, query_set integer not null,
        digest text not null, name text not null, commit_id text not null,
        branch text not null, at text not null, depth integer not null,
        documents blob not null, scores blob not null, ranks blob not null,
        cutoffs blob not null, scoring text not null, head text not null,
        unique(project, digest));
    create index run_of_set on run(query_set);
    create table score(
        run integer, metric text, mean real, value blob not null,
        version integer not null, frozen text not null, primary key(run, metric));
    create table token(
        hash text primary key, project integer, name text not null,
        role text not null, at text not null) without rowid;
    """,
)
"""What brings a file from the layout of each number to the next."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a store of today's layout, which is made where there is none.

    Raises:
        DataError: the file is no store, or of a newer karat.
    """
    try:
        db = sqlite3.connect(
            path, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        _prepare(db, path)
    except sqlite3.Error as error:
        problem = f"cannot be opened as a history store: {error}"
        raise DataError(problem, path=str(path)) from None
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
    (application,) = db.execute("pragma application_id").fetchone()
    (layout,) = db.execute("pragma user_version").fetchone()
    if tables and application != _APPLICATION:
        raise DataError("is a database of another program", path=str(path))
    if layout > len(MIGRATIONS):
        raise DataError(
            f"has layout {layout}, and this karat reads up to {len(MIGRATIONS)}",
            path=str(path),
            hint="a newer karat wrote it: update this one",
        )
    db.execute("pragma journal_mode=wal")
    if layout == len(MIGRATIONS):
        return
    if tables:
        copy = path.with_name(f"{path.name}.layout-{layout}")
        copy.unlink(missing_ok=True)
        db.execute("vacuum into ?", (str(copy),))
    with transaction(db):
        # Another process may have been quicker.
        (layout,) = db.execute("pragma user_version").fetchone()
        for script in MIGRATIONS[layout:]:
            for statement in script.split(";"):
                db.execute(statement)
        db.execute(f"pragma application_id={_APPLICATION}")
        db.execute(f"pragma user_version={len(MIGRATIONS)}")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; other writers wait."""
    try:
        with gc_paused(), db:
            db.execute("begin immediate")
            yield
    except UnicodeEncodeError as error:
        problem = f"{error.object[:40]!r} holds half a character, which no store takes"
        raise DataError(problem) from None
