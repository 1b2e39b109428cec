"""The journal: every reply ever paid for, kept so that none is paid for twice.

It is one SQLite file. A reply is acknowledged only after the transaction that holds it
is on the disk, so neither a crash nor a power cut takes it back.
"""

import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import FormatError, KaratError, UsageError
from karat.llm.keys import Keys
from karat.llm.opening import connect, make_private, refuse_foreign

__all__ = ["Contents", "Entry", "Journal", "storable"]

_READ = """SELECT status, text, attempts, reply_id, reply_model, prompt_tokens,
completion_tokens, {cut} FROM replies WHERE key = ?"""
_WRITE = """INSERT OR REPLACE INTO replies
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CONTENTS = """SELECT endpoint, model, count(*), sum(status != 'ok'),
total(prompt_tokens), total(completion_tokens) FROM replies
GROUP BY endpoint, model ORDER BY endpoint, model"""


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
    prompt_tokens: float
    completion_tokens: float

    @property
    def counts(self) -> tuple[int, int, int]:
        """Entries, errors among them, and tokens paid for."""
        tokens = self.prompt_tokens + self.completion_tokens
        return self.entries, self.errors, int(tokens)


class Journal:
    """Replies by the name of their prompt, in a file that outlives every crash.

    Reading and writing may happen in two threads. Without a path nothing is kept. One
    that is only read may lie where nothing can be written, and is left as it is.

    Example:
        >>> with Journal(None) as journal:
        ...     journal.contents()
        []
    """

    def __init__(
        self, path: Path | None, *, no_text: bool = False, only_read: bool = False
    ) -> None:
        self.path = path
        self._no_text = no_text
        if path is None or (only_read and not path.exists()):
            self._writer = self._reader = connect(None)
        else:
            self._writer, self._reader = self._open(path, only_read=only_read)
        columns = self._reader.execute("SELECT name FROM pragma_table_info('replies')")
        held = {name for (name,) in columns}
        self._read = _READ.format(cut="cut" if "cut" in held else "0")

    def _open(
        self, path: Path, *, only_read: bool
    ) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        try:
            refuse_foreign(path)
            if only_read:
                only = connect(path, only_read=True)
                return only, only
            make_private(path)
            return connect(path), connect(path)
        except (OSError, ValueError, sqlite3.OperationalError) as error:
            if isinstance(error, KaratError):
                raise
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot keep a journal at {path}: {reason}") from None
        except sqlite3.DatabaseError as error:
            raise _damaged(path, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._reader.close()

    def get(self, key: bytes) -> Entry | None:
        """What became of the prompt of this name, if it was ever asked."""
        try:
            row = self._reader.execute(self._read, (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from None
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

    def mark_invalid(self, keys: Iterable[bytes]) -> None:
        """Mark replies that no judge could use, for `retry_errors` to ask again."""
        update = "UPDATE replies SET status = 'invalid' WHERE key = ?"
        self._commit([(update, (key,)) for key in keys])

    def contents(self) -> list[Contents]:
        """What is kept, by endpoint and model."""
        try:
            return [Contents(*row) for row in self._reader.execute(_CONTENTS)]
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from None

    def clear(self, model: str | None = None, *, errors: bool = False) -> int:
        """Forget everything, or only one model's entries or errors; how many."""
        where, values = "1", list[Any]()
        if model is not None:
            where, values = "model = ?", [model]
        if errors:
            where += " AND status != 'ok'"
        delete = f"DELETE FROM replies WHERE {where}"  # noqa: S608 (no input in it)
        try:
            count = self._writer.execute(delete, values).rowcount
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(truncate)")
        except sqlite3.OperationalError as error:
            raise UsageError(f"cannot clear {self.path} now: {error}") from None
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from None
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
            *(entry.id and storable(entry.id), entry.model and storable(entry.model)),
            *(entry.usage.prompt_tokens, entry.usage.completion_tokens, now),
            entry.cut,
        )


def storable(text: str) -> str:
    """SQLite keeps no lone surrogates; they become what JSON would write."""
    return text.encode("utf-8", "backslashreplace").decode()


def _damaged(path: Path | None, error: sqlite3.DatabaseError) -> FormatError:
    return FormatError(
        f"cannot be read as a journal ({error})",
        path=path,
        hint="move it away, or name another journal",
    )
