"""The journal: every reply that was paid for, in one SQLite file.

A reply is acknowledged only after its transaction is on the disk, so that neither a
crash nor a power cut loses it.
"""

import sqlite3
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import FormatError, KaratError, UsageError
from karat.writing import write_file

_APPLICATION_ID = 0x6B617261
_VERSION = 3
# The version that added the column `cut`; the next added the table `parameter_sets`.
_CUT_SINCE = 2
_PRAGMAS = ("busy_timeout=30000", "journal_mode=wal", "synchronous=full")
_REPLIES = """CREATE TABLE replies (
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
_ADD_CUT = "ALTER TABLE replies ADD COLUMN cut INTEGER NOT NULL DEFAULT 0"
_PARAMETER_SETS = """CREATE TABLE IF NOT EXISTS parameter_sets (
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    parameters TEXT NOT NULL,
    PRIMARY KEY (endpoint, model, parameters)
)"""
_FILL_PARAMETER_SETS = """INSERT OR IGNORE INTO parameter_sets
SELECT DISTINCT endpoint, model, parameters FROM replies"""
_READ = """SELECT status, text, attempts, reply_id, reply_model, prompt_tokens,
completion_tokens, cut FROM replies WHERE key = ?"""
_WRITE = """INSERT OR REPLACE INTO replies
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CONTENTS = """SELECT endpoint, model, count(*), sum(status != 'ok'),
total(prompt_tokens), total(completion_tokens) FROM replies
GROUP BY endpoint, model ORDER BY endpoint, model"""
_WRITE_PARAMETERS = "INSERT OR IGNORE INTO parameter_sets VALUES (?, ?, ?)"
_PARAMETERS = "SELECT parameters FROM parameter_sets WHERE endpoint = ? AND model = ?"
# The latest replies tell enough, and a large journal is not read whole.
_SIZES = """SELECT name, avg(completion_tokens)
FROM (SELECT * FROM replies ORDER BY rowid DESC LIMIT 1000)
WHERE endpoint = ? AND model = ? AND status = 'ok' GROUP BY name"""
# The header of every SQLite file, and where it holds the application id.
_MAGIC = b"SQLite format 3\0"
_ID_BYTES = slice(68, 72)


@dataclass(frozen=True, slots=True)
class Entry:
    """The reply to a prompt, or the reason why there is none.

    Attributes:
        status: `ok`; `invalid`, a reply no judge could use; `refused`; `transient`.
        text: the reply, or the reason.
        attempts: calls that were made for it.
        usage: tokens paid for it.
        id: the server's own id of the reply.
        model: the model that answered, as the server names it.
        cut: whether the reply ended at the longest length allowed.
        cause: the exception that the client raised, if any; it is not stored.
    """

    status: str
    text: str
    attempts: int = 1
    usage: Usage = field(default_factory=Usage)
    id: str | None = None
    model: str | None = None
    cut: bool = False
    cause: BaseException | None = field(default=None, repr=False, compare=False)

    def reply(self, *, cached: bool = True) -> Reply:
        """The reply for a judge."""
        return Reply(self.text, self.usage, self.id, self.model, cached, self.cut)


class Contents(NamedTuple):
    """What a journal holds of one model at one endpoint."""

    endpoint: str
    model: str
    entries: int
    errors: int
    prompt_tokens: float
    completion_tokens: float

    @property
    def counts(self) -> tuple[int, int, int]:
        """Entries, errors among them, and tokens paid for."""
        tokens = self.prompt_tokens + self.completion_tokens
        return self.entries, self.errors, int(tokens)


