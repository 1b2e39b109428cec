"""The connection to a server: how it is opened, and what comes back over it."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from karat.errors import CallError, MissingExtraError, Refused, Transient, UsageError
from karat.llm.sending import headers_for, read_header

__all__ = ["Answer", "broken", "connect", "library", "post"]

# Seconds to get a connection: nobody is there, or nobody speaks our language.
_CONNECT = 15
# A long reply is a few thousand tokens, some ten kilobytes.
_MOST_BYTES = 16 * 1024 * 1024
# One side speaks TLS, and the other does not.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
# Errors of the library's transport by name, since it has had two of them.
_UNSENT = {
    *("ConnectError", "ConnectTimeout", "PoolTimeout"),
    *("ProxyError", "UnsupportedProtocol"),
}


class Answer(NamedTuple):
    """What a server sent back; no content where there was more than anyone reads."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None


class _Answered(Exception):  # noqa: N818
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.status)


def library() -> Any:
    """The library that speaks to servers; importing it takes half a second."""
    try:
        import openai  # noqa: PLC0415

        # It would load this part at the first call, with the clock running.
        import openai.resources.chat  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("asking a model", "llm") from None
    return openai


def connect(address: str, query: Mapping[str, str], key: str) -> Any:
    """The library's client for a server."""
    openai = library()
    _check_proxies()
    organization, project = map(read_header, ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"))
    patience = openai.Timeout(None, connect=_CONNECT)
    try:
        # The driver retries and keeps the time of calls; redirects could lead texts to
        # where they may not go.
        http = openai.DefaultAsyncHttpxClient(
            follow_redirects=False,
            timeout=patience,
            event_hooks={"response": [_end]},
        )
    except ImportError:
        raise UsageError(
            "a SOCKS proxy, as ALL_PROXY names one, needs the package socksio; install "
            "it, or unset ALL_PROXY"
        ) from None
    except OSError as error:
        raise UsageError(
            "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read "
            f"({error.strerror or type(error).__name__}); set it to a PEM file, or "
            "unset it"
        ) from None
    except ValueError:
        raise _no_proxy() from None
    return openai.AsyncOpenAI(
        # Servers of one's own mostly want no key, but the library wants one.
        api_key=key or "none",
        organization=organization or None,
        project=project or None,
        base_url=address,
        default_query=query,
        default_headers=headers_for(address, key),
        max_retries=0,
        timeout=patience,
        http_client=http,
    )


async def post(api: Any, **request: Any) -> Answer | Exception:
    """What the server answers; or why nothing came.

    Handed on, not raised: the library's errors hold requests, and those hold the key.
    """
    try:
        await api.chat.completions.create(**request)
    except _Answered as answered:
        return answered.answer
    except library().APIConnectionError as error:
        # Older versions of the library take any exception for a broken connection.
        cause = error.__cause__
        return cause.answer if isinstance(cause, _Answered) else error
    except UnicodeError as error:
        return error
    return EOFError("the library did not wait for an answer")


async def _end(response: Any) -> None:
    """End a request with what came: the library itself would read any length."""
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > _MOST_BYTES:
            raise _Answered(Answer(response.status_code, response.headers, None))
    raise _Answered(Answer(response.status_code, response.headers, bytes(content)))


def broken(
    error: Exception,
    endpoint: str,
    where: str,
    clean: Callable[[str], str] = str,
    *,
    known: bool = False,
) -> CallError:
    """What it means that no answer came, and whether it may have been paid for.

    Args:
        error: what went wrong.
        endpoint: whom it should have come from.
        where: what names the address.
        clean: takes secrets out of a text.
        known: whether the server has answered before.
    """
    chain = list(_causes(error))
    cause = " ".join(str(chain[-1]).split()) or type(chain[-1]).__name__
    if isinstance(error, UnicodeError) or "illegal header" in cause.lower():
        # What it says would show the header, and so perhaps a key.
        return Refused(
            "a header cannot be sent, since it holds a line break or a letter beyond "
            "ASCII; check the OPENAI_ variables of the environment",
            always=True,
        )
    if any(name in cause.upper().replace(" ", "_") for name in _NO_TLS):
        return Refused(
            f"the server at {endpoint} does not speak https; does {where} begin with "
            "http:// rather?",
            detail=clean(cause),
            always=True,
        )
    if _UNSENT.isdisjoint(kind.__name__ for e in chain for kind in type(e).__mro__):
        return Transient(
            f"the connection to {endpoint} broke before the reply was whole",
            detail=clean(cause),
            paid=True,
        )
    reason = f"cannot reach {endpoint}; is the server running, and is {where} right?"
    if _nobody_home(error) and not known:
        # A server that was never there is no passing fault.
        return Refused(reason, detail=clean(cause), always=True)
    return Transient(reason, detail=clean(cause))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _nobody_home(error: BaseException | None) -> bool:
    """Whether a host has no address or nobody listens there, so that waiting is vain.

    Example:
        >>> _nobody_home(ConnectionRefusedError()), _nobody_home(TimeoutError())
        (True, False)
    """
    while error is not None:
        if isinstance(error, BaseExceptionGroup):
            # A host may have several addresses.
            return all(map(_nobody_home, error.exceptions))
        if isinstance(error, socket.gaierror | ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _check_proxies() -> None:
    """Refuse a proxy that is no address; it is not shown, since it may hold a key."""
    for kind, url in getproxies().items():
        if kind not in {"http", "https", "all"}:
            continue
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            usable = parts.hostname and (parts.port or 1) > 0 and url.isprintable()
        except ValueError:
            usable = False
        if not usable:
            raise _no_proxy()


def _no_proxy() -> UsageError:
    names = [name for name in os.environ if name.upper().endswith("_PROXY")]
    return UsageError(
        f"no address of a proxy in {' or '.join(sorted(names)) or 'the settings'}; it "
        "looks like http://127.0.0.1:3128, or is not set"
    )
