"""Servers: which addresses are valid and allowed, and posting to one by HTTP.

The library, httpx, is imported when the first connection is opened.
"""

import os
import re
import socket
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

from karat.errors import CallError, MissingExtraError, Refused, Transient, UsageError

ALLOWED = "KARAT_ALLOWED_ENDPOINTS"
_HARMLESS_QUERY = {"api-version"}
# Where hosts that also have an interface of their own take chat completions.
_COMPATIBLE_PATHS = {
    r"api\.(anthropic|openai)\.com": "/v1",
    r"api\.cohere\.(com|ai)": "/compatibility/v1",
    r"api\.mistral\.ai": "/v1",
    r"bedrock-runtime\.[\w-]+\.amazonaws\.com": "/openai/v1",
    r"api\.groq\.com": "/openai/v1",
    r"generativelanguage\.googleapis\.com": "/v1beta/openai",
    r"openrouter\.ai": "/api/v1",
}
_OLLAMA = 11434
_LM_STUDIO = {(1234, "localhost"), (1234, "127.0.0.1")}
_HOST = re.compile(r"[\w.:%-]+")
_PORTS = {"http": 80, "https": 443}
_CONNECT_SECONDS = 15
# A long reply is a few thousand tokens, some ten kilobytes.
_MAX_BYTES = 16 * 1024 * 1024
# One side speaks TLS, and the other does not.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")


def read_address(url: str) -> tuple[str, dict[str, str]]:
    """The address and its query; an address with a secret in it is refused."""
    url = url.strip()
    parts = split_url(url)
    if parts is None or parts.scheme not in _PORTS:
        # The address is not shown: it may be a key, pasted into the wrong variable.
        lacks_scheme = "://" not in url and re.search(r"[.:/]", url)
        missing = "http:// or https:// is missing before the address"
        raise UsageError(
            f"{missing if lacks_scheme else 'no address of a server'} in "
            "OPENAI_BASE_URL or --base-url; it looks like http://127.0.0.1:8080/v1"
        )
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.username or parts.password or set(query) - _HARMLESS_QUERY:
        raise UsageError(
            f"the address of {parts.hostname} must hold no user, password or query, "
            "since addresses are logged; put the key into OPENAI_API_KEY"
        )
    address = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return address, query


def check_compatible(address: str) -> None:
    """Refuse the address of another interface of a known server."""
    parts = urlsplit(address)
    path = parts.path.removesuffix("/chat/completions")
    own = not path or f"{path}/".startswith("/api/")
    if own and (parts.port == _OLLAMA or (parts.port, parts.hostname) in _LM_STUDIO):
        path = "/v1"
    for host, right in _COMPATIBLE_PATHS.items():
        if re.fullmatch(host, parts.hostname or ""):
            path = right
    if path != parts.path:
        instead = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        raise UsageError(
            f"chat completions as OpenAI has them are not at {address} but at {instead}"
        )


def split_url(url: str) -> SplitResult | None:
    """The parts of an address, or None if it has no valid host and port."""
    try:
        parts = urlsplit(url)
        is_host = _HOST.fullmatch(parts.hostname or "") and (parts.port or 1) > 0
    except ValueError:
        return None
    return parts if is_host and url.isprintable() else None


