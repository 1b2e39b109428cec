"""What a person is shown, before anybody decides how: tables, and how far work is."""

import math
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Shower: TypeAlias = Callable[[Iterable[Any], int, str], Iterator[Any]]
"""From items, their number and what is done with them to the same items."""

SHOWN_BY: ContextVar[Shower | None] = ContextVar("SHOWN_BY", default=None)
"""Who shows how far long work is; nobody, unless a command does."""

DASH = "\N{EN DASH}"
"""Stands for a value that does not exist: never 0, never left out."""

_GAP = "  "
_BOLD, _DIM = "\x1b[1m{}\x1b[0m", "\x1b[2m{}\x1b[0m"
# No text is wrapped to less.
_LEAST = 12


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns, with a title above and notes below.

    `texts` says which columns are no numbers and stand to the left, `spare` how many of
    the last are left out where there is no room, and `links` where rows lead in a page.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    notes: Sequence[str] = ()
    texts: Sequence[int] = (0,)
    bold: Collection[tuple[int, int]] = ()
    spare: int = 0
    links: Sequence[tuple[str, str]] = ()

    @property
    def width(self) -> int:
        """How many characters the widest line of the grid takes."""
        return sum(self._widths()) + len(_GAP) * (len(self.columns) - 1)

    def folded(self, width: int) -> list["Table"]:
        """Parts no wider than that, where leaving out and wrapping is not enough."""
        if self.width <= width:
            return [self]
        if self.spare:
            fewer = self._part(range(len(self.columns) - 1))
            return replace(fewer, spare=self.spare - 1).folded(width)
        for count in range(len(self.columns), 0, -1):
            # As many columns as there is room for, and the others below.
            part = self._part(range(count))
            rooms = part._rooms(width)  # noqa: SLF001
            if rooms is not None or count <= 2:  # noqa: PLR2004
                break
        part = part if rooms is None else part._wrapped(rooms)  # noqa: SLF001
        if count == len(self.columns):
            return [part]
        rest = self._part([0, *range(count, len(self.columns))])
        below = replace(rest, title="").folded(width)
        return [replace(part, notes=()), *below]

    def as_text(self, width: int | None = None, *, styled: bool = False) -> str:
        """The table in characters, styled for a terminal, folded to a width."""
        if width is not None and self.width > width:
            parts = self.folded(width)
            if parts != [self]:
                return "\n\n".join(part.as_text(width, styled=styled) for part in parts)
        bold, dim = (_BOLD, _DIM) if styled else ("{}", "{}")
        lines: list[str] = []
        widths = self._widths()
        for row in (self.columns, *self.rows):
            cells = [
                _padded(clean(cell), room, left=place in self.texts)
                for place, (cell, room) in enumerate(zip(row, widths, strict=True))
            ]
            if lines:
                cells[0] = bold.format(cells[0])
            lines.append(_GAP.join(cells).rstrip())
        lines[0] = dim.format(lines[0])
        title = _wrapped(clean(self.title), width) if self.title else []
        notes = [line for note in self.notes for line in _wrapped(clean(note), width)]
        blocks = map(bold.format, title), lines, map(dim.format, notes)
        return "\n\n".join(filter(None, map("\n".join, blocks)))

    def without_empty(self) -> "Table":
        """The table without the columns that have nothing in any row."""
        columns = enumerate(zip(*self.rows, strict=True))
        return self._part([place for place, cells in columns if any(cells)])

    def same(self, names: Sequence[str]) -> dict[str, str]:
        """What those of the named columns say that say the same in every row."""
        cells = {
            name: {row[place] for row in self.rows} - {DASH}
            for place, name in enumerate(self.columns)
            if name in names
        }
        return {name: "".join(one) for name, one in cells.items() if len(one) <= 1}

    def without(self, names: Collection[str]) -> "Table":
        """The table without the columns of these names."""
        every = enumerate(self.columns)
        return self._part([place for place, name in every if name not in names])

    def _part(self, places: Sequence[int]) -> "Table":
        """The table with these of its columns only."""
        return replace(
            self,
            columns=[*map(self.columns.__getitem__, places)],
            rows=[[*map(row.__getitem__, places)] for row in self.rows],
            texts=[place for place, n in enumerate(places) if n in self.texts],
        )

    def _rooms(self, width: int) -> list[int] | None:
        """How wide each column may be where texts wrap; None if that is too narrow."""
        rooms = self._widths()
        texts = sorted(self.texts, key=rooms.__getitem__)
        left = width - self.width + sum(map(rooms.__getitem__, texts))
        for count, place in enumerate(texts):
            # Short texts stay as they are, and long ones share the rest.
            fair = max(left // (len(texts) - count), _cells(self.columns[place]))
            if rooms[place] > fair:
                rooms[place] = fair
                if fair < _LEAST:
                    return None
            left -= rooms[place]
        return rooms if left >= 0 else None

    def _wrapped(self, rooms: Sequence[int]) -> "Table":
        """The table with as many lines for each row as its texts take."""
        rows: list[tuple[str, ...]] = []
        for row in self.rows:
            rows += zip_longest(*map(_lines, row, rooms), fillvalue="")
        return replace(self, rows=rows)

    def _widths(self) -> list[int]:
        grid = zip(self.columns, *self.rows, strict=True)
        return [max(map(_cells, map(clean, column))) for column in grid]

    def as_html(self) -> str:
        """The table for a notebook; every cell is escaped."""
        from html import escape  # noqa: PLC0415  loaded for few results

        # Notebooks keep no style sheet: every cell says where its text stands.
        sides = [
            "left" if n in self.texts else "right" for n in range(len(self.columns))
        ]

        def line(tag: str, cells: Sequence[str]) -> str:
            inside = "".join(
                f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
                for cell, side in zip(cells, sides, strict=True)
            )
            return f"<tr>{inside}</tr>"

        body = "".join(line("td", row) for row in self.rows)
        notes = "".join(
            f'<div style="font-size:85%">{escape(note)}</div>' for note in self.notes
        )
        caption = (
            '<caption style="caption-side:top;text-align:left">'
            f"{escape(self.title)}</caption>"
            if self.title
            else ""
        )
        return (
            f"<table>{caption}<thead>{line('th', self.columns)}</thead>"
            f"<tbody>{body}</tbody></table>{notes}"
        )

    def __str__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()

    def as_markdown(self) -> str:
        """The table in Markdown; marks that would change its shape are escaped."""
        places = range(len(self.columns))
        rule = ["---" if place in self.texts else "---:" for place in places]
        grid = [[_in_markdown(cell) for cell in row] for row in self.rows]
        for row, place in self.bold:
            grid[row][place] = f"**{grid[row][place]}**"
        grid = [[_in_markdown(name) for name in self.columns], rule, *grid]
        lines = [f"| {' | '.join(row)} |" for row in grid]
        head = [f"**{_in_markdown(self.title)}**", ""] if self.title else []
        notes = ["", *(f"- {_in_markdown(note)}" for note in self.notes)]
        return "\n".join([*head, *lines, *(notes if self.notes else [])])


def steps(items: Iterable[T], total: int, doing: str) -> Iterable[T]:
    """The same items, counted where anybody shows how far work is."""
    shower = SHOWN_BY.get()
    return items if shower is None else shower(items, total, doing)


def number(value: float | None) -> str:
    """A score on paper: four decimals, a dash where there is none."""
    if value is None or math.isnan(value):
        return DASH
    return f"{value:.4f}"


def amount(value: float) -> str:
    """A sum of money, in as many decimals as it takes to tell it from nothing."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    decimals = max(2, 2 - math.floor(math.log10(value)))
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")


def counted(count: int, thing: str) -> str:
    """So many of a thing, in the singular or the plural."""
    if count == 1:
        return f"1 {thing}"
    several = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{count} {several}"


def clean(text: str) -> str:
    """Text that cannot move the cursor or hide itself: control marks become `?`."""
    if text.isprintable():
        return text
    return "".join(
        char if unicodedata.category(char)[0] != "C" else "?" for char in text
    )


def _cells(text: str) -> int:
    """How many places of a terminal a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(map(_is_wide, text))
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _padded(text: str, room: int, *, left: bool) -> str:
    blank = " " * (room - _cells(text))
    return text + blank if left else blank + text


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)


def _lines(text: str, room: int) -> list[str]:
    # What takes two places counts as two letters: NUL, which no clean text holds.
    spread = "".join(f"{c}\0" if _is_wide(c) else c for c in clean(text))
    lines = textwrap.wrap(spread, room, break_on_hyphens=False) or [""]
    return [line.replace("\0", "") for line in lines]


def _in_markdown(text: str) -> str:
    plain = clean(text)
    for mark in "\\|`*_[]":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("<", "&lt;").replace(">", "&gt;")
