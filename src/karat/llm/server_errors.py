"""What an error of a server means, in a sentence that says what to do."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from karat.errors import CallError, Refused, Transient

__all__ = [
    "ADDRESS",
    "MAX_DETAIL",
    "STREAM_ONLY",
    "SYSTEM_ROLE",
    "cut_off",
    "is_bare",
    "read_error",
    "retry_after",
    "status_error",
    "too_long",
    "unsupported_parameter",
    "wrong_address",
]

ADDRESS = "OPENAI_BASE_URL"
"""The variable that holds the address of a server."""
SYSTEM_ROLE = "system role"
STREAM_ONLY = "requests without stream"
MAX_DETAIL = 300
"""The most characters shown of a server's own words."""
_OVERLOADED = 529
_RETRIED = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_WRONG_ADDRESS = {
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_IMPLEMENTED,
}
_KEY_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_MAY_BE_THE_PROMPT = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
_MODERATION_WORDS = ("moderation", "flagged", "content policy", "content_policy")
_SCHEMA_WORDS = ("response_format", "json_schema", "structured output", "grammar")
_LENGTH_WORDS = (
    *("context length", "context_length", "context size", "context window"),
    *("prompt is too long", "input token count", "`inputs` tokens + `max_new_tokens`"),
)
_QUOTA_WORDS = ("insufficient_quota", "billing", "insufficient credits")
_QUOTA = {
    HTTPStatus.PAYMENT_REQUIRED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_QUOTA_CODES = ("insufficient_quota", "billing")
_SYSTEM_WORDS = re.compile(
    r"\bsystem[ _-](role|message|prompt|instruction)|\brole\W{1,4}system\b"
)
_STREAM_WORDS = re.compile(
    r"only supports? stream|\bstream\w*\W+(must be|has to be|is required)|"
    r"(enable|set|requires?)\b.{0,20}\bstream"
)
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


def status_error(
    status: int,
    body: object,
    endpoint: str,
    model: str,
    redact: Callable[[str], str] = str,
    source: str = ADDRESS,
    sent: str = "",
    *,
    answered: bool = False,
) -> CallError:
    """The error for a status and the body that came with it.

    Words that the server quotes from `sent`, the prompt, are ignored. Where the model
    has `answered` another prompt, a forbidden one is that prompt's own problem.

    Example:
        >>> print(status_error(404, {"message": "no such model"}, "http://a/v1", "x"))
        http://a/v1 does not know model 'x'; check its name: no such model
    """
    message = error_message(body)
    detail = redact(message)[:MAX_DETAIL] or None
    if _no_credit(status, body, sent):
        fatal: str | None = f"the account at {endpoint} has no credit left"
    else:
        words = _without_quotes(message, sent)
        moderated = answered or _any(_MODERATION_WORDS, words)
        about_prompt = moderated and status in _MAY_BE_THE_PROMPT
        fatal = (
            None
            if about_prompt
            else _fatal_reason(status, words, endpoint, model, source)
        )
    if fatal is not None:
        # A server's message about a wrong key may quote it in part.
        shown = None if status == HTTPStatus.UNAUTHORIZED else detail
        return Refused(
            fatal,
            detail=shown,
            always=True,
            unless_answered=status in _MAY_BE_THE_PROMPT,
        )
    # Of the model, not of the prompt: the schema was not kept to (Groq).
    spoilt = _field(body, "code") == "json_validate_failed"
    if spoilt or status in _RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Transient(
            f"{endpoint} answered {_name(status)}",
            detail=detail,
            alive=spoilt or status == HTTPStatus.TOO_MANY_REQUESTS,
        )
    if too_long(status, body, sent):
        reason = (
            f"the prompt is too long for model {model!r}; shorten the documents or "
            "take a model with a longer context"
        )
    else:
        reason = f"{endpoint} refused the prompt ({_name(status)})"
    return Refused(reason, detail=detail)


def _fatal_reason(
    status: int, words: str, endpoint: str, model: str, source: str
) -> str | None:
    """Why every call would be refused, if that is so."""
    if status in _KEY_REFUSED:
        return f"{endpoint} refuses the key ({_name(status)}); check OPENAI_API_KEY"
    if status == HTTPStatus.NOT_FOUND and _any(("model", "deployment"), words):
        return f"{endpoint} does not know model {model!r}; check its name"
    if status in _WRONG_ADDRESS or status < HTTPStatus.BAD_REQUEST:
        return wrong_address(endpoint, _name(status), source)
    return None


def _no_credit(status: int, body: object, sent: str) -> bool:
    code = f"{_field(body, 'code')} {_field(body, 'type')}".lower()
    if status == HTTPStatus.PAYMENT_REQUIRED or _any(_QUOTA_CODES, code):
        return True
    # A limit per minute may advise to pay for a higher one.
    return (
        status in _QUOTA
        and "rate_limit" not in code
        and _any(_QUOTA_WORDS, _without_quotes(error_message(body), sent))
    )


def wrong_address(endpoint: str, answer: str, source: str = ADDRESS) -> str:
    """What to do about a server that responds, but does not take prompts."""
    return (
        f"nothing takes prompts at {endpoint} ({answer}); check {source}, which "
        "usually ends in /v1"
    )


def unsupported_parameter(
    status: int, body: object, optional: Iterable[str], sent: str = ""
) -> str | None:
    """Which of the optional parts of a request the server does not take, if any.

    Example:
        >>> unsupported_parameter(400, {"message": "'json_schema' is unknown"},
        ...                       ["response_format", "temperature"])
        'response_format'
        >>> unsupported_parameter(400, {"message": "flagged: what temperature is it"},
        ...                       ["temperature"], sent="What temperature is it?")
    """
    if status not in (400, 404, 415, 422, 500, 501):
        return None
    words = _without_quotes(error_message(body), sent)
    if _any(_LENGTH_WORDS, words):
        return None
    param = re.split(r"[.\[]", _field(body, "param"))[0].lower()
    if not _ABOUT_TEXTS.isdisjoint((param, _field(body, "code"))):
        return None
    names = list(optional)
    if param in names:
        return param
    return next((name for name in names if _names(name, f"{words} {param}")), None)


def is_bare(status: int, body: object) -> bool:
    """Whether an error says nothing but that the request is bad.

    Example:
        >>> is_bare(400, b""), is_bare(400, {"message": "no such seed"})
        (True, False)
    """
    words = _WORD.findall(error_message(body).lower())
    return status in (400, 415, 422) and _BARE_WORDS.issuperset(words)


def _names(name: str, words: str) -> bool:
    if name == "response_format":
        return _any(_SCHEMA_WORDS, words)
    if name == SYSTEM_ROLE:
        return _SYSTEM_WORDS.search(words) is not None
    if name == STREAM_ONLY:
        return _STREAM_WORDS.search(words) is not None
    # As a word of its own: a parameter may be called n.
    return re.search(rf"\b{re.escape(name.lower())}\b", words) is not None


def too_long(status: int, body: object, sent: str = "") -> bool:
    """Whether the prompt, with room for the reply, exceeds what the model can read."""
    return status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (
        HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
        and _any(_LENGTH_WORDS, _without_quotes(error_message(body), sent))
    )


def _without_quotes(message: str, sent: str) -> str:
    """A server's message in lower case, without the words that it quotes.

    Example:
        >>> _without_quotes("Flagged: the SEED of rye", "Mix the seed of rye.")
        'flagged: '
    """
    message = _ESCAPED_BREAK.sub(" ", message.lower())
    sent_words = _WORD.findall(_ESCAPED_BREAK.sub(" ", sent.lower()))
    starts = range(len(sent_words) - _QUOTE_WORDS + 1)
    quotes = {tuple(sent_words[n : n + _QUOTE_WORDS]) for n in starts}
    words = list(_WORD.finditer(message))
    parts, end = [], 0
    for n in range(len(words) - _QUOTE_WORDS + 1):
        run = words[n : n + _QUOTE_WORDS]
        if tuple(word.group() for word in run) in quotes:
            parts.append(message[end : run[0].start()])
            end = run[-1].end()
    return "".join([*parts, message[end:]])


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


def error_message(body: object) -> str:
    """The message in the body of an error, in whichever field it is."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    text = " ".join(" ".join(_texts(body))[:_MAX_MESSAGE].split())
    # A web page is no help to anyone.
    return "" if text.startswith("<") else text


def _texts(body: object, depth: int = 0) -> Iterator[str]:
    """The texts of a body, of its message fields only where it has fields."""
    if isinstance(body, str):
        yield body
    elif depth < _MAX_DEPTH and isinstance(body, list):
        for part in body:
            yield from _texts(part, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(body, Mapping):
        for name in _MESSAGE_FIELDS:
            yield from _texts(body.get(name), depth + 1)


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


def _any(words: Iterable[str], text: str) -> bool:
    return any(word in text for word in words)


def _field(body: object, name: str) -> str:
    value = body.get(name) if isinstance(body, Mapping) else None
    return value if isinstance(value, str) else ""


def _name(status: int) -> str:
    if status == _OVERLOADED:
        return "529 Overloaded"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
