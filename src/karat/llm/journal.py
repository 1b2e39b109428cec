"""The journal: every reply that was paid for, in one SQLite file, and who may ask.

A reply is acknowledged only after its transaction is on the disk, so that neither a
crash nor a power cut loses it.
"""

import asyncio
import hashlib
import json
import os
import sqlite3
import struct
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    suppress,
)
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import (
    FormatError,
    IncompleteError,
    KaratError,
    UsageError,
)
from karat.llm.limits import REPLY_LIMITS, Client, Settings, schema_text
from karat.writing import write_file

if sys.platform == "linux":
    import fcntl

_APPLICATION_ID = 0x6B617261
_VERSION = 4
_PRAGMAS = ("busy_timeout=30000", "journal_mode=wal", "synchronous=full")
_TABLE = """CREATE TABLE IF NOT EXISTS replies (
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
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    reply_id TEXT,
    reply_model TEXT,
    cut INTEGER NOT NULL,
    written REAL NOT NULL
)"""
_READ = """SELECT status, text, attempts, prompt_tokens, completion_tokens, reply_id,
reply_model, cut, parameters FROM replies WHERE key = ?"""
_WRITE = """INSERT OR REPLACE INTO replies
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CONTENTS = """SELECT endpoint, model, count(*), sum(status != 'ok'),
total(prompt_tokens), total(completion_tokens) FROM replies
GROUP BY endpoint, model ORDER BY endpoint, model"""
# The latest replies tell enough, and a large journal is not read whole.
_SIZES = """SELECT name, avg(completion_tokens)
FROM (SELECT * FROM replies ORDER BY rowid DESC LIMIT 1000)
WHERE endpoint = ? AND model = ? AND status = 'ok' GROUP BY name"""
_NO_JOURNAL = "cannot keep a journal at"
# Bytes of a key that make an offset which a file may have.
_OFFSET_BYTES = 7


@dataclass(frozen=True, slots=True)
class Entry:
    """What came of a prompt, after so many calls.

    The status is `ok`; `invalid`, for a reply that no judge could use; `refused` or
    `transient`, with the reason in place of the reply's text. The longest length that
    the reply could have is its limit; the cause is not stored.
    """

    status: str
    reply: Reply
    attempts: int = 1
    limit: float = inf
    cause: BaseException | None = field(default=None, repr=False, compare=False)


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


class Journal(AbstractContextManager["Journal"]):
    """Replies by the key of their prompt, in a file that survives every crash.

    One thread may read while another writes. Without a path nothing is kept. A journal
    opened read-only may be in a place where nothing can be written, and is not changed.
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
            if path.exists() and not path.is_file():
                raise UsageError(f"{_NO_JOURNAL} {path}: it is not a regular file")
            if not read_only:
                make_private_folder(path.parent)
            if not path.exists():
                path.touch(0o600)
            self._writer = self._reader = _connect(path, read_only=read_only)
            if not read_only:
                self._reader = _connect(path)
        except (OSError, ValueError, sqlite3.OperationalError) as error:
            if isinstance(error, KaratError):
                raise
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{_NO_JOURNAL} {path}: {reason}") from None
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._reader.close()

    def get(self, key: bytes) -> Entry | None:
        """The entry of the prompt with this key, if it was ever asked."""
        rows = self._select(_READ, key)
        if not rows:
            return None
        status, text, attempts, sent, received, id, model, cut, parameters = rows[0]
        usage = Usage(sent, received)
        reply = Reply(text, usage, id, model, cached=True, cut=bool(cut))
        return Entry(status, reply, attempts, reply_limit(json.loads(parameters)))

    def write(
        self, source: tuple[str, str, str], batch: Iterable[tuple[bytes, Prompt, Entry]]
    ) -> None:
        """Store these entries: all of them are on the disk when this returns."""
        self._commit([(_WRITE, self._row(source, *entry)) for entry in batch])

    def mark_invalid(self, keys: Iterable[bytes]) -> None:
        """Mark replies that no judge could use, for `retry_errors` to ask again."""
        update = "UPDATE replies SET status = 'invalid' WHERE key = ?"
        self._commit([(update, (key,)) for key in keys])

    def contents(self) -> list[Contents]:
        """What is kept, by endpoint and model."""
        return [Contents(*row) for row in self._select(_CONTENTS)]

    def reply_sizes(self, endpoint: str, model: str) -> dict[str, float]:
        """The tokens of a model's latest replies, averaged by the prompt's name."""
        return dict(self._select(_SIZES, endpoint, model))

    def clear(self, model: str | None = None, *, errors: bool = False) -> int:
        """Delete all entries, or only one model's or only errors; returns how many."""
        delete = "DELETE FROM replies WHERE model = coalesce(?, model)"
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
        self, source: tuple[str, str, str], key: bytes, prompt: Prompt, entry: Entry
    ) -> tuple[Any, ...]:
        reply, usage = entry.reply, entry.reply.usage
        values = (
            *source,
            prompt.name,
            prompt.version,
            None if self._no_text else f"{prompt.system}\n\n{prompt.user}",
            entry.status,
            reply.text,
            entry.attempts,
            usage.prompt_tokens,
            usage.completion_tokens,
            reply.id,
            reply.model,
            reply.cut,
            time.time(),
        )
        return (key, *(storable(v) if isinstance(v, str) else v for v in values))

    def _damaged(self, error: sqlite3.DatabaseError) -> FormatError:
        return FormatError(
            f"cannot be read as a journal: damaged, or not a journal ({error})",
            path=self.path,
            hint="move it away, or name another journal",
        )


