"""Where texts may go, and which words never leave the process."""

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from karat.errors import UsageError

__all__ = ["ALLOWED", "check_endpoint", "mask", "scrub"]

ALLOWED = "KARAT_ALLOWED_ENDPOINTS"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8
_SHORTEST_WORD = 4
# What stands for something else in Python, JSON or a URL, and runs of white space.
_WAYS = (
    r"(?:%[0-9a-f]{2})+",
    r"(?:\\+x[0-9a-f]{2})+",
    r"(?:\\+u[0-9a-f]{4})+",
    r"\\+[nrt\"'/]",
    r"\\+",
    r"\s+",
)
_ESCAPE = re.compile("|".join(_WAYS), re.IGNORECASE)
_PIECE = re.compile("|".join((*_WAYS, ".")), re.IGNORECASE)
_SPACE = re.compile(r"\s")
_CODE = re.compile(r"(?<=u)[0-9a-f]{4}|(?<=x)[0-9a-f]{2}", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


def scrub(text: str, secrets: Iterable[str | None] = ()) -> str:
    r"""The text without these secrets, nor any in the environment.

    The values of environment variables with KEY, TOKEN, SECRET, PASSWORD or CREDENTIAL
    in their name count as secrets. A secret is found as it is and as Python, JSON and
    URLs write it. One of four to seven characters is found as a word of its own if it
    is given; shorter ones, and short ones in the environment, are mostly words such as
    `none` or `false`, which would make holes in any sentence.

    Example:
        >>> scrub("Incorrect API key provided: sk-12345678.", ["sk-12345678"])
        'Incorrect API key provided: ***.'
        >>> scrub(r"Bearer sk-\u0031234%35678", ["sk-12345678"])
        'Bearer ***'
    """
    given = [secret.strip() for secret in secrets if secret]
    ours = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    text = mask(text, (*given, *ours))
    for word in given:
        if _SHORTEST_WORD <= len(word) < _SHORTEST_SECRET:
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", "***", text)
    return text


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text with three stars for each of these secrets, however it is written.

    Secrets of less than eight characters are let be: a text may hold them by chance.
    """
    known = {secret.strip() for secret in secrets}
    plain = _plain(text)
    for secret in sorted(known, key=len, reverse=True):
        meant = _plain(secret)
        if len(secret) < _SHORTEST_SECRET or (
            secret not in text and meant not in plain
        ):
            continue
        text = text.replace(secret, "***")
        if len(meant) >= _SHORTEST_SECRET:
            text = _masked(text, meant)
        plain = _plain(text)
    return text


def _masked(text: str, secret: str) -> str:
    # For every character of the plain text, where it is written.
    spans: list[tuple[int, int]] = []
    for piece in _PIECE.finditer(text):
        spans += [piece.span()] * len(_read(piece))
    rest, parts = 0, []
    for found in re.finditer(re.escape(secret), _plain(text)):
        parts.append(text[rest : spans[found.start()][0]])
        rest = spans[found.end() - 1][1]
    return "***".join([*parts, text[rest:]])


def _plain(text: str) -> str:
    r"""The text that escapes stand for, with one space for any white space.

    Example:
        >>> _plain(r"a\n\u0062\x63%64"), _plain("a\n b")
        ('a bcd', 'a b')
    """
    return _ESCAPE.sub(_read, text)


def _read(piece: re.Match[str]) -> str:
    """What a piece of text stands for."""
    written = piece.group()
    if written[0] == "%" and len(written) > 1:
        return _SPACE.sub(" ", unquote(written, errors="replace"))
    if written[0] != "\\":
        return " " if written.isspace() else written
    codes = _CODE.findall(written)
    if not codes:
        # A line break, or a sign that quotes need a backslash for.
        return " " if written[-1] in "nrt" else written[-1]
    if len(codes[0]) == len("0a"):
        octets = unquote("".join(f"%{code}" for code in codes), errors="replace")
        return _SPACE.sub(" ", octets)
    units = "".join(chr(int(code, 16)) for code in codes)
    whole = units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _SPACE.sub(" ", whole)


def check_endpoint(endpoint: str, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse an endpoint that `KARAT_ALLOWED_ENDPOINTS` does not name.

    The variable holds hosts (`models.example`, `127.0.0.1:8080`, `*.example`), or URLs
    that begin the endpoint's, separated by commas. A Python function as the client
    needs the word `python` there, since nobody knows where it sends what it is given.

    Example:
        >>> check_endpoint("https://evil.example/v1", {ALLOWED: "models.example"})
        Traceback (most recent call last):
        karat.errors.UsageError: texts may not be sent to https://evil.example/v1: \
KARAT_ALLOWED_ENDPOINTS allows only models.example
    """
    listed = environment.get(ALLOWED)
    if listed is None:
        return
    allowed = [entry.strip() for entry in listed.split(",") if entry.strip()]
    try:
        covered = [_covers(entry, endpoint) for entry in allowed]
    except ValueError:
        raise UsageError(
            f"{ALLOWED} must hold hosts or URLs separated by commas, as in "
            f"models.example,127.0.0.1:8080; got {listed!r}"
        ) from None
    if not any(covered):
        raise UsageError(
            f"texts may not be sent to {endpoint}: {ALLOWED} allows only "
            f"{', '.join(allowed) or 'nothing'}"
        )


def _covers(entry: str, endpoint: str) -> bool:
    if endpoint.startswith("python:"):
        return entry == "python"
    target = urlsplit(endpoint)
    if "://" in entry:
        asked = urlsplit(entry)
        path = asked.path.rstrip("/")
        return (
            (asked.scheme, asked.hostname, _port(asked))
            == (target.scheme, target.hostname, _port(target))
            and f"{target.path}/".startswith(f"{path}/")
            and ".." not in target.path.split("/")
        )
    asked = urlsplit(f"//{entry}")
    host, wanted = target.hostname or "", asked.hostname or ""
    if wanted.startswith("*."):
        same = host.endswith(wanted[1:]) and host != wanted[1:]
    else:
        same = host == wanted
    return same and asked.port in (None, _port(target))


def _port(url: SplitResult) -> int | None:
    return url.port or _PORTS.get(url.scheme)
