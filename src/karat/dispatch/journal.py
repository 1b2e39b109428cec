"""The journal: every reply ever paid for, kept so that none is paid for twice.

It is one SQLite file. A reply is acknowledged only after the transaction that holds it
is on the disk, so neither a crash nor a power cut takes it back.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from karat.data.judgements import Prompt, Reply, Schema, Usage
from karat.dispatch.protocol import Client
from karat.errors import FormatError, UsageError

__all__ = ["Contents", "Entry", "Journal", "Keys", "storable"]

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
_READ = """SELECT status, text, attempts, reply_id, reply_model, prompt_tokens,
completion_tokens, cut FROM replies WHERE key = ?"""
_WRITE = """INSERT OR REPLACE INTO replies
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CONTENTS = """SELECT endpoint, model, count(*), sum(status != 'ok'),
sum(prompt_tokens), sum(completion_tokens) FROM replies
GROUP BY endpoint, model ORDER BY endpoint, model"""


class Keys:
    """Names each prompt by all that decides its answer, for one client.

    The name is a SHA-256 over endpoint, model, parameters, the prompt's name and
    version, its texts and its schema: change any of them and the name is another.
    """

    def __init__(self, client: Client) -> None:
        self.endpoint = client.endpoint
        self.model = client.model
        self.parameters = json.dumps(dict(client.parameters), sort_keys=True)
        start = json.dumps([self.endpoint, self.model, self.parameters])
        self._start = hashlib.sha256(start.encode())
        self._kinds: dict[tuple[str, str, str], hashlib._Hash] = {}

    def of(self, prompt: Prompt) -> bytes:
        """The name of a prompt to this client."""
        # Prompts of one kind begin alike, and that much is digested once.
        kind = (prompt.name, prompt.version, prompt.system)
        begun = self._kinds.get(kind)
        if begun is None:
            begun = self._kinds[kind] = self._start.copy()
            begun.update(json.dumps(kind)[:-1].encode())
        name = begun.copy()
        rest = f", {json.dumps(prompt.user)}, {_written(prompt.schema)}]"
        name.update(rest.encode())
        return name.digest()


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of a prompt: a reply, or the reason why there is none.

    Attributes:
        status: `ok`; `invalid`, a reply no judge could use; `refused`; `transient`.
        text: the reply, or the reason.
        attempts: calls that were made for it.
        usage: tokens paid for it.
        id: the server's own id of the reply.
        model: the model that answered, as the server names it.
        cut: whether the reply ended at the longest length allowed.
        cause: what the client itself raised, if it says so; this is not kept.
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
        """The reply, as it is given to a judge."""
        return Reply(self.text, self.usage, self.id, self.model, cached, self.cut)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a journal holds of one model at one endpoint."""

    endpoint: str
    model: str
    entries: int
    errors: int
    prompt_tokens: int
    completion_tokens: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """Entries, errors among them, and tokens paid for."""
        return self.entries, self.errors, self.prompt_tokens + self.completion_tokens


class Journal:
    """Replies by the name of their prompt, in a file that outlives every crash.

    Reading and writing may happen in two threads. Without a path nothing is kept.

    Example:
        >>> with Journal(None) as journal:
        ...     journal.contents()
        []
    """

    def __init__(self, path: Path | None, *, no_text: bool = False) -> None:
        self.path = path
        self._no_text = no_text
        if path is None:
            self._writer = self._reader = self._open(":memory:")
            return
        try:
            _make_private(path)
            self._writer = self._open(str(path))
            self._reader = self._open(str(path))
        except (OSError, sqlite3.OperationalError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot keep a journal at {path}: {reason}") from None
        except sqlite3.DatabaseError as error:
            raise FormatError(
                f"not a journal of karat ({error})",
                path=path,
                hint="move it away, or name another journal",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._reader.close()

    def get(self, key: bytes) -> Entry | None:
        """What became of the prompt of this name, if it was ever asked."""
        row = self._reader.execute(_READ, (key,)).fetchone()
        if row is None:
            return None
        status, text, attempts, id, model, asked, answered, cut = row
        usage = Usage(asked, answered)
        return Entry(status, text, attempts, usage, id, model, bool(cut))

    def write(self, keys: Keys, batch: Iterable[tuple[bytes, Prompt, Entry]]) -> None:
        """Keep these entries: all of them are on the disk when this returns."""
        now = time.time()
        rows = [
            self._row(keys, key, prompt, entry, now) for key, prompt, entry in batch
        ]
        self._commit([(_WRITE, row) for row in rows])

    def condemn(self, keys: Iterable[bytes]) -> None:
        """Mark replies that no judge could use, for `retry_errors` to ask again."""
        update = "UPDATE replies SET status = 'invalid' WHERE key = ?"
        self._commit([(update, (key,)) for key in keys])

    def contents(self) -> list[Contents]:
        """What is kept, by endpoint and model."""
        return [Contents(*row) for row in self._reader.execute(_CONTENTS)]

    def clear(self, model: str | None = None, *, errors: bool = False) -> int:
        """Forget everything, or only one model's entries or errors; how many."""
        where, values = "1", list[Any]()
        if model is not None:
            where, values = "model = ?", [model]
        if errors:
            where += " AND status != 'ok'"
        delete = f"DELETE FROM replies WHERE {where}"  # noqa: S608 (no input in it)
        count = self._writer.execute(delete, values).rowcount
        self._writer.execute("VACUUM")
        self._writer.execute("PRAGMA wal_checkpoint(truncate)")
        return count

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
        self, keys: Keys, key: bytes, prompt: Prompt, entry: Entry, now: float
    ) -> tuple[Any, ...]:
        text = None if self._no_text else storable(f"{prompt.system}\n\n{prompt.user}")
        return (
            *(key, keys.endpoint, keys.model, keys.parameters),
            *(prompt.name, prompt.version, text),
            *(entry.status, storable(entry.text), entry.attempts),
            *(entry.id, entry.model),
            *(entry.usage.prompt_tokens, entry.usage.completion_tokens, now),
            entry.cut,
        )

    def _open(self, path: str) -> sqlite3.Connection:
        # One thread reads and one writes; SQLite's own lock keeps them apart.
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            _lay_out(connection, path)
        except (sqlite3.Error, FormatError):
            connection.close()
            raise
        return connection


def _lay_out(connection: sqlite3.Connection, path: str) -> None:
    """Make the table in a new file; refuse a file that is somebody else's."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and owner != _OWNER:
        raise FormatError("a database of something else, not a journal", path=path)
    if version > _VERSION:
        raise FormatError(f"written by a newer karat (layout {version})", path=path)
    if not tables:
        connection.execute(f"PRAGMA application_id = {_OWNER}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute(_TABLE)
    elif version < _VERSION:
        _bring_up(connection)


def _bring_up(connection: sqlite3.Connection) -> None:
    """Give a journal of the first layout the column that it lacks."""
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    # Another process may have been faster.
    if version < _VERSION:
        add = "ALTER TABLE replies ADD COLUMN cut INTEGER NOT NULL DEFAULT 0"
        connection.execute(add)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")


def _written(schema: Mapping[str, Any] | None) -> str:
    if isinstance(schema, Schema):
        return schema.text
    return json.dumps(schema, default=dict)


def storable(text: str) -> str:
    """SQLite keeps no lone surrogates; they become what JSON would write."""
    return text.encode("utf-8", "backslashreplace").decode()


def _make_private(path: Path) -> None:
    """A folder and a file that nobody else may read, and that git does not see."""
    folder = path.parent
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")
    elif folder.name == ".karat":
        folder.chmod(0o700)
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n", "utf-8")
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
