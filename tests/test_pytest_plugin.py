"""The pytest plug-in: expectations that hold, that fail, and that cannot be read."""

from pathlib import Path
from typing import Any

import pytest

from karat import evaluate, retrieve
from karat.extend import UsageError
from karat.pytest_plugin import RetrievalChecks, assert_retrieval

pytest_plugins = ["pytester"]

GOLD = {f"q{n}": ["a"] for n in range(30)}
GOOD = {query: ["a", "b"] for query in GOLD}
BAD = {query: ["b", "c", "a"] for query in GOLD}


def test_expectations_that_hold_give_the_evaluation() -> None:
    result = assert_retrieval(
        GOOD,
        "recall@1 >= 0.9",
        "rr lower limit >= 0.8",
        "rr no worse than baseline",
        gold=GOLD,
        baseline=BAD,
    )
    assert result.means == {"recall@1": 1.0, "rr": 1.0}


def test_a_failure_shows_the_worst_queries() -> None:
    facts = {query: f"question {query}" for query in GOLD}
    with pytest.raises(AssertionError) as caught:
        assert_retrieval(BAD, "rr >= 0.5", gold=GOLD, queries=facts)
    lines = str(caught.value).splitlines()
    assert lines[0] == "rr is 0.3333, below 0.5"
    assert lines[2] == "  0.3333  q0  question q0"
    with pytest.raises(AssertionError, match=r"rr dropped by 0\.6667 on 30 queries"):
        assert_retrieval(
            BAD, "rr no worse than baseline by 0.1", gold=GOLD, baseline=GOOD
        )


def test_a_drop_that_may_be_chance_fails_unless_noise_is_allowed() -> None:
    run = {**GOOD, "q0": ["b"], "q1": ["b"], "q2": ["b", "a"]}
    how: Any = {"gold": GOLD, "baseline": GOOD}
    with pytest.raises(AssertionError, match=r"it may be chance .* lost: q0 -1"):
        assert_retrieval(run, "rr no worse than baseline", **how)
    assert_retrieval(run, "rr no worse than baseline by 0.1", **how)
    with pytest.warns(UserWarning, match="inconclusive: rr dropped by"):
        assert_retrieval(run, "rr no worse than baseline", **how, allow_noise=True)


def test_queries_that_the_baseline_lacks_are_told(tmp_path: Path) -> None:
    saved = tmp_path / "main.json"
    few = [*GOLD][:20]
    gold = {query: GOLD[query] for query in few}
    evaluate({q: GOOD[q] for q in few}, gold=gold, metrics=["rr"]).save(saved)
    with pytest.warns(UserWarning, match="not compared: 10 queries only in the candid"):
        assert_retrieval(GOOD, "rr no worse than baseline", gold=GOLD, baseline=saved)


def test_failed_queries_fail_the_test() -> None:
    def search(query: str) -> list[str]:
        if query == "question q3":
            raise RuntimeError("no index")
        return ["a"]

    how: Any = {"gold": GOLD, "queries": {q: f"question {q}" for q in GOLD}}
    run = retrieve(search, how["queries"])
    with pytest.raises(AssertionError, match=r"1 query failed, 'q3' for one: .*no ind"):
        assert_retrieval(run, "rr >= 0.5", **how)
    assert_retrieval(run, "rr >= 0.5", **how, max_failures=1)


@pytest.mark.parametrize("text", ["recall@5", "recall@5 > 0.8", "great recall"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="an expectation reads"):
        assert_retrieval(GOOD, text, gold=GOLD)


def test_runs_of_one_name_are_all_remembered() -> None:
    session = RetrievalChecks()
    for _ in range(2):
        session.assert_retrieval(GOOD, "rr >= 1", gold=GOLD)
    assert [*session.evaluations] == ["run", "run 2"]


def test_a_session_writes_its_report(
    pytester: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        def test_it(karat):
            karat.assert_retrieval({"q": ["a"]}, "rr >= 0.5", gold={"q": ["a"]})

        def test_that(karat):
            run = {"q": ["b", "a"]}
            karat.assert_retrieval(run, "rr >= 0.9", gold={"q": ["a"]}, name="poor")
        """
    )
    report = tmp_path / "report.md"
    arguments = ("-p", "karat.pytest_plugin", "-q")
    done = pytester.runpytest_subprocess(*arguments, "--karat-report", str(report))
    done.assert_outcomes(passed=1, failed=1)
    # What failed is what one wants to read about.
    assert "poor" in report.read_text("utf-8")
