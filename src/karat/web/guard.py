"""Who may ask for what: hosts, origins, tokens, limits, and what a browser is told."""

import hmac
import re
import secrets
import time
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from threading import Lock
from urllib.parse import quote, unquote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from karat.errors import DataError
from karat.history.store import Store
from karat.history.tokens import ROLES, Token
from karat.results.evaluation import Evaluation
from karat.web.frame import refusal

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # With no-referrer, forms of our own pages would name no origin.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
_READING = ("GET", "HEAD")
_DAY = 86_400
_MINUTE = 60.0
_GZIP = 31
_NOBODY = (
    "a token is needed: open the address that karat serve printed (it works once), or "
    "add ?token=... to this one; a program sends Authorization: Bearer ..."
)
_ELSEWHERE = "a page of another origin may not do this"
_HOST = re.compile(r"(?P<name>[\w.-]+|\[[0-9a-fA-F:.]+\])(:(?P<port>[0-9]{1,5}))?")
_DOTS = {"%2E": ".", "%2E%2E": ".."}


@dataclass(frozen=True)
class Limits:
    """How much may be sent to a workbench.

    Attributes:
        body: bytes of a request.
        unpacked: bytes of it when unpacked, where unpacking stops.
        queries: of a run.
        depth: documents that a run keeps of a query.
        text: characters of a document, or of anything in a label.
        uploads: of one token in a minute.

    Example:
        >>> from karat.extend import Limits
        >>> Limits(depth=100).depth
        100
    """

    body: int = 50_000_000
    unpacked: int = 500_000_000
    queries: int = 100_000
    depth: int = 1_000
    text: int = 200_000
    uploads: int = 20

    def check(self, result: Evaluation) -> None:
        """Refuse a run that is larger than it may be."""
        if len(result.queries) > self.queries:
            raise DataError(f"a run may have {self.queries:,} queries")
        for query, top in result.kept.items():
            if len(top) > self.depth:
                raise DataError(f"may keep {self.depth:,} documents", query=query)
            if any(len(document.text or "") > self.text for document in top):
                problem = f"has a text of more than {self.text:,} characters"
                raise DataError(problem, query=query)


class Desk:
    """What all requests share: connections, who is signed in, the limits."""

    def __init__(
        self,
        path: str | PathLike[str],
        hosts: Sequence[str],
        name: str | None,
        limits: Limits | None,
    ) -> None:
        self.path = path
        self.hosts = (*LOOPBACK, *map(str.lower, hosts))
        self.limits = limits or Limits()
        # In the printed address: it opens one session, and nothing more.
        self.link = secrets.token_urlsafe(24)
        self._owner = None if name is None else Token(name, "admin")
        self._session = secrets.token_urlsafe(24)
        self._is_open = name is not None
        self._free: list[Store] = []
        self._writing = Lock()
        self._uploads: dict[str, deque[float]] = {}

    @contextmanager
    def store(self, *, write: bool) -> Iterator[Store]:
        """A connection for one request: writers wait, readers see one state."""
        try:
            store = self._free.pop()
        except IndexError:
            store = Store(self.path)
        try:
            with self._writing if write else store.snapshot():
                yield store
        finally:
            self._free.append(store)

    def close(self) -> None:
        """Close all connections."""
        while self._free:
            self._free.pop().close()

    def sign_in(self, secret: str) -> str | None:
        """What the cookie of a browser that brings this token holds, if it is one."""
        if self._is_open and _same(secret, self.link):
            self._is_open = False
            return self._session
        return secret if self.caller(secret) else None

    def caller(self, secret: str) -> Token | None:
        """Who asks."""
        if self._owner is not None and _same(secret, self._session):
            return self._owner
        with self.store(write=False) as store:
            return store.tokens.find(secret) if secret else None

    def count_upload(self, name: str) -> None:
        """Refuse more uploads in a minute than one token may make."""
        times, now = self._uploads.setdefault(name, deque()), time.monotonic()
        while times and times[0] < now - _MINUTE:
            times.popleft()
        if len(times) >= self.limits.uploads:
            problem = f"{self.limits.uploads} uploads a minute are the limit"
            raise HTTPException(429, problem, {"retry-after": "60"})
        times.append(now)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def may(caller: Token, action: str, project: str | None) -> bool:
    """Whether somebody may do something in a project, or, if None, everywhere."""
    here = caller.project in (None, project) or (action, project) == ("read", None)
    return action in ROLES.get(caller.role, ()) and here


