"""Group commit: many replies in one transaction, each waiting until it is on disk."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from karat.data.judgements import Prompt
from karat.errors import IncompleteError
from karat.llm.journal import Entry, Journal
from karat.llm.keys import Keys

__all__ = ["Recorder"]


class Recorder:
    """Writes to the journal beside the event loop, a batch at a time.

    While one batch is being written the next one gathers, so that the disk's pace never
    slows the calls down. Leaving the context writes whatever has gathered.
    """

    def __init__(self, journal: Journal, keys: Keys) -> None:
        self._journal = journal
        self._keys = keys
        self._gathered: list[tuple[bytes, Prompt, Entry]] = []
        self._written: asyncio.Future[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="karat-journal")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()

    async def keep(self, key: bytes, prompt: Prompt, entry: Entry) -> None:
        """Keep what became of a prompt; it is on the disk when this returns."""
        self._gathered.append((key, prompt, entry))
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        # Shielded: one impatient caller must not take back the batch of all.
        await asyncio.shield(self._written)

    async def mark_invalid(self, keys: list[bytes]) -> None:
        """Mark replies that no judge could use."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._journal.mark_invalid, keys)
        except sqlite3.Error as error:
            raise _full(self._journal, error) from None

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._written is not None:
            batch, written = self._gathered, self._written
            self._gathered, self._written = [], None
            work = loop.run_in_executor(
                self._thread, self._journal.write, self._keys, batch
            )
            # Waited for, not awaited: whatever happens is told to whoever waits.
            await asyncio.wait([work])
            error = work.exception()
            if error is None:
                written.set_result(None)
                continue
            full = isinstance(error, sqlite3.Error)
            written.set_exception(_full(self._journal, error) if full else error)
            # Whoever waited may be gone; that is no reason to complain.
            written.exception()
        self._writing = None


def _full(journal: Journal, error: BaseException) -> IncompleteError:
    return IncompleteError(
        f"cannot write to the journal {journal.path}: {error} (is the disk full?)"
    )
