"""Tables: what a person is shown, before anybody decides how."""

import html
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DASH", "Table", "clean", "number"]

DASH = "\N{EN DASH}"
"""Stands for a value that does not exist: never 0, never left out."""


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns, with a title above and notes below.

    The first column is text, all others are numbers and stand to the right.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    notes: Sequence[str] = ()

    def as_text(self) -> str:
        """The table in plain characters."""
        grid = [[clean(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in grid
        ]
        head = [clean(self.title), ""] if self.title else []
        notes = ["", *map(clean, self.notes)] if self.notes else []
        return "\n".join([*head, *lines, *notes])

    def as_html(self) -> str:
        """The table for a notebook; every cell is escaped."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<div>{html.escape(note)}</div>" for note in self.notes)
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return (
            f"<table>{caption}<thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{notes}"
        )

    def as_markdown(self) -> str:
        """The table in Markdown; marks that would change its shape are escaped."""
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        grid = [self.columns, rule, *self.rows]
        lines = [
            "| " + " | ".join(c if row is rule else _in_markdown(c) for c in row) + " |"
            for row in grid
        ]
        head = [f"**{_in_markdown(self.title)}**", ""] if self.title else []
        notes = ["", *(f"- {_in_markdown(note)}" for note in self.notes)]
        return "\n".join([*head, *lines, *(notes if self.notes else [])])


def number(value: float | None) -> str:
    """A score on paper: four decimals, a dash where there is none."""
    if value is None or math.isnan(value):
        return DASH
    return f"{value:.4f}"


def clean(text: str) -> str:
    """Text that cannot move the cursor or hide itself: control marks become `?`."""
    if text.isprintable():
        return text
    return "".join(
        char if unicodedata.category(char)[0] != "C" else "?" for char in text
    )


def _in_markdown(text: str) -> str:
    plain = clean(text)
    for mark in "\\|<>`*_[]":
        plain = plain.replace(mark, f"\\{mark}" if mark not in "<>" else _ANGLE[mark])
    return plain


_ANGLE = {"<": "&lt;", ">": "&gt;"}
