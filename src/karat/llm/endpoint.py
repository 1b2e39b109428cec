"""A model behind any OpenAI-compatible endpoint."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, Refused, UsageError
from karat.llm.addresses import read_address, with_query
from karat.llm.completions import error_in, read_reply, useless
from karat.llm.connecting import broken, connect, library, post
from karat.llm.secrecy import scrub
from karat.llm.sending import check_parameters, read_key, sendable
from karat.llm.server_errors import (
    ADDRESS,
    complaint,
    nobody_there,
    read_error,
    retry_after,
    too_long,
    unsupported,
)

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
        if model != sendable(model):
            raise UsageError(
                "the model's name holds bytes that are no UTF-8; type it anew"
            )
        if wrong := _NO_PARAMETERS.intersection(parameters or {}):
            # Parameters are kept in the journal, where no key may be.
            raise UsageError(
                f"{min(wrong)} is no parameter to set: karat sends its own"
            )
        self._key = read_key(api_key) if api_key else None
        check_parameters({"model": model, **(parameters or {})}, self._key)
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
        self._address, self._query = read_address(url)
        self.endpoint = with_query(self._address, self._query)
        self._refused: set[str] = set()
        self._open: dict[asyncio.AbstractEventLoop, tuple[Any, int]] = {}

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.endpoint!r})"

    def prepare(self) -> None:
        """Load what takes a while, before the time of a call is kept."""
        library()

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
        limited, refused = True, set(self._refused)
        while True:
            system, sent = self._request(prompt, refused, limited=limited)
            answer = await self._send(system, prompt.user, sent)
            if isinstance(answer, Reply):
                # Remembered once it helped, so that only the first prompts pay this
                # round trip, and no complaint that merely quotes a word decides.
                self._refused |= refused
                return answer
            status, body, problem = answer
            said = f"{system}\n{prompt.user}"
            name = unsupported(status, body, sent, said)
            if name is not None:
                refused.add(self._droppable(name, problem))
            elif too_long(status, body, said) and _LIMITS & sent.keys():
                # Some servers want room for the longest reply; a shorter one may fit.
                limited = False
            else:
                raise problem

    @property
    def dropped(self) -> tuple[str, ...]:
        """Which parts of a request this server did not take, and is not sent now."""
        return tuple(sorted(self._refused))

    def _droppable(self, name: str, problem: CallError) -> str:
        """The name again; what the user asked for is not dropped in silence."""
        if name in self._given and name != _LONGEST:
            raise Refused(
                f"{self.endpoint} does not take {name}={self._given[name]!r} for model "
                f"{self.model!r}; change the parameter or leave it out",
                detail=problem.detail,
                always=True,
            )
        return name

    def _request(
        self, prompt: Prompt, refused: set[str], *, limited: bool
    ) -> tuple[str, dict[str, Any]]:
        """The instruction as this server needs it, and what else is sent."""
        system = prompt.system
        sent = {k: v for k, v in self.parameters.items() if k not in refused}
        if _LONGEST in refused and _LONGEST_WITH_THOUGHTS not in refused:
            sent[_LONGEST_WITH_THOUGHTS] = self.parameters[_LONGEST]
        if not limited:
            sent = {k: v for k, v in sent.items() if k not in _LIMITS}
        if prompt.schema is not None:
            schema = json.dumps(prompt.schema, default=dict)
            if _SCHEMA in refused:
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
            {"role": "system", "content": sendable(system)},
            {"role": "user", "content": sendable(user)},
        ]
        async with self.session():
            # As the body: servers take parameters that the library does not know.
            answer = await post(
                self._api(), model=self.model, messages=messages, extra_body=sent
            )
        if isinstance(answer, Exception):
            told = (self.endpoint, self._where, self._clean)
            return 0, None, broken(answer, *told, known=self._reached)
        self._reached = True
        if answer.content is None:
            return 0, None, useless(self.endpoint, "is longer than 16 MB")
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return self._read(answer.content)
        status, said = answer.status, read_error(answer.content)
        wait, text = retry_after(answer.headers), f"{system}\n{user}"
        return status, said, self._complaint(status, said, wait, text)

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
        found = read_reply(body, self.endpoint, self.model, self._secret())
        return found if isinstance(found, Reply) else (0, None, found)

    def _complaint(
        self, status: int, body: object, wait: float | None = None, sent: str = ""
    ) -> CallError:
        told = (self.endpoint, self.model, self._clean, wait, self._where)
        return complaint(status, body, *told, sent=sent)

    def _clean(self, text: str) -> str:
        return scrub(text, [self._secret()])

    def _secret(self) -> str | None:
        """The key, whatever is in it."""
        return self._key or os.environ.get("OPENAI_API_KEY")

    def _api(self) -> Any:
        """The library's client for the event loop that is running."""
        loop = asyncio.get_running_loop()
        api, users = self._open[loop]
        if api is None:
            key = read_key(self._key)
            if not key and self._address == _OPENAI:
                raise UsageError(
                    "no API key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server of "
                    "your own, such as http://127.0.0.1:8080/v1"
                )
            api = connect(self._address, self._query, key)
            self._open[loop] = (api, users)
        return api
