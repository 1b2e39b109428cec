"""Asking a retriever: timed calls of functions, of services, and what they return."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlunsplit

from karat.data.judgements import Prompt, Reply
from karat.data.runs import Document
from karat.errors import (
    CallError,
    FormatError,
    Refused,
    Transient,
    UnknownNameError,
    UsageError,
)
from karat.llm.callables import CallQueue, ErrorGuard, call_outside, to_call_error
from karat.llm.credentials import check_headers, check_secrets
from karat.llm.http import (
    Connection,
    connection_error,
    load_httpx,
    may_pass,
    retry_after,
    split_url,
)
from karat.reading.files import decode_json, decode_text
from karat.reading.meaning.aliases import IDS, ask
from karat.reading.meaning.answers import PARTIAL, body_of, hits_of, is_partial
from karat.reading.meaning.documents import (
    INSIDE,
    names_inside,
    read_document,
    rename,
    table_row,
)
from karat.reading.meaning.values import is_pair, is_scores, show, value_at
from karat.reading.source import Notes
from karat.retrieving.retrievers import Ask, Question, fill

_SUCCESSES: Final = range(200, 300)
_FOR_ALL: Final = {401, 403, 404}
_SHOWN: Final = 200
_FIELDS: Final = ("id", "text", "score", "source", "start", "end")


@dataclass(eq=False)
class RetrieverClient:
    """Asks a retriever, times it, and puts what it returns into plain values.

    The first call is made alone, since it may load a model; its time is marked. What a
    call waits for before it starts is in no time. The driver sets no time limit, since
    this does.
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
        """Keep connections until the run ends."""
        try:
            yield
        finally:
            if isinstance(self.ask, HttpRetriever):
                await self.ask.close()

    async def complete(self, prompt: Prompt) -> Reply:
        """The documents for a query, and how many milliseconds they took, as JSON."""
        if self._first is not None:
            await self._first.wait()
            return await self._complete(prompt.user, {})
        self._first = asyncio.Event()
        try:
            return await self._complete(prompt.user, {"first": True})
        finally:
            self._first.set()

    async def _complete(self, query: str, facts: dict[str, Any]) -> Reply:
        endpoint, limit, call = self.endpoint, self.timeout, partial(self.ask, query)
        answer, error, seconds = await call_outside(endpoint, call, self.calls, limit)
        if hasattr(answer, "__aiter__"):
            call = partial(_collected, answer)
            answer, error, more = await call_outside(endpoint, call, None, limit)
            seconds += more
        if isinstance(error, UsageError):
            # Of ours: the retriever needs something to be asked at all.
            raise self._refusal(str(error))
        if error is not None:
            raise to_call_error(self.endpoint, error)
        guard = ErrorGuard()
        with guard:
            documents = read_answer(answer, self.mapping, self.ids)
            facts |= {"ms": seconds * 1000, "returned": len(documents)}
            if scores_rise(answer, self.mapping):
                facts["rising"] = True
            facts["documents"] = [to_plain(found) for found in documents[: self.k]]
        if isinstance(guard.error, CallError):
            raise guard.error
        if guard.error is not None:
            # Objects of others may raise anything when they are looked at.
            kind = "" if isinstance(guard.error, FormatError) else "cannot be read, "
            raise self._refusal(f"{kind}{guard.error}") from guard.error
        return Reply(json.dumps(facts, ensure_ascii=False))

    def _refusal(self, reason: str) -> Refused:
        text = f"{self.endpoint}: {reason}"
        return Refused(text, always=True, unless_answered=True)


async def _collected(documents: AsyncIterator[Any]) -> list[Any]:
    return [document async for document in documents]


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
        self._connection = Connection(self.address, sent)

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
        if may_pass(status):
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
    parts = split_url(url)
    if parts is None or parts.scheme not in {"http", "https"}:
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


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Refuse names that are not about retrieved documents."""
    fields = [name for name in ("retrieved", *INSIDE) if name != "grade"]
    for ours in mapping:
        if ours not in fields:
            raise UnknownNameError("field", ours, fields)


def read_answer(
    answer: Any, mapping: Mapping[str, str], ids: Sequence[Any] | None = None
) -> list[Document | str]:
    """The documents of an answer, best first; a string may be an id or a text."""
    if is_partial(answer):
        raise Transient(PARTIAL, alive=True)
    entries = hits_of(_at_mapping(answer, mapping))
    inside = {ours: theirs for ours, theirs in mapping.items() if ours in INSIDE}
    return [_document(entry, inside, ids) for entry in entries]


def scores_rise(answer: Any, mapping: Mapping[str, str]) -> bool:
    """Whether scores by document have the smallest first, as distances do."""
    inner = _at_mapping(answer, mapping)
    is_scored = isinstance(inner, Mapping) and is_scores(inner)
    return is_scored and all(a < b for a, b in pairwise(inner.values()))


def _at_mapping(answer: Any, mapping: Mapping[str, str]) -> Any:
    """What the caller says holds the documents."""
    path = mapping.get("retrieved")
    if path is None:
        return answer
    inner = value_at(body_of(answer), path)
    if inner is None:
        names = ", ".join(map(str, answer)) if isinstance(answer, Mapping) else ""
        raise FormatError(f"the answer has no {path!r}; it holds {names or 'none'}")
    return inner


def _document(
    entry: Any, inside: Mapping[str, str], ids: Sequence[Any] | None
) -> Document | str:
    entry, score = entry if is_pair(entry) else (entry, None)
    if ids is not None:
        entry = _with_id(entry, ids)
    if isinstance(entry, str) and score is None and not inside:
        return entry
    entry, found = rename(entry, inside)
    for ours in sorted({"document", "text"} & inside.keys() - found.keys()):
        names = ", ".join(names_inside([entry])) or show(entry)
        raise FormatError(f"a document has no {inside[ours]!r}; it has {names}")
    return read_document(entry if score is None else (entry, score), Notes())


def _with_id(entry: Any, ids: Sequence[Any]) -> Any:
    """A document under its own id, where its place in the index is known."""
    entry = table_row(entry) if isinstance(entry, tuple) else entry
    place = ask(entry, IDS) if isinstance(entry, Mapping) else entry
    if isinstance(place, bool) or not hasattr(place, "__index__"):
        raise FormatError(f"ids= needs places in the index, got {show(entry)}")
    if not 0 <= place < len(ids):
        raise FormatError(f"the index has place {place}, and ids= has {len(ids)} ids")
    name = ids[place.__index__()]
    return {**entry, "id": name} if isinstance(entry, Mapping) else str(name)


def to_plain(document: Document | str) -> Any:
    """A document in values that JSON holds."""
    if isinstance(document, str):
        return document
    values = {name: getattr(document, name) for name in _FIELDS}
    plain = {name: value for name, value in values.items() if value is not None}
    metadata = {
        str(name): value
        for name, value in document.metadata.items()
        if isinstance(value, str | int | float) and value == value  # noqa: PLR0124
    }
    return plain | ({"metadata": metadata} if metadata else {})


def documents_from(plain: Sequence[Any]) -> list[Document | str]:
    """The documents that `to_plain` gave."""
    return [p if isinstance(p, str) else Document(**p) for p in plain]
