"""Asking one prompt: by the journal, by a call under way, or by calls of its own."""

import asyncio

from karat.data.judgements import Prompt, Reply
from karat.errors import IncompleteError, OfflineMissError, Refused, Transient
from karat.llm.attempts import Attempts, Stopped
from karat.llm.journal import Entry, Journal
from karat.llm.keys import Keys
from karat.llm.protocol import Client
from karat.llm.recording import Recorder
from karat.llm.secrecy import scrub
from karat.llm.settings import Settings
from karat.llm.turns import Turns

__all__ = ["Asking"]

_EXCERPT = 60
# Seconds between two looks at what another process is asking for.
_PEEK = 0.05
# After so many timeouts a process that keeps its turn must have been stopped.
_PATIENCE = 3
_TIMEOUT = 120


class Asking:
    """Gets each prompt its reply, within the limits, and keeps it before giving it.

    Attributes:
        attempts: the calls that are made, and why they end early, once they do.
        cached: replies that came from the journal.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        journal: Journal,
        recorder: Recorder,
        keys: Keys,
        turns: Turns,
    ) -> None:
        self.settings = settings
        self.attempts = Attempts(client, settings)
        self.cached = 0
        self._client = client
        self._journal = journal
        self._recorder = recorder
        self._keys = keys
        self._turns = turns
        self._flights: dict[bytes, asyncio.Future[Entry]] = {}
        self._settled: set[bytes] = set()
        self._useless: set[bytes] = set()

    async def reply_to(self, prompt: Prompt) -> tuple[bytes, Reply]:
        """The name of the prompt and its reply; a `CallError` when there is none."""
        key = self._keys.of(prompt)
        if (kept := self._kept(key)) is not None:
            return key, self._given(key, kept)
        if self.settings.offline:
            self.attempts.stop(self._miss(key, prompt))
            raise Stopped
        if (flight := self._flights.get(key)) is not None:
            # Shielded: who waits must not take the call from the one who makes it.
            return key, self._given(key, await asyncio.shield(flight))
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            entry = await self._in_turn(key, prompt)
            flight.set_result(entry)
        finally:
            del self._flights[key]
            if not flight.done():
                flight.set_exception(Stopped())
                # Perhaps nobody waits for it; that is no reason to complain.
                flight.exception()
        return key, self._given(key, entry, fresh=key in self._settled)

    async def mark_invalid(self, keys: list[bytes]) -> None:
        """Remember that these replies were of no use."""
        if new := [key for key in keys if key not in self._useless]:
            self._useless.update(new)
            if not self.settings.offline:
                try:
                    await self._recorder.mark_invalid(new)
                except IncompleteError as error:
                    self.attempts.stop(error)
                    raise Stopped from None

    def _kept(self, key: bytes) -> Entry | None:
        """What the journal holds, if it is to be used."""
        kept = self._journal.get(key)
        if kept is None or not self._final(key, kept):
            return None
        self.cached += 1
        return kept

    async def _in_turn(self, key: bytes, prompt: Prompt) -> Entry:
        """Call, unless another process on this journal is calling or has called."""
        waits = _PATIENCE * (self.settings.timeout or _TIMEOUT) / _PEEK
        # One that was stopped, and not killed, would keep everyone waiting for ever.
        while not self._turns.take(key) and (waits := waits - 1) > 0:
            await self.attempts.rest(_PEEK)
            if self.attempts.problem is not None:
                raise Stopped
            if (kept := self._kept(key)) is not None:
                return kept
        try:
            # The other process may have kept its reply just before it was our turn.
            if (kept := self._kept(key)) is not None:
                return kept
            entry = await self._call(key, prompt)
            await self._keep(key, prompt, entry)
            return entry
        finally:
            self._turns.leave(key)

    async def _call(self, key: bytes, prompt: Prompt) -> Entry:
        last = self._journal.get(key)
        suspect = last is not None and last.status == "transient"
        try:
            return await self.attempts.make(key, prompt, suspect=suspect)
        except Stopped as end:
            if end.entry is not None and (last is None or suspect):
                # Remembered, so that the next run can tell who was to blame.
                await self._keep(key, prompt, end.entry)
            raise

    def _final(self, key: bytes, kept: Entry) -> bool:
        """Whether what the journal holds is to be used, rather than asked for again."""
        if kept.status == "ok" or self.settings.offline or key in self._settled:
            return True
        return kept.status != "transient" and not self.settings.retry_errors

    def _given(self, key: bytes, entry: Entry, *, fresh: bool = False) -> Reply:
        if entry.status in ("ok", "invalid"):
            if entry.status == "invalid":
                self._useless.add(key)
            return entry.reply(cached=not fresh)
        kind = Refused if entry.status == "refused" else Transient
        error = kind(entry.text)
        error.attempts = entry.attempts
        raise error from entry.cause

    async def _keep(self, key: bytes, prompt: Prompt, entry: Entry) -> None:
        try:
            await self._recorder.keep(key, prompt, entry)
        except IncompleteError as error:
            self.attempts.stop(error)
            raise Stopped from None
        self._settled.add(key)
        self._useless.discard(key)

    def _miss(self, key: bytes, prompt: Prompt) -> OfflineMissError:
        words = " ".join(prompt.user.split())
        excerpt = f"{words[:_EXCERPT]}…" if len(words) > _EXCERPT else words
        shown = "" if self.settings.no_text else f": {scrub(excerpt)!r}"
        return OfflineMissError(
            f"the journal {self.settings.journal} holds no reply of "
            f"{self._client.model!r} at {self._client.endpoint} to prompt "
            f"{prompt.name!r} (version {prompt.version}, {key.hex()[:12]}){shown}; "
            "run once without offline to get it"
        )
