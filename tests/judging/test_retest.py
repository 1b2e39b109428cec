"""A judge that is asked again, and what fails then."""

import json
from typing import Any

import pytest

from karat.data.tables import DASH, number
from karat.extend import JudgeSession, Prompt, Settings, UsageError, grade_pool
from karat.judging.agreement import grade_changes
from karat.judging.grading import retest
from tests.judging.models import Model

POOL = {f"q{n}": {"d": f"Text {n}."} for n in range(4)}
QUESTIONS = {query: f"What is {query}?" for query in POOL}


def test_flips_count_changed_grades() -> None:
    before = {"q": {"a": 1, "b": 2, "c": 0}}
    after = {"q": {"a": 1, "b": 3, "c": 0}}
    changed = grade_changes(before, after, failed=4)
    assert (changed.changed, changed.n) == (1, 3)
    # One query says nothing of others.
    assert changed._asdict() == {
        "changed": 1,
        "n": 3,
        "interval": (0.0, 1.0),
        "failed": 4,
    }
    table = changed.table()
    assert table.rows[0][:2] == ["changed when asked again", number(1 / 3)]
    assert "asked again: 4 documents without a grade" in table.as_text()
    none = grade_changes({}, {}).table()
    assert (none.rows[0][1], none.notes) == (DASH, [])


def test_what_fails_when_asked_again_is_found_and_stops_nothing() -> None:
    def answer(prompt: Prompt) -> str:
        return "hm" if "assessor" in prompt.user else json.dumps({"grade": 1})

    session = JudgeSession(Model(answer), Settings(journal=None, max_failures=0))
    first = grade_pool(POOL, QUESTIONS, session)
    again = retest(POOL, QUESTIONS, session)
    assert (len(first.failures), len(again.failures)) == (0, 4)


def test_a_session_takes_a_function_and_refuses_what_cannot_answer() -> None:
    def answer(prompt: str) -> str:
        return json.dumps({"grade": 1 if prompt else 0})

    answerer: Any = answer
    session = JudgeSession(answerer, Settings(journal=None))
    assert not grade_pool(POOL, QUESTIONS, session).failures
    answerer = 5
    with pytest.raises(UsageError, match="got int"):
        JudgeSession(answerer)