def segment(name: str) -> str:
    """An id as one part of an address; browsers would resolve a dot or two."""
    part = quote(name, safe="", errors="surrogatepass")
    return quote(part.replace(".", "%2E")) if name in _DOTS.values() else part


def name_in(part: str) -> str:
    """The id that a part of an address stands for."""
    try:
        name = unquote(part, errors="surrogatepass")
    except UnicodeDecodeError:
        raise HTTPException(400, "an address must be in UTF-8") from None
    return _DOTS.get(name, name)


class Guard:
    """Lets requests through that come from where they must and name who asks."""

    def __init__(self, app: ASGIApp, desk: Desk, public: Sequence[str]) -> None:
        self._app = app
        self._desk = desk
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have the application do so."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Ids are one part of the path, whatever they hold: it is split before decoding.
        scope["path"] = scope["raw_path"].partition(b"?")[0].decode("ascii", "replace")
        scope["query_string"] = (
            scope["query_string"].decode("ascii", "replace").encode()
        )

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        request = Request(scope, receive)
        try:
            answer = await run_in_threadpool(self._let_in, request)
        except HTTPException as error:
            answer = refusal(request, error.status_code, error.detail)
        await answer(scope, receive, guarded)

    def _let_in(self, request: Request) -> ASGIApp:
        """Who answers: the application, or a redirect for who has just signed in."""
        desk, host = self._desk, request.headers.get("host", "")
        named = _HOST.fullmatch(host)
        if named is None or named["name"].strip("[]").lower() not in desk.hosts:
            raise HTTPException(421, f"this server is not {host[:80]!r}")
        origin = request.headers.get("origin")
        writing = request.method not in _READING
        if writing and origin is not None and origin.partition("//")[2] != host:
            raise HTTPException(403, _ELSEWHERE)
        # Not of request.url, which ends where it finds a '#'.
        if request.scope["path"] in self._public:
            return self._app
        cookie = f"karat-{named['port'] or ''}"
        if not writing and "token" in request.query_params:
            return self._redirect(request, cookie)
        secret = request.headers.get("authorization", "").removeprefix("Bearer ")
        caller = desk.caller(secret or request.cookies.get(cookie, ""))
        if caller is None:
            raise HTTPException(401, _NOBODY)
        # Browsers send the cookie by themselves, and then they name the origin.
        if writing and origin is None and not secret:
            raise HTTPException(403, _ELSEWHERE)
        request.state.caller = caller
        return self._app

    def _redirect(self, request: Request, cookie: str) -> Response:
        """The same page without the token in its address, which is a cookie now."""
        pairs = request.query_params.multi_items()
        secret = self._desk.sign_in(request.query_params["token"])
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        # Two slashes would lead to another host.
        path = "/" + request.scope["path"].lstrip("/")
        response = RedirectResponse(path + ("?" + rest if rest else ""), 303)
        if secret is not None:
            secure = request.scope["scheme"] == "https"
            response.set_cookie(
                *(cookie, secret, _DAY), httponly=True, samesite="strict", secure=secure
            )
        return response


async def read_body(request: Request, limits: Limits) -> bytes:
    """What was sent, unpacked; reading stops where it is too much."""
    packing = request.headers.get("content-encoding", "identity")
    if packing not in ("identity", "gzip"):
        raise HTTPException(415, f"gzip is read, and not {packing[:80]!r}")
    unpack = zlib.decompressobj(_GZIP) if packing == "gzip" else None
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        try:
            most = limits.unpacked - len(body) + 1
            body += unpack.decompress(chunk, most) if unpack else chunk
        except zlib.error as error:
            raise HTTPException(422, f"is no gzip file: {error}") from None
        if size > limits.body or len(body) > limits.unpacked:
            sizes = f"{limits.body:,} bytes, unpacked {limits.unpacked:,}"
            raise HTTPException(413, f"is too large: at most {sizes}")
    if unpack and (not unpack.eof or unpack.unused_data):
        raise HTTPException(422, "is no whole gzip file")
    return bytes(body)
