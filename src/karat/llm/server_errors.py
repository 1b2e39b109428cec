"""What an error of a server means, in a sentence that says what to do."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus

from karat.errors import CallError, Refused, Transient

ADDRESS = "OPENAI_BASE_URL"
"""The variable that holds the address of a server."""
SYSTEM_ROLE = "system role"
STREAM_ONLY = "requests without stream"
MAX_DETAIL = 300
"""The most characters shown of a server's own words."""
_OVERLOADED = 529
_REFUSED = range(400, 500)
_RETRIED = {408, 409, 425, 429}
_WRONG_ADDRESS = {404, 405, 501}
_MAY_BE_THE_PROMPT = {403, 404}
_QUOTA = {402, 403, 429}
_BAD_REQUEST = {400, 415, 422}
_MAY_BE_A_PARAMETER = {*_BAD_REQUEST, 404, 500, 501}
_MODERATION_WORDS = ("moderation", "flagged", "content policy", "content_policy")
_LENGTH_WORDS = (
    *("context length", "context_length", "context size", "context window"),
    *("prompt is too long", "input token count", "`inputs` tokens + `max_new_tokens`"),
)
_QUOTA_WORDS = ("insufficient_quota", "billing", "insufficient credits")
# The words for parts of a request; any other is named as a word of its own.
_PART_WORDS = {
    "response_format": r"response_format|json_schema|structured output|grammar",
    SYSTEM_ROLE: r"\bsystem[ _-](role|message|prompt|instruction)|"
    r"\brole\W{1,4}system\b",
    STREAM_ONLY: r"only supports? stream|\bstream\w*\W+(must be|has to be|is required)|"
    r"(enable|set|requires?)\b.{0,20}\bstream",
}
# An error without any word besides these does not say what is wrong.
_BARE_WORDS = {"400", "415", "422", "bad", "error", "invalid", "request"}
_BARE_WORDS |= {"unprocessable", "entity", "content", "none", "null"}
# Where errors hold their messages. What FastAPI calls input quotes the request.
_MESSAGE_FIELDS = ("error", "errors", "loc", "message", "msg", "code", "detail")
_MAX_DEPTH = 8
# Errors about a text, whatever words of it they quote.
_ABOUT_TEXTS = {"messages", "prompt", "input", "content_filter"}
_ABOUT_TEXTS |= {"content_policy_violation"}
# The beginning says what is wrong; the rest is quotes.
_MAX_MESSAGE = 20_000
# With this many equal words in a row, the server quotes the prompt.
_QUOTE_WORDS = 3
_WORD = re.compile(r"\w+")
_ESCAPED_BREAK = re.compile(r"\\+[nrt]")


