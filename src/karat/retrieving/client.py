"""Asking a retriever: timed calls in the caller's thread, in others, and by HTTP."""

import asyncio
import inspect
import json
import os
import queue
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, FormatError, Refused, Transient, UsageError
from karat.llm.callables import to_call_error
from karat.llm.credentials import check_headers, check_secrets
from karat.llm.http import Connection, connection_error, load_httpx
from karat.llm.server_errors import retry_after
from karat.reading.files import decode_json, decode_text
from karat.retrieving.answers import read_answer, scores_rise, to_plain
from karat.retrieving.retrievers import Ask, Question, fill

# Errors of client libraries are told apart by name: none of them is imported.
_PASSING: Final = re.compile(
    "Timeout|TimedOut|Connect|Unavailable|RateLimit|TooMany|Throttl|Temporar|Transient"
)
_STATUSES: Final = {408, 425, 429}
_SERVER_ERRORS: Final = range(500, 600)
_SUCCESSES: Final = range(200, 300)
_FOR_ALL: Final = {401, 403, 404}
_SHOWN: Final = 200

# What a call returned or raised, and how many seconds it took.
_Timed: TypeAlias = tuple[Any, Exception | None, float]


class CallQueue:
    """Calls of a plain function: the caller's own thread makes them, or others do.

    Other threads are as many as there are calls at once, and never hold up the end of
    the program. The caller's thread makes the calls while it is in `serve`.
    """

    def __init__(self, *, threads: bool) -> None:
        self.threads = threads
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0 if threads else 1

    async def run(self, function: Ask, query: str) -> _Timed:
        """What a function returns, or raises, and how many seconds that took."""
        if self.threads and not self._idle.acquire(blocking=False):
            self._count += 1
            threading.Thread(target=self.serve, daemon=True).start()
        future: Future[_Timed] = Future()
        self._calls.put((function, query, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Let every thread that serves go on its way."""
        for _ in range(self._count):
            self._calls.put(None)

    def serve(self) -> None:
        """Make the calls, until there are no more."""
        while (call := self._calls.get()) is not None:
            function, query, future = call
            result = _timed(function, query)
            self._idle.release()
            # Nobody waits any more: the run has ended, or the call was given up.
            with suppress(InvalidStateError):
                future.set_result(result)


def _timed(function: Ask, query: str) -> _Timed:
    answer, guard = None, ErrorGuard()
    start = time.perf_counter()
    with guard:
        answer = function(query)
        if isinstance(answer, Iterator):
            answer = [*answer]
    return answer, guard.error, time.perf_counter() - start


@dataclass(eq=False)
class RetrieverClient:
    """Asks a retriever, times it, and puts what it returns into plain values.

    The first call is made alone, since it may load a model; its time is marked. What a
    call waits for before it starts is in no time.

    Attributes:
        timeout: seconds after which a call is given up. What is called in the caller's
            own thread cannot be given up, and is waited for.
        calls: where a plain function is called; None for the event loop's own thread.
        stoppable: the driver sets no time limit, since this does.
    """

    ask: Ask
    endpoint: str
    model: str
    parameters: Mapping[str, Any]
    k: int
    mapping: Mapping[str, str]
    ids: Sequence[Any] | None
    timeout: float
    calls: CallQueue | None
    stoppable: bool = False
    _first: asyncio.Event | None = field(default=None, repr=False)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keep threads and connections until the run ends; what hangs is left."""
        try:
            yield
        finally:
            if self.calls is not None:
                self.calls.close()
            if isinstance(self.ask, HttpRetriever):
                await self.ask.close()

    async def complete(self, prompt: Prompt) -> Reply:
        """The documents for a query, and how many milliseconds they took, as JSON."""
        if self._first is not None:
            await self._first.wait()
            return await self._complete(prompt.user, first=False)
        self._first = asyncio.Event()
        try:
            return await self._complete(prompt.user, first=True)
        finally:
            self._first.set()

    async def _complete(self, query: str, *, first: bool) -> Reply:
        answer, seconds = await self._answer(query)
        guard = ErrorGuard()
        documents: list[Any] = []
        with guard:
            documents = read_answer(answer, self.mapping, self.ids)
        if isinstance(guard.error, CallError):
            raise guard.error
        if guard.error is not None:
            # Objects of others may raise anything when they are looked at.
            kind = "" if isinstance(guard.error, FormatError) else "cannot be read, "
            reason = f"{self.endpoint}: {kind}{guard.error}"
            raise Refused(reason, always=True, unless_answered=True) from guard.error
        facts: dict[str, Any] = {"ms": seconds * 1000, "returned": len(documents)}
        if first:
            facts["first"] = True
        if scores_rise(answer, self.mapping):
            facts["rising"] = True
        facts["documents"] = [to_plain(document) for document in documents[: self.k]]
        return Reply(json.dumps(facts, ensure_ascii=False))

    async def _answer(self, query: str) -> tuple[Any, float]:
        """An answer and the seconds it took; a `CallError` when there is none."""
        answer, seconds, guard = None, 0.0, ErrorGuard()
        calls = self.calls
        limit = asyncio.timeout(self.timeout if calls and calls.threads else None)
        with guard:
            async with limit:
                if calls is None:
                    answer, error, seconds = _timed(self.ask, query)
                else:
                    answer, error, seconds = await calls.run(self.ask, query)
                if error is not None:
                    raise error
                limit.reschedule(asyncio.get_running_loop().time() + self.timeout)
                start = time.perf_counter()
                if inspect.isawaitable(answer):
                    answer = await answer
                if hasattr(answer, "__aiter__"):
                    answer = [document async for document in answer]
                seconds += time.perf_counter() - start
        if limit.expired():
            raise Transient(f"{self.endpoint} gave no answer within {self.timeout:g} s")
        if guard.error is not None:
            raise _call_error(self.endpoint, guard.error)
        return answer, seconds


class ErrorGuard:
    """Keeps whatever the user's code raises, of any kind; leaving the program, too."""

    error: Exception | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        if isinstance(error, SystemExit):
            error = RuntimeError(f"it called sys.exit({error.code!r})")
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


def _call_error(endpoint: str, error: Exception) -> CallError:
    if isinstance(error, UsageError):
        # Of ours: the retriever needs something to be asked at all.
        return Refused(f"{endpoint}: {error}", always=True, unless_answered=True)
    problem = to_call_error(endpoint, error)
    if not isinstance(problem, Refused) or isinstance(error, CallError):
        return problem
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", getattr(response, "status_code", None))
    passing = status in _STATUSES or status in _SERVER_ERRORS
    if passing or any(_PASSING.search(kind.__name__) for kind in type(error).__mro__):
        return Transient(problem.reason, detail=problem.detail)
    return problem


class HttpRetriever:
    """Asks a service.

    With options they are posted as JSON, else the address is fetched. `{query}` and
    `{k}` are filled in, in both; what stands in the address is quoted. A header `$NAME`
    is read from the environment.
    """

    def __init__(
        self, url: str, question: Question, headers: Mapping[str, str] | None
    ) -> None:
        load_httpx("asking a service")
        self.address, self.parameters = _split(url)
        self._question = question
        sent = {n: _from_environment(value) for n, value in (headers or {}).items()}
        check_headers(sent)
        if not question.options and "{query}" not in f"{self.address}{self.parameters}":
            raise UsageError(
                "nothing sends the query: write {query} into the address, or give a "
                """body such as {"q": "{query}"} (options=, --body)"""
            )
        self._connection = Connection(self.address, {}, sent)

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def __call__(self, query: str) -> Any:
        """What the service answers, decoded."""
        address, question = self.address, self._question
        body = question.arguments(query) or None
        response = await self._connection.send(
            "POST" if body else "GET", self._url(query), body
        )
        if isinstance(response, Exception):
            raise connection_error(response, address, "the address")
        status, content = response.status, response.content
        if status in _STATUSES or status in _SERVER_ERRORS:
            wait = retry_after(response.headers)
            raise Transient(f"{address} answered with status {status}", wait)
        if content is None:
            raise Refused(f"{address} answered with more than 16 MB")
        if status not in _SUCCESSES:
            text = content[:_SHOWN].decode("utf-8", "replace")
            raise Refused(
                f"{address} answered with status {status}",
                detail=" ".join(text.split()) or None,
                always=status in _FOR_ALL,
                unless_answered=True,
            )
        try:
            return decode_json(decode_text(content))
        except FormatError as error:
            raise Refused(f"{address} does not answer with JSON: {error}") from None

    def _url(self, query: str) -> str:
        """The address for a query, which may hold anything: `C#`, `?`, `../admin`."""
        # Dots too: alone in their part of a path they would lead out of it.
        quoted = quote(query, safe="").replace(".", "%2E")
        pairs = [
            (fill(name, self._question, query), fill(value, self._question, query))
            for name, value in self.parameters
        ]
        address: str = fill(self.address, self._question, quoted)
        return f"{address}?{urlencode(pairs)}" if pairs else address


def _from_environment(value: str) -> str:
    if not value.startswith("$"):
        return value
    if value[1:] not in os.environ:
        raise UsageError(f"the header needs {value[1:]}, which is not set")
    return os.environ[value[1:]]


def _split(url: str) -> tuple[str, list[tuple[str, str]]]:
    """The address without its query, and the query; neither may hold a secret."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and parts.hostname
    except ValueError:
        valid = False
    if not valid or "{" in parts.netloc:
        raise UsageError(
            "a retriever in one text is an address such as http://127.0.0.1:8080/search"
        )
    if parts.username or parts.password:
        raise UsageError(
            f"the address of {parts.hostname} must hold no user and no password, since "
            "addresses are kept; headers= (--header) can carry them"
        )
    query = parse_qsl(parts.query, keep_blank_values=True)
    check_secrets(dict(query))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")), query
