"""The parts of what a server sends back, which servers write in several ways."""

from karat.data.judgements import Usage
from karat.dispatch.secrecy import mask

__all__ = ["read_text", "read_usage", "read_word", "without_key"]


def read_text(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def read_usage(counts: object) -> Usage:
    """The tokens paid for, as far as the server counts them."""
    if not isinstance(counts, dict):
        return Usage()
    numbers = (counts.get("prompt_tokens"), counts.get("completion_tokens"))
    return Usage(*(n if isinstance(n, int) and n > 0 else 0 for n in numbers))


def read_word(value: object) -> str | None:
    """The text of a field, if it holds one."""
    return value if isinstance(value, str) else None


def without_key(text: str, key: str | None) -> str:
    """A reply without the key, should it quote it; `none` and the like are no key."""
    return mask(text, [key]) if key else text
