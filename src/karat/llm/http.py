"""Servers: valid and allowed addresses, posting to one by HTTP, and its errors.

The library, httpx, is imported when the first connection is opened.
"""

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

from karat.errors import CallError, MissingExtraError, Refused, Transient, UsageError

ALLOWED = "KARAT_ALLOWED_ENDPOINTS"
ADDRESS = "OPENAI_BASE_URL"
"""The variable that holds the address of a server."""
MAX_DETAIL = 300
"""The most characters shown of a server's own words."""
BAD_REQUEST = frozenset({400, 415, 422})
"""What servers answer to a request with a part that they do not take."""
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
_OVERLOADED = 529
_REFUSED = range(400, 500)
_RETRIED = {408, 409, 425, 429}
_BROKEN = 500
_WRONG_ADDRESS = {404, 405, 501}
_MAY_BE_THE_PROMPT = {403, 404}
_MAY_BE_A_PART = {*BAD_REQUEST, 404, 500, 501}
_MODERATION = "moderation|flagged|content[ _]policy"
_UNKNOWN = "models?|deployment|DeploymentNotFound"
_TOO_LONG = (
    "context[ _]length|context size|context window|prompt is too long|"
    "input token count|max_new_tokens"
)
# In a code or type, never in a message: that may quote a prompt, or advertise a plan.
_NO_CREDIT = ("insufficient_quota", "billing", "credit", "balance")
# Codes and parameters of errors about a text.
_ABOUT_TEXTS = {
    *("messages", "prompt", "input", "content_filter", "content_policy_violation"),
}
# Where errors hold their messages. What FastAPI calls input quotes the request.
_MESSAGE_FIELDS = ("error", "errors", "loc", "message", "msg", "code", "detail")
_MAX_DEPTH = 8
# The beginning says what is wrong; the rest is quotes.
_MAX_MESSAGE = 20_000
_NUMBER = re.compile(r"[0-9a-f-]*[0-9][0-9a-f-]*")


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

    A Python function needs the word `python` there: nobody knows where it sends texts.
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
        except (httpx.RequestError, UnicodeEncodeError) as error:
            failure: Exception = error
            return failure
        except (httpx.InvalidURL, UnicodeError):  # as of the host xn--a
            raise UsageError(f"{self._address} is no server's address") from None
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


@dataclass(frozen=True)
class ServerError:
    """A status, and the body that came with it."""

    status: int
    body: object
    wait: float | None = None
    tokens: tuple[int, int] | None = None

    @cached_property
    def message(self) -> str:
        """The message in the body, in whichever field it is."""
        body = self.body
        if isinstance(body, bytes):
            body = body.decode("utf-8", "replace")
        text = " ".join(" ".join(_texts(body))[:_MAX_MESSAGE].split())
        # A web page is no help to anyone.
        return "" if text.startswith("<") else text

    def says(self, words: str) -> bool:
        """Whether the message, or the parameter it is about, holds words of a pattern.

        It may be quoting the prompt: what is done about an error must not rest on it.
        """
        text = f"{self.message} {self._field('param')}"
        return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None

    def repeats(self, other: object) -> bool:
        """Whether it says the same as another, but for numbers."""
        if not isinstance(other, ServerError) or self.status != other.status:
            return False
        one, two = (_NUMBER.sub("", e.message.lower()) for e in (self, other))
        return one == two

    @property
    def too_long(self) -> bool:
        """Whether the prompt, with room for the reply, exceeds what it can read."""
        if self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return True
        return self.status in _REFUSED and self.says(_TOO_LONG)

    @property
    def may_be_a_part(self) -> bool:
        """Whether it may be about a part of the request other than its texts."""
        param = re.split(r"[.\[]", self._field("param"))[0].lower()
        about_texts = not _ABOUT_TEXTS.isdisjoint((param, self._field("code")))
        return self.status in _MAY_BE_A_PART and not about_texts and not self._spoilt

    @property
    def _spoilt(self) -> bool:
        """Whether the model did not keep to the schema (Groq): another reply may."""
        return self._field("code") == "json_validate_failed"

    def explain(
        self,
        endpoint: str,
        model: str,
        redact: Callable[[str], str] = str,
        source: str = ADDRESS,
        *,
        answered: bool = False,
    ) -> CallError:
        """The error of the call; a model that has answered forbids a prompt alone."""
        status, name = self.status, _name(self.status)
        detail = redact(self.message)[:MAX_DETAIL] or None
        code = f"{self._field('code')} {self._field('type')}".lower()
        unless = status in _MAY_BE_THE_PROMPT
        fatal = None
        if status == HTTPStatus.PAYMENT_REQUIRED or any(w in code for w in _NO_CREDIT):
            fatal = f"the account at {endpoint} has no credit left"
        elif unless and (answered or self.says(_MODERATION)):
            pass
        elif status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            fatal = f"{endpoint} refuses the key ({name}); check OPENAI_API_KEY"
        elif status == HTTPStatus.NOT_FOUND and self.says(_UNKNOWN):
            fatal = f"{endpoint} does not know model {model!r}; check its name"
        elif status in _WRONG_ADDRESS or status < HTTPStatus.BAD_REQUEST:
            fatal = wrong_address(endpoint, name, source)
        if fatal is not None:
            # A server's message about a wrong key may quote it in part.
            return Refused(
                fatal,
                detail=None if status == HTTPStatus.UNAUTHORIZED else detail,
                always=True,
                unless_answered=unless,
                forbidden=status == HTTPStatus.FORBIDDEN,
                tokens=self.tokens,
            )
        if self._spoilt or may_pass(status):
            return Transient(
                f"{endpoint} answered {name}",
                self.wait,
                detail=detail,
                alive=self._spoilt or status == HTTPStatus.TOO_MANY_REQUESTS,
                tokens=self.tokens,
            )
        reason = f"{endpoint} refused the prompt ({name})"
        if self.too_long:
            reason = (
                f"the prompt is too long for model {model!r}; shorten the documents or "
                "take a model with a longer context"
            )
        return Refused(reason, detail=detail, tokens=self.tokens)

    def _field(self, name: str) -> str:
        value = self.body.get(name) if isinstance(self.body, Mapping) else None
        return value if isinstance(value, str) else ""


def may_pass(status: object) -> bool:
    """Whether a status says that the same request may be answered later."""
    return isinstance(status, int) and (status in _RETRIED or status >= _BROKEN)


def wrong_address(endpoint: str, answer: str, source: str = ADDRESS) -> str:
    """What to do about a server that responds, but does not take prompts."""
    return (
        f"nothing takes prompts at {endpoint} ({answer}); check {source}, which "
        "usually ends in /v1"
    )


def cut_off(tokens: int, when: str = "") -> str:
    """What to do about a reply that reached the longest length allowed."""
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
    """Seconds to wait, in any of the three ways a server may ask for it."""
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
