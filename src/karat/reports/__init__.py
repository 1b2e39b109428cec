"""Reports: how evaluations are shown. They compute nothing.

To add one: a function to text in a module of this room, and its row in `SHIPPED` under
the file extension that chooses it.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from karat.catalogue import Catalogue
from karat.data.tables import Table
from karat.reports.files import (
    as_csv,
    as_json,
    as_jsonl,
    as_latex,
    as_markdown,
    as_text,
)
from karat.results.leaderboard import Leaderboard

__all__ = ["REPORTS", "SHIPPED", "Report"]

Report: TypeAlias = Callable[[Leaderboard, Sequence[Table]], str]
"""From a leaderboard, and the tables a person is shown of it, to the text of a file."""

SHIPPED: dict[str, Report | str] = {
    "json": as_json,
    "jsonl": as_jsonl,
    "csv": as_csv,
    "md": as_markdown,
    "txt": as_text,
    "tex": as_latex,
    # Only who wants a page pays for importing what makes it.
    "html": "karat.reports.page:as_html",
}

REPORTS: Catalogue[Report] = Catalogue("report format", SHIPPED, group="karat.reports")
