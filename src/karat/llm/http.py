"""HTTP connections to a server: opening them, posting to it, explaining failures.

The library, httpx, is imported when the first connection is opened.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from karat.errors import CallError, MissingExtraError, Refused, Transient, UsageError
from karat.llm.endpoints import may_use_proxy

__all__ = ["Connection", "Response", "connection_error", "load_httpx"]

_CONNECT_SECONDS = 15
# A long reply is a few thousand tokens, some ten kilobytes.
_MAX_BYTES = 16 * 1024 * 1024
# One side speaks TLS, and the other does not.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")


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
    """A pool of connections to the chat completions of one server.

    Args:
        address: the base URL of the server, without a query.
        query: sent with every request, such as the version of the interface.
        headers: sent with every request.
    """

    def __init__(
        self, address: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> None:
        httpx = load_httpx()
        proxied = may_use_proxy(address)
        if proxied:
            _check_proxies()
        try:
            self._url = httpx.URL(f"{address}/chat/completions", params=query)
        except (httpx.InvalidURL, UnicodeError):
            raise UsageError(f"{address} is not an address of a server") from None
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
        except ImportError:
            raise UsageError(
                "a SOCKS proxy, as ALL_PROXY names one, needs the package socksio; "
                "install it, or unset ALL_PROXY"
            ) from None
        except OSError as error:
            raise UsageError(
                "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be "
                f"read ({error.strerror or type(error).__name__}); set it to a PEM "
                "file, or unset it"
            ) from None
        except ValueError:
            raise _invalid_proxy() from None

    async def post(self, body: Mapping[str, Any]) -> Response | Exception:
        """The server's response to a JSON body, or why there is none.

        The error is returned, not raised: it holds the request, and so the key.
        """
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > _MAX_BYTES:
                        return Response(response.status_code, response.headers, None)
        except (load_httpx().RequestError, UnicodeError) as error:
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
    """Why no response came, and whether the call may have been billed.

    Args:
        error: what `Connection.post` returned.
        endpoint: the server's address.
        source: the option or variable that names the address.
        redact: removes secrets from a text.
        answered_before: whether the server has responded to an earlier call.
    """
    chain = list(_causes(error))
    cause = " ".join(str(chain[-1]).split()) or type(chain[-1]).__name__
    if isinstance(error, UnicodeError) or "illegal header" in cause.lower():
        # The cause would show the header, and so perhaps a key.
        return Refused(
            "a header cannot be sent, since it holds a line break or a letter beyond "
            "ASCII; check the OPENAI_ variables of the environment",
            always=True,
        )
    if any(name in cause.upper().replace(" ", "_") for name in _NO_TLS):
        return Refused(
            f"the server at {endpoint} does not speak https; should {source} begin "
            "with http:// instead?",
            detail=redact(cause),
            always=True,
        )
    if not _is_unsent(error):
        return Transient(
            f"the connection to {endpoint} broke before the reply was complete",
            detail=redact(cause),
            paid=True,
        )
    reason = f"cannot reach {endpoint}; is the server running, and is {source} right?"
    if _is_unreachable(error) and not answered_before:
        # Trying again does not help if the server was never there.
        return Refused(reason, detail=redact(cause), always=True)
    return Transient(reason, detail=redact(cause))


def _is_unsent(error: Exception) -> bool:
    httpx = load_httpx()
    failures = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
    return isinstance(error, (*failures, httpx.ProxyError, httpx.UnsupportedProtocol))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _is_unreachable(error: BaseException | None) -> bool:
    """Whether a host has no address, or no server listens there.

    Example:
        >>> _is_unreachable(ConnectionRefusedError()), _is_unreachable(TimeoutError())
        (True, False)
    """
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
        if kind not in {"http", "https", "all"}:
            continue
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            valid = parts.hostname and (parts.port or 1) > 0 and url.isprintable()
        except ValueError:
            valid = False
        if not valid:
            raise _invalid_proxy()


def _invalid_proxy() -> UsageError:
    names = [name for name in os.environ if name.upper().endswith("_PROXY")]
    return UsageError(
        f"no address of a proxy in {' or '.join(sorted(names)) or 'the settings'}; it "
        "looks like http://127.0.0.1:3128, or is not set"
    )
