"""The address of an endpoint, which is logged and so must hold no secret."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from karat.errors import UsageError

__all__ = ["read_address", "with_query"]

_HARMLESS_QUERY = {"api-version"}
# Names, numbers and IPv6; a space or quote is a slip of the hand.
_HOST = re.compile(r"[\w.:%-]+")


def read_address(url: str) -> tuple[str, dict[str, str]]:
    """The address and its harmless query; one with a secret in it is refused."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        usable = (
            url.isprintable()
            and _HOST.fullmatch(parts.hostname or "")
            and (parts.port or 1) > 0
        )
    except ValueError:
        usable = False
    if not usable or parts.scheme not in {"http", "https"}:
        # Not shown: a key pasted into the wrong variable would be.
        unfinished = "://" not in url and re.search(r"[.:/]", url)
        problem = (
            "http:// or https:// is missing before the address"
            if unfinished
            else "no address of a server"
        )
        raise UsageError(
            f"{problem} in OPENAI_BASE_URL or --base-url; it looks like "
            "http://127.0.0.1:8080/v1"
        )
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.username or parts.password or set(query) - _HARMLESS_QUERY:
        raise UsageError(
            f"the address of {parts.hostname} must hold no user, password or query, "
            "since addresses are logged; put the key into OPENAI_API_KEY"
        )
    bare = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return bare, query


def with_query(address: str, query: Mapping[str, str]) -> str:
    """What names a server: two versions of an interface are two servers.

    Example:
        >>> with_query("https://a.example/v1", {"api-version": "2"})
        'https://a.example/v1?api-version=2'
    """
    return f"{address}?{urlencode(query)}" if query else address
