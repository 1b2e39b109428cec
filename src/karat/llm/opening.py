"""Opening a journal: private, of this layout, and never somebody else's file."""

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from karat.errors import FormatError, UsageError

__all__ = ["connect", "make_private", "refuse_foreign"]

_OWNER = 0x6B617261
_VERSION = 2
_PRAGMAS = ("busy_timeout=30000", "journal_mode=wal", "synchronous=full")
_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    parameters TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    prompt TEXT,
    status TEXT NOT NULL,
    text TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    reply_id TEXT,
    reply_model TEXT,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    written REAL NOT NULL,
    cut INTEGER NOT NULL DEFAULT 0
)"""
# Where every SQLite file says what it is, and whose.
_MAGIC = b"SQLite format 3\0"
_OWNER_AT = slice(68, 72)


def refuse_foreign(path: Path) -> None:
    """Refuse what is no journal before anything about it is changed."""
    if not path.exists():
        return
    if not stat.S_ISREG(path.stat().st_mode):
        raise UsageError(f"cannot keep a journal at {path}: it is no regular file")
    with path.open("rb") as stream:
        head = stream.read(_OWNER_AT.stop)
    if not head or _beside(path).exists():
        # Empty, or with its latest pages beside it: SQLite will say.
        return
    owner = int.from_bytes(head[_OWNER_AT], "big")
    if not head.startswith(_MAGIC) or owner != _OWNER:
        raise FormatError(
            "is a file of something else, not a journal",
            path=path,
            hint="name another journal",
        )


def make_private(path: Path) -> None:
    """A folder and a file that nobody else may read, and that git does not see."""
    folder = path.parent
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")
    elif folder.name == ".karat":
        with suppress(PermissionError):
            folder.chmod(0o700)
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n", "utf-8")
    path.touch(0o600)
    # The file of another user stays as it is.
    with suppress(PermissionError):
        path.chmod(0o600)


def connect(path: Path | None, *, only_read: bool = False) -> sqlite3.Connection:
    """A connection to the journal at a path; None is one in memory."""
    if path is None:
        place = ":memory:"
    elif not only_read:
        place = str(path)
    else:
        # Where nobody writes, SQLite could not even make the files it shares.
        how = "mode=ro" if _beside(path).exists() else "immutable=1"
        place = f"file:{quote(str(path))}?{how}"
    # One thread reads and one writes; SQLite's own lock keeps them apart.
    connection = sqlite3.connect(
        place, isolation_level=None, check_same_thread=False, uri=only_read
    )
    try:
        if only_read:
            _look_at(connection, path)
        else:
            _lay_out(connection, path)
    except (sqlite3.Error, FormatError):
        connection.close()
        raise
    return connection


def _beside(path: Path) -> Path:
    """Where SQLite keeps the latest pages."""
    return path.with_name(f"{path.name}-wal")


def _look_at(connection: sqlite3.Connection, path: Path | None) -> tuple[bool, int]:
    """Whether there is a table, and of which layout; somebody else's is refused."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and owner != _OWNER:
        raise FormatError("a database of something else, not a journal", path=path)
    if version > _VERSION:
        raise FormatError(f"written by a newer karat (layout {version})", path=path)
    return tables > 0, version


def _lay_out(connection: sqlite3.Connection, path: Path | None) -> None:
    """Make the table in a new file; give one of the first layout what it lacks."""
    there, version = _look_at(connection, path)
    if not there:
        # Before anything else, so that a killed process leaves a file that says whose.
        connection.execute(f"PRAGMA application_id = {_OWNER}")
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    if not there:
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute(_TABLE)
    elif version < _VERSION:
        _bring_up(connection)


def _bring_up(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    # Another process may have been faster.
    if version < _VERSION:
        add = "ALTER TABLE replies ADD COLUMN cut INTEGER NOT NULL DEFAULT 0"
        connection.execute(add)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")
