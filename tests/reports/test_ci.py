"""What CI is told: counts, messages and marks say what came of each gate."""

from xml.etree import ElementTree as ET

from karat.gates import Gate, GateResult
from karat.reports.ci import annotations, as_junit, as_step_summary

RESULTS = [
    GateResult(Gate("rr", 0.5), "a<b", "pass", "rr is 0.6"),
    GateResult(Gate("rr", 0.1, "drop"), "c", "fail", 'dropped & "lost"', "tag"),
    GateResult(Gate("ap", 0.1, "drop"), "c", "inconclusive", "it may be\nchance 5%"),
    GateResult(Gate("ap", 0.1, "low"), "c", "fail", "below"),
    GateResult(Gate("failed queries", 0, "failures"), "c", "fail", "1 query failed"),
]


def test_junit_counts_and_holds_every_gate() -> None:
    suite = ET.fromstring(as_junit(RESULTS, "better by 3, worse by 2 (rr, ap): mixed"))
    assert suite.attrib == {
        "name": "karat",
        "tests": "5",
        "failures": "3",
        "skipped": "1",
    }
    cases = suite.findall("testcase")
    assert [(case.get("classname"), case.get("name")) for case in cases] == [
        ("a<b", "rr >= 0.5"),
        ("c", "rr drop <= 0.1 [tag]"),
        ("c", "ap drop <= 0.1"),
        ("c", "ap lower limit >= 0.1"),
        ("c", "failed queries <= 0"),
    ]
    assert [[part.tag for part in case] for case in cases] == [
        ["system-out"],
        ["failure"],
        ["skipped"],
        ["failure"],
        ["failure"],
    ]
    failure = cases[1].find("failure")
    assert failure is not None
    assert failure.text == failure.get("message") == 'dropped & "lost"'
    headline = suite.find("properties/property")
    assert headline is not None
    assert headline.get("value") == "better by 3, worse by 2 (rr, ap): mixed"
    assert ET.fromstring(as_junit(RESULTS[:1])).attrib["failures"] == "0"


def test_github_is_told_what_failed_and_what_may_have() -> None:
    assert [line.partition("::")[2] or line for line in annotations(RESULTS)] == [
        'error title=karat::c: dropped & "lost"',
        "warning title=karat::c: it may be?chance 5%25",
        "error title=karat::c: below",
        "error title=karat::c: 1 query failed",
    ]
    page = as_step_summary(RESULTS, "better by 1")
    assert page.startswith("**karat: fail; better by 1**")
    assert page.count("| fail |") == 3
