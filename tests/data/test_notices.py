"""What is said of one thing is said in the singular."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from karat import Gold, evaluate
from karat.data.runs import run_notices
from karat.extend import DataError, FormatError, MismatchError, Notice, Policies
from karat.reading.readers import read
from karat.reading.trec import TrecRun
from karat.results.loading import from_dict

RUN = {"q1": ["a", "b"], "q2": ["c"]}
GOLD = {"q1": ["a"], "q2": ["c"]}


def said(notices: Iterable[Notice]) -> dict[str, str]:
    return {notice.kind: str(notice) for notice in notices}


def test_the_text_follows_the_count() -> None:
    counts: dict[str, Any] = {"ties": {"q": 1}, "duplicates": {"q": 1}}
    one = said(run_notices(Policies(), **counts, extra={"x": 1}))
    assert one == {
        "ties": "1 relevant document shares its score with another document; ordered "
        "by document id, descending (for example q)",
        "duplicates": "1 relevant document was retrieved more than once "
        "(for example q)",
        "extra": "1 query of the run has no gold and was ignored (for example x)",
    }
    two = said(run_notices(Policies(), ties={"q": 2}, extra={"x": 1, "y": 1}))
    assert two["ties"].startswith("2 relevant documents share their score")
    assert two["extra"].startswith("2 queries of the run have no gold and were")


def test_runs_of_one_kind_of_notice_share_one_text() -> None:
    one, two = (
        run_notices(Policies(), extra=row)[0] for row in ({"x": 1}, {"x": 1, "y": 1})
    )
    assert one.text == two.text


def test_a_saved_notice_still_knows_its_singular() -> None:
    result = evaluate({"q1": ["a"], "q2": []}, gold=GOLD, metrics=["rr"])
    back = from_dict(json.loads(result.to_json()))
    assert said(back.warnings) == said(result.warnings)
    assert said(back.warnings)["empty"].startswith("1 query for which nothing")


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        ('[{"retrieved": ["a"], "relevant": ["a"]}]', "numbered", "1 sample without"),
        (
            '[["a"]]',
            "numbered",
            "1 query without an id, numbered from 0 (for example 0)",
        ),
        (
            '[{"id": "q", "retrieved": [7], "relevant": ["7"]}]',
            "coerced",
            "1 id given as a number is read as text: 1 and '1' are one id",
        ),
        (
            '[{"id": "q", "retrieved": ["a"], "relevant": ["b", "b", 1]}]',
            "duplicates",
            "1 list of relevant ids repeats some, which count once",
        ),
        (
            '[{"id": "q", "retrieved": "a, b", "relevant": ["b"]}]',
            "joined",
            '1 ranking read as one id; a list is JSON: ["a", "b"] (for example a, b)',
        ),
        (
            """[{"id": "q", "relevant": ["b"], "retrieved":
            [{"id": "a", "score": 1}, {"id": "b", "score": 2}]}]""",
            "order",
            "1 list is ranked in the order given; its scores say otherwise",
        ),
        (
            '{"q": {"a": 1.5}}',
            "role",
            "1 input read as a run, because it does not say otherwise",
        ),
    ],
)
def test_what_was_met_once_while_reading(
    text: str, kind: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert said(read(path).notices)[kind].startswith(sentence)


def test_what_was_met_once_while_matching() -> None:
    documents = [{"id": "a", "text": "one"}, {"id": "a", "text": "two"}]
    sample = {"retrieved": documents, "passages": ["three"]}
    other = {"retrieved": ["x"], "relevant": ["x"]}
    told = said(evaluate([sample], match="exact", metrics=["rr"]).warnings)
    assert told["retold"].startswith("1 document repeats the id of another with ano")
    assert told["unmatched by exact"] == (
        "1 gold item, and exact did not find it in the whole run"
    )
    told = said(evaluate([sample, other], match="id", metrics=["rr"]).warnings)
    assert told["no documents"] == (
        "1 query has no documents in gold, which matching by id needs"
    )
    wide = TrecRun(b"q1 Q0 a 1 1 t more\n")
    told = said(evaluate(wide, gold={"q1": ["a"]}, metrics=["rr"]).warnings)
    assert told["columns"].startswith("1 line has more than six columns; what")
    told = said(evaluate({7: ["a"]}, gold={"7": ["a"]}, metrics=["rr"]).warnings)
    assert told["coerced"] == (
        "1 id given as a number is read as text: 1 and '1' are one id (for example 7)"
    )


def test_one_label_of_a_judge() -> None:
    judged = Gold({"q": {"a": 1.0}}, sources={"q": {"a": "judge:m"}})
    told = said(evaluate({"q": ["a"]}, judged).warnings)
    assert told["uncalibrated"] == (
        "1 label was given by judge:m alone; karat judge --agreement compares a judge "
        "with people"
    )
    mixed = Gold({"q": {"a": 1.0, "b": 1.0}}, sources={"q": {"a": "judge:m"}})
    told = said(evaluate({"q": ["a"]}, mixed).warnings)
    assert told["mixed"] == (
        "1 label is a judge's, among others (human 1, judge:m 1): sources are mixed"
    )
    people = Gold({"q": {"a": 1.0}}, sources={"q": {"a": "human:ann"}})
    assert said(evaluate({"q": ["a"]}, people).warnings) == {}


@pytest.mark.parametrize(
    ("missing", "what"), [("zero", "scores 0"), ("skip", "is left out")]
)
def test_one_query_that_the_run_lacks(missing: str, what: str) -> None:
    result = evaluate({"q1": ["a"]}, gold=GOLD, metrics=["rr"], missing=missing)
    sentence = f"1 gold query is not in the run and {what} (for example q2)"
    assert said(result.warnings)["missing"] == sentence


def test_errors_about_one_thing() -> None:
    with pytest.raises(MismatchError, match="no results for 1 gold query"):
        evaluate({"q1": ["a"]}, gold=GOLD, missing="error")
    with pytest.raises(MismatchError, match="1 query of the run has no gold"):
        evaluate(RUN, gold={"q1": ["a"]}, extra="error")
    documents = [{"id": "a"}, {"id": "b", "text": "y"}]
    sample = {"retrieved": documents, "passages": ["x"]}
    with pytest.raises(DataError, match="1 retrieved document of 1 query has no text"):
        evaluate([sample], match="exact")


def test_a_row_of_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,docid,score\nq,a,1\nq\n")
    with pytest.raises(FormatError, match="has 1 cell, but there are 3 columns"):
        read(path)


def test_only_relevant_documents_count_as_retrieved_twice(tmp_path: Path) -> None:
    rows = [(d, n) for n, d in enumerate("aabbaxxc", 1)]
    path = tmp_path / "a.run"
    path.write_text("".join(f"q Q0 {d} {n} {1 / n} t\n" for d, n in rows))
    gold = {"q": {"a": 1, "b": 0, "c": 1}}
    for run in (path, {"q": [d for d, _ in rows]}):
        for duplicates in ("first", "collapse", "keep"):
            found = evaluate(run, gold=gold, metrics="rr", duplicates=duplicates)
            assert said(found.warnings)["duplicates"].startswith("1 relevant document")


TIED = {"q": [("a", 1.0), ("b", 1.0), ("c", 0.5)]}


@pytest.mark.parametrize("ties", ["trec", "input"])
def test_texts_of_documents_change_neither_numbers_nor_notices(ties: Any) -> None:
    run = {query: dict(ranking) for query, ranking in TIED.items()}
    gold, texts = {"q": {"a": 1}}, {"a": "Rye.", "b": "Oats.", "c": "Barley."}
    how: Any = {"gold": gold, "metrics": "rr", "ties": ties}
    bare = evaluate(run, **how)
    full = evaluate(run, **how, corpus=texts)
    assert full.means == bare.means == {"rr": 0.5 if ties == "trec" else 1.0}
    assert [n.kind for n in bare.warnings] == ["ties"]
    assert full.warnings == bare.warnings


@pytest.mark.parametrize("text", [None, "Rye."])
def test_a_list_whose_scores_tie_is_ranked_as_listed_and_says_so(
    text: str | None,
) -> None:
    more = {} if text is None else {"text": text}
    run = [
        {"id": q, "retrieved": [{"id": d, "score": s, **more} for d, s in ranking]}
        for q, ranking in TIED.items()
    ]
    how: Any = {"gold": {"q": {"a": 1, "c": 1}}, "metrics": "rr"}
    listed = evaluate(run, **how)
    assert listed.means == {"rr": 1.0}
    (notice,) = (n for n in listed.warnings if n.kind == "ties")
    assert notice.count == 1
    assert "ranked as listed" in str(notice)
    assert "--order descending" in str(notice)
    if text is None:
        assert evaluate(run, **how, order="descending").means == {"rr": 0.5}