@dataclass(frozen=True)
class ServerError:
    """A status, and the body that came with it.

    Attributes:
        status: the status.
        body: its fields, or its text.
        sent: the prompt; words that the server quotes from it are ignored.
        wait: seconds after which to come back, if the server says so.

    Example:
        >>> error = ServerError(404, {"message": "no such model"})
        >>> print(error.explain("http://a/v1", "x"))
        http://a/v1 does not know model 'x'; check its name: no such model
    """

    status: int
    body: object
    sent: str = ""
    wait: float | None = None

    @cached_property
    def message(self) -> str:
        """The message in the body, in whichever field it is."""
        body = self.body
        if isinstance(body, bytes):
            body = body.decode("utf-8", "replace")
        text = " ".join(" ".join(_texts(body))[:_MAX_MESSAGE].split())
        # A web page is no help to anyone.
        return "" if text.startswith("<") else text

    @cached_property
    def words(self) -> str:
        """The message in lower case, without the words that it quotes.

        Example:
            >>> said = {"message": "Flagged: the SEED of rye"}
            >>> ServerError(400, said, sent="Mix the seed of rye.").words
            'flagged: '
        """
        message = _ESCAPED_BREAK.sub(" ", self.message.lower())
        sent = _WORD.findall(_ESCAPED_BREAK.sub(" ", self.sent.lower()))
        quotes = {*zip(*(sent[n:] for n in range(_QUOTE_WORDS)), strict=False)}
        words = list(_WORD.finditer(message))
        parts, end = [], 0
        for run in zip(*(words[n:] for n in range(_QUOTE_WORDS)), strict=False):
            if tuple(word.group() for word in run) in quotes:
                parts.append(message[end : run[0].start()])
                end = run[-1].end()
        return "".join([*parts, message[end:]])

    @property
    def too_long(self) -> bool:
        """Whether the prompt, with room for the reply, exceeds what it can read."""
        if self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return True
        return self.status in _REFUSED and self._says(_LENGTH_WORDS)

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing but that the request is bad.

        Example:
            >>> ServerError(400, b"").is_bare
            True
            >>> ServerError(400, {"message": "no such seed"}).is_bare
            False
        """
        words = _WORD.findall(self.message.lower())
        return self.status in _BAD_REQUEST and _BARE_WORDS.issuperset(words)

    def unsupported(self, optional: Iterable[str]) -> str | None:
        """Which of the optional parts of a request the server does not take, if any.

        Example:
            >>> error = ServerError(400, {"message": "'json_schema' is unknown"})
            >>> error.unsupported(["response_format", "temperature"])
            'response_format'
            >>> said = {"message": "flagged: what temperature is it"}
            >>> error = ServerError(400, said, sent="What temperature is it?")
            >>> error.unsupported(["temperature"])
        """
        param = re.split(r"[.\[]", self._field("param"))[0].lower()
        about_texts = not _ABOUT_TEXTS.isdisjoint((param, self._field("code")))
        is_candidate = self.status in _MAY_BE_A_PARAMETER and not about_texts
        if not is_candidate or self._says(_LENGTH_WORDS):
            return None
        names = list(optional)
        if param in names:
            return param
        words = f"{self.words} {param}"
        for name in names:
            own = rf"\b{re.escape(name.lower())}\b"
            if re.search(_PART_WORDS.get(name, own), words):
                return name
        return None

    def explain(
        self,
        endpoint: str,
        model: str,
        redact: Callable[[str], str] = str,
        source: str = ADDRESS,
        *,
        answered: bool = False,
    ) -> CallError:
        """The error of the call.

        Args:
            endpoint: where it comes from.
            model: the name of the model there.
            redact: removes secrets from a text.
            source: the option or variable that names the address.
            answered: whether the model has answered another prompt, so that a
                forbidden one is that prompt's own problem.
        """
        status, detail = self.status, redact(self.message)[:MAX_DETAIL] or None
        moderated = answered or self._says(_MODERATION_WORDS)
        unless = status in _MAY_BE_THE_PROMPT
        fatal = self._fatal(endpoint, model, source, about_prompt=unless and moderated)
        if fatal is not None:
            # A server's message about a wrong key may quote it in part.
            shown = None if status == HTTPStatus.UNAUTHORIZED else detail
            return Refused(fatal, detail=shown, always=True, unless_answered=unless)
        # Of the model, not of the prompt: the schema was not kept to (Groq).
        spoilt = self._field("code") == "json_validate_failed"
        if spoilt or status in _RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Transient(
                f"{endpoint} answered {_name(status)}",
                self.wait,
                detail=detail,
                alive=spoilt or status == HTTPStatus.TOO_MANY_REQUESTS,
            )
        reason = f"{endpoint} refused the prompt ({_name(status)})"
        if self.too_long:
            reason = (
                f"the prompt is too long for model {model!r}; shorten the documents or "
                "take a model with a longer context"
            )
        return Refused(reason, detail=detail)

    def _fatal(
        self, endpoint: str, model: str, source: str, *, about_prompt: bool
    ) -> str | None:
        """Why every call would be refused, if that is so."""
        name = _name(self.status)
        if self._has_no_credit():
            return f"the account at {endpoint} has no credit left"
        if about_prompt:
            return None
        if self.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return f"{endpoint} refuses the key ({name}); check OPENAI_API_KEY"
        if self.status == HTTPStatus.NOT_FOUND and self._says(("model", "deployment")):
            return f"{endpoint} does not know model {model!r}; check its name"
        if self.status in _WRONG_ADDRESS or self.status < HTTPStatus.BAD_REQUEST:
            return wrong_address(endpoint, name, source)
        return None

    def _has_no_credit(self) -> bool:
        code = f"{self._field('code')} {self._field('type')}".lower()
        if "insufficient_quota" in code or "billing" in code:
            return True
        # A limit per minute may advise to pay for a higher one.
        says = "rate_limit" not in code and self._says(_QUOTA_WORDS)
        return self.status == HTTPStatus.PAYMENT_REQUIRED or (
            says and self.status in _QUOTA
        )

    def _says(self, words: Iterable[str]) -> bool:
        return any(word in self.words for word in words)

    def _field(self, name: str) -> str:
        value = self.body.get(name) if isinstance(self.body, Mapping) else None
        return value if isinstance(value, str) else ""


def wrong_address(endpoint: str, answer: str, source: str = ADDRESS) -> str:
    """What to do about a server that responds, but does not take prompts."""
    return (
        f"nothing takes prompts at {endpoint} ({answer}); check {source}, which "
        "usually ends in /v1"
    )


def cut_off(tokens: int, when: str = "") -> str:
    """What to do about a reply that reached the longest length allowed.

    Example:
        >>> cut_off(4096)
        'the reply was cut off at 4,096 tokens; --max-tokens allows more, and pays \
again only for what was cut off'
    """
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
    """Seconds to wait, in any of the three ways a server may ask for it.

    Example:
        >>> retry_after({"retry-after": "2"}), retry_after({"retry-after-ms": "250"})
        (2.0, 0.25)
    """
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
