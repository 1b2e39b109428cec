"""What CI is told of gates: JUnit, GitHub's page of a run, comments and marks."""

import re
from collections.abc import Iterator, Sequence
from html import escape

from karat.data.tables import Table, clean
from karat.gates import GateResult, outcome_of


def as_junit(results: Sequence[GateResult], headline: str = "") -> str:
    """The gates as test cases of a JUnit report; what is inconclusive is skipped."""
    failed, skipped = (
        sum(result.status == status for result in results)
        for status in ("fail", "inconclusive")
    )
    counts = f'tests="{len(results)}" failures="{failed}" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="karat" {counts}>',
    ]
    if headline:
        said = f'<property name="comparison" value="{escape(clean(headline))}"/>'
        lines.append(f"  <properties>{said}</properties>")
    for result in results:
        run, name, said = (
            escape(clean(text)) for text in (result.run, _name(result), result.sentence)
        )
        text = escape(clean(result.sentence), quote=False)
        told = {
            "pass": f"<system-out>{text}</system-out>",
            "fail": f'<failure message="{said}">{text}</failure>',
            "inconclusive": f'<skipped message="{said}"/>',
        }
        lines += [
            f'  <testcase classname="{run}" name="{name}">',
            f"    {told[result.status]}",
            "  </testcase>",
        ]
    return "\n".join([*lines, "</testsuite>", ""])


def as_step_summary(results: Sequence[GateResult], headline: str = "") -> str:
    """The gates as a Markdown table, for GitHub's page of a run."""
    rows = [[one.run, _name(one), one.status, one.sentence] for one in results]
    title = f"karat: {outcome_of(results)}" + (f"; {headline}" if headline else "")
    table = Table(["run", "gate", "status", "why"], rows, title=title, texts=range(4))
    return table.as_markdown() + "\n\n"


def as_comment(
    results: Sequence[GateResult],
    headline: str,
    tables: Sequence[Table],
    *,
    name: str,
    page: str,
) -> str:
    """What a pull request is told: the gates, tables, and where the page is.

    By its first line, which is not shown, an earlier comment is found again.
    """
    said = as_step_summary(results, headline).strip()
    shown = [said] if results else [f"**karat: {headline}**"] if headline else []
    shown += [table.as_markdown() for table in tables]
    mark = re.sub("-{2,}", "-", clean(f"karat {name}"))
    return "\n\n".join([f"<!-- {mark} -->", *shown, f"[All queries]({page})\n"])


def annotations(results: Sequence[GateResult]) -> Iterator[str]:
    """A line per gate that did not pass, as GitHub marks them on a change."""
    for result in results:
        if result.status == "pass":
            continue
        text = clean(f"{result.run}: {result.sentence}")
        for mark, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
            text = text.replace(mark, code)
        level = "error" if result.status == "fail" else "warning"
        yield f"::{level} title=karat::{text}"


def _name(result: GateResult) -> str:
    return f"{result.gate} [{result.slice}]" if result.slice else str(result.gate)