def check_endpoint(endpoint: str, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse an endpoint that `KARAT_ALLOWED_ENDPOINTS` does not name.

    The variable holds hosts (`models.example`, `127.0.0.1:8080`, `*.example`), or URLs
    that begin the endpoint's, separated by commas. A Python function as the client
    needs the word `python` there, since nobody knows where it sends its texts. A host
    means https, unless it is this machine. The word `proxy` allows the proxies that the
    environment names; without it, allowed endpoints are reached directly.
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


def may_use_proxy(endpoint: str) -> bool:
    """Whether an endpoint may be reached through a proxy of the environment."""
    if _is_loopback(urlsplit(endpoint).hostname or ""):
        return False
    allowed = os.environ.get(ALLOWED)
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
    host, port = (target.hostname or "").rstrip("."), _port(target)
    if "://" in entry:
        allowed = urlsplit(entry)
        same = (allowed.scheme, allowed.hostname, _port(allowed))
        prefix = allowed.path.rstrip("/")
        return same == (target.scheme, host, port) and (
            f"{target.path}/".startswith(f"{prefix}/")
        )
    if target.scheme != "https" and not _is_loopback(host):
        return False
    allowed = urlsplit(f"//{entry}")
    name = allowed.hostname or ""
    # `*.example` stands for every host that ends in `.example`.
    is_host = host == name or (name.startswith("*.") and host.endswith(name[1:]))
    return is_host and allowed.port in (None, port)


def _port(url: SplitResult) -> int | None:
    return url.port or _PORTS.get(url.scheme)


class Response(NamedTuple):
    """A server's response; the content is None if it is longer than 16 MB."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None


def load_httpx(use: str = "asking a model") -> Any:
    """The httpx library; importing it takes a fifth of a second."""
    try:
        import anyio  # noqa: F401, PLC0415 (or httpx loads it during the first call)
        import httpx  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(use, "llm") from None
    return httpx


class Connection:
    """A pool of connections to one server."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        httpx = load_httpx()
        self._address = address
        proxied = may_use_proxy(address)
        if proxied:
            _check_proxies()
        try:
            # Retries, the time limit of a call and the number of calls at once are up
            # to the caller. A redirect could lead texts to where they may not go.
            limits = httpx.Limits()
            self._client = httpx.AsyncClient(
                headers=headers,
                follow_redirects=False,
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                limits=limits,
                # A transport of its own uses no proxy of the environment.
                transport=None if proxied else httpx.AsyncHTTPTransport(limits=limits),
            )
        except (ImportError, OSError, ValueError) as error:
            raise _unusable_environment(error) from None

    async def send(
        self, method: str, url: str, body: Mapping[str, Any] | None
    ) -> Response | Exception:
        """The server's response, or why there is none.

        The error is returned, not raised: it holds the request, and so the key.
        """
        httpx = load_httpx()
        try:
            async with self._client.stream(method, url, json=body) as response:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > _MAX_BYTES:
                        return Response(response.status_code, response.headers, None)
        except httpx.InvalidURL:
            raise UsageError(f"{self._address} is no server's address") from None
        except (httpx.RequestError, UnicodeError) as error:
            failure: Exception = error
            return failure
        return Response(response.status_code, response.headers, bytes(content))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def connection_error(
    error: Exception,
    endpoint: str,
    source: str,
    redact: Callable[[str], str] = str,
    *,
    answered_before: bool = False,
) -> CallError:
    """Why no response came, and whether the call may have been billed."""
    last: BaseException = error
    while last.__cause__ is not None:
        last = last.__cause__
    cause = " ".join(str(last).split()) or type(last).__name__
    if isinstance(error, UnicodeError) or "illegal header" in cause.lower():
        # The cause would show the header, and so perhaps a key.
        return Refused(
            "a header cannot be sent, since it holds a line break or a letter beyond "
            "ASCII; check the OPENAI_ variables of the environment",
            always=True,
        )
    detail = redact(cause)
    if any(name in cause.upper().replace(" ", "_") for name in _NO_TLS):
        reason = (
            f"the server at {endpoint} does not speak https; should {source} begin "
            "with http:// instead?"
        )
        return Refused(reason, detail=detail, always=True)
    httpx = load_httpx()
    unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
    if not isinstance(error, (*unsent, httpx.ProxyError, httpx.UnsupportedProtocol)):
        reason = f"the connection to {endpoint} broke before the reply was complete"
        return Transient(reason, detail=detail, paid=True)
    reason = f"cannot reach {endpoint}; is the server running, and is {source} right?"
    if _is_unreachable(error) and not answered_before:
        # Trying again does not help if the server was never there.
        return Refused(reason, detail=detail, always=True)
    return Transient(reason, detail=detail)


def _is_unreachable(error: BaseException | None) -> bool:
    """Whether a host has no address, or no server listens there."""
    while error is not None:
        if isinstance(error, BaseExceptionGroup):
            # A host may have several addresses.
            return all(map(_is_unreachable, error.exceptions))
        if isinstance(error, socket.gaierror | ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _check_proxies() -> None:
    """Refuse an invalid proxy address without showing it: it may hold a key."""
    for kind, url in getproxies().items():
        named = url if "://" in url else f"http://{url}"
        if kind in {"http", "https", "all"} and split_url(named) is None:
            raise _unusable_environment()


def _unusable_environment(error: Exception | None = None) -> UsageError:
    """The error where proxies or certificates of the environment make no connection."""
    names = [n for n in sorted(os.environ) if n.upper().endswith("_PROXY")]
    names += [name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ]
    reason = f" ({error.strerror})" if isinstance(error, OSError) else ""
    return UsageError(
        f"no connection can be made with {' and '.join(names) or 'these settings'}"
        f"{reason}: a proxy looks like http://127.0.0.1:3128, a SOCKS proxy needs the "
        "package socksio, and certificates are a PEM file"
    )
