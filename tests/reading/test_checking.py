"""Checking a file finds all that is wrong with it, not only what comes first."""

from collections.abc import Callable

from karat.reading.readers import validate

Save = Callable[[str, str | bytes], str]

LINES = """\
{"id": "a", "retrieved": ["x"], "relevant": ["x"]}
{"id": "b", "retrieved": ["x"],}
{"id": "c", "retrieved": ["x"], "k": 0}
{"id": "a", "retrieved": ["x"]}
{"id": "d", "retrieved": ["x"], "relevant": {"x": "high"}}
[1]
"""


def test_every_bad_line_is_reported(save: Save) -> None:
    checked = validate(save("a.jsonl", LINES))
    assert [problem.line for problem in checked.problems] == [2, 3, 4, 5, 6]
    assert checked.loaded is None
    assert not checked.more


def test_the_number_of_problems_is_limited(save: Save) -> None:
    checked = validate(save("a.jsonl", LINES), limit=3)
    assert [problem.line for problem in checked.problems] == [2, 3, 4]
    assert checked.more


def test_rows_of_a_table_and_entries_of_a_mapping_are_checked_on(save: Save) -> None:
    table = "qid,docid,score\nq,a,x\nq,b\nq,c,1\n,d,1\n"
    checked = validate(save("a.csv", table))
    assert [problem.line for problem in checked.problems] == [2, 3, 5]
    checked = validate(save("a.json", '{"q": {"a": "x"}, "r": ["b"], "s": 5}'), "run")
    assert [problem.query for problem in checked.problems] == ["q", "s"]


def test_what_stops_reading_is_reported_with_what_came_before(save: Save) -> None:
    table = b"qid,docid,score\nq,a,x\nq,\xff,1\n"
    checked = validate(save("a.csv", table))
    assert [problem.line for problem in checked.problems] == [2, 3]
    checked = validate(save("a.pdf", "%PDF-1.4"))
    assert [problem.problem for problem in checked.problems] == [
        "looks like a PDF file"
    ]


def test_a_run_that_is_read_later_is_read_now(save: Save) -> None:
    checked = validate(save("a.run", "q Q0 a 1 0.5 t\nq Q0 b 2 x t\n"))
    assert [problem.line for problem in checked.problems] == [2]


def test_a_sound_file_is_returned_with_its_notices(save: Save) -> None:
    checked = validate(save("a.jsonl", '{"id": 1, "retrieved": ["x"]}\n'), "run")
    assert checked.problems == ()
    assert checked.loaded is not None
    assert [notice.kind for notice in checked.notices] == ["coerced"]
