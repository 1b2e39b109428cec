"""HTML: elements that escape what they are given, and the page around them.

Everything that came from files is escaped here, or handed over as data that the script
shows as text. The browser is told to run no script but the one that stands in the page
by its digest, and to load nothing at all.
"""

import base64
import html
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from karat.data.tables import Table, clean
from karat.reports.details import encoded
from karat.reports.drawing import STYLE, Chart
from karat.version import __version__


class Markup(str):
    """HTML that is right as it stands."""

    __slots__ = ()


def tag(name: str, *inside: str, **attributes: str | bool) -> Markup:
    """An element; whatever is not markup is text."""
    shown = "".join(
        f" {key.strip('_').replace('_', '-')}"
        + ("" if value is True else f'="{html.escape(str(value))}"')
        for key, value in attributes.items()
        if value is not False
    )
    body = "".join(
        part if isinstance(part, Markup) else html.escape(clean(part))
        for part in inside
    )
    return Markup(f"<{name}{shown}>{body}</{name}>")


def page_of(
    title: str, tables: Sequence[Table], lead: str = "", charts: Sequence[Chart] = ()
) -> str:
    """A page of tables and charts alone, in the same dress."""
    sections = [tag("p", lead, _class="lead")] if lead else []
    sections.append(section("charts", "In pictures", *map(figure, charts)))
    for place, table in enumerate(tables):
        heading = table.title or title
        sections.append(section(f"part-{place}", heading, grid(table, titled=False)))
    return page(title, sections, None, [])


def page(
    title: str,
    sections: Sequence[str],
    data: Mapping[str, Any] | None,
    blocks: Sequence[str],
) -> str:
    """The whole file: style, sections, data, texts and script."""
    script, style = _asset("page.js"), STYLE + _asset("page.css")
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; "
        f"style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        tag("title", f"{title} - karat"),
        f"<style>{style}</style></head><body>",
        '<a class="skip" href="#main">Skip to the results</a>',
        tag("header", tag("p", "karat report", _class="brand"), tag("h1", title)),
        '<main id="main">',
        *sections,
        "</main>",
        tag(
            "footer",
            f"Written by karat {__version__} on {_now()}. "
            "This file loads nothing and sends nothing.",
        ),
    ]
    if data is not None:
        # In a script element only "<" could end it or begin a comment.
        plain = encoded(data).decode().replace("<", "\\u003c")
        parts += [
            _DRAWER,
            f'<script type="application/json" id="data">{plain}</script>',
            *(f'<script type="text/plain" class="block">{b}</script>' for b in blocks),
            f"<script>{script}</script>",
        ]
    return "\n".join([*parts, "</body></html>", ""])


@cache
def _asset(name: str) -> str:
    return (files("karat") / "reports" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _now() -> str:
    """The day of writing; builds that must repeat to the byte say which day it is."""
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = (
        datetime.fromtimestamp(int(told), UTC) if told.isdigit() else datetime.now(UTC)
    )
    return f"{now:%Y-%m-%d}"


def section(name: str, heading: str, *inside: str) -> Markup:
    """A part of the page under its heading; nothing where it holds nothing."""
    if not inside:
        return Markup("")
    head = tag("h2", heading, id=f"{name}-heading")
    return tag("section", head, *inside, id=name, aria_labelledby=f"{name}-heading")


def figure(chart: Chart) -> Markup:
    """A chart, coloured by the style of the page."""
    return tag("figure", Markup(chart.svg(style=False)))


def grid(table: Table, *, titled: bool = True) -> Markup:
    """A table, which scrolls by itself where it is too wide."""
    kinds = [
        "text" if n in table.texts else "number" for n in range(len(table.columns))
    ]
    named = zip(table.columns, kinds, strict=True)
    head = [tag("th", name, _class=kind, scope="col") for name, kind in named]
    body = []
    for first, *cells in table.rows:
        rest = zip(cells, kinds[1:], strict=True)
        others = [tag("td", cell, _class=kind) for cell, kind in rest]
        body.append(tag("tr", tag("th", first, _class=kinds[0], scope="row"), *others))
    grid = tag(
        "table",
        *([tag("caption", table.title)] if titled and table.title else []),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
    )
    notes = [tag("p", note, _class="note") for note in table.notes]
    label = table.title or "table"
    wide = tag(
        "div", grid, _class="scroll", tabindex="0", role="region", aria_label=label
    )
    return Markup(wide + "".join(notes))


_DRAWER = """
<dialog id="drawer" aria-labelledby="drawer-title" tabindex="-1">
<div id="drawer-inside"></div></dialog>
"""
