"""What came of gates, for CI: JUnit XML, and GitHub's step summary and annotations."""

from collections.abc import Iterator, Sequence
from html import escape

from karat.data.tables import Table, clean
from karat.gates import GateResult, outcome_of

__all__ = ["annotations", "as_junit", "as_step_summary"]


def as_junit(results: Sequence[GateResult]) -> str:
    """The gates as test cases of a JUnit report; what is inconclusive is skipped."""
    failed = sum(result.status == "fail" and not result.advice for result in results)
    skipped = sum(result.status != "pass" for result in results) - failed
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="karat" {_counts(len(results), failed, skipped)}>',
    ]
    for result in results:
        name = _quoted(clean(_name(result)))
        plain = clean(result.sentence)
        text = escape(plain, quote=False)
        run = _quoted(clean(result.run))
        lines.append(f"  <testcase classname={run} name={name}>")
        if result.status == "fail" and not result.advice:
            lines.append(f"    <failure message={_quoted(plain)}>{text}</failure>")
        elif result.status != "pass":
            lines.append(f"    <skipped message={_quoted(plain)}/>")
        else:
            lines.append(f"    <system-out>{text}</system-out>")
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def as_step_summary(results: Sequence[GateResult]) -> str:
    """The gates as a Markdown table, for GitHub's page of a run."""
    rows = [
        [result.run, _name(result), _status(result), result.sentence]
        for result in results
    ]
    table = Table(
        ["run", "gate", "status", "why"],
        rows,
        title=f"karat: {outcome_of(results)}",
        texts=(0, 1, 2, 3),
    )
    return table.as_markdown() + "\n\n"


def annotations(results: Sequence[GateResult]) -> Iterator[str]:
    """A line per gate that did not pass, as GitHub marks them on a change."""
    for result in results:
        if result.status == "pass":
            continue
        hard = result.status == "fail" and not result.advice
        text = clean(f"{result.run}: {result.sentence}")
        for mark, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
            text = text.replace(mark, code)
        yield f"::{'error' if hard else 'warning'} title=karat::{text}"


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'


def _counts(tests: int, failed: int, skipped: int) -> str:
    return f'tests="{tests}" failures="{failed}" skipped="{skipped}"'


def _name(result: GateResult) -> str:
    gate = result.gate
    what = {"mean": ">=", "low": "lower limit >=", "drop": "drop <="}[gate.kind]
    name = f"{gate.metric} {what} {gate.value:g}"
    return f"{name} [{result.slice}]" if result.slice else name


def _status(result: GateResult) -> str:
    return f"{result.status} (advice)" if result.advice else result.status
