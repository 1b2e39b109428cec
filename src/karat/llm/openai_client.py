"""A model behind any OpenAI-compatible endpoint."""

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import CallError, Refused, UsageError
from karat.llm.chat_client import (
    ChatModel,
    billed_for,
    chat_messages,
    read_stream,
    shortened,
    unusable_reply,
)
from karat.llm.credentials import (
    check_headers,
    check_parameters,
    read_key,
    replace_surrogates,
    request_headers,
)
from karat.llm.http import (
    ADDRESS,
    BAD_REQUEST,
    Connection,
    ServerError,
    check_compatible,
    connection_error,
    load_httpx,
    read_address,
    read_error,
    retry_after,
    wrong_address,
)
from karat.llm.limits import schema_text

log = logging.getLogger("karat")
_OPENAI = "https://api.openai.com/v1"
_SCHEMA = "response_format"
_SYSTEM = "system role"
_NO_STREAM = "requests without stream"
_MAX_TOKENS = "max_tokens"
_MAX_COMPLETION_TOKENS = "max_completion_tokens"
_LENGTH = "a limit of length"
_LIMITS = (_MAX_TOKENS, _MAX_COMPLETION_TOKENS)
# Set by the client itself. Headers may hold a key, and parameters are kept.
_RESERVED = {
    *("extra_body", "extra_headers", "extra_query"),
    *("messages", "model", _SCHEMA, "stream"),
}
# Twenty verdicts with long reasons are below this; a model that does not stop is not.
_DEFAULT_MAX_TOKENS = 4096
# The parts of a request that servers may not take, the likeliest first: words that
# errors have for each, and what is done without it. Words decide only on the order in
# which parts are left out: they may be quoted from a prompt.
_PARTS: Mapping[str, tuple[str, str]] = {
    _SCHEMA: (_SCHEMA, "the schema is sent in words"),
    "seed": ("seed", "it is left out"),
    "temperature": ("temperature", "it is left out"),
    _SYSTEM: ("system|roles?", "the instruction is sent with the question"),
    _NO_STREAM: ("stream", "replies are read as streams"),
    _MAX_TOKENS: (_MAX_TOKENS, f"{_MAX_COMPLETION_TOKENS} is sent"),
    _LENGTH: (_MAX_COMPLETION_TOKENS, "no limit is sent"),
}


