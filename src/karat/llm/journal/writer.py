"""Writing to the journal in batches: many replies in one transaction."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from karat.data.judgements import Prompt
from karat.data.tables import counted
from karat.errors import IncompleteError
from karat.llm.journal.journal import Entry, Journal, PromptKeys

__all__ = ["JournalWriter"]


class JournalWriter:
    """Writes to the journal in a thread, a batch at a time.

    While one batch is written the next one is collected, so that a slow disk does not
    slow the calls down. Leaving the context writes the last batch.
    """

    def __init__(self, journal: Journal, keys: PromptKeys) -> None:
        self._journal = journal
        self._keys = keys
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
            raise _write_error(self._journal, error) from None

    async def _write_batches(self) -> None:
        loop = asyncio.get_running_loop()
        while self._written is not None:
            batch, written = self._batch, self._written
            self._batch, self._written = [], None
            work = loop.run_in_executor(
                self._thread, self._journal.write, self._keys, batch
            )
            # Not awaited: an error is passed on to those who wait for the batch.
            await asyncio.wait([work])
            error = work.exception()
            if error is None:
                written.set_result(None)
                continue
            if isinstance(error, sqlite3.Error):
                error = _write_error(self._journal, error, len(batch))
            written.set_exception(error)
            # Marked as retrieved, since nobody may be waiting any more.
            written.exception()
        self._writing = None


def _write_error(
    journal: Journal, error: sqlite3.Error, lost: int = 0
) -> IncompleteError:
    reason = f"cannot write to the journal {journal.path}: {error} (is the disk full?)"
    if lost:
        reason += f"; {counted(lost, 'reply')} paid for could not be kept"
    return IncompleteError(reason)
