"""What an error of a server means, in a sentence that says what to do."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus

from karat.errors import CallError, Refused, Transient

ADDRESS = "OPENAI_BASE_URL"
"""The variable that holds the address of a server."""
MAX_DETAIL = 300
"""The most characters shown of a server's own words."""
BAD_REQUEST = frozenset({400, 415, 422})
"""What servers answer to a request with a part that they do not take."""
_OVERLOADED = 529
_REFUSED = range(400, 500)
_RETRIED = {408, 409, 425, 429}
_BROKEN = 500
_WRONG_ADDRESS = {404, 405, 501}
_MAY_BE_THE_PROMPT = {403, 404}
_MAY_BE_A_PART = {*BAD_REQUEST, 404, 500, 501}
_MODERATION = "moderation|flagged|content[ _]policy"
_UNKNOWN = "models?|deployment|DeploymentNotFound"
_TOO_LONG = (
    "context[ _]length|context size|context window|prompt is too long|"
    "input token count|max_new_tokens"
)
# In a code or type, never in a message: that may quote a prompt, or advertise a plan.
_NO_CREDIT = ("insufficient_quota", "billing", "credit", "balance")
# Codes and parameters of errors about a text.
_ABOUT_TEXTS = {
    *("messages", "prompt", "input", "content_filter", "content_policy_violation"),
}
# Where errors hold their messages. What FastAPI calls input quotes the request.
_MESSAGE_FIELDS = ("error", "errors", "loc", "message", "msg", "code", "detail")
_MAX_DEPTH = 8
# The beginning says what is wrong; the rest is quotes.
_MAX_MESSAGE = 20_000
_NUMBER = re.compile(r"[0-9a-f-]*[0-9][0-9a-f-]*")


@dataclass(frozen=True)
class ServerError:
    """A status, and the body that came with it."""

    status: int
    body: object
    wait: float | None = None
    tokens: tuple[int, int] | None = None

    @cached_property
    def message(self) -> str:
        """The message in the body, in whichever field it is."""
        body = self.body
        if isinstance(body, bytes):
            body = body.decode("utf-8", "replace")
        text = " ".join(" ".join(_texts(body))[:_MAX_MESSAGE].split())
        # A web page is no help to anyone.
        return "" if text.startswith("<") else text

    def says(self, words: str) -> bool:
        """Whether the message, or the parameter it is about, holds words of a pattern.

        It may be quoting the prompt: what is done about an error must not rest on it.
        """
        text = f"{self.message} {self._field('param')}"
        return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None

    def repeats(self, other: object) -> bool:
        """Whether it says the same as another, but for numbers."""
        if not isinstance(other, ServerError) or self.status != other.status:
            return False
        one, two = (_NUMBER.sub("", e.message.lower()) for e in (self, other))
        return one == two

    @property
    def too_long(self) -> bool:
        """Whether the prompt, with room for the reply, exceeds what it can read."""
        if self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return True
        return self.status in _REFUSED and self.says(_TOO_LONG)

    @property
    def may_be_a_part(self) -> bool:
        """Whether it may be about a part of the request other than its texts."""
        param = re.split(r"[.\[]", self._field("param"))[0].lower()
        about_texts = not _ABOUT_TEXTS.isdisjoint((param, self._field("code")))
        return self.status in _MAY_BE_A_PART and not about_texts and not self._spoilt

    @property
    def _spoilt(self) -> bool:
        """Whether the model did not keep to the schema (Groq): another reply may."""
        return self._field("code") == "json_validate_failed"

    def explain(
        self,
        endpoint: str,
        model: str,
        redact: Callable[[str], str] = str,
        source: str = ADDRESS,
        *,
        answered: bool = False,
    ) -> CallError:
        """The error of the call; a model that has answered forbids a prompt alone."""
        status, name = self.status, _name(self.status)
        detail = redact(self.message)[:MAX_DETAIL] or None
        code = f"{self._field('code')} {self._field('type')}".lower()
        unless = status in _MAY_BE_THE_PROMPT
        fatal = None
        if status == HTTPStatus.PAYMENT_REQUIRED or any(w in code for w in _NO_CREDIT):
            fatal = f"the account at {endpoint} has no credit left"
        elif unless and (answered or self.says(_MODERATION)):
            pass
        elif status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            fatal = f"{endpoint} refuses the key ({name}); check OPENAI_API_KEY"
        elif status == HTTPStatus.NOT_FOUND and self.says(_UNKNOWN):
            fatal = f"{endpoint} does not know model {model!r}; check its name"
        elif status in _WRONG_ADDRESS or status < HTTPStatus.BAD_REQUEST:
            fatal = wrong_address(endpoint, name, source)
        if fatal is not None:
            # A server's message about a wrong key may quote it in part.
            return Refused(
                fatal,
                detail=None if status == HTTPStatus.UNAUTHORIZED else detail,
                always=True,
                unless_answered=unless,
                forbidden=status == HTTPStatus.FORBIDDEN,
                tokens=self.tokens,
            )
        if self._spoilt or may_pass(status):
            return Transient(
                f"{endpoint} answered {name}",
                self.wait,
                detail=detail,
                alive=self._spoilt or status == HTTPStatus.TOO_MANY_REQUESTS,
                tokens=self.tokens,
            )
        reason = f"{endpoint} refused the prompt ({name})"
        if self.too_long:
            reason = (
                f"the prompt is too long for model {model!r}; shorten the documents or "
                "take a model with a longer context"
            )
        return Refused(reason, detail=detail, tokens=self.tokens)

    def _field(self, name: str) -> str:
        value = self.body.get(name) if isinstance(self.body, Mapping) else None
        return value if isinstance(value, str) else ""


def may_pass(status: object) -> bool:
    """Whether a status says that the same request may be answered later."""
    return isinstance(status, int) and (status in _RETRIED or status >= _BROKEN)


def wrong_address(endpoint: str, answer: str, source: str = ADDRESS) -> str:
    """What to do about a server that responds, but does not take prompts."""
    return (
        f"nothing takes prompts at {endpoint} ({answer}); check {source}, which "
        "usually ends in /v1"
    )


def cut_off(tokens: int, when: str = "") -> str:
    """What to do about a reply that reached the longest length allowed."""
    at = f" at {tokens:,} tokens" if tokens else ""
    return (
        f"the reply was cut off{at}{when}; --max-tokens allows more, and pays again "
        "only for what was cut off"
    )


def read_error(content: bytes) -> object:
    """The body of an error: its fields, or else its text."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content
    if isinstance(body, list) and body:
        body = body[0]
    inner = body.get("error") if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping | str) else body


def _texts(body: object, depth: int = 0) -> Iterator[str]:
    """The texts of a body, of its message fields only where it has fields."""
    if isinstance(body, Mapping):
        body = [body.get(name) for name in _MESSAGE_FIELDS]
    if isinstance(body, str):
        yield body
    elif depth < _MAX_DEPTH and isinstance(body, list):
        for part in body:
            yield from _texts(part, depth + 1)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, in any of the three ways a server may ask for it."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if seconds >= 0:
            return seconds
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _name(status: int) -> str:
    if status == _OVERLOADED:
        return "529 Overloaded"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
