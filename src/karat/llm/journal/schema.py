"""Opening the SQLite file of a journal: its table, its version, its permissions."""

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from karat.errors import FormatError, UsageError

__all__ = [
    "CUT_SINCE",
    "PARAMETER_SETS_SINCE",
    "connect",
    "make_private",
    "refuse_foreign",
]

_APPLICATION_ID = 0x6B617261
_VERSION = 3
CUT_SINCE = 2
"""The version that added the column `cut`."""
PARAMETER_SETS_SINCE = 3
"""The version that added the table `parameter_sets`."""
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
_PARAMETER_SETS = """
CREATE TABLE IF NOT EXISTS parameter_sets (
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    parameters TEXT NOT NULL,
    PRIMARY KEY (endpoint, model, parameters)
)"""
# The header of every SQLite file, and where it holds the application id.
_MAGIC = b"SQLite format 3\0"
_ID_BYTES = slice(68, 72)


def refuse_foreign(path: Path) -> None:
    """Refuse a file that is not a journal, before anything about it is changed."""
    if not path.exists():
        return
    if not stat.S_ISREG(path.stat().st_mode):
        raise UsageError(f"cannot keep a journal at {path}: it is not a regular file")
    with path.open("rb") as stream:
        head = stream.read(_ID_BYTES.stop)
    if not head or _wal(path).exists():
        # Empty, or with its latest pages in the WAL: SQLite will check it.
        return
    application = int.from_bytes(head[_ID_BYTES], "big")
    if not head.startswith(_MAGIC) or application != _APPLICATION_ID:
        raise FormatError(
            "is a file of something else, not a journal",
            path=path,
            hint="name another journal",
        )


def make_private(path: Path) -> None:
    """Make a folder and a file that only the user may read, and that git ignores."""
    folder = path.parent
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")
    elif folder.name == ".karat" and not folder.is_symlink():
        with suppress(PermissionError):
            folder.chmod(0o700)
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n", "utf-8")
    path.touch(0o600)
    # The file of another user stays as it is.
    with suppress(PermissionError):
        path.chmod(0o600)


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to the journal at a path, or in memory if that is None."""
    if path is None:
        target = ":memory:"
    elif not read_only:
        target = str(path)
    else:
        # Without a WAL, SQLite would need to make files in a read-only folder.
        mode = "mode=ro" if _wal(path).exists() else "immutable=1"
        target = f"file:{quote(str(path))}?{mode}"
    # One thread reads and one writes; SQLite's own lock separates them.
    connection = sqlite3.connect(
        target, isolation_level=None, check_same_thread=False, uri=read_only
    )
    try:
        if read_only:
            _inspect(connection, path)
        else:
            _create(connection, path)
    except (sqlite3.Error, FormatError):
        connection.close()
        raise
    return connection


def _wal(path: Path) -> Path:
    """The file in which SQLite keeps the latest pages."""
    return path.with_name(f"{path.name}-wal")


def _inspect(connection: sqlite3.Connection, path: Path | None) -> tuple[bool, int]:
    """Whether there is a table, and its version; other databases are refused."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and application != _APPLICATION_ID:
        raise FormatError("a database of something else, not a journal", path=path)
    if version > _VERSION:
        raise FormatError(f"written by a newer karat (layout {version})", path=path)
    return tables > 0, version


def _create(connection: sqlite3.Connection, path: Path | None) -> None:
    """Create the table in a new file; upgrade one of an older version."""
    exists, version = _inspect(connection, path)
    if not exists:
        # First, so that a process killed here leaves a file that is recognised.
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    if not exists:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute(_TABLE)
        connection.execute(_PARAMETER_SETS)
        connection.execute("COMMIT")
    elif version < _VERSION:
        _upgrade(connection)


def _upgrade(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    # Read again: another process may have been faster.
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < CUT_SINCE:
        add = "ALTER TABLE replies ADD COLUMN cut INTEGER NOT NULL DEFAULT 0"
        connection.execute(add)
    if version < PARAMETER_SETS_SINCE:
        connection.execute(_PARAMETER_SETS)
        columns = "SELECT DISTINCT endpoint, model, parameters FROM replies"
        connection.execute(f"INSERT OR IGNORE INTO parameter_sets {columns}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")
