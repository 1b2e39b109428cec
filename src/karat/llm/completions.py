"""Reading completions: what a server or a client of anyone's sends back, as a reply.

Servers write them in several ways, and clients hand them on as objects or as plain
JSON; what counts as a reply is the same for all of them.
"""

from collections.abc import Mapping
from typing import Any

from karat.data.judgements import Reply, Usage
from karat.errors import CallError, Refused, Transient
from karat.llm.secrecy import mask
from karat.llm.sending import sendable
from karat.llm.server_errors import cut_off

__all__ = ["error_in", "read_reply", "read_word", "useless"]


def read_reply(
    completion: object, endpoint: str, model: str, key: str | None
) -> Reply | CallError:
    """The reply in a completion, or why there is none.

    One that was cut off is a reply that says so, unless it is empty: asked again, the
    model would think as long and be paid for as much.

    Args:
        completion: an object, or JSON that was read.
        endpoint: where it comes from.
        model: who answered there.
        key: taken out of text and names, should the server quote it.

    Example:
        >>> said = {"message": {"content": "yes"}, "finish_reason": "length"}
        >>> reply = read_reply({"choices": [said]}, "http://a/v1", "tiny", None)
        >>> reply.text, reply.cut
        ('yes', True)
    """
    choice = _first(_part(completion, "choices"))
    message, end = _part(choice, "message"), _part(choice, "finish_reason")
    if message is None:
        return useless(endpoint, "holds no message")
    if read_word(_part(message, "refusal")) or end == "content_filter":
        return Refused(f"model {model!r} declined to answer this prompt")
    text = _read_text(_part(message, "content"))
    usage = _read_usage(_part(completion, "usage"))
    if not text.strip():
        if end == "length":
            return Refused(cut_off(usage.completion_tokens, " before it said anything"))
        return useless(endpoint, "is empty")
    return Reply(
        _without(key, text),
        usage,
        _name(key, _part(completion, "id")),
        _name(key, _part(completion, "model")),
        cut=end == "length",
    )


def error_in(completion: object) -> tuple[int, Mapping[str, Any]] | None:
    """The status and body of an error that some servers send in place of a reply."""
    error = None if _part(completion, "choices") else _part(completion, "error")
    status = _part(error, "code")
    if not isinstance(status, int):
        return None
    if isinstance(error, Mapping):
        return status, error
    return status, {"message": _part(error, "message")}


def useless(endpoint: str, how: str) -> Transient:
    """What is said of a reply that was paid for in vain; another may do."""
    return Transient(f"the reply of {endpoint} {how}", paid=True, alive=True)


def read_word(value: object) -> str | None:
    """The text of a field, if it holds one."""
    return value if isinstance(value, str) else None


def _part(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


def _first(choices: Any) -> object:
    try:
        return choices[0]
    except (LookupError, TypeError):
        return None


def _read_text(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(read_word(_part(part, "text")) or "" for part in content)
    return read_word(content) or ""


def _read_usage(counts: object) -> Usage:
    """The tokens paid for, as far as the server counts them."""
    numbers = (_part(counts, "prompt_tokens"), _part(counts, "completion_tokens"))
    return Usage(*(n if isinstance(n, int) and n > 0 else 0 for n in numbers))


def _name(key: str | None, value: object) -> str | None:
    word = read_word(value)
    return None if word is None else _without(key, sendable(word))


def _without(key: str | None, text: str) -> str:
    """A reply without the key, should it quote it; `none` and the like are no key."""
    return mask(text, [key]) if key else text
