"""What a server's complaint means, in a sentence that says what to do."""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from karat.errors import CallError, Refused, Transient

__all__ = [
    "ADDRESS",
    "complaint",
    "cut_off",
    "nobody_there",
    "read_error",
    "retry_after",
    "too_long",
    "unsupported",
]

ADDRESS = "OPENAI_BASE_URL"
"""Where the address of a server is said, unless by an option."""
_LONGEST_DETAIL = 300
_OVERLOADED = 529
_PASSING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_NOWHERE = {
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_IMPLEMENTED,
}
_KEY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_SCHEMA_WORDS = ("response_format", "json_schema", "structured output", "grammar")
_LENGTH_WORDS = ("context length", "context_length", "context size", "context window")
_QUOTA_WORDS = ("insufficient_quota", "billing", "insufficient credits")
_QUOTA = {
    HTTPStatus.PAYMENT_REQUIRED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_QUOTA_CODES = ("insufficient_quota", "billing")
# Complaints about a text, whatever words of it they quote.
_ABOUT_TEXTS = {"messages", "prompt", "input", "content_filter"}
_ABOUT_TEXTS |= {"content_policy_violation"}
# What a server says first is what it has to say; the rest is quotes.
_LONGEST_MESSAGE = 20_000
# So many words in a row are no accident: the server quotes the prompt.
_RUN = 3
_WORD = re.compile(r"\w+")
_ESCAPED_BREAK = re.compile(r"\\+[nrt]")


def complaint(
    status: int,
    body: object,
    endpoint: str,
    model: str,
    clean: Callable[[str], str] = str,
    wait: float | None = None,
    where: str = ADDRESS,
    sent: str = "",
) -> CallError:
    """The error that a status and the body with it stand for.

    Words that the server quotes from what was sent mean nothing.

    Example:
        >>> print(complaint(404, {"message": "no such model"}, "http://a/v1", "x"))
        http://a/v1 does not know model 'x'; check its name: no such model
    """
    said = message_of(body)
    detail = clean(said)[:_LONGEST_DETAIL] or None
    if _no_credit(status, body, sent):
        hopeless: str | None = f"the account at {endpoint} has no credit left"
    else:
        hopeless = _hopeless(status, _own(said, sent), endpoint, model, where)
    if hopeless is not None:
        # What a server says about a key may quote it, in part or whole.
        return Refused(hopeless, detail=None if status in _KEY else detail, always=True)
    if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Transient(
            f"{endpoint} answered {_name(status)}",
            wait,
            detail=detail,
            alive=status == HTTPStatus.TOO_MANY_REQUESTS,
        )
    if too_long(status, body, sent):
        reason = (
            f"the prompt is too long for model {model!r}; shorten the documents or "
            "take a model with a longer context"
        )
    else:
        reason = f"{endpoint} refused the prompt ({_name(status)})"
    return Refused(reason, detail=detail)


def _hopeless(
    status: int, words: str, endpoint: str, model: str, where: str
) -> str | None:
    """Why no call at all would be answered, if that is so."""
    if status in _KEY:
        return f"{endpoint} refuses the key ({_name(status)}); check OPENAI_API_KEY"
    if status == HTTPStatus.NOT_FOUND and "model" in words:
        return f"{endpoint} does not know model {model!r}; check its name"
    if status in _NOWHERE or status < HTTPStatus.BAD_REQUEST:
        return nobody_there(endpoint, _name(status), where)
    return None


def _no_credit(status: int, body: object, sent: str) -> bool:
    code = f"{_field(body, 'code')} {_field(body, 'type')}".lower()
    if status == HTTPStatus.PAYMENT_REQUIRED or _any(_QUOTA_CODES, code):
        return True
    # A limit per minute may advise to pay for a higher one.
    return (
        status in _QUOTA
        and "rate_limit" not in code
        and _any(_QUOTA_WORDS, _own(message_of(body), sent))
    )


def nobody_there(endpoint: str, answer: str, where: str = ADDRESS) -> str:
    """What to do about a server that is there, but not for prompts."""
    return (
        f"nothing takes prompts at {endpoint} ({answer}); check {where}, which "
        "mostly ends in /v1"
    )


def unsupported(
    status: int, body: object, optional: Iterable[str], sent: str = ""
) -> str | None:
    """Which of the optional parts of a request the server does not know, if any.

    Example:
        >>> unsupported(400, {"message": "'json_schema' is unknown"},
        ...             ["response_format", "temperature"])
        'response_format'
        >>> unsupported(400, {"message": "flagged: what temperature is right"},
        ...             ["temperature"], sent="What temperature is right for bread?")
    """
    if status not in (400, 404, 415, 422, 500, 501):
        return None
    words = _own(message_of(body), sent)
    if _any(_LENGTH_WORDS, words):
        return None
    param = re.split(r"[.\[]", _field(body, "param"))[0].lower()
    if not _ABOUT_TEXTS.isdisjoint((param, _field(body, "code"))):
        return None
    names = list(optional)
    if param in names:
        return param
    return next((name for name in names if _names(name, f"{words} {param}")), None)


def _names(name: str, words: str) -> bool:
    if name == "response_format":
        return _any(_SCHEMA_WORDS, words)
    # As a word of its own: a parameter may be called n.
    return re.search(rf"\b{re.escape(name.lower())}\b", words) is not None


def too_long(status: int, body: object, sent: str = "") -> bool:
    """Whether the prompt, with room for the reply, exceeds what the model can read."""
    return status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (
        HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
        and _any(_LENGTH_WORDS, _own(message_of(body), sent))
    )


def _own(said: str, sent: str) -> str:
    """What a server says in its own words, without those that it quotes.

    Example:
        >>> _own("Flagged: the SEED of rye", "Mix the seed of rye.")
        'flagged: '
    """
    said, sent = (_ESCAPED_BREAK.sub(" ", text.lower()) for text in (said, sent))
    ours = _WORD.findall(sent)
    runs = {tuple(ours[n : n + _RUN]) for n in range(len(ours) - _RUN + 1)}
    words = list(_WORD.finditer(said))
    parts, rest = [], 0
    for n in range(len(words) - _RUN + 1):
        run = words[n : n + _RUN]
        if tuple(word.group() for word in run) in runs:
            parts.append(said[rest : run[0].start()])
            rest = run[-1].end()
    return "".join([*parts, said[rest:]])


def cut_off(tokens: int, when: str = "") -> str:
    """What to do about a reply that reached the longest length allowed.

    Example:
        >>> cut_off(4096)
        'the reply was cut off at 4,096 tokens; --max-tokens allows more, and asks \
all anew'
    """
    at = f" at {tokens:,} tokens" if tokens else ""
    return (
        f"the reply was cut off{at}{when}; --max-tokens allows more, and asks all anew"
    )


def read_error(content: bytes) -> object:
    """What came with a complaint: its fields, or else its text."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content
    inner = body.get("error") if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping | str) else body


def message_of(body: object) -> str:
    """What a server said, wherever it put it."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping | str):
        body = body["error"]
    if isinstance(body, Mapping):
        parts = (_field(body, "message"), _field(body, "code"), _field(body, "detail"))
        body = " ".join(part for part in parts if part)
    words = body[:_LONGEST_MESSAGE].split() if isinstance(body, str) else []
    text = " ".join(words)
    # A web page is no help to anyone.
    return "" if text.startswith("<") else text


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the server asks for in any of three ways.

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
