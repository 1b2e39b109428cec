"""Addresses of servers: which are valid, which are allowed, and which need a proxy."""

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import (
    SplitResult,
    parse_qsl,
    unquote,
    urlencode,
    urlsplit,
    urlunsplit,
)

from karat.errors import UsageError

__all__ = ["ALLOWED", "check_endpoint", "may_use_proxy", "read_address", "with_query"]

ALLOWED = "KARAT_ALLOWED_ENDPOINTS"
_HARMLESS_QUERY = {"api-version"}
_HOST = re.compile(r"[\w.:%-]+")
_PORTS = {"http": 80, "https": 443}


def read_address(url: str) -> tuple[str, dict[str, str]]:
    """The address and its query; an address with a secret in it is refused."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        valid = (
            url.isprintable()
            and _HOST.fullmatch(parts.hostname or "")
            and (parts.port or 1) > 0
        )
    except ValueError:
        valid = False
    if not valid or parts.scheme not in {"http", "https"}:
        # The address is not shown: it may be a key, pasted into the wrong variable.
        lacks_scheme = "://" not in url and re.search(r"[.:/]", url)
        problem = (
            "http:// or https:// is missing before the address"
            if lacks_scheme
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
    address = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return address, query


def with_query(address: str, query: Mapping[str, str]) -> str:
    """The address with its query: two versions of an interface are two endpoints.

    Example:
        >>> with_query("https://a.example/v1", {"api-version": "2"})
        'https://a.example/v1?api-version=2'
    """
    return f"{address}?{urlencode(query)}" if query else address


def check_endpoint(endpoint: str, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse an endpoint that `KARAT_ALLOWED_ENDPOINTS` does not name.

    The variable holds hosts (`models.example`, `127.0.0.1:8080`, `*.example`), or URLs
    that begin the endpoint's, separated by commas. A Python function as the client
    needs the word `python` there, since nobody knows where it sends its texts. A host
    means https, unless it is this machine. The word `proxy` allows the proxies that the
    environment names; without it, allowed endpoints are reached directly.

    Example:
        >>> check_endpoint("https://evil.example/v1", {ALLOWED: "models.example"})
        Traceback (most recent call last):
        karat.errors.UsageError: texts may not be sent to https://evil.example/v1: \
KARAT_ALLOWED_ENDPOINTS allows only models.example
    """
    value = environment.get(ALLOWED)
    if value is None:
        return
    allowed = [entry.strip() for entry in value.split(",") if entry.strip()]
    try:
        matches = [_allows(entry, endpoint) for entry in allowed]
    except ValueError:
        raise UsageError(
            f"{ALLOWED} must hold hosts or URLs separated by commas, as in "
            f"models.example,127.0.0.1:8080; got {value!r}"
        ) from None
    if not any(matches):
        by_http = "; for http, name the URL" if endpoint.startswith("http:") else ""
        raise UsageError(
            f"texts may not be sent to {endpoint}: {ALLOWED} allows only "
            f"{', '.join(allowed) or 'nothing'}{by_http}"
        )


def may_use_proxy(endpoint: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether an endpoint may be reached through a proxy of the environment.

    Example:
        >>> may_use_proxy("http://127.0.0.1:8080/v1"), may_use_proxy("http://a.example")
        (False, True)
    """
    if _is_loopback(urlsplit(endpoint).hostname or ""):
        return False
    allowed = environment.get(ALLOWED)
    return allowed is None or "proxy" in [entry.strip() for entry in allowed.split(",")]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _allows(entry: str, endpoint: str) -> bool:
    if endpoint.startswith("python:") or entry in {"python", "proxy"}:
        return endpoint.startswith("python:") and entry == "python"
    target = urlsplit(endpoint)
    # As the server may read it: encoded twice, dots are dots for some.
    path = unquote(unquote(target.path))
    if not {".", ".."}.isdisjoint(re.split(r"[/\\]", path)):
        return False
    host = (target.hostname or "").rstrip(".")
    if "://" in entry:
        allowed = urlsplit(entry)
        prefix = allowed.path.rstrip("/")
        return (allowed.scheme, allowed.hostname, _port(allowed)) == (
            target.scheme,
            host,
            _port(target),
        ) and f"{target.path}/".startswith(f"{prefix}/")
    if target.scheme != "https" and not _is_loopback(host):
        return False
    allowed = urlsplit(f"//{entry}")
    allowed_host = allowed.hostname or ""
    if allowed_host.startswith("*."):
        same = host.endswith(allowed_host[1:]) and host != allowed_host[1:]
    else:
        same = host == allowed_host
    return same and allowed.port in (None, _port(target))


def _port(url: SplitResult) -> int | None:
    return url.port or _PORTS.get(url.scheme)
