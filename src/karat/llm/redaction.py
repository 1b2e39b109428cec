"""Redaction: three stars in place of keys and other secrets, however written."""

import base64
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

__all__ = ["mask", "redact"]

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_MIN_SECRET = 8
_MIN_WORD = 4
# Escapes of Python, JSON and URLs, and runs of white space.
_ESCAPES = (
    r"(?:%[0-9a-f]{2})+",
    r"(?:\\+x[0-9a-f]{2})+",
    r"(?:\\+u[0-9a-f]{4})+",
    r"\\+[nrt\"'/]",
    r"\\+",
    r"\s+",
)
_ESCAPE = re.compile("|".join(_ESCAPES), re.IGNORECASE)
_PIECE = re.compile("|".join((*_ESCAPES, ".")), re.IGNORECASE)
_SPACE = re.compile(r"\s")
_CODE = re.compile(r"(?<=u)[0-9a-f]{4}|(?<=x)[0-9a-f]{2}", re.IGNORECASE)


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    r"""The text without these secrets, nor any in the environment.

    The values of environment variables with KEY, TOKEN, SECRET, PASSWORD or CREDENTIAL
    in their name count as secrets. A secret is found as it is, as Python, JSON and URLs
    write it, and in base64. Of a given one, parts of eight characters are found too,
    and one of four to seven characters as a word of its own; shorter ones, and short
    ones in the environment, are mostly words such as `none`.

    Example:
        >>> redact("Incorrect API key provided: sk-12345678.", ["sk-12345678"])
        'Incorrect API key provided: ***.'
        >>> redact(r"Bearer sk-\u0031234%35678", ["sk-12345678"])
        'Bearer ***'
    """
    given = [secret.strip() for secret in secrets if secret]
    known = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    text = mask(text, (*given, *known))
    for word in given:
        if _MIN_WORD <= len(word) < _MIN_SECRET:
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", "***", text)
        elif len(word) >= _MIN_SECRET:
            text = _mask_parts(text, word)
    return text


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text with three stars for each of these secrets, however it is written.

    Secrets of fewer than eight characters stay: a text may hold them by chance.
    """
    known = {secret.strip() for secret in secrets}
    plain = _unescape(text)
    known |= {code for secret in known for code in _base64(secret)}
    for secret in sorted(known, key=len, reverse=True):
        unescaped = _unescape(secret)
        if len(secret) < _MIN_SECRET or (secret not in text and unescaped not in plain):
            continue
        text = text.replace(secret, "***")
        if len(unescaped) >= _MIN_SECRET:
            text = _mask_escaped(text, unescaped)
        plain = _unescape(text)
    return text


def _base64(secret: str) -> Iterator[str]:
    """What base64 makes of a secret, wherever it begins in the encoded text."""
    if len(secret) < _MIN_SECRET:
        return
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


def _mask_escaped(text: str, secret: str) -> str:
    # The span in the text of every character of the unescaped text.
    spans: list[tuple[int, int]] = []
    for piece in _PIECE.finditer(text):
        spans += [piece.span()] * len(_decode(piece))
    end, parts = 0, []
    for match in re.finditer(re.escape(secret), _unescape(text)):
        parts.append(text[end : spans[match.start()][0]])
        end = spans[match.end() - 1][1]
    return "***".join([*parts, text[end:]])


def _unescape(text: str) -> str:
    r"""The text that escapes stand for, with one space for any white space.

    Example:
        >>> _unescape(r"a\n\u0062\x63%64"), _unescape("a\n b")
        ('a bcd', 'a b')
    """
    return _ESCAPE.sub(_decode, text)


def _decode(piece: re.Match[str]) -> str:
    """What a piece of text stands for."""
    raw = piece.group()
    if raw[0] == "%" and len(raw) > 1:
        return _SPACE.sub(" ", unquote(raw, errors="replace"))
    if raw[0] != "\\":
        return " " if raw.isspace() else raw
    codes = _CODE.findall(raw)
    if not codes:
        # A line break, or a sign that quotes need a backslash for.
        return " " if raw[-1] in "nrt" else raw[-1]
    if len(codes[0]) == len("0a"):
        octets = unquote("".join(f"%{code}" for code in codes), errors="replace")
        return _SPACE.sub(" ", octets)
    units = "".join(chr(int(code, 16)) for code in codes)
    whole = units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _SPACE.sub(" ", whole)
