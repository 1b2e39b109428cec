"""A model behind any OpenAI-compatible endpoint."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from karat.data.judgements import Prompt, Reply, Usage
from karat.dispatch.secrecy import scrub
from karat.errors import CallError, MissingExtraError, Refused, Transient, UsageError
from karat.judging.complaints import complaint, retry_after, unsupported

__all__ = ["OpenAIClient", "read_address", "read_usage", "read_word", "without_key"]

_OPENAI = "https://api.openai.com/v1"
_HARMLESS_QUERY = {"api-version"}
_SCHEMA = "response_format"
_NO_PARAMETERS = {"extra_headers", "extra_query", "messages", "model", "stream"}
_SHORTEST_KEY = 8


class OpenAIClient:
    """A model behind an OpenAI-compatible endpoint.

    Where and with which key is read from `OPENAI_BASE_URL` and `OPENAI_API_KEY` unless
    given. Replies follow the prompt's JSON schema where the server can enforce one; a
    server that cannot is asked in words, and so is every later prompt. The same goes
    for a temperature or seed that a model does not take.

    Attributes:
        endpoint: the address, without any secret.
        model: the model's name there.
        parameters: sent with every prompt; temperature 0 and a seed unless given.

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
    ) -> None:
        if not model.strip():
            raise UsageError("a model has no name; give one, as in --model gpt-4o-mini")
        if wrong := _NO_PARAMETERS.intersection(parameters or {}):
            # Parameters are kept in the journal, where no key may be.
            raise UsageError(f"{min(wrong)} is no parameter of a model")
        self.model = model
        self.parameters: Mapping[str, Any] = {
            "temperature": 0,
            "seed": 0,
            **(parameters or {}),
        }
        url = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
        self.endpoint, self._query = read_address(url)
        self._key = api_key
        self._refused: set[str] = set()
        self._open: dict[asyncio.AbstractEventLoop, tuple[Any, int]] = {}

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.endpoint!r})"

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keep connections open for as long as anyone on this event loop needs them."""
        loop = asyncio.get_running_loop()
        api, users = self._open.get(loop, (None, 0))
        self._open[loop] = (api, users + 1)
        try:
            yield
        finally:
            api, users = self._open.pop(loop)
            if users > 1:
                self._open[loop] = (api, users - 1)
            elif api is not None:
                await api.close()

    async def complete(self, prompt: Prompt) -> Reply:
        """The model's answer to a prompt."""
        while True:
            request = self._request(prompt)
            answer = await self._send(request)
            if isinstance(answer, Reply):
                return answer
            status, body, problem = answer
            refused = unsupported(status, body, self._optional(request))
            if refused is None:
                raise problem
            # Remembered, so that only the first prompts pay this round trip.
            self._refused.add(refused)

    def _optional(self, request: Mapping[str, Any]) -> list[str]:
        names = (_SCHEMA, *self.parameters)
        return [name for name in names if name in request]

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        system = prompt.system
        sent = {k: v for k, v in self.parameters.items() if k not in self._refused}
        if prompt.schema is not None:
            schema = json.dumps(prompt.schema, default=dict)
            if _SCHEMA in self._refused:
                system += f"\n\nReply with JSON only, of this JSON schema: {schema}"
            else:
                form = {
                    "name": prompt.name,
                    "schema": json.loads(schema),
                    "strict": True,
                }
                sent[_SCHEMA] = {"type": "json_schema", "json_schema": form}
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": prompt.user},
        ]
        return {"model": self.model, "messages": messages, **sent}

    async def _send(
        self, request: dict[str, Any]
    ) -> Reply | tuple[int, object, CallError]:
        """One request: its reply, or the server's complaint."""
        async with self.session():
            api, library = self._api()
            status, body = 0, None
            try:
                raw = await api.chat.completions.with_raw_response.create(**request)
                status, body = raw.http_response.status_code, raw.http_response.content
            except library.APIStatusError as error:
                status, body = error.status_code, error.body
                problem = self._complaint(
                    status, body, retry_after(error.response.headers)
                )
            except library.APIConnectionError as error:
                problem = Transient(
                    f"cannot reach {self.endpoint}; is the server running, and is "
                    "OPENAI_BASE_URL right?",
                    detail=self._clean(_cause(error)),
                    paid=isinstance(error, library.APITimeoutError),
                )
            else:
                return self._read(body)
        # Handed on, not raised in there: the library's errors hold requests, and
        # those hold the key.
        return status, body, problem

    def _read(self, content: bytes) -> Reply | tuple[int, object, CallError]:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            return 0, None, self._useless("is not whole JSON")
        match body:
            case {"choices": [{"message": {} as message, **choice}, *_]}:
                pass
            case {"error": {"code": int(status)} as error}:
                return status, error, self._complaint(status, error)
            case _:
                return 0, None, self._useless("holds no message")
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            problem = Refused(f"model {self.model!r} declined to answer this prompt")
            return 0, None, problem
        text = _text(message.get("content"))
        if not text.strip():
            return 0, None, self._useless("is empty")
        return Reply(
            self._without_key(text),
            read_usage(body.get("usage")),
            read_word(body.get("id")),
            read_word(body.get("model")),
        )

    def _useless(self, how: str) -> Transient:
        return Transient(f"the reply of {self.endpoint} {how}", paid=True)

    def _complaint(
        self, status: int, body: object, wait: float | None = None
    ) -> CallError:
        return complaint(status, body, self.endpoint, self.model, self._clean, wait)

    def _clean(self, text: str) -> str:
        return scrub(text, [self._key])

    def _without_key(self, text: str) -> str:
        """A reply loses the key alone: it must not depend on the environment else."""
        key = self._key or os.environ.get("OPENAI_API_KEY", "").strip()
        return without_key(text, key)

    def _api(self) -> tuple[Any, Any]:
        """The library's client for the event loop that is running, and the library."""
        try:
            import openai  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("asking a model", "llm") from None
        loop = asyncio.get_running_loop()
        api, users = self._open[loop]
        if api is None:
            api = openai.AsyncOpenAI(
                api_key=self._key_to_send(),
                base_url=self.endpoint,
                default_query=self._query,
                # The driver retries and keeps the time; redirects could lead texts
                # to where they may not go.
                max_retries=0,
                timeout=None,
                http_client=openai.DefaultAsyncHttpxClient(
                    follow_redirects=False, timeout=None
                ),
            )
            self._open[loop] = (api, users)
        return api, openai

    def _key_to_send(self) -> str:
        key = self._key or os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and self.endpoint == _OPENAI:
            raise UsageError(
                "no API key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server of "
                "your own, such as http://127.0.0.1:8080/v1"
            )
        # Servers of one's own mostly want no key, but the library wants one.
        return key or "none"


