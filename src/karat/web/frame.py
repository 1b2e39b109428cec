"""What pages and answers have in common: the frame of a page, JSON, a refusal."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from karat.reports.details import encoded
from karat.reports.drawing import STYLE
from karat.reports.markup import Markup, tag
from karat.version import __version__
from karat.writing import encode_text

_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark">'
    '<link rel="stylesheet" href="/style.css"><script src="/page.js" defer></script>'
)
_SKIP = '<a class="skip" href="#main">Skip to the content</a>'


def framed(
    title: str,
    sections: Sequence[str],
    *,
    way: Sequence[tuple[str, str]] = (),
    status: int = 200,
) -> Response:
    """A whole page; `way` is the addresses and names of the pages above and beside."""
    links = [tag("a", name, href=address) for address, name in way]
    parts = [
        _HEAD,
        tag("title", f"{title} - karat"),
        f"</head><body>{_SKIP}",
        tag(
            "header",
            tag("nav", *links, aria_label="pages", _class="brand"),
            tag("h1", title, dir="auto"),
        ),
        tag("main", *map(Markup, sections), id="main"),
        tag("p", role="status", id="message", aria_live="polite"),
        tag("footer", f"karat {__version__}"),
        "</body></html>",
    ]
    content = encode_text("\n".join(parts))
    return Response(content, status, media_type="text/html")


def json_answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(encoded(value) + b"\n", status, media_type="application/json")


def refusal(request: Request, status: int, sentence: str) -> Response:
    """Why something is not done: for a program, or for a person."""
    if request.scope["path"].startswith("/api/"):  # no URL can be made of some hosts
        return json_answer({"error": sentence}, status)
    said = tag("p", sentence, _class="lead")
    return framed("This cannot be shown", [said], way=[("/", "karat")], status=status)


@cache
def asset(name: str) -> str:
    """A file that is served as it is; the style with that of reports."""
    own = (files("karat") / "web" / name).read_text("utf-8")
    if not name.endswith(".css"):
        return own
    return STYLE + (files("karat") / "reports" / "page.css").read_text("utf-8") + own