class PromptKeys:
    """The key of each prompt to one client: a digest of all that decides the answer.

    The longest length of a reply is not part of it: a whole reply is right under any.
    """

    def __init__(self, client: Client) -> None:
        place = (client.endpoint, client.model)
        every = dict(client.parameters)
        self.source = (*place, json.dumps(every, sort_keys=True))
        for name in REPLY_LIMITS:
            every.pop(name, None)
        start = json.dumps((*place, json.dumps(every, sort_keys=True)))
        self._start = hashlib.sha256(start.encode())

    def of(self, prompt: Prompt) -> bytes:
        """The key of a prompt to this client."""
        texts = (prompt.name, prompt.version, prompt.system, prompt.user)
        key = self._start.copy()
        key.update(json.dumps([*texts, schema_text(prompt.schema)]).encode())
        return key.digest()


def reply_limit(parameters: Mapping[str, Any]) -> float:
    """The longest reply that parameters allow, in tokens."""
    limits = map(parameters.get, REPLY_LIMITS)
    return min((n for n in limits if isinstance(n, int | float)), default=inf)


class Replies(AbstractAsyncContextManager["Replies"]):
    """The replies of one run: those in the journal that it uses, and its new ones.

    A thread writes new ones, a batch at a time. While one batch is written the next one
    is collected, so that a slow disk does not slow the calls down. Leaving the context
    writes the last batch. Those that were paid for and could not be kept are `lost`.
    """

    def __init__(self, journal: Journal, client: Client, settings: Settings) -> None:
        self.keys = PromptKeys(client)
        self.lost = self.cached = 0
        # Whether the model has answered a prompt, now or in an earlier run.
        self.answered = False
        self.get = journal.get
        self._journal, self._settings = journal, settings
        self._limit = reply_limit(client.parameters)
        self._new: set[bytes] = set()
        self._batch: list[tuple[bytes, Prompt, Entry]] = []
        self._written: asyncio.Future[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="karat-journal")

    async def __aexit__(self, *_: object) -> None:
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()

    def find(self, key: bytes) -> Entry | None:
        """The entry of a prompt, if it is to be used; any that is of this run."""
        entry = self.get(key)
        if entry is None:
            return None
        if key not in self._new and not self._settings.offline:
            # What was cut off may be whole under a larger limit.
            if entry.reply.cut and self._limit > entry.limit:
                return None
            again = entry.status == "transient" or self._settings.retry_errors
            if entry.status != "ok" and again:
                return None
        self.cached += 1
        self.answered |= entry.status == "ok"
        return entry

    async def write(self, key: bytes, prompt: Prompt, entry: Entry) -> Entry:
        """Store the entry of a prompt; it is on the disk when this returns."""
        self._batch.append((key, prompt, entry))
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_batches())
        # Shielded: a caller that is cancelled must not cancel the batch of all.
        await asyncio.shield(self._written)
        self._new.add(key)
        return entry

    async def mark_invalid(self, keys: list[bytes]) -> None:
        """Mark replies that no judge could use."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._journal.mark_invalid, keys)
        except sqlite3.Error as error:
            raise self._failed(error) from None

    async def _write_batches(self) -> None:
        loop = asyncio.get_running_loop()
        while self._written is not None:
            batch, written = self._batch, self._written
            self._batch, self._written = [], None
            work = loop.run_in_executor(
                self._thread, self._journal.write, self.keys.source, batch
            )
            # Not awaited: an error is passed on to those who wait for the batch.
            await asyncio.wait([work])
            error = work.exception()
            if error is None:
                written.set_result(None)
                continue
            self.lost += sum(entry.reply.usage != Usage() for *_, entry in batch)
            if isinstance(error, sqlite3.Error):
                error = self._failed(error)
            written.set_exception(error)
            # Marked as retrieved, since nobody may be waiting any more.
            written.exception()
        self._writing = None

    def _failed(self, error: sqlite3.Error) -> IncompleteError:
        return IncompleteError(
            f"cannot write to the journal {self._settings.journal}: {error} (is the "
            "disk full?)"
        )


class ProcessLock(AbstractContextManager["ProcessLock"]):
    """Lets one process at a time ask for the reply to a prompt.

    The lock of a prompt is a lock on one byte of an empty file beside the journal, at
    an offset made from the prompt's key. The system releases it when a process dies.
    On systems without such locks everyone may ask: a reply is then paid for twice at
    worst.
    """

    def __init__(self, journal: Path | None) -> None:
        self._file: int | None = None
        if journal is not None and sys.platform == "linux":
            journal = journal.resolve()
            path = journal.with_name(f"{journal.name}-lock")
            # A writable journal may be in a folder where no file can be made.
            with suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def acquire(self, key: bytes) -> bool:
        """Whether the prompt with this key is now locked for this process."""
        try:
            self._set(key, locked=True)
        except OSError as error:
            # A file system without locks is no reason not to ask.
            return not isinstance(error, BlockingIOError)
        return True

    def release(self, key: bytes) -> None:
        """Let others ask for this prompt, or find its reply in the journal."""
        with suppress(OSError):
            self._set(key, locked=False)

    def _set(self, key: bytes, *, locked: bool) -> None:
        if self._file is None or sys.platform != "linux":
            return
        kind = fcntl.F_WRLCK if locked else fcntl.F_UNLCK
        offset = int.from_bytes(key[:_OFFSET_BYTES], "big")
        # The `struct flock` of one byte. Of the open file, not of the process: two runs
        # in one process wait for each other, and the end of one does not release the
        # locks of the other.
        flock = struct.pack("hhqqi", kind, os.SEEK_SET, offset, 1, 0)
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, flock)


def storable(text: str) -> str:
    """The text with lone surrogates escaped, since SQLite cannot store them."""
    return text.encode("utf-8", "backslashreplace").decode()


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


def _connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to the journal at a path, or in memory if that is None."""
    target = ":memory:" if path is None else str(path)
    if path is not None and read_only:
        # Without a WAL, SQLite would need to make files in a read-only folder.
        has_wal = path.with_name(f"{path.name}-wal").exists()
        mode = "mode=ro" if has_wal else "immutable=1"
        target = f"file:{quote(target)}?{mode}"
    # One thread reads and one writes; SQLite's own lock separates them.
    connection = sqlite3.connect(
        target, isolation_level=None, check_same_thread=False, uri=read_only
    )
    try:
        _prepare(connection, path, read_only=read_only)
    except (sqlite3.Error, FormatError):
        connection.close()
        raise
    return connection


def _prepare(
    connection: sqlite3.Connection, path: Path | None, *, read_only: bool
) -> None:
    """Make the table in a new file; other databases are refused."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and application != _APPLICATION_ID:
        raise FormatError("a database of something else, not a journal", path=path)
    if tables and version != _VERSION:
        age = "a newer" if version > _VERSION else "an older"
        raise FormatError(
            f"written by {age} karat (layout {version})",
            path=path,
            hint="move it away, or name another journal",
        )
    if read_only:
        return
    if path is not None:
        with suppress(PermissionError):
            path.chmod(0o600)
    if not tables:
        # First, so that a process killed here leaves a file that is recognised.
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    if not tables:
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute(_TABLE)
