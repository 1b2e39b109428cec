"""The reply to one prompt: from the journal, from a call under way, or by a call."""

import asyncio

from karat.data.judgements import Prompt, Reply
from karat.errors import IncompleteError, OfflineMissError, Refused, Transient
from karat.llm.attempts import Attempts, Stopped
from karat.llm.journal import Entry, Journal, JournalWriter, ProcessLock, PromptKeys
from karat.llm.protocol import Client
from karat.llm.redaction import redact
from karat.llm.run_options import Settings

__all__ = ["CachedCalls", "StoredReplies"]

_EXCERPT = 60
# Seconds between two checks for the reply that another process asks for.
_POLL_SECONDS = 0.05
# After this many timeouts, a process that keeps a lock must have been suspended.
_LOCK_TIMEOUTS = 3
_TIMEOUT = 120


class StoredReplies:
    """Finds the entries of the journal that are used, rather than asked for again."""

    def __init__(self, journal: Journal, keys: PromptKeys, settings: Settings) -> None:
        self._journal = journal
        self._keys = keys
        self._settings = settings
        known = journal.parameter_sets(keys.endpoint, keys.model)
        self._lower_limits = keys.with_lower_limits(known)

    def find(
        self, key: bytes, prompt: Prompt, *, asked: bool = False
    ) -> tuple[bytes, Entry] | None:
        """The entry of a prompt, with the key that it is stored under.

        A reply that is complete under a lower limit of its length is used as well.

        Args:
            key: the key of the prompt.
            prompt: the prompt.
            asked: whether this run has asked for it, so that any entry is used.
        """
        entry = self._journal.get(key)
        if entry is not None and (asked or self._is_final(entry.status)):
            return key, entry
        if entry is None:
            for keys in self._lower_limits:
                other = keys.of(prompt)
                entry = self._journal.get(other)
                if entry is None or entry.cut or entry.status not in ("ok", "invalid"):
                    continue
                if self._is_final(entry.status):
                    return other, entry
        return None

    def _is_final(self, status: str) -> bool:
        if status == "ok" or self._settings.offline:
            return True
        return status != "transient" and not self._settings.retry_errors


class CachedCalls:
    """Gets the reply to each prompt, and stores it before it is returned.

    Attributes:
        attempts: makes the calls, and knows why they stop early, if they do.
        cached: how many replies came from the journal.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        journal: Journal,
        writer: JournalWriter,
        keys: PromptKeys,
        lock: ProcessLock,
    ) -> None:
        self.settings = settings
        self.attempts = Attempts(client, settings)
        self.cached = 0
        self._client = client
        self._journal = journal
        self._writer = writer
        self._keys = keys
        self._lock = lock
        self._stored_replies = StoredReplies(journal, keys, settings)
        self._under_way: dict[bytes, asyncio.Future[Entry]] = {}
        self._asked: set[bytes] = set()
        self._invalid: set[bytes] = set()

    async def reply(self, prompt: Prompt) -> tuple[bytes, Reply]:
        """The key of the prompt and its reply; a `CallError` when there is none."""
        key = self._keys.of(prompt)
        if (stored := self._find(key, prompt)) is not None:
            return stored[0], self._to_reply(*stored)
        if self.settings.offline:
            self.attempts.stop(self._missing(key, prompt))
            raise Stopped
        if (call := self._under_way.get(key)) is not None:
            # Shielded: cancelling one who waits must not cancel the call of another.
            return key, self._to_reply(key, await asyncio.shield(call))
        call = self._under_way[key] = asyncio.get_running_loop().create_future()
        try:
            entry = await self._locked(key, prompt)
            call.set_result(entry)
        finally:
            del self._under_way[key]
            if not call.done():
                call.set_exception(Stopped())
                # Marked as retrieved, since nobody may be waiting for it.
                call.exception()
        return key, self._to_reply(key, entry, fresh=key in self._asked)

    async def mark_invalid(self, keys: list[bytes]) -> None:
        """Mark replies that no judge could use."""
        if new := [key for key in keys if key not in self._invalid]:
            self._invalid.update(new)
            if not self.settings.offline:
                try:
                    await self._writer.mark_invalid(new)
                except IncompleteError as error:
                    self.attempts.stop(error)
                    raise Stopped from None

    def _find(self, key: bytes, prompt: Prompt) -> tuple[bytes, Entry] | None:
        """The entry in the journal and its key, if it is to be used."""
        asked = key in self._asked
        stored = self._stored_replies.find(key, prompt, asked=asked)
        if stored is not None:
            self.cached += 1
            self.attempts.answered |= stored[1].status == "ok"
        return stored

    async def _locked(self, key: bytes, prompt: Prompt) -> Entry:
        """Call, unless another process on this journal is calling or has called."""
        timeout = self.settings.timeout or _TIMEOUT
        checks = _LOCK_TIMEOUTS * timeout / _POLL_SECONDS
        # A process that is suspended, not killed, would keep its lock forever.
        while not self._lock.acquire(key) and (checks := checks - 1) > 0:
            await self.attempts.wait(_POLL_SECONDS)
            if self.attempts.problem is not None:
                raise Stopped
            if (stored := self._find(key, prompt)) is not None:
                return stored[1]
        try:
            # The other process may have stored its reply just before.
            if (stored := self._find(key, prompt)) is not None:
                return stored[1]
            entry = await self._call(key, prompt)
            await self._store(key, prompt, entry)
            return entry
        finally:
            self._lock.release(key)

    async def _call(self, key: bytes, prompt: Prompt) -> Entry:
        last = self._journal.get(key)
        suspect = last is not None and last.status == "transient"
        try:
            return await self.attempts.make(key, prompt, suspect=suspect)
        except Stopped as end:
            if end.entry is not None and (last is None or suspect):
                # Stored, so that the next run knows which prompts failed before.
                await self._store(key, prompt, end.entry)
            raise

    def _to_reply(self, key: bytes, entry: Entry, *, fresh: bool = False) -> Reply:
        if entry.status in ("ok", "invalid"):
            if entry.status == "invalid":
                self._invalid.add(key)
            return entry.reply(cached=not fresh)
        kind = Refused if entry.status == "refused" else Transient
        error = kind(entry.text)
        error.attempts = entry.attempts
        raise error from entry.cause

    async def _store(self, key: bytes, prompt: Prompt, entry: Entry) -> None:
        try:
            await self._writer.write(key, prompt, entry)
        except IncompleteError as error:
            self.attempts.stop(error)
            raise Stopped from None
        self._asked.add(key)
        self._invalid.discard(key)

    def _missing(self, key: bytes, prompt: Prompt) -> OfflineMissError:
        words = " ".join(prompt.user.split())
        excerpt = f"{words[:_EXCERPT]}…" if len(words) > _EXCERPT else words
        shown = "" if self.settings.no_text else f": {redact(excerpt)!r}"
        return OfflineMissError(
            f"the journal {self.settings.journal} holds no reply of "
            f"{self._client.model!r} at {self._client.endpoint} to prompt "
            f"{prompt.name!r} (version {prompt.version}, {key.hex()[:12]}){shown}; "
            "run once without offline to get it"
        )