class OpenAIClient(ChatModel):
    """A model behind an OpenAI-compatible endpoint.

    Address and key default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`. Replies follow
    the prompt's JSON schema where the server can enforce one. Where a server refuses a
    request, its parts are left out in turn, and what helped is remembered: the schema
    then comes in words, a default parameter not at all; a given one is an error there.
    `headers` are sent with every request and never shown, such as the key of a gateway.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not model.strip():
            raise UsageError("a model has no name; give one, as in --model gpt-4o-mini")
        if model != replace_surrogates(model):
            raise UsageError("the model's name is not valid UTF-8; type it again")
        self._given = dict(parameters or {})
        # Parts that this server does not take, and those that it has taken before.
        self.left_out: frozenset[str] = frozenset()
        self._proven: set[str] = set()
        if _SCHEMA in self._given and self._given[_SCHEMA] is None:
            del self._given[_SCHEMA]
            self.left_out |= {_SCHEMA}
        if reserved := _RESERVED.intersection(self._given):
            raise UsageError(
                f"{min(reserved)} is not a parameter to set: karat sends its own"
            )
        self._headers = dict(headers or {})
        check_headers(self._headers)
        self._key = read_key(api_key) if api_key else None
        check_parameters({"model": model, **self._given}, self._key)
        self.model = self.label = model
        defaults: dict[str, Any] = {"temperature": 0, "seed": 0}
        if _MAX_COMPLETION_TOKENS not in self._given:
            defaults[_MAX_TOKENS] = _DEFAULT_MAX_TOKENS
        self.parameters: Mapping[str, Any] = {
            name: value
            for name, value in (defaults | self._given).items()
            if value is not None
        }
        url = base_url or os.environ.get(ADDRESS) or _OPENAI
        self._source = "--base-url" if base_url else ADDRESS
        self._address, query = read_address(url)
        check_compatible(self._address)
        # Two versions of an interface are two endpoints.
        version = f"?{urlencode(query)}" if query else ""
        self.endpoint = f"{self._address}{version}"
        self._url = f"{self._address}/chat/completions{version}"
        self._has_responded = False
        self._open: dict[asyncio.AbstractEventLoop, tuple[Connection | None, int]] = {}

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.endpoint!r})"

    def prepare(self) -> None:
        """Import the HTTP library, and refuse what no call can be made without."""
        load_httpx()
        self._read_key()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keep connections open until the last session on this event loop ends."""
        loop = asyncio.get_running_loop()
        connection, users = self._open.get(loop, (None, 0))
        self._open[loop] = (connection, users + 1)
        try:
            yield
        finally:
            connection, users = self._open.pop(loop)
            if users > 1:
                self._open[loop] = (connection, users - 1)
            elif connection is not None:
                await connection.close()

    async def complete(self, prompt: Prompt) -> Reply:
        """The model's answer to a prompt.

        A part that makes a difference where it is left out is one that the server does
        not take; a refusal that stays the same without it is not about that part.
        """
        left_out, learned, billed = self.left_out, frozenset[str](), Usage()
        result = await self._send(prompt, left_out)
        while isinstance(result, ServerError):
            for parts in self._suspects(result, prompt, left_out):
                users = parts & (self._given.keys() - {_MAX_TOKENS})
                for name in users:
                    if _names(result, name) and name not in prompt.user:
                        # Not in a quote: no reply needs to be paid for to know.
                        raise self._not_taken(name, result, billed + billed_for(result))
                attempt = await self._send(prompt, left_out | parts)
                if users and isinstance(attempt, Reply):
                    billed += billed_for(result) + billed_for(attempt)
                    raise self._not_taken(min(users), result, billed)
                if not result.repeats(attempt) and not (
                    users and isinstance(attempt, ServerError)
                ):
                    break
                billed += billed_for(attempt)
            else:
                break
            billed += billed_for(result)
            # One prompt without room for the longest reply says nothing of others.
            learned |= frozenset() if result.too_long else parts
            left_out, result = left_out | parts, attempt
        if isinstance(result, Reply):
            self._remember(prompt, left_out, learned)
        return self._finish(result, billed)

    def _suspects(
        self, error: ServerError, prompt: Prompt, left_out: frozenset[str]
    ) -> list[frozenset[str]]:
        """What to leave out of a request after an error, in turn.

        The parts that it names; those that the server has never taken, if it only says
        that the request is bad; and all at once, since several may be refused without
        a word on which.
        """
        if not error.may_be_a_part:
            return []
        parts = self._parts(prompt, left_out)
        if error.too_long:
            # Some servers reserve room for the longest reply.
            return [frozenset({_LENGTH})] if _LENGTH in parts else []
        suspects = [p for p in parts if _names(error, p)]
        if error.status in BAD_REQUEST:
            suspects += [p for p in parts if _proof(p, prompt) not in self._proven]
        ours = frozenset(suspects) - self._given.keys()
        alone = [frozenset({part}) for part in dict.fromkeys(suspects)]
        return [*alone, ours] if len(ours) > 1 else alone

    def _parts(self, prompt: Prompt, left_out: frozenset[str]) -> list[str]:
        """The parts of a request that could be left out of it."""
        options = self._request(prompt, left_out)
        own = {_SYSTEM, _NO_STREAM, _LENGTH} - left_out
        if not options.keys() & {*_LIMITS}:
            own -= {_LENGTH}
        every = [part for part in _PARTS if part in options or part in own]
        return [*every, *(name for name in self._given if name in options)]

    def _remember(
        self, prompt: Prompt, left_out: frozenset[str], learned: frozenset[str]
    ) -> None:
        """Keep what helped, so that later prompts need no second request."""
        parts = self._parts(prompt, left_out)
        self._proven.update(_proof(part, prompt) for part in parts)
        for part in learned - self.left_out:
            instead = _PARTS[part][1]
            log.warning("%s does not take %s; %s", self.endpoint, part, instead)
        self.left_out |= learned

    def _not_taken(self, name: str, error: ServerError, billed: Usage) -> Refused:
        """A parameter that the user asked for is not left out silently."""
        return Refused(
            f"{self.endpoint} does not take {name}={self._given[name]!r} for model "
            f"{self.model!r}; change the parameter or leave it out",
            detail=error.explain(self.endpoint, self.model, self._redact).detail,
            always=True,
            tokens=(billed.prompt_tokens, billed.completion_tokens),
        )

    def _request(self, prompt: Prompt, left_out: frozenset[str]) -> dict[str, Any]:
        """The body of a request without some of its parts."""
        system, user = prompt.system, prompt.user
        options = {k: v for k, v in self.parameters.items() if k not in left_out}
        if _MAX_TOKENS in left_out and _MAX_TOKENS in self.parameters:
            options[_MAX_COMPLETION_TOKENS] = self.parameters[_MAX_TOKENS]
        if _LENGTH in left_out:
            options = {k: v for k, v in options.items() if k not in _LIMITS}
        if prompt.schema is not None:
            schema = schema_text(prompt.schema)
            if _SCHEMA in left_out:
                system += f"\n\nReply with JSON only, of this JSON schema: {schema}"
            else:
                form = {"name": prompt.name, "schema": json.loads(schema)}
                form["strict"] = True
                options[_SCHEMA] = {"type": "json_schema", "json_schema": form}
        if _NO_STREAM in left_out:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        messages = chat_messages(system=system, user=user)
        if _SYSTEM in left_out:
            messages = chat_messages(user=f"{system}\n\n{user}")
        return {"model": self.model, "messages": messages, **options}

    async def _send(
        self, prompt: Prompt, left_out: frozenset[str]
    ) -> Reply | ServerError | CallError:
        """The result of one request."""
        request = self._request(prompt, left_out)
        async with self.session():
            response = await self._connection().send("POST", self._url, request)
        if isinstance(response, Exception):
            return connection_error(
                response,
                self.endpoint,
                self._source,
                self._redact,
                answered_before=self._has_responded,
            )
        self._has_responded = True
        status, headers, content = response
        if content is None:
            return unusable_reply(self.endpoint, "is longer than 16 MB")
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return ServerError(status, read_error(content), retry_after(headers))
        try:
            result = self._read(read_stream(content) or json.loads(content))
        except (ValueError, RecursionError):
            result = unusable_reply(self.endpoint, "is not complete JSON")
            if content.lstrip()[:1] == b"<":
                page = "it answers with a web page"
                reason = wrong_address(self.endpoint, page, self._source)
                result = Refused(reason, always=True)
        if isinstance(result, Reply):
            sent = "\n".join(message["content"] for message in request["messages"])
            return shortened(result, sent, self.endpoint) or result
        return result

    def _secrets(self) -> list[str]:
        key = self._key or os.environ.get("OPENAI_API_KEY") or ""
        return [key, *self._headers.values()]

    def _connection(self) -> Connection:
        """The connections for the event loop that is running."""
        loop = asyncio.get_running_loop()
        connection, users = self._open[loop]
        if connection is None:
            headers = request_headers(self._address, self._read_key(), self._headers)
            connection = Connection(self._address, headers)
            self._open[loop] = (connection, users)
        return connection

    def _read_key(self) -> str:
        key = read_key(self._key)
        if not key and not self._headers and self._address == _OPENAI:
            raise UsageError(
                "no API key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server of "
                "your own, such as http://127.0.0.1:8080/v1"
            )
        return key


def _names(error: ServerError, part: str) -> bool:
    """Whether an error has words for a part of the request."""
    return error.says(_PARTS[part][0] if part in _PARTS else re.escape(part))


def _proof(part: str, prompt: Prompt) -> str:
    """The name of a part that a server has taken; a schema, for one kind of prompt."""
    return f"{part} {prompt.name}" if part == _SCHEMA else part
