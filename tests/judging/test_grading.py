"""Pools are graded, grades become gold that says who gave them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import karat
from karat import Dataset, Gold
from karat.data.memory_runs import DocumentRun, RankedRun
from karat.extend import DataError, Document, Item, Prompt, grade_pool
from karat.judging.grading import complete_gold, pool, unlabelled
from karat.reading.readers import read
from karat.reading.write import write
from tests.judging.models import Model, session_of

QUESTIONS = {"q1": "Why is bread sour?", "q2": "What is rye?"}
CORPUS = {"d1": "Yeast makes it sour.", "d2": "Rye is a grain.", "d3": "Cats sleep."}
POOL = {"q1": {"d1": CORPUS["d1"], "d3": CORPUS["d3"]}, "q2": {"d2": CORPUS["d2"]}}


def passage(prompt: Prompt) -> str:
    code = prompt.user.split("[begin passage | ")[1].split("]")[0]
    body = prompt.user.split(f"[begin passage | {code}]\n")[1]
    return body.split(f"\n[end passage | {code}]")[0]


def grader(*words: str) -> Callable[[Prompt], str]:
    """Gives 3 to passages with one of the words."""

    def answer(prompt: Prompt) -> str:
        found = any(word in passage(prompt) for word in words)
        return json.dumps({"reason": "seen", "grade": 3 if found else 0})

    return answer


def test_the_top_k_of_all_runs_is_pooled_once_with_texts() -> None:
    ids = RankedRun({"q1": ["d1", "d2", "d3"]}, "ids")
    texts = DocumentRun({"q1": [Document("d3", "Dogs."), Document("d1", "Yeast.")]})
    pooled = pool([ids, texts], 2, CORPUS)
    assert pooled == {"q1": {"d1": CORPUS["d1"], "d2": CORPUS["d2"], "d3": "Dogs."}}


def test_a_document_without_a_text_is_a_sentence() -> None:
    with pytest.raises(DataError, match="--corpus FILE gives texts"):
        pool([RankedRun({"q1": ["d9"]})], 5, CORPUS)


def test_a_query_without_a_text_is_a_sentence() -> None:
    with pytest.raises(DataError, match=r"query 'q2'.*--queries FILE"):
        grade_pool(POOL, {"q1": "Why?"}, session_of(grader()))


ENDINGS = ("qrels", "jsonl", "json", "csv", "tsv", "yaml", "parquet", "qrels.gz")


@pytest.mark.parametrize("name", [f"gold.{ending}" for ending in ENDINGS])
def test_grades_become_gold_that_keeps_its_source(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    graded = grade_pool(POOL, QUESTIONS, session_of(grader("sour", "Rye")))
    assert graded.gold.documents == {"q1": {"d1": 3.0, "d3": 0.0}, "q2": {"d2": 3.0}}
    assert graded.grades["q1"]["d1"].reason == "seen"
    write(Dataset(gold=graded.gold), tmp_path / name)
    again = read(tmp_path / name, role="gold").gold
    assert again is not None
    assert again.documents == graded.gold.documents
    assert again.labellers() == {"judge:scripted": 3}
    result = karat.evaluate(
        {"q1": ["d3", "d1"], "q2": ["d2"]}, gold=again, metrics="rr"
    )
    assert result.means == {"rr": 0.75}
    note = next(n for n in result.warnings if n.kind == "uncalibrated")
    assert str(note).startswith("3 labels were given by judge:scripted alone")


def test_labels_of_people_and_judge_are_never_mixed_silently(tmp_path: Path) -> None:
    path = tmp_path / "both.qrels"
    path.write_text("q1 0 d1 1\nq1 judge:m d2 1\nq1 judge:m d3 0\n", "utf-8")
    result = karat.evaluate({"q1": ["d1", "d2"]}, gold=path, metrics="rr")
    note = next(n for n in result.warnings if n.kind == "mixed")
    assert "(human 1, judge:m 2): sources are mixed" in str(note)
    assert "mixed" in str(result)


def test_a_format_without_room_for_sources_says_so(tmp_path: Path) -> None:
    graded = grade_pool(POOL, QUESTIONS, session_of(grader()))
    (notice,) = write(Dataset(gold=graded.gold), tmp_path / "gold.tsv", "beir")
    assert str(notice) == "3 beir does not say who labelled"


@pytest.mark.parametrize(
    "reply",
    ['{"grade": 4}', '{"grade": -1}', '{"grade": [1, 2]}', "3", '{"grade": true}'],
)
def test_a_document_without_a_valid_grade_is_a_failure(reply: str) -> None:
    def answer(prompt: Prompt) -> str:
        return reply if "Cats" in passage(prompt) else '{"grade": "2"}'

    graded = grade_pool(POOL, QUESTIONS, session_of(answer))
    assert [*graded.failures] == [("q1", "d3")]
    assert graded.gold.documents == {"q1": {"d1": 2.0}, "q2": {"d2": 2.0}}


def test_a_long_document_gets_the_grade_of_its_best_piece() -> None:
    model = Model(grader("sour"))
    text = "".join(f"{n} " if n != 500 else "sour " for n in range(1000))
    graded = grade_pool({"q1": {"d": text}}, QUESTIONS, session_of(model), budget=200)
    assert graded.gold.documents == {"q1": {"d": 3.0}}
    assert len(model.asked) == 6


def test_an_empty_document_has_grade_0_and_costs_nothing() -> None:
    model = Model(grader())
    graded = grade_pool({"q1": {"d": " "}}, QUESTIONS, session_of(model))
    assert graded.gold.documents == {"q1": {"d": 0.0}}
    assert model.asked == []


def test_votes_give_the_median_and_their_disagreement() -> None:
    def answer(prompt: Prompt) -> str:
        others = {"assessor 2;": 1, "assessor 3;": 3}
        found = (grade for mark, grade in others.items() if mark in prompt.user)
        return json.dumps({"grade": next(found, 1)})

    graded = grade_pool({"q1": {"d": "x"}}, QUESTIONS, session_of(answer), votes=3)
    grade = graded.grades["q1"]["d"]
    assert grade.grade == 1
    assert grade.disagreement == pytest.approx(1 / 3)


PEOPLE = Gold(
    documents={"q0": {"x": 3.0}, "q1": {"d1": 2.0, "d9": 1.0}},
    sources={"q1": {"d9": "judge:other"}},
    name="people.qrels",
)


def test_only_holes_are_judged_and_the_rest_stays_as_it_was() -> None:
    model = Model(grader("sour", "Rye"))
    holes = unlabelled(POOL, PEOPLE.documents)
    assert holes == {"q1": {"d3": CORPUS["d3"]}, "q2": {"d2": CORPUS["d2"]}}
    graded = grade_pool(holes, QUESTIONS, session_of(model))
    assert len(model.asked) == 2
    gold = complete_gold(PEOPLE, graded.gold)
    assert gold.documents == {
        "q0": {"x": 3.0},
        "q1": {"d1": 2.0, "d9": 1.0, "d3": 0.0},
        "q2": {"d2": 3.0},
    }
    assert gold.labellers() == {"human": 2, "judge:other": 1, "judge:scripted": 2}
    assert gold.queries == ["q0", "q1", "q2"]
    assert PEOPLE.documents["q1"] == {"d1": 2.0, "d9": 1.0}


def test_labels_of_people_win_where_both_have_labelled() -> None:
    everything = unlabelled(POOL, PEOPLE.documents, besides={"q1": {"d1": 2.0}})
    assert everything == POOL
    graded = grade_pool(everything, QUESTIONS, session_of(grader("sour")))
    assert graded.gold.documents["q1"]["d1"] == 3.0
    gold = complete_gold(PEOPLE, graded.gold)
    assert gold.documents["q1"]["d1"] == 2.0
    assert "d1" not in gold.sources["q1"]


def test_a_pool_without_holes_asks_nobody() -> None:
    model = Model(grader())
    full = {query: dict.fromkeys(row, 0.0) for query, row in POOL.items()}
    graded = grade_pool(unlabelled(POOL, full), QUESTIONS, session_of(model))
    assert model.asked == []
    assert complete_gold(Gold(full), graded.gold).documents == full


def test_completing_keeps_what_the_gold_holds_besides() -> None:
    gold = Gold(
        documents={"q1": {"d1": 1.0}},
        answers={"q1": (Item("a", "yeast"),)},
        references={"q3": "Because."},
    )
    judged = grade_pool({"q2": POOL["q2"]}, QUESTIONS, session_of(grader())).gold
    whole = complete_gold(gold, judged)
    assert (whole.answers, whole.references) == (gold.answers, gold.references)
    assert whole.queries == ["q1", "q3", "q2"]


@pytest.mark.parametrize("name", ["g.qrels", "g.jsonl", "g.json", "g.csv", "g.yaml"])
def test_completed_gold_says_of_each_label_whose_it_is(
    tmp_path: Path, name: str
) -> None:
    judged = grade_pool(
        unlabelled(POOL, PEOPLE.documents), QUESTIONS, session_of(grader())
    )
    write(Dataset(gold=complete_gold(PEOPLE, judged.gold)), tmp_path / name)
    again = read(tmp_path / name, role="gold").gold
    assert again is not None
    assert again.labellers() == {"human": 2, "judge:other": 1, "judge:scripted": 2}


def test_beside_binary_labels_a_judge_says_relevant_or_not() -> None:
    def answer(prompt: Prompt) -> str:
        return json.dumps({"grade": int(passage(prompt))})

    pooled = {"q1": {f"d{grade}": str(grade) for grade in range(4)}}
    judged = grade_pool(pooled, QUESTIONS, session_of(answer)).gold
    people = Gold({"q1": {"x": 1.0, "y": 0.0}, "q2": {"x": -1.0}})
    whole = complete_gold(people, judged).documents["q1"]
    assert whole == {"x": 1.0, "y": 0.0, "d0": 0.0, "d1": 0.0, "d2": 1.0, "d3": 1.0}
    for grades in ({"x": 3.0}, {"x": 0.0}, {"x": 1.0, "y": 0.5}, {}):
        whole = complete_gold(Gold({"q1": grades}), judged).documents["q1"]
        assert whole == {**grades, "d0": 0.0, "d1": 1.0, "d2": 2.0, "d3": 3.0}


def test_a_function_grades_as_well_as_a_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graded = grade_pool(
        {"q": {"d": "Rye."}},
        {"q": "Which grain?"},
        lambda _: '{"reason": "It says so.", "grade": 3}',
    )
    assert graded.gold.documents == {"q": {"d": 3.0}}


def test_ids_in_samples_are_read_by_the_corpus_and_never_as_texts() -> None:
    run = DocumentRun({"q1": [Document(text="doc_17")]})
    assert pool([run], 5, {"doc_17": "Rye is a grain."}) == {
        "q1": {"doc_17": "Rye is a grain."}
    }
    with pytest.raises(DataError, match="looks like ids, such as 'doc_17'"):
        pool([run], 5)
