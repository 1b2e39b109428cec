"""What is sent besides the prompt: a key that fits a header, parameters without one."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from karat.errors import UsageError
from karat.llm.secrecy import mask, scrub

__all__ = [
    "check_parameters",
    "check_secrets",
    "headers_for",
    "read_header",
    "read_key",
    "sendable",
]

_VISIBLE = re.compile(r"[!-~]*")
_LONE = re.compile(r"[\ud800-\udfff]")
_SECRET = re.compile(
    r"(?:key|keys|token)$|secret|password|credential|authorization|bearer",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"headers?$", re.IGNORECASE)
_NO_SECRET = {"prompt_cache_key", "bos_token", "eos_token", "pad_token"}


def read_key(given: str | None) -> str:
    """The key as it is sent: the given one, else that in `OPENAI_API_KEY`, or none."""
    if given is not None and given.strip():
        return _checked("the API key", given)
    return read_header("OPENAI_API_KEY")


def read_header(variable: str) -> str:
    """What an environment variable adds to a header; it is never shown."""
    return _checked(variable, os.environ.get(variable, ""))


def _checked(what: str, value: str) -> str:
    value = value.strip()
    if not _VISIBLE.fullmatch(value):
        raise UsageError(
            f"{what} holds a space, a line break or a letter beyond ASCII, which no "
            "header can carry; copy it anew"
        )
    return value


def headers_for(address: str, key: str) -> dict[str, str]:
    """The headers that a server wants besides the usual ones.

    Example:
        >>> headers_for("https://me.openai.azure.com/openai/deployments/m", "k")
        {'api-key': 'k'}
        >>> headers_for("https://me.openai.azure.com/openai/v1", "k")
        {}
    """
    parts = urlsplit(address)
    azure = (parts.hostname or "").endswith(".azure.com")
    return {"api-key": key} if azure and key and "/deployments/" in parts.path else {}


def sendable(text: str) -> str:
    """The text with a sign for each half of a character, which no request can hold."""
    return _LONE.sub("\ufffd", text)


def check_parameters(parameters: Mapping[str, Any], key: str | None = None) -> None:
    """Refuse parameters that JSON cannot hold, or that hold a secret."""
    for name, value in parameters.items():
        if not _is_json({name: value}):
            raise UsageError(
                f"parameter {sendable(str(name))!r} must have a value that JSON can "
                'hold, such as 0.5, "low" or {"a": true}'
            )
    check_secrets(parameters, key)


def check_secrets(parameters: Mapping[str, Any], key: str | None = None) -> None:
    """Refuse parameters that hold a secret, by name or by value: they are kept.

    Example:
        >>> check_secrets({"metadata": {"api_key": "sk-1"}})
        Traceback (most recent call last):
        karat.errors.UsageError: metadata.api_key is no parameter to set, since \
parameters are kept in the journal and shown; put the key into OPENAI_API_KEY
    """
    for path, value in _texts(parameters):
        where = ".".join(path)
        if _is_secret(path):
            raise UsageError(
                f"{mask(where, [key or ''])} is no parameter to set, since parameters "
                "are kept in the journal and shown; put the key into OPENAI_API_KEY"
            )
        held = f"{where}={value}"
        if mask(scrub(held), [key or ""]) != held:
            raise UsageError(
                f"parameter {mask(scrub(path[0]), [key or ''])!r} holds a secret, and "
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
    """Every text in there, with the names that lead to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, path)
    elif isinstance(value, str):
        yield path, value


def _is_secret(path: tuple[str, ...]) -> bool:
    """Whether a name says so; max_tokens and the like are numbers, and never asked."""
    name = path[-1]
    return any(map(_HEADERS.search, path)) or (
        _SECRET.search(name) is not None and name not in _NO_SECRET
    )