class Journal:
    """Replies by the key of their prompt, in a file that survives every crash.

    One thread may read while another writes. Without a path nothing is kept. A journal
    opened read-only may be in a place where nothing can be written, and is not changed.

    Example:
        >>> with Journal(None) as journal:
        ...     journal.contents()
        []
    """

    def __init__(
        self, path: Path | None, *, no_text: bool = False, read_only: bool = False
    ) -> None:
        self.path = path
        self._no_text = no_text
        if path is None or (read_only and not path.exists()):
            self._writer = self._reader = _connect(None)
            return
        try:
            _refuse_foreign(path)
            if not read_only:
                make_private(path)
            self._writer = self._reader = _connect(path, read_only=read_only)
            if not read_only:
                self._reader = _connect(path)
        except (OSError, ValueError, sqlite3.OperationalError) as error:
            if isinstance(error, KaratError):
                raise
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot keep a journal at {path}: {reason}") from None
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._reader.close()

    def get(self, key: bytes) -> Entry | None:
        """The entry of the prompt with this key, if it was ever asked."""
        rows = self._select(_READ, key)
        if not rows:
            return None
        status, text, attempts, id, model, sent, received, cut = rows[0]
        usage = Usage(sent, received)
        return Entry(status, text, attempts, usage, id, model, bool(cut))

    def write(
        self, asked: tuple[str, str, str], batch: Iterable[tuple[bytes, Prompt, Entry]]
    ) -> None:
        """Store these entries: all of them are on the disk when this returns.

        Args:
            asked: endpoint, model and its parameters as JSON.
            batch: key, prompt and entry of each.
        """
        now = time.time()
        rows = [self._row(asked, *entry, now) for entry in batch]
        self._commit([(_WRITE_PARAMETERS, asked), *((_WRITE, row) for row in rows)])

    def mark_invalid(self, keys: Iterable[bytes]) -> None:
        """Mark replies that no judge could use, for `retry_errors` to ask again."""
        update = "UPDATE replies SET status = 'invalid' WHERE key = ?"
        self._commit([(update, (key,)) for key in keys])

    def contents(self) -> list[Contents]:
        """What is kept, by endpoint and model."""
        return [Contents(*row) for row in self._select(_CONTENTS)]

    def parameter_sets(self, endpoint: str, model: str) -> list[str]:
        """The parameters, as JSON, under which a model was asked."""
        return [text for (text,) in self._select(_PARAMETERS, endpoint, model)]

    def reply_sizes(self, endpoint: str, model: str) -> dict[str, float]:
        """The tokens of a model's latest replies, averaged by the prompt's name."""
        return dict(self._select(_SIZES, endpoint, model))

    def clear(self, model: str | None = None, *, errors: bool = False) -> int:
        """Delete all entries, or only one model's or only errors; returns how many."""
        delete = "DELETE FROM replies WHERE (?1 IS NULL OR model = ?1)"
        if errors:
            delete += " AND status != 'ok'"
        try:
            count = self._writer.execute(delete, [model]).rowcount
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(truncate)")
        except sqlite3.OperationalError as error:
            raise UsageError(f"cannot clear {self.path} now: {error}") from None
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None
        return count

    def _select(self, statement: str, *values: str | bytes) -> list[Any]:
        try:
            return self._reader.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _commit(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            for statement, values in statements:
                self._writer.execute(statement, values)
            self._writer.execute("COMMIT")
        finally:
            if self._writer.in_transaction:
                # A full disk may have rolled back by itself, or may refuse even this.
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")

    def _row(
        self,
        asked: tuple[str, str, str],
        key: bytes,
        prompt: Prompt,
        entry: Entry,
        now: float,
    ) -> tuple[Any, ...]:
        text = None if self._no_text else storable(f"{prompt.system}\n\n{prompt.user}")
        return (
            *(key, *asked, prompt.name, prompt.version, text),
            *(entry.status, storable(entry.text), entry.attempts),
            *(entry.id and storable(entry.id), entry.model and storable(entry.model)),
            *(entry.usage.prompt_tokens, entry.usage.completion_tokens, now),
            entry.cut,
        )

    def _damaged(self, error: sqlite3.DatabaseError) -> FormatError:
        return FormatError(
            f"cannot be read as a journal ({error})",
            path=self.path,
            hint="move it away, or name another journal",
        )


def storable(text: str) -> str:
    """The text with lone surrogates escaped, since SQLite cannot store them."""
    return text.encode("utf-8", "backslashreplace").decode()


def make_private(path: Path) -> None:
    """Make a folder and a file that only the user may read, and that git ignores."""
    make_private_folder(path.parent)
    path.touch(0o600)
    with suppress(PermissionError):
        path.chmod(0o600)


def make_private_folder(folder: Path) -> None:
    """Make a folder that only the user may read, and that git ignores."""
    made = not folder.is_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if made or (folder.name == ".karat" and not folder.is_symlink()):
        # The folder and the file of another user stay as they are.
        with suppress(PermissionError):
            folder.chmod(0o700)
        if not (folder / ".gitignore").exists():
            write_file(folder / ".gitignore", "*\n")


def _refuse_foreign(path: Path) -> None:
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


def _wal(path: Path) -> Path:
    """The file in which SQLite keeps the latest pages."""
    return path.with_name(f"{path.name}-wal")


def _connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to the journal at a path, or in memory if that is None."""
    target = ":memory:" if path is None else str(path)
    if path is not None and read_only:
        # Without a WAL, SQLite would need to make files in a read-only folder.
        mode = "mode=ro" if _wal(path).exists() else "immutable=1"
        target = f"file:{quote(target)}?{mode}"
    # One thread reads and one writes; SQLite's own lock separates them.
    connection = sqlite3.connect(
        target, isolation_level=None, check_same_thread=False, uri=read_only
    )
    try:
        return _prepare(connection, path, read_only=read_only)
    except (sqlite3.Error, FormatError):
        connection.close()
        raise


def _prepare(
    connection: sqlite3.Connection, path: Path | None, *, read_only: bool
) -> sqlite3.Connection:
    """The connection with all tables; other databases are refused."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    version = _version(connection)
    if tables and application != _APPLICATION_ID:
        raise FormatError("a database of something else, not a journal", path=path)
    if version > _VERSION:
        raise FormatError(f"written by a newer karat (layout {version})", path=path)
    if read_only and version < _VERSION:
        # A file that is only read stays as it is: a copy in memory is upgraded.
        old, connection = connection, _connect(None)
        old.backup(connection)
        old.close()
    elif not read_only:
        if not tables:
            # First, so that a process killed here leaves a file that is recognised.
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    if version < _VERSION:
        _upgrade(connection)
    return connection


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _upgrade(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, or those that an older version lacks."""
    connection.execute("BEGIN IMMEDIATE")
    # Read now: another process may have been faster.
    version = _version(connection)
    if version == 0:
        connection.execute(_REPLIES)
    elif version < _CUT_SINCE:
        connection.execute(_ADD_CUT)
    if version < _VERSION:
        connection.execute(_PARAMETER_SETS)
        connection.execute(_FILL_PARAMETER_SETS)
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")
