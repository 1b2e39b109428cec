"""Replies in the journal: their keys, which are used, and how new ones are stored."""

import asyncio
import hashlib
import json
import os
import sqlite3
import struct
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Self

from karat.data.judgements import Prompt
from karat.data.tables import counted
from karat.errors import IncompleteError
from karat.llm.journal import Entry, Journal
from karat.llm.limits import REPLY_LIMITS, schema_text
from karat.llm.settings import Client, Settings

if sys.platform == "linux":
    import fcntl

# Bytes of a key that make an offset which a file may have.
_OFFSET_BYTES = 7


class PromptKeys:
    """The key of each prompt to one client: a digest of all that decides the answer.

    It is a SHA-256 over endpoint, model, parameters, the prompt's name and version,
    its texts and its schema: change any of them and the key is another.

    Attributes:
        asked: the client's endpoint, model and parameters as JSON.
    """

    def __init__(
        self, client: Client, parameters: Mapping[str, Any] | None = None
    ) -> None:
        given = client.parameters if parameters is None else parameters
        text = json.dumps(dict(given), sort_keys=True)
        self.asked = (client.endpoint, client.model, text)
        self._start = hashlib.sha256(json.dumps(self.asked).encode())
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


class StoredReplies:
    """Finds the entries of the journal that are used, rather than asked for again."""

    def __init__(self, journal: Journal, client: Client, settings: Settings) -> None:
        self.keys = PromptKeys(client)
        self._journal = journal
        self._settings = settings
        # A reply that is complete under a lower limit of its length is used as well.
        *asked, parameters = self.keys.asked
        limit, others = _split_limit(parameters)
        self._lower_limits = [
            PromptKeys(client, json.loads(known))
            for known in journal.parameter_sets(*asked)
            for lower, rest in [_split_limit(known)]
            if rest == others and lower < limit
        ]

    def find(
        self, key: bytes, prompt: Prompt, *, asked: bool = False
    ) -> tuple[bytes, Entry] | None:
        """The entry of a prompt, with the key that it is stored under.

        Args:
            key: the key of the prompt.
            prompt: the prompt.
            asked: whether this run has asked for it, so that any entry is used.
        """
        entry = self._journal.get(key)
        if entry is not None:
            return (key, entry) if asked or self._is_final(entry) else None
        for keys in self._lower_limits:
            other = keys.of(prompt)
            entry = self._journal.get(other)
            if entry is None or entry.cut or entry.status not in ("ok", "invalid"):
                continue
            if self._is_final(entry):
                return other, entry
        return None

    def _is_final(self, entry: Entry) -> bool:
        if entry.status == "ok" or self._settings.offline:
            return True
        return entry.status != "transient" and not self._settings.retry_errors


def _split_limit(parameters: str) -> tuple[float, dict[str, Any]]:
    """The longest reply that parameters allow, and the other parameters."""
    others = json.loads(parameters)
    limits = [others.pop(name) for name in REPLY_LIMITS if name in others]
    numbers = [limit for limit in limits if isinstance(limit, int | float)]
    return min(numbers, default=inf), others


class JournalWriter:
    """Writes to the journal in a thread, a batch at a time.

    While one batch is written the next one is collected, so that a slow disk does not
    slow the calls down. Leaving the context writes the last batch.
    """

    def __init__(self, journal: Journal, asked: tuple[str, str, str]) -> None:
        self._journal = journal
        self._asked = asked
        self._batch: list[tuple[bytes, Prompt, Entry]] = []
        self._written: asyncio.Future[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="karat-journal")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()

    async def write(self, key: bytes, prompt: Prompt, entry: Entry) -> None:
        """Store the entry of a prompt; it is on the disk when this returns."""
        self._batch.append((key, prompt, entry))
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_batches())
        # Shielded: a caller that is cancelled must not cancel the batch of all.
        await asyncio.shield(self._written)

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
                self._thread, self._journal.write, self._asked, batch
            )
            # Not awaited: an error is passed on to those who wait for the batch.
            await asyncio.wait([work])
            error = work.exception()
            if error is None:
                written.set_result(None)
                continue
            if isinstance(error, sqlite3.Error):
                error = self._failed(error, len(batch))
            written.set_exception(error)
            # Marked as retrieved, since nobody may be waiting any more.
            written.exception()
        self._writing = None

    def _failed(self, error: sqlite3.Error, lost: int = 0) -> IncompleteError:
        path = self._journal.path
        reason = f"cannot write to the journal {path}: {error} (is the disk full?)"
        if lost:
            reason += f"; {counted(lost, 'reply')} paid for could not be kept"
        return IncompleteError(reason)


class ProcessLock:
    """Lets one process at a time ask for the reply to a prompt.

    The lock of a prompt is a lock on one byte of an empty file beside the journal, at
    an offset made from the prompt's key. The system releases it when a process dies.
    On systems without such locks everyone may ask: a reply is then paid for twice at
    worst.

    Example:
        >>> with ProcessLock(None) as lock:
        ...     lock.acquire(bytes(32))
        True
    """

    def __init__(self, journal: Path | None) -> None:
        self._file: int | None = None
        if journal is not None and sys.platform == "linux":
            journal = journal.resolve()
            path = journal.with_name(f"{journal.name}-lock")
            # A writable journal may be in a folder where no file can be made.
            with suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def acquire(self, key: bytes) -> bool:
        """Whether the prompt with this key is now locked for this process."""
        try:
            self._set(key, locked=True)
        except BlockingIOError:
            return False
        except OSError:
            # A file system without locks is no reason not to ask.
            return True
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
