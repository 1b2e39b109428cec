"""What a request carries besides the prompt: headers with keys, and parameters.

Parameters are kept in the journal, so they may not hold a secret.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from karat.errors import UsageError
from karat.llm.redaction import mask, redact
from karat.version import __version__

__all__ = [
    "check_headers",
    "check_parameters",
    "check_secrets",
    "read_key",
    "replace_surrogates",
    "request_headers",
]

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


def read_key(given: str | None) -> str:
    """The given API key, else that in `OPENAI_API_KEY`, else an empty text."""
    if given is not None and given.strip():
        return _header_value("the API key", given)
    return _header_value("OPENAI_API_KEY")


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
        "OpenAI-Organization": _header_value("OPENAI_ORG_ID"),
        "OpenAI-Project": _header_value("OPENAI_PROJECT_ID"),
    }
    if key:
        defaults["Authorization"] = f"Bearer {key}"
        # The classic addresses of Azure, also behind a gateway.
        if "/deployments/" in urlsplit(address).path:
            defaults["api-key"] = key
    names = {name.lower() for name in given}
    defaults = {k: v for k, v in defaults.items() if v and k.lower() not in names}
    return defaults | given


def _header_value(source: str, value: str | None = None) -> str:
    """A value, or else that of a variable, stripped; it is never shown."""
    value = (os.environ.get(source, "") if value is None else value).strip()
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
        try:
            json.dumps({name: value}, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):
            raise UsageError(
                f"parameter {replace_surrogates(str(name))!r} must have a value that "
                'JSON can hold, such as 0.5, "low" or {"a": true}'
            ) from None
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
        name, last = ".".join(path), path[-1]
        is_named = _SECRET.search(last) is not None and last not in _NOT_SECRET
        if is_named or any(map(_HEADERS.search, path)):
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
