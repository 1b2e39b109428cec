"""Where texts may go, and which words never leave the process."""

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, urlsplit

from karat.errors import UsageError

__all__ = ["ALLOWED", "check_endpoint", "scrub"]

ALLOWED = "KARAT_ALLOWED_ENDPOINTS"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8
_PORTS = {"http": 80, "https": 443}


def scrub(text: str, secrets: Iterable[str | None] = ()) -> str:
    """The text without these secrets, nor any in the environment.

    The values of environment variables with KEY, TOKEN, SECRET, PASSWORD or CREDENTIAL
    in their name count as secrets.

    Example:
        >>> scrub("Incorrect API key provided: sk-12345678.", ["sk-12345678"])
        'Incorrect API key provided: ***.'
    """
    ours = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    known = [s for s in (*secrets, *ours) if s and len(s) >= _SHORTEST_SECRET]
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


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
    if not any(_covers(entry, endpoint) for entry in allowed):
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
