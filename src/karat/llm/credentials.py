"""Keys, headers and parameters of a request, and keeping secrets out of texts.

Parameters are kept in the journal, so they may not hold a secret. Redaction puts three
stars in place of keys and other secrets, however written.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from karat.errors import UsageError
from karat.version import __version__

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
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_MIN_SECRET = 8
_MIN_WORD = 4
# What may stand between the letters of a secret that is spelled out: no letter.
_BETWEEN = r"[\W_]{0,6}"
_WHITE_SPACE = r"(?:\s|\\{1,8}[nrt]|(?i:(?:%|\\{1,8}x|\\{1,8}u00)(?:20|09|0a|0d))){1,9}"
# Longer secrets, such as certificates, are searched for in their usual spellings only.
_LONG_SECRET = 200


def read_key(key: str | None) -> str:
    """The given API key, else that in `OPENAI_API_KEY`, else an empty text."""
    if key is not None and key.strip():
        return _header_value("the API key", key)
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
    """The headers of every request to a server; given ones come before others."""
    own = dict(headers or {})
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
    names = {name.lower() for name in own}
    defaults = {k: v for k, v in defaults.items() if v and k.lower() not in names}
    return defaults | own


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
    """Refuse parameters that hold a secret, by name or by value."""
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


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    r"""The text without these secrets, nor any in the environment.

    The values of environment variables with KEY, TOKEN, SECRET, PASSWORD or CREDENTIAL
    in their name count as secrets. A secret is found as it is, as Python, JSON and URLs
    write it, in base64 or hex, and letter by letter. Of a given one, parts of eight
    characters are found too, and one of four to seven as a word of its own; shorter
    ones, and short ones in the environment, are mostly words such as `none`.
    """
    words = [secret.strip() for secret in secrets if secret]
    others = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    text = mask(text, (*words, *others))
    for word in words:
        if _MIN_WORD <= len(word) < _MIN_SECRET:
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", "***", text)
        elif len(word) >= _MIN_SECRET:
            text = _mask_parts(text, word)
    return text


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text with three stars for each of these secrets, however it is written.

    Secrets of fewer than eight characters stay: a text may hold them by chance.
    """
    for secret in sorted({secret.strip() for secret in secrets}, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            text = _pattern(secret).sub("***", text)
    return text


@lru_cache(maxsize=256)
def _pattern(secret: str) -> re.Pattern[str]:
    """A secret as it is, escaped, in hex or base64, and letter by letter.

    No two ways to read a text overlap, so that a search takes time by its length only.
    """
    parts = [re.escape(code) for code in _base64(secret)]
    if len(secret) > _LONG_SECRET:
        usual = (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret))
        return re.compile("|".join((*map(re.escape, usual), *parts)))
    octets = secret.encode("utf-8", "surrogatepass")
    codes = (rf"(?:0x)?{octet:02x}".replace("?0", "?0?") for octet in octets)
    letters = [re.escape(letter) for letter in secret if letter.isalnum()]
    plain = re.sub(r"\\+", r"\\", re.sub(r"\s+", " ", secret))
    parts.append("".join(map(_spellings, plain)))
    parts.append(f"(?i:{_BETWEEN.join(codes)})")
    if len(letters) >= _MIN_SECRET:
        parts.append(_BETWEEN.join(letters))
    return re.compile("|".join(parts))


def _spellings(letter: str) -> str:
    """A letter as it is, and as Python, JSON and URLs write it."""
    if letter.isspace() or letter == "\\":
        return _WHITE_SPACE if letter.isspace() else r"\\{1,64}"
    octets = letter.encode("utf-8", "surrogatepass")
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    written = [
        "".join(f"%{octet:02x}" for octet in octets),
        "".join(rf"\\{{1,8}}x{octet:02x}" for octet in octets),
        "".join(rf"\\{{1,8}}u{units[n : n + 4]}" for n in range(0, len(units), 4)),
    ]
    if len(octets) > 1:
        written.append(rf"\\{{1,8}}x{ord(letter):02x}")
    return rf"(?:\\{{0,8}}{re.escape(letter)}|(?i:{'|'.join(written)}))"


def _base64(secret: str) -> Iterator[str]:
    """What base64 makes of a secret, wherever it begins in the encoded text."""
    data = secret.encode("utf-8", "surrogatepass")
    for offset in range(3):
        code = base64.b64encode(bytes(offset) + data).decode()
        # The first and last characters depend on what stands around the secret.
        inner = code[4 if offset else 0 : len(code) - 4]
        yield inner
        yield inner.translate(str.maketrans("+/", "-_"))


def _mask_parts(text: str, secret: str) -> str:
    """The text with stars for every part of a secret of eight characters or more."""
    starts = range(len(secret) - _MIN_SECRET + 1)
    parts = {secret[start : start + _MIN_SECRET] for start in starts}
    spans = sorted(
        match.span() for part in parts for match in re.finditer(re.escape(part), text)
    )
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        if start > end or not pieces:
            pieces.append(text[end:start])
        end = max(end, stop)
    return "***".join([*pieces, text[end:]])
