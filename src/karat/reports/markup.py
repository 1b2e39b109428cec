"""HTML: elements that escape what they are given, and the page around them.

Everything that came from files is escaped here, or handed over as data that the script
shows as text. The browser is told to run no script but the one that stands in the page
by its digest, and to load nothing at all.
"""

import base64
import html
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

from karat.data.tables import Table, clean
from karat.reports.details import compressed
from karat.reports.drawing import STYLE, Chart
from karat.version import __version__


class Markup(str):
    """HTML that is right as it stands."""

    __slots__ = ()


def tag(name: str, *inside: str, **attributes: str | bool) -> Markup:
    """An element; whatever is not markup is text."""
    shown, body = "", ""
    for key, value in attributes.items():
        if value is not False:
            shown += f" {key.strip('_').replace('_', '-')}"
            shown += "" if value is True else f'="{html.escape(str(value))}"'
    for part in inside:
        body += part if isinstance(part, Markup) else html.escape(clean(part))
    return Markup(f"<{name}{shown}>{body}</{name}>")


def page_of(
    title: str, tables: Sequence[Table], lead: str = "", charts: Sequence[Chart] = ()
) -> str:
    """A page of tables and charts alone, in the same dress."""
    sections = [tag("p", lead, _class="lead")] if lead else []
    sections.append(section("charts", "In pictures", *pictures(charts)))
    for place, table in enumerate(tables):
        heading = table.title or title
        sections.append(section(f"part-{place}", heading, grid(table, titled=False)))
    return page(title, sections)


def page(
    title: str,
    sections: Sequence[str],
    data: Mapping[str, Any] | None = None,
    blocks: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The whole file: style, sections, data, compressed blocks by class, script.

    Links to the sections stand where there is data: other pages are short.
    """
    script = page_file("elements.js") + page_file("page.js")
    style = STYLE + page_file("page.css")
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; "
        f"style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
    )
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    # Builds that must repeat to the byte say which day it is.
    now = (
        datetime.fromtimestamp(int(told), UTC) if told.isdigit() else datetime.now(UTC)
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
        "" if data is None else _contents(sections),
        '<main id="main">',
        *sections,
        "</main>",
        tag(
            "footer",
            f"Written by karat {__version__} on {now:%Y-%m-%d}. "
            "This file loads nothing and sends nothing.",
        ),
    ]
    if data is not None:
        parts += [f'<script type="text/plain" id="data">{compressed(data)}</script>']
        for kind, own in (blocks or {}).items():
            form = f'<script type="text/plain" class="{kind}">{{}}</script>'
            parts += map(form.format, own)
        parts.append(f"<script>{script}</script>")
    return "\n".join([*parts, "</body></html>", ""])


@cache
def page_file(name: str) -> str:
    """The text of a file that lies beside this one."""
    return (files("karat") / "reports" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _contents(sections: Sequence[str]) -> Markup:
    """Links to the sections, by their headings."""
    heads = _HEADING.findall("".join(sections))
    links = [tag("a", Markup(text), href=f"#{name}") for name, text in heads]
    return tag("nav", *links, aria_label="contents") if links[1:] else Markup("")


def section(name: str, heading: str, *inside: str) -> Markup:
    """A part of the page under its heading; nothing where it holds nothing."""
    if not inside:
        return Markup("")
    head = tag("h2", heading, id=f"{name}-heading")
    return tag("section", head, *inside, id=name, aria_labelledby=f"{name}-heading")


def figure(chart: Chart) -> Markup:
    """A chart, coloured by the style of the page."""
    return tag("figure", Markup(chart.svg(style=False)))


def pictures(charts: Sequence[Chart]) -> list[Markup]:
    """Charts beside each other."""
    return [tag("div", *map(figure, charts), _class="charts")] if charts else []


def grid(table: Table, *, titled: bool = True, linked: bool = False) -> Markup:
    """A table, which scrolls by itself where it is too wide.

    It is linked where the page has the queries that its rows lead to.
    """
    head, body = [], []
    kinds = []
    for place, name in enumerate(table.columns):
        kinds.append("text" if place in table.texts else "number")
        head.append(tag("th", name, _class=kinds[-1], scope="col"))
    for (first, *cells), link in zip_longest(table.rows, table.links if linked else ()):
        name = tag("a", first, href=f"#{urlencode([link])}") if link else first
        row = [tag("th", name, _class=kinds[0], scope="row")]
        for cell, kind in zip(cells, kinds[1:], strict=True):
            row.append(tag("td", cell, _class=kind))
        body.append(tag("tr", *row))
    grid = tag(
        "table",
        *([tag("caption", table.title)] if titled and table.title else []),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
    )
    notes = map(partial(tag, "p", _class="note"), table.notes)
    label = table.title or ", ".join(table.columns)
    kind = "scroll tall" if len(table.rows) > _TALL else "scroll"
    wide = tag("div", grid, _class=kind, tabindex="0", role="region", aria_label=label)
    return Markup(wide + "".join(notes))


# Longer tables scroll by themselves, so that what follows is not far.
_TALL = 20
_HEADING = re.compile(r'<h2 id="([^"]*)-heading">(.*?)</h2>')
