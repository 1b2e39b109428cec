"""Asking a retriever: timed calls in threads of their own, also calls by HTTP."""

import asyncio
import inspect
import json
import os
import queue
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, FormatError, Refused, Transient, UsageError
from karat.llm.callables import to_call_error
from karat.llm.credentials import check_headers, check_secrets
from karat.llm.http import connection_error, load_httpx, may_use_proxy
from karat.llm.server_errors import retry_after
from karat.reading.decoding import decode_json, decode_text
from karat.retrieving.answers import read_answer, to_plain
from karat.retrieving.retrievers import Question, fill

# Errors of client libraries are told apart by name: none of them is imported.
_PASSING: Final = re.compile(
    "Timeout|TimedOut|Connect|Unavailable|RateLimit|TooMany|Throttl|Temporar|Transient"
)
_STATUSES: Final = {408, 425, 429}
_SERVER_ERRORS: Final = range(500, 600)
_FOR_ALL: Final = {401, 403, 404}
_SHOWN: Final = 200


class _Workers:
    """Threads that call functions, and never hold up the end of the program."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    async def run(
        self, function: Callable[[str], Any], query: str
    ) -> tuple[Any, Exception | None, float]:
        """What a function returns, or raises, and how many seconds that took."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if not self._idle.acquire(blocking=False):
            self._count += 1
            threading.Thread(target=self._work, daemon=True).start()
        self._calls.put((function, query, future, loop))
        done: tuple[Any, Exception | None, float] = await future
        return done

    def close(self) -> None:
        """Let the threads end."""
        for _ in range(self._count):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, query, future, loop = call
            result = _timed_call(function, query)
            self._idle.release()
            # Nobody waits any more: the run has ended, or the call was given up.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, future, result)


@dataclass(eq=False)
class RetrieverClient:
    """Asks a retriever, times it, and puts what it returns into plain values.

    The first call is made alone, since it may load a model; its time is marked. What a
    call waits for before it starts is in no time.

    Attributes:
        ask: from query to whatever the retriever returns, also awaitable.
        endpoint: the retriever's address, or where its code is.
        model: the name that answers are kept under.
        parameters: what else decides the answers.
        k: how many documents of an answer are kept.
        mapping: our name -> theirs, inside an answer.
        ids: the documents' ids, where an answer holds places in an index.
        timeout: seconds after which a call is given up.
        persistent: whether another process may use the answers.
        stoppable: the driver sets no time limit, since this does.
    """

    ask: Callable[[str], Any]
    endpoint: str
    model: str
    parameters: Mapping[str, Any]
    k: int
    mapping: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[Any] | None = None
    timeout: float = 60.0
    persistent: bool = True
    stoppable: bool = False
    _workers: _Workers = field(default_factory=_Workers, repr=False)
    _first: asyncio.Event | None = field(default=None, repr=False)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keep threads until the run ends; one that hangs is left to itself."""
        try:
            yield
        finally:
            self._workers.close()

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
        answer, seconds = await self._timed(query)
        caught = _Caught()
        documents: list[Any] = []
        with caught:
            documents = read_answer(answer, self.mapping, self.ids)
        if isinstance(caught.error, CallError):
            raise caught.error
        if caught.error is not None:
            # Objects of others may raise anything when they are looked at.
            kind = "" if isinstance(caught.error, FormatError) else "cannot be read, "
            reason = f"{self.endpoint}: {kind}{caught.error}"
            raise Refused(reason, always=True, unless_answered=True) from caught.error
        facts: dict[str, Any] = {"ms": seconds * 1000, "returned": len(documents)}
        if first:
            facts["first"] = True
        facts["documents"] = [to_plain(document) for document in documents[: self.k]]
        return Reply(json.dumps(facts, ensure_ascii=False))

    async def _timed(self, query: str) -> tuple[Any, float]:
        """An answer and the seconds it took; a `CallError` when there is none."""
        answer, seconds, caught = None, 0.0, _Caught()
        limit = asyncio.timeout(self.timeout)
        with caught:
            async with limit:
                answer, error, seconds = await self._workers.run(self.ask, query)
                if error is not None:
                    raise error
                start = time.perf_counter()
                if inspect.isawaitable(answer):
                    answer = await answer
                if hasattr(answer, "__aiter__"):
                    answer = [document async for document in answer]
                seconds += time.perf_counter() - start
        if limit.expired():
            raise Transient(f"{self.endpoint} gave no answer within {self.timeout:g} s")
        if caught.error is not None:
            raise _call_error(self.endpoint, caught.error)
        return answer, seconds


class _Caught:
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


def _timed_call(
    function: Callable[[str], Any], query: str
) -> tuple[Any, Exception | None, float]:
    answer, caught = None, _Caught()
    start = time.perf_counter()
    with caught:
        answer = function(query)
        if isinstance(answer, Iterator):
            answer = [*answer]
    return answer, caught.error, time.perf_counter() - start


def _settle(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)


def address_of(url: str) -> tuple[str, dict[str, str]]:
    """The address without its query, and the query; neither may hold a secret."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and parts.hostname
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(
            "a retriever in one text is an address such as http://127.0.0.1:8080/search"
        )
    if parts.username or parts.password:
        raise UsageError(
            f"the address of {parts.hostname} must hold no user and no password, since "
            "addresses are kept; headers= (--header) can carry them"
        )
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    check_secrets(query)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")), query


def http_function(
    url: str, question: Question, headers: Mapping[str, str] | None, timeout: float
) -> Callable[[str], Any]:
    """A function that asks a service.

    With options they are posted as JSON, else the address is fetched. `{query}` and
    `{k}` are filled in, in both. A header `$NAME` is read from the environment.
    """
    httpx = load_httpx("asking a service")
    address, parameters = address_of(url)
    sent = {name: _from_environment(value) for name, value in (headers or {}).items()}
    check_headers(sent)
    if not question.options and "{query}" not in f"{address}{parameters}":
        raise UsageError(
            "nothing sends the query: write {query} into the address, or give a body "
            """such as {"q": "{query}"} (options=, --body)"""
        )
    # A redirect could lead texts to where they may not go.
    client = httpx.Client(
        headers=sent,
        timeout=timeout,
        follow_redirects=False,
        trust_env=may_use_proxy(address),
    )

    def ask(query: str) -> Any:
        given = {"params": fill(parameters, question, query)} if parameters else {}
        target = fill(address, question, query)
        body = question.arguments(query)
        try:
            response = client.request(
                "POST" if body else "GET", target, json=body or None, **given
            )
        except httpx.TimeoutException:
            raise TimeoutError(f"no answer within {timeout:g} s") from None
        except httpx.RequestError as error:
            raise connection_error(error, address, "the address") from None
        status = response.status_code
        if status in _STATUSES or status in _SERVER_ERRORS:
            wait = retry_after(response.headers)
            raise Transient(f"{address} answered with status {status}", wait)
        if not response.is_success:
            raise Refused(
                f"{address} answered with status {status}",
                detail=" ".join(response.text[:_SHOWN].split()) or None,
                always=status in _FOR_ALL,
                unless_answered=True,
            )
        try:
            return decode_json(decode_text(response.content))
        except FormatError as error:
            raise Refused(f"{address} does not answer with JSON: {error}") from None

    return ask


def _from_environment(value: str) -> str:
    if not value.startswith("$"):
        return value
    if value[1:] not in os.environ:
        raise UsageError(f"the header needs {value[1:]}, which is not set")
    return os.environ[value[1:]]
