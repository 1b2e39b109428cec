"""The journal: every reply that was paid for, in one SQLite file.

A reply is acknowledged only after its transaction is on the disk, so that neither a
crash nor a power cut loses it.
"""

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Self

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import FormatError, KaratError, UsageError
from karat.llm.budget import REPLY_LIMITS, schema_text
from karat.llm.journal.schema import (
    CUT_SINCE,
    PARAMETER_SETS_SINCE,
    connect,
    make_private,
    refuse_foreign,
)
from karat.llm.protocol import Client

__all__ = ["Contents", "Entry", "Journal", "PromptKeys", "storable"]

_READ = """SELECT status, text, attempts, reply_id, reply_model, prompt_tokens,
completion_tokens, {cut} FROM replies WHERE key = ?"""
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


class PromptKeys:
    """The key of each prompt to one client: a digest of all that decides the answer.

    It is a SHA-256 over endpoint, model, parameters, the prompt's name and version,
    its texts and its schema: change any of them and the key is another.
    """

    def __init__(
        self, client: Client, parameters: Mapping[str, Any] | None = None
    ) -> None:
        self.endpoint = client.endpoint
        self.model = client.model
        if parameters is None:
            parameters = client.parameters
        self.parameters = json.dumps(dict(parameters), sort_keys=True)
        self._client = client
        start = json.dumps([self.endpoint, self.model, self.parameters])
        self._start = hashlib.sha256(start.encode())
        self._begun: dict[tuple[str, str, str], hashlib._Hash] = {}

    def of(self, prompt: Prompt) -> bytes:
        """The key of a prompt to this client."""
        # Prompts of one kind begin alike; that part is digested once.
        kind = (prompt.name, prompt.version, prompt.system)
        begun = self._begun.get(kind)
        if begun is None:
            begun = self._begun[kind] = self._start.copy()
            begun.update(json.dumps(kind)[:-1].encode())
        key = begun.copy()
        rest = f", {json.dumps(prompt.user)}, {schema_text(prompt.schema)}]"
        key.update(rest.encode())
        return key.digest()

    def with_lower_limits(self, parameter_sets: Iterable[str]) -> list["PromptKeys"]:
        """The keys under parameters that differ only in a lower limit of the reply."""
        limit, others = _split_limit(self.parameters)
        lower = []
        for text in parameter_sets:
            other_limit, rest = _split_limit(text)
            if rest == others and other_limit < limit:
                lower.append(PromptKeys(self._client, json.loads(text)))
        return lower


def _split_limit(parameters: str) -> tuple[float, dict[str, Any]]:
    """The longest reply that parameters allow, and the other parameters."""
    others = json.loads(parameters)
    limits = [others.pop(name) for name in REPLY_LIMITS if name in others]
    numbers = [limit for limit in limits if isinstance(limit, int | float)]
    return min(numbers, default=inf), others


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
            self._writer = self._reader = connect(None)
        else:
            self._writer, self._reader = self._open(path, read_only=read_only)
        (self._version,) = self._reader.execute("PRAGMA user_version").fetchone()
        self._read = _READ.format(cut="cut" if self._version >= CUT_SINCE else "0")

    def _open(
        self, path: Path, *, read_only: bool
    ) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        try:
            refuse_foreign(path)
            if read_only:
                only = connect(path, read_only=True)
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
        """The entry of the prompt with this key, if it was ever asked."""
        try:
            row = self._reader.execute(self._read, (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from None
        if row is None:
            return None
        status, text, attempts, id, model, sent, received, cut = row
        usage = Usage(sent, received)
        return Entry(status, text, attempts, usage, id, model, bool(cut))

    def write(
        self, keys: PromptKeys, batch: Iterable[tuple[bytes, Prompt, Entry]]
    ) -> None:
        """Store these entries: all of them are on the disk when this returns."""
        now = time.time()
        rows = [
            self._row(keys, key, prompt, entry, now) for key, prompt, entry in batch
        ]
        parameters = (keys.endpoint, keys.model, keys.parameters)
        self._commit(
            [(_WRITE_PARAMETERS, parameters), *((_WRITE, row) for row in rows)]
        )

    def mark_invalid(self, keys: Iterable[bytes]) -> None:
        """Mark replies that no judge could use, for `retry_errors` to ask again."""
        update = "UPDATE replies SET status = 'invalid' WHERE key = ?"
        self._commit([(update, (key,)) for key in keys])

    def contents(self) -> list[Contents]:
        """What is kept, by endpoint and model."""
        return [Contents(*row) for row in self._select(_CONTENTS)]

    def parameter_sets(self, endpoint: str, model: str) -> list[str]:
        """The parameters, as JSON, under which a model was asked."""
        if self._version < PARAMETER_SETS_SINCE:
            return []
        return [text for (text,) in self._select(_PARAMETERS, endpoint, model)]

    def reply_sizes(self, endpoint: str, model: str) -> dict[str, float]:
        """The tokens of a model's latest replies, averaged by the prompt's name."""
        return dict(self._select(_SIZES, endpoint, model))

    def _select(self, statement: str, *values: str) -> list[Any]:
        try:
            return self._reader.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from None

    def clear(self, model: str | None = None, *, errors: bool = False) -> int:
        """Delete all entries, or only one model's or only errors; returns how many."""
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
        self, keys: PromptKeys, key: bytes, prompt: Prompt, entry: Entry, now: float
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
    """The text with lone surrogates escaped, since SQLite cannot store them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _damaged(path: Path | None, error: sqlite3.DatabaseError) -> FormatError:
    return FormatError(
        f"cannot be read as a journal ({error})",
        path=path,
        hint="move it away, or name another journal",
    )