def read_address(url: str) -> tuple[str, dict[str, str]]:
    """The address and its harmless query; one with a secret in it is refused."""
    parts = urlsplit(url.strip())
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        # Not shown: a key pasted into the wrong variable would be.
        raise UsageError(
            "OPENAI_BASE_URL is no address of a server; it looks like "
            "http://127.0.0.1:8080/v1"
        )
    if parts.username or parts.password or set(query) - _HARMLESS_QUERY:
        raise UsageError(
            f"the address of {parts.hostname} must hold no user, password or query, "
            "since addresses are logged; put the key into OPENAI_API_KEY"
        )
    bare = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return bare, query


def without_key(text: str, key: str | None) -> str:
    """A reply without the key, should it quote it; `none` and the like are no key."""
    return text.replace(key, "***") if key and len(key) >= _SHORTEST_KEY else text


def _cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


def _text(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def read_usage(counts: object) -> Usage:
    """The tokens that a server counted, or none."""
    if not isinstance(counts, dict):
        return Usage()
    numbers = (counts.get("prompt_tokens"), counts.get("completion_tokens"))
    return Usage(*(n if isinstance(n, int) and n > 0 else 0 for n in numbers))


def read_word(value: object) -> str | None:
    """A name that a server gave, if it is one."""
    return value if isinstance(value, str) else None
