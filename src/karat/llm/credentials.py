"""What a request carries besides the prompt: its address, key and parameters.

Addresses are logged and parameters are kept in the journal, so neither may hold a
secret.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import (
    SplitResult,
    parse_qsl,
    unquote,
    urlencode,
    urlsplit,
    urlunsplit,
)

from karat.errors import UsageError
from karat.llm.redaction import mask, redact
from karat.version import __version__

__all__ = [
    "ALLOWED",
    "check_endpoint",
    "check_headers",
    "check_parameters",
    "check_secrets",
    "may_use_proxy",
    "read_address",
    "read_key",
    "replace_surrogates",
    "request_headers",
    "with_query",
]

ALLOWED = "KARAT_ALLOWED_ENDPOINTS"
_HARMLESS_QUERY = {"api-version"}
_HOST = re.compile(r"[\w.:%-]+")
_PORTS = {"http": 80, "https": 443}
_VISIBLE = re.compile(r"[!-~]*")
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[ -~]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SECRET = re.compile(
    r"(?:key|keys|token)$|secret|password|credential|authorization|bearer",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"headers?$", re.IGNORECASE)
_NOT_SECRET = {"prompt_cache_key", "bos_token", "eos_token", "pad_token"}


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


def read_key(given: str | None) -> str:
    """The given API key, else that in `OPENAI_API_KEY`, else an empty text."""
    if given is not None and given.strip():
        return _header_value("the API key", given)
    return _from_environment("OPENAI_API_KEY")


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that cannot be sent; values are never shown."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise UsageError(
                f"header {replace_surrogates(name)!r} cannot be sent: a name has no "
                "spaces, and a value is one line of ASCII"
            )


def request_headers(
    address: str, key: str, headers: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The headers of every request to a server; given ones come before others.

    Example:
        >>> headers = request_headers("https://a.example/openai/deployments/m", "k")
        >>> headers["api-key"], headers["Authorization"]
        ('k', 'Bearer k')
        >>> "api-key" in request_headers("https://a.example/openai/v1", "k")
        False
    """
    given = dict(headers or {})
    defaults = {
        "User-Agent": f"karat/{__version__}",
        "OpenAI-Organization": _from_environment("OPENAI_ORG_ID"),
        "OpenAI-Project": _from_environment("OPENAI_PROJECT_ID"),
    }
    if key:
        defaults["Authorization"] = f"Bearer {key}"
        # The classic addresses of Azure, also behind a gateway.
        if "/deployments/" in urlsplit(address).path:
            defaults["api-key"] = key
    names = {name.lower() for name in given}
    defaults = {k: v for k, v in defaults.items() if v and k.lower() not in names}
    return defaults | given


def _from_environment(variable: str) -> str:
    return _header_value(variable, os.environ.get(variable, ""))


def _header_value(source: str, value: str) -> str:
    """The value without white space around it; it is never shown."""
    value = value.strip()
    if not _VISIBLE.fullmatch(value):
        raise UsageError(
            f"{source} holds a space, a line break or a letter beyond ASCII, which no "
            "header can carry; copy it again"
        )
    return value


def replace_surrogates(text: str) -> str:
    """The text with a sign for each half of a character, which UTF-8 cannot encode."""
    return _SURROGATE.sub("\ufffd", text)


def check_parameters(parameters: Mapping[str, Any], key: str | None = None) -> None:
    """Refuse parameters that JSON cannot hold, or that hold a secret."""
    for name, value in parameters.items():
        if not _is_json({name: value}):
            raise UsageError(
                f"parameter {replace_surrogates(str(name))!r} must have a value that "
                'JSON can hold, such as 0.5, "low" or {"a": true}'
            )
    check_secrets(parameters, key)


def check_secrets(parameters: Mapping[str, Any], key: str | None = None) -> None:
    """Refuse parameters that hold a secret, by name or by value.

    Example:
        >>> check_secrets({"metadata": {"api_key": "sk-1"}})
        Traceback (most recent call last):
        karat.errors.UsageError: metadata.api_key is not a parameter to set, since \
parameters are kept in the journal and shown; put the key into OPENAI_API_KEY
    """
    secrets = [key or ""]
    for path, value in _texts(parameters):
        name = ".".join(path)
        if _is_secret_name(path):
            raise UsageError(
                f"{mask(name, secrets)} is not a parameter to set, since parameters "
                "are kept in the journal and shown; put the key into OPENAI_API_KEY"
            )
        setting = f"{name}={value}"
        if mask(redact(setting), secrets) != setting:
            raise UsageError(
                f"parameter {mask(redact(path[0]), secrets)!r} holds a secret, and "
                "parameters are kept in the journal and shown; leave it out"
            )


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _texts(
    value: object, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text within a value, with the names that lead to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, path)
    elif isinstance(value, str):
        yield path, value


def _is_secret_name(path: tuple[str, ...]) -> bool:
    name = path[-1]
    return any(map(_HEADERS.search, path)) or (
        _SECRET.search(name) is not None and name not in _NOT_SECRET
    )
