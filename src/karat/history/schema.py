"""The layout of a history store: SQL in one place, and how older files catch up."""

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from karat.errors import DataError, FormatError
from karat.reading.files import decode_json, gc_paused
from karat.reading.source import placed
from karat.results.plain_values import from_plain

_APPLICATION = 0x6B617261
_WAIT = 60.0
_LONGEST = 64 * 1024 * 1024
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
_COLUMNS = (
    "select m.name, c.name, lower(c.type), c.pk or c.'notnull' from sqlite_master as m "
    "join pragma_table_info(m.name) as c where m.type='table'"
)
_MISFITS = {
    "run": "select 1 from run left join (select id, json_array_length(ids) as size "
    "from query_set) as own on own.id=query_set where depth<1 or "
    "length(documents) is not 4*depth*size or length(scores) is not 8*depth*size or "
    "length(ranks) not in (0, 4*depth*size) or length(cutoffs) not in (0, 4*size)",
    "score": "select 1 from score left join run on run.id=run "
    "where length(value) is not 2*length(documents)/depth",
    "document": "select 1 where (select min(id) from document)<0 or "
    "(select max(id) from document)>=2147483648",
}
"""Arrays that are not as long as their run has queries; numbers that fit in none."""


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
        _check(db, path)
        return
    if tables:
        copy = path.with_name(f"{path.name}.layout-{layout}")
        copy.unlink(missing_ok=True)
        db.execute("vacuum into ?", (str(copy),))
    with transaction(db):
        # Another process may have been quicker.
        _migrate(db)


def _migrate(db: sqlite3.Connection) -> None:
    (layout,) = db.execute("pragma user_version").fetchone()
    for script in MIGRATIONS[layout:]:
        for statement in script.split(";"):
            db.execute(statement)
    db.execute(f"pragma application_id={_APPLICATION}")
    db.execute(f"pragma user_version={len(MIGRATIONS)}")


def _check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse tables, types of cells and sizes of arrays that karat does not write.

    SQLite looks at the heads of rows for that. Its own check reads the whole file.
    """
    with closing(sqlite3.connect(":memory:")) as ours:
        _migrate(ours)
        columns = ours.execute(_COLUMNS).fetchall()
    wrong: dict[str, list[str]] = {}
    if not {*columns} <= {*db.execute(_COLUMNS)}:
        wrong["sqlite_master"] = ["true"]
    for table, column, kind, required in columns:
        # These two are as large as the corpus: what is read of them is cast.
        if table not in ("text", "document"):
            null = "" if required else f" and {column} is not null"
            wrong.setdefault(table, []).append(f"typeof({column})<>'{kind}'{null}")
    odd = [
        (table, f"select 1 from {table} where {' or '.join(any_of)} limit 1")  # noqa: S608
        for table, any_of in wrong.items()
    ]
    for table, rows in (*odd, *_MISFITS.items()):
        if db.execute(rows).fetchone():
            problem = f"its table {table!r} holds what karat does not write"
            raise DataError(problem, path=str(path), hint=_HINT)


def store_damage(problem: str) -> FormatError:
    """That something is stored which karat does not write."""
    return FormatError(problem, hint=_HINT)


class StoredRows(dict[Any, Any]):
    """Rows of a table by what names them; one that is not there is damage."""

    def __missing__(self, key: object) -> NoReturn:
        raise store_damage(f"lacks what belongs to {key!r:.80}")


def from_json(kind: Any, text: str, place: str) -> Any:
    """A value of a type, or of any if it is None, as it is stored."""
    try:
        value = decode_json(text)
        return value if kind is None else from_plain(kind, value, place)
    except FormatError as error:
        raise store_damage(f"in {place}: {error.problem}") from None


def packed(text: bytes) -> bytes:
    """A text, as it is stored."""
    if len(text) > _LONGEST:
        raise DataError(f"a stored text may have {_LONGEST:,} bytes, got {len(text):,}")
    return zlib.compress(text)


def unpacked(body: bytes) -> str:
    """A text, as it was."""
    unpack = zlib.decompressobj()
    text = unpack.decompress(body, _LONGEST + 1)
    if len(text) > _LONGEST or not unpack.eof:
        raise store_damage(
            f"has a text that is broken, or of more than {_LONGEST:,} bytes"
        )
    return text.decode("utf-8", "surrogatepass")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; other writers wait."""
    with gc_paused(), db:
        db.execute("begin immediate")
        yield


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
        except UnicodeEncodeError as error:
            text = f"{error.object[:40]!r}"
            raise DataError(
                f"{text} holds half a character, which no store takes"
            ) from None
        except (sqlite3.Error, zlib.error, UnicodeDecodeError) as error:
            raise DataError(
                f"cannot be read or written: {type(error).__name__}: {error}",
                path=str(self.path),
                hint=_HINT,
            ) from error

    return call
