"""A model behind any OpenAI-compatible endpoint."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, Refused, UsageError
from karat.llm.chat_client import ChatModel, read_stream, shortened, unusable_reply
from karat.llm.credentials import (
    check_headers,
    check_parameters,
    read_key,
    replace_surrogates,
    request_headers,
)
from karat.llm.http import Connection, connection_error, load_httpx, read_address
from karat.llm.server_errors import (
    ADDRESS,
    STREAM_ONLY,
    SYSTEM_ROLE,
    ServerError,
    read_error,
    retry_after,
    wrong_address,
)

log = logging.getLogger("karat")
_OPENAI = "https://api.openai.com/v1"
_SCHEMA = "response_format"
# Set by the client itself. Headers may hold a key, and parameters are kept.
_RESERVED = {
    *("extra_body", "extra_headers", "extra_query"),
    *("messages", "model", _SCHEMA, "stream"),
}
_MAX_TOKENS = "max_tokens"
_MAX_COMPLETION_TOKENS = "max_completion_tokens"
_LIMITS = {_MAX_TOKENS, _MAX_COMPLETION_TOKENS}
# Twenty verdicts with long reasons are below this; a model that does not stop is not.
_DEFAULT_MAX_TOKENS = 4096
# What is done in place of a part that a server does not take.
_INSTEAD = {
    _SCHEMA: "the schema is sent in words",
    SYSTEM_ROLE: "the instruction is sent with the question",
    STREAM_ONLY: "replies are read as streams",
}


class OpenAIClient(ChatModel):
    """A model behind an OpenAI-compatible endpoint.

    Address and key default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`. Replies follow
    the prompt's JSON schema where the server can enforce one; a server that cannot is
    given the schema in words from then on. A default parameter that a model does not
    take is left out; a given one is an error there. `headers` are sent with every
    request and never shown, such as the key of a gateway.

    Attributes:
        endpoint: the address, without any secret.
        model: the model's name there.
        parameters: sent with every prompt (defaults: temperature 0, seed 0,
            max_tokens 4096). None leaves one out.

    Example:
        >>> OpenAIClient("tiny", base_url="http://127.0.0.1:8080/v1/").endpoint
        'http://127.0.0.1:8080/v1'
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
        self._address, self._query = read_address(url)
        # Two versions of an interface are two endpoints.
        query = f"?{urlencode(self._query)}" if self._query else ""
        self.endpoint = f"{self._address}{query}"
        self._has_responded = False
        self._has_taken_schema = False
        self._unsupported: set[str] = set()
        self._open: dict[asyncio.AbstractEventLoop, tuple[Connection | None, int]] = {}

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.endpoint!r})"

    def prepare(self) -> None:
        """Import the HTTP library, before the time of a call is measured."""
        load_httpx()

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
        """The model's answer to a prompt."""
        limited, unsupported = True, set(self._unsupported)
        while True:
            messages, options = self._request(prompt, unsupported, limited=limited)
            result = await self._send(messages, options)
            if isinstance(result, Reply):
                self._has_taken_schema |= _SCHEMA in options
                # Remembered once it helped: later prompts need no second request, and
                # an error that merely quotes a parameter's name changes nothing.
                for part in unsupported - self._unsupported:
                    instead = _INSTEAD.get(part, "it is left out")
                    log.warning("%s does not take %s; %s", self.endpoint, part, instead)
                self._unsupported |= unsupported
            elif isinstance(result, ServerError):
                parts = [*options, SYSTEM_ROLE, STREAM_ONLY]
                name = result.unsupported(p for p in parts if p not in unsupported)
                # Some servers refuse a schema without a word.
                may_be_schema = _SCHEMA in options and not self._has_taken_schema
                if name is None and may_be_schema and result.is_bare:
                    name = _SCHEMA
                if name is not None:
                    self._check_not_given(name, result)
                    unsupported.add(name)
                    continue
                if result.too_long and _LIMITS & options.keys():
                    # Some servers reserve room for the longest reply.
                    limited = False
                    continue
            return self._finish(result)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The parts of a request that this server does not take."""
        return tuple(sorted(self._unsupported))

    def _check_not_given(self, name: str, error: ServerError) -> None:
        """Refuse to drop a parameter that the user asked for."""
        if name in self._given and name != _MAX_TOKENS:
            names = (self.endpoint, self.model, self._redact)
            raise Refused(
                f"{self.endpoint} does not take {name}={self._given[name]!r} for model "
                f"{self.model!r}; change the parameter or leave it out",
                detail=error.explain(*names).detail,
                always=True,
            )

    def _request(
        self, prompt: Prompt, unsupported: set[str], *, limited: bool
    ) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """The messages and the options of a request, as this server takes them."""
        system, user = prompt.system, prompt.user
        options = {k: v for k, v in self.parameters.items() if k not in unsupported}
        if _MAX_TOKENS in unsupported and _MAX_COMPLETION_TOKENS not in unsupported:
            options[_MAX_COMPLETION_TOKENS] = self.parameters[_MAX_TOKENS]
        if not limited:
            options = {k: v for k, v in options.items() if k not in _LIMITS}
        if prompt.schema is not None:
            schema = json.dumps(prompt.schema, default=dict)
            if _SCHEMA in unsupported:
                system += f"\n\nReply with JSON only, of this JSON schema: {schema}"
            else:
                form = {"name": prompt.name, "schema": json.loads(schema)}
                form["strict"] = True
                options[_SCHEMA] = {"type": "json_schema", "json_schema": form}
        if STREAM_ONLY in unsupported:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        texts = {"system": system, "user": user}
        if SYSTEM_ROLE in unsupported:
            texts = {"user": f"{system}\n\n{user}"}
        messages = [
            {"role": role, "content": replace_surrogates(text)}
            for role, text in texts.items()
        ]
        return messages, options

    async def _send(
        self, messages: list[dict[str, str]], options: Mapping[str, Any]
    ) -> Reply | ServerError | CallError:
        """The result of one request."""
        async with self.session():
            response = await self._connection().post(
                {"model": self.model, "messages": messages, **options}
            )
        names = (self.endpoint, self._source, self._redact)
        if isinstance(response, Exception):
            before = self._has_responded
            return connection_error(response, *names, answered_before=before)
        self._has_responded = True
        status, headers, content = response
        sent = "\n".join(message["content"] for message in messages)
        if content is None:
            return unusable_reply(self.endpoint, "is longer than 16 MB")
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return ServerError(status, read_error(content), sent, retry_after(headers))
        try:
            result = self._read(read_stream(content) or json.loads(content), sent)
        except (ValueError, RecursionError):
            result = unusable_reply(self.endpoint, "is not complete JSON")
            if content.lstrip()[:1] == b"<":
                page = "it answers with a web page"
                reason = wrong_address(self.endpoint, page, self._source)
                result = Refused(reason, always=True)
        if isinstance(result, Reply):
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
            key = read_key(self._key)
            if not key and not self._headers and self._address == _OPENAI:
                raise UsageError(
                    "no API key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server of "
                    "your own, such as http://127.0.0.1:8080/v1"
                )
            headers = request_headers(self._address, key, self._headers)
            connection = Connection(self._address, self._query, headers)
            self._open[loop] = (connection, users)
        return connection
