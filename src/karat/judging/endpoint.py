"""A model behind any OpenAI-compatible endpoint."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from karat.data.judgements import Prompt, Reply
from karat.dispatch.secrecy import scrub
from karat.errors import CallError, MissingExtraError, Refused, UsageError
from karat.judging.addresses import read_address
from karat.judging.complaints import (
    ADDRESS,
    complaint,
    nobody_there,
    retry_after,
    too_long,
    unreachable,
    unsupported,
)
from karat.judging.completions import error_in, read_reply, useless

__all__ = ["OpenAIClient"]

_OPENAI = "https://api.openai.com/v1"
_SCHEMA = "response_format"
_NO_PARAMETERS = {
    *("extra_body", "extra_headers", "extra_query"),
    *("messages", "model", "response_format", "stream"),
}
_LONGEST = "max_tokens"
_LONGEST_WITH_THOUGHTS = "max_completion_tokens"
_LIMITS = {_LONGEST, _LONGEST_WITH_THOUGHTS}
# Twenty verdicts with long reasons are below this; a model that runs on is not.
_MOST_TOKENS = 4096
# Seconds to get a connection: nobody is there, or nobody speaks our language.
_CONNECT = 15


class OpenAIClient:
    """A model behind an OpenAI-compatible endpoint.

    Where and with which key is read from `OPENAI_BASE_URL` and `OPENAI_API_KEY` unless
    given. Replies follow the prompt's JSON schema where the server can enforce one; a
    server that cannot is asked in words, and so is every later prompt. A temperature,
    seed or length of the reply that nobody asked for is left out where a model does not
    take it; one that was asked for is an error there.

    Attributes:
        endpoint: the address, without any secret.
        model: the model's name there.
        parameters: sent with every prompt; temperature 0, a seed and at most 4096
            tokens in a reply unless given. None leaves one out.

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
            raise UsageError(
                f"{min(wrong)} is no parameter to set: karat sends its own"
            )
        self.model = model
        self._given = {**(parameters or {})}
        told: dict[str, Any] = {"temperature": 0, "seed": 0}
        if _LONGEST_WITH_THOUGHTS not in self._given:
            told[_LONGEST] = _MOST_TOKENS
        told |= self._given
        self.parameters: Mapping[str, Any] = {
            name: value for name, value in told.items() if value is not None
        }
        url = base_url or os.environ.get(ADDRESS) or _OPENAI
        self._where = "--base-url" if base_url else ADDRESS
        self._reached = False
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
        limited = True
        while True:
            system, sent = self._request(prompt, limited=limited)
            answer = await self._send(system, prompt.user, sent)
            if isinstance(answer, Reply):
                return answer
            status, body, problem = answer
            refused = unsupported(status, body, sent)
            if refused is not None:
                self._leave_out(refused, problem)
            elif too_long(status, body) and _LIMITS & sent.keys():
                # Some servers want room for the longest reply; a shorter one may fit.
                limited = False
            else:
                raise problem

    def _leave_out(self, name: str, problem: CallError) -> None:
        """Send this no longer; what the user asked for is not dropped in silence."""
        if name in self._given and name != _LONGEST:
            raise Refused(
                f"{self.endpoint} does not take {name}={self._given[name]!r} for model "
                f"{self.model!r}; change the parameter or leave it out",
                detail=problem.detail,
                always=True,
            )
        # Remembered, so that only the first prompts pay this round trip.
        self._refused.add(name)

    def _request(self, prompt: Prompt, *, limited: bool) -> tuple[str, dict[str, Any]]:
        """The instruction as this server needs it, and what else is sent."""
        system = prompt.system
        sent = {k: v for k, v in self.parameters.items() if k not in self._refused}
        if _LONGEST in self._refused and _LONGEST_WITH_THOUGHTS not in self._refused:
            sent[_LONGEST_WITH_THOUGHTS] = self.parameters[_LONGEST]
        if not limited:
            sent = {k: v for k, v in sent.items() if k not in _LIMITS}
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
        return system, sent

    async def _send(
        self, system: str, user: str, sent: Mapping[str, Any]
    ) -> Reply | tuple[int, object, CallError]:
        """One request: its reply, or the server's complaint."""
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        async with self.session():
            api, library = self._api()
            status, body = 0, None
            try:
                # As the body: servers take parameters that the library does not know.
                raw = await api.chat.completions.with_raw_response.create(
                    model=self.model, messages=messages, extra_body=sent
                )
                status, body = raw.http_response.status_code, raw.http_response.content
            except library.APIStatusError as error:
                self._reached = True
                status, body = error.status_code, error.body
                problem = self._complaint(
                    status, body, retry_after(error.response.headers)
                )
            except library.APIConnectionError as error:
                told = (self.endpoint, self._where, self._clean)
                problem = unreachable(error, *told, known=self._reached)
            else:
                self._reached = True
                return self._read(body)
        # Handed on, not raised in there: the library's errors hold requests, and
        # those hold the key.
        return status, body, problem

    def _read(self, content: bytes) -> Reply | tuple[int, object, CallError]:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            if content.lstrip()[:1] == b"<":
                answer = "it answers with a web page"
                page = nobody_there(self.endpoint, answer, self._where)
                return 0, None, Refused(page, always=True)
            return 0, None, useless(self.endpoint, "is not whole JSON")
        if (refused := error_in(body)) is not None:
            return *refused, self._complaint(*refused)
        # A reply loses the key alone: it must not depend on the environment else.
        key = self._key or os.environ.get("OPENAI_API_KEY", "").strip()
        found = read_reply(body, self.endpoint, self.model, key)
        return found if isinstance(found, Reply) else (0, None, found)

    def _complaint(
        self, status: int, body: object, wait: float | None = None
    ) -> CallError:
        told = (self.endpoint, self.model, self._clean, wait, self._where)
        return complaint(status, body, *told)

    def _clean(self, text: str) -> str:
        return scrub(text, [self._key])

    def _api(self) -> tuple[Any, Any]:
        """The library's client for the event loop that is running, and the library."""
        try:
            import openai  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("asking a model", "llm") from None
        loop = asyncio.get_running_loop()
        api, users = self._open[loop]
        if api is None:
            patience = openai.Timeout(None, connect=_CONNECT)
            api = openai.AsyncOpenAI(
                api_key=self._key_to_send(),
                base_url=self.endpoint,
                default_query=self._query,
                # The driver retries and keeps the time of calls; redirects could lead
                # texts to where they may not go.
                max_retries=0,
                timeout=patience,
                http_client=openai.DefaultAsyncHttpxClient(
                    follow_redirects=False, timeout=patience
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
