"""The layout of a history store: SQL in one place, and how older files catch up."""

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from karat.errors import DataError, FormatError, KaratError
from karat.reading.files import gc_paused
from karat.reading.source import placed

_APPLICATION = 0x6B617261
_WAIT = 60.0
# What comes of reading rows that are not as they were written.
_DAMAGE = (
    *(sqlite3.Error, zlib.error, ValueError, TypeError, LookupError),
    *(AttributeError, OverflowError),
)
_HINT = "if it is damaged, karat push makes another of saved results"
_Class = TypeVar("_Class", bound=type)

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
        try:
            _prepare(db, path)
        except (sqlite3.Error, ValueError):
            db.close()
            raise
    except (sqlite3.Error, UnicodeDecodeError) as error:
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
        _check_types(db, path)
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


def _check_types(db: sqlite3.Connection, path: Path) -> None:
    """Refuse cells of another type than their column, which SQLite does not."""
    tables: dict[str, list[str]] = {}
    for table, column, kind, required in db.execute(
        "select m.name, c.name, lower(c.type), c.pk or c.'notnull' "
        "from sqlite_master as m join pragma_table_info(m.name) as c "
        # These two are as large as the corpus, and what is read of them is decoded.
        "where m.type='table' and m.name not in ('text', 'document')"
    ):
        types = f"'{kind}'" if required else f"'{kind}', 'null'"
        tables.setdefault(table, []).append(f"typeof({column}) not in ({types})")
    for table, wrong in tables.items():
        odd = f"select 1 from {table} where {' or '.join(wrong)} limit 1"  # noqa: S608
        if db.execute(odd).fetchone():
            problem = f"its table {table!r} holds what karat does not write"
            raise DataError(problem, path=str(path), hint=_HINT)


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


def names_damage(owner: _Class) -> _Class:
    """Have public methods name the file at `path` where it holds what none can read."""
    for name, method in [*vars(owner).items()]:
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(owner, name, _guarded(method))
    return owner


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return method(self, *args, **options)
        except FormatError as error:
            raise placed(error, path=str(self.path)) from None
        except KaratError:
            raise
        except _DAMAGE as error:
            raise DataError(
                f"cannot be read or written: {type(error).__name__}: {error}",
                path=str(self.path),
                hint=_HINT,
            ) from error

    return call
