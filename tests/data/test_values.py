"""Values that pass from room to room: what they say, and what they become together."""

import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from karat import Corpus, Evaluation, Gold, evaluate, load, read_run, retrieve
from karat.data.hits import concatenate_hits
from karat.data.judgements import Verdict
from karat.extend import Document, Hits, Item, Notice, Prompt, Query, Reply, Span

PASSAGES = ["Rye grows in the north.", "Oats grow in the west."]
SAMPLES: list[Mapping[str, object]] = [
    {"id": "q1", "retrieved": [{"text": PASSAGES[0]}], "passages": PASSAGES},
    {"id": "q2", "retrieved": [], "passages": PASSAGES[:1]},
    {
        "id": "q3",
        "retrieved": [{"text": "Barley."}, {"text": PASSAGES[1]}],
        "passages": PASSAGES[1:],
    },
    {"id": "q4", "retrieved": [], "passages": PASSAGES},
]


def test_parts_make_the_same_evaluation_as_the_whole() -> None:
    metrics = ["rr", "ndcg", "coverage@1", "complete"]
    whole = evaluate(SAMPLES, metrics=metrics)
    parts = [evaluate(SAMPLES[n : n + 2], metrics=metrics) for n in (0, 2)]
    merged = Evaluation.merge(parts)
    assert merged.means == whole.means
    assert [*map(str, merged.warnings)] == [*map(str, whole.warnings)]
    assert [notice.count for notice in merged.warnings if notice.kind == "empty"] == [2]
    for name, matches in whole.matches.items():
        assert merged.matches[name].first_ranks() == matches.first_ranks()
        assert merged.matches[name].labels() == matches.labels()


def test_what_a_matcher_saw_of_the_run_is_merged_or_stays_unknown() -> None:
    run = {"q1": ["a", "a"], "q2": ["a", "a"], "q3": ["a"]}
    parts = [evaluate({q: run[q]}, {q: ["a"]}, metrics="rr") for q in run]
    (notice,) = Evaluation.merge(parts).matches["id"].run_notices or ()
    assert (notice.kind, notice.count) == ("duplicates", 2)
    assert notice.examples == ("q1", "q2")
    texts = [evaluate(SAMPLES[n : n + 2], metrics="rr") for n in (0, 2)]
    (name,) = texts[0].matches
    assert texts[0].matches[name].run_notices is None
    assert Evaluation.merge(texts).matches[name].run_notices is None


def test_one_part_is_the_whole() -> None:
    whole = evaluate(SAMPLES, metrics=["rr", "coverage@1"])
    assert Evaluation.merge([whole]).means == whole.means


def test_a_document_that_holds_two_items_is_one_position() -> None:
    retrieved = [" ".join(PASSAGES), "Barley.", PASSAGES[0], PASSAGES[1], "Oats."]
    samples = [{"retrieved": [{"text": t} for t in retrieved], "passages": PASSAGES}]
    shares = {1: 1, 2: 1 / 2, 3: 2 / 3, 4: 3 / 4, 5: 3 / 5}
    expected = {f"precision[chunk]@{k}": share for k, share in shares.items()}
    assert evaluate(samples, metrics=[*expected]).means == expected


@pytest.mark.parametrize("metric", ["hits", "hits(threshold=1)", "hits(threshold=0)"])
@pytest.mark.parametrize("rejected", [{}, {"n": 0}])
def test_an_item_is_found_once_however_often_it_is_retrieved(
    metric: str, rejected: dict[str, int]
) -> None:
    gold = {"q": {"a": 1, "b": 1, **rejected}}
    run = {"q": ["a", "n", "a", "b", "b", "n"]}
    means = evaluate(run, gold, metrics=metric, duplicates="keep").means
    assert means == {metric: 2 + ("0" in metric and len(rejected))}


TOGETHER = Hits(
    query=np.array([0, 0, 0, 2]),
    rank=np.array([1, 3, 4, 1]),
    grade=np.array([1.0, 1.0, 2.0, 1.0]),
    gold_count=np.array([2, 0, 1]),
    gold_grade=np.array([1.0, 2.0, 1.0]),
    retrieved=np.array([5, 2, 1]),
    item=np.array([0, 0, 1, 2]),
    joint=np.array([True, False, False, False]),
)


def test_an_item_is_found_where_the_last_document_completes_it() -> None:
    assert TOGETHER.first_rank.tolist() == [3, 4, 1]
    assert TOGETHER.credits().rank.tolist() == [3, 4, 1]
    assert TOGETHER.credits().relevant.tolist() == [2, 0, 1]
    assert np.isnan(TOGETHER.credits().whole).tolist() == [False, True, False]
    assert TOGETHER.positions()[1].tolist() == [1, 3, 4, 1]
    assert TOGETHER.found_within(3).tolist() == [1, 0, 1]
    assert TOGETHER.matched_within(3).tolist() == [2, 0, 1]
    assert "GoldGrades" not in repr(TOGETHER)


@pytest.mark.parametrize(
    "grades",
    [
        [[1, 3, 2], [], [2, 2, 1], [3]],
        [[0, 1, -1, 2], [0], [2, 1]],
        [[0.1, 0.3, 0.2], [0.3], [0.1, 0.7]],
        [[0.5, 1, 2.5], [1, 2]],
        [[1, 2.0**53], [2.0**53 - 1, 2.0**53, 3]],
    ],
)
def test_the_best_order_has_the_highest_grades_first(grades: list[list[float]]) -> None:
    hits = replace(
        TOGETHER,
        gold_count=np.array([*map(len, grades)]),
        gold_grade=np.array([float(grade) for row in grades for grade in row]),
    )
    best = [sorted((g for g in row if g > 0), reverse=True) for row in grades]
    query, place, grade = (column.tolist() for column in hits.ideal_order)
    assert grade == [g for row in best for g in row]
    assert query == [number for number, row in enumerate(best) for _ in row]
    assert place == [n for row in best for n in range(1, len(row) + 1)]


def test_hits_of_parts_stand_behind_one_another() -> None:
    alone = replace(TOGETHER, joint=None, distinct=True, judged=False)
    whole = concatenate_hits([alone, TOGETHER])
    assert whole.query.tolist() == [0, 0, 0, 2, 3, 3, 3, 5]
    assert whole.item is not None
    assert whole.item.tolist() == [0, 0, 1, 2, 3, 3, 4, 5]
    assert whole.joint is not None
    assert whole.joint.tolist() == [False] * 4 + [True] + [False] * 3
    assert (whole.distinct, whole.judged, whole.own_k) == (False, False, None)
    assert whole.first_rank.tolist() == [1, 4, 1, 3, 4, 1]
    assert concatenate_hits([alone, alone]).joint is None
    assert concatenate_hits([alone, alone]).distinct
    assert concatenate_hits([replace(alone, item=None), TOGETHER]).item is None


def test_items_that_nobody_looked_for_have_no_rank() -> None:
    run, gold = {"q": ["n", "a"]}, {"q": {"a": 1, "b": 1, "n": 0, "u": -1}}
    relevant = {"a": 2, "b": None}
    for metric, more in (("recall", {}), ("bpref", {"n": 1, "u": None})):
        (trace,) = evaluate(run, gold, metrics=metric).traces
        assert trace.first_ranks == relevant | more


def test_the_notices_of_a_part_come_with_three_examples_at_most() -> None:
    gold = {f"q{n}": ["a"] for n in range(4)}
    parts = [evaluate({q: []}, gold={q: gold[q]}, force=True) for q in gold]
    (notice,) = Evaluation.merge(parts).warnings
    assert (notice.count, notice.examples) == (4, ("q0", "q1", "q2"))


def test_documents_that_were_saved_are_those_that_were_retrieved(
    tmp_path: Path,
) -> None:
    result = evaluate(SAMPLES, metrics=["rr"], keep=2)
    result.save(tmp_path / "a.json")
    loaded = load(tmp_path / "a.json")
    assert loaded.kept == result.kept
    assert [document.text for document in loaded.kept["q3"]] == ["Barley.", PASSAGES[1]]


@pytest.mark.parametrize(
    ("concurrency", "said"), [(1, "one call at a time"), (2, "2 calls at once")]
)
def test_latencies_say_how_many_calls_there_were_at_once(
    concurrency: int, said: str
) -> None:
    asked = {"q1": "rye?", "q2": "oats?"}
    run = retrieve(lambda _: ["a"], asked, concurrency=concurrency)
    assert f"n = 1, {said}, the first call left out" in str(run.latency)


def test_percentiles_leave_out_the_first_call_unless_it_is_the_only_one() -> None:
    run = retrieve(lambda _: ["a"], {"q": "rye?"})
    assert run.latency is not None
    times = {"q1": 900.0, "q2": 10.0, "q3": 30.0, "q4": 20.0}
    latency = replace(
        run.latency, milliseconds=times, first_call={"q1"}, earlier={"q2"}
    )
    assert latency.percentiles == {"p50": 20.0, "p95": 30.0, "p99": 30.0}
    assert str(latency) == (
        "p50 (ms) 20, p95 (ms) 30, p99 (ms) 30, n = 3, one call at a time, "
        "the first call left out, 1 timed in an earlier run"
    )
    assert latency.rows(5)[0] == ["p50 (ms)", "20", "\u2013", "3/5", *["\u2013"] * 3]
    assert latency.of(["q1", "q9"]).percentiles["p99"] == 900.0
    assert latency.of(["q2"]).n == 1
    assert latency.of([]).percentiles == {"p50": None, "p95": None, "p99": None}
    unknown = replace(latency, first_call={"q1", "q2"}, earlier=(), concurrency=None)
    assert str(unknown).endswith("n = 2, the first 2 calls left out")


def test_times_and_failures_follow_the_names_of_queries() -> None:
    def search(text: str) -> list[str]:
        if text == "oats?":
            raise KeyError(text)
        return ["a"]

    run = retrieve(search, {"q1": "rye?", "q2": "oats?", "q3": "barley?"})
    renamed = run.retrieval.under({"q1": "p1", "q2": "p2"})
    assert renamed.latency is not None
    assert {"p1", "q3"} <= {*renamed.latency.milliseconds}
    assert {*renamed.latency.first_call} == {"p1"}
    assert [*renamed.failures] == ["p2"]
    untimed = read_run({"q": ["a"]}).retrieval
    assert untimed.under({"q": "p"}) == untimed


def test_what_values_are_unless_they_say_otherwise() -> None:
    reply, query, prompt = Reply("{}"), Query("q"), Prompt("Grade it.", "rye")
    assert (reply.cached, reply.cut, reply.id, reply.model) == (
        False,
        False,
        None,
        None,
    )
    assert (query.text, query.k, query.tags, query.metadata) == (None, None, (), {})
    assert (prompt.name, prompt.version, prompt.schema) == ("prompt", "1", None)


def test_tokens_and_replies_add_up() -> None:
    one = replace(Reply("").usage, prompt_tokens=1200, completion_tokens=30, replies=1)
    assert str(one) == "1 reply of 1,230 tokens"
    assert str(one + one) == "2 replies of 2,460 tokens"
    three = replace(one, prompt_tokens=3600, completion_tokens=90, replies=3)
    assert one + one + one == three
    assert Reply("").usage + one == one


@pytest.mark.parametrize(
    ("ranks", "rank", "label"),
    [
        ({"alone": (5, 2)}, 2, "support"),
        ({"together": (1, 3)}, 3, "support"),
        ({"alone": (5,), "together": (1, 3)}, 3, "support"),
        ({"alone": (2,), "together": (1, 3), "against": (1,)}, 2, "support"),
        ({"against": (1,), "partial": (2,)}, None, "contradict"),
        ({"partial": (2,)}, None, "partial"),
        ({}, None, "none"),
        ({"failure": "no reply"}, None, "failed"),
        ({"failure": ""}, None, "failed"),
    ],
)
def test_a_verdict_in_a_word(
    ranks: dict[str, Any], rank: int | None, label: str
) -> None:
    verdict = Verdict("claim-1", **ranks)
    assert (verdict.rank, verdict.label) == (rank, label)
    assert verdict.supported is (rank is not None)


def test_gold_says_what_it_holds_and_who_labelled_it() -> None:
    gold = Gold(
        {"q": {"a": 1, "b": 0}},
        passages={"q": (Item("p", "Rye."), Item("r", "Oats.", source="judge:n"))},
        references={"q": "Rye."},
        sources={"q": {"a": "judge:m"}},
    )
    assert repr(gold) == "<Gold gold: 1 query, 2 documents, 2 passages, 1 reference>"
    assert repr(Gold()) == "<Gold gold: 0 queries>"
    assert gold.labellers() == {"human": 2, "judge:m": 1, "judge:n": 1}
    judged = Gold({"q": {"a": 1}}, sources={"q": {"a": "judge:m"}})
    assert judged.labellers() == {"judge:m": 1}


@pytest.mark.parametrize("item", [Item("a", "Rye."), Span("a", "guide.md", 0, 9)])
def test_gold_is_relevant_and_of_people_unless_it_says_otherwise(item: Any) -> None:
    assert (item.grade, item.source, item.group) == (1.0, "human", None)


def test_queries_come_in_the_order_of_their_first_label() -> None:
    passages = {"q3": (Item("p", "Rye."),), "q1": (Item("p", "Oats."),)}
    gold = Gold({"q1": {"a": 1}, "q2": {}}, passages, references={"q0": "Rye."})
    assert gold.queries == ["q1", "q2", "q3", "q0"]
    assert Gold({"q2": {"a": 1}, "q1": {}}).queries == ["q2", "q1"]
    assert replace(gold, order=("q0", "q1")).queries == ["q0", "q1"]


def test_columns_of_labels_are_the_same_labels() -> None:
    labels = {"q1": {"a": 1.0, "b": 0.0}, "q2": {}, "q3": {"a": 2.0}}
    columns = Gold(labels).columns
    assert columns == labels
    assert [*columns] == ["q1", "q2", "q3"]
    assert "q3" in columns
    assert "q4" not in columns
    assert Gold(columns).columns is columns


def test_a_corpus_says_where_its_texts_come_from() -> None:
    texts = {"d1": "Rye.", "d2": "Bread. Oats."}
    corpus = Corpus(texts, origins={"d2": ("guide.md", 40)}, titles={"d2": 7})
    assert corpus.origin("d1") == ("d1", 0, 0)
    assert corpus.origin("d2") == ("guide.md", 40, 7)
    assert Corpus(texts).origin("d2") == ("d2", 0, 0)


@pytest.mark.parametrize("document", [Document(), Document("a"), Document(rank=2)])
def test_documents_are_saved_however_little_is_known_of_them(
    document: Document, tmp_path: Path
) -> None:
    run = {"q": [document], "p": [document] * 3, "r": []}
    gold = {query: ["a"] for query in run}
    result = evaluate(run, gold, keep=2, force=True)
    result.save(tmp_path / "a.json")
    expected = {"q": (document,), "p": (document, document), "r": ()}
    for kept in (result.kept, load(tmp_path / "a.json").kept):
        assert dict(kept) == expected
        assert len(kept) == 3


def test_a_prompt_repairs_one_of_its_name_that_it_begins_with() -> None:
    prompt = Prompt("Grade it.", "rye", name="grade")
    assert Prompt("Grade it.", "rye. Answer in JSON.", name="grade").repairs(prompt)
    assert not Prompt("Grade it.", "oats", name="grade").repairs(prompt)
    assert not Prompt("Split it.", "rye", name="split").repairs(prompt)


@pytest.mark.parametrize(
    "value",
    [
        Document("a"),
        Item("a", "Rye grows."),
        Notice("ties", 2, "documents share their scores"),
        Prompt("Grade it.", "rye"),
        Query("q"),
        Reply("{}"),
        Span("a", "guide.md", 0, 9),
    ],
)
def test_nobody_changes_a_value(value: object) -> None:
    name = fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, "other")


def value_classes() -> list[type[Any]]:
    """The dataclasses of the room whose values all others pass on."""
    modules = [(n, m) for n, m in sys.modules.items() if n.startswith("karat.data.")]
    return [
        value
        for name, module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == name and is_dataclass(value)
    ]


@pytest.mark.parametrize("kind", value_classes(), ids=lambda kind: kind.__name__)
def test_values_are_frozen_and_hide_what_they_remember(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen
    for field in fields(kind):
        hidden = field.name.startswith("_")
        assert field.init is not hidden
        assert not (hidden and field.repr)


def test_values_that_hold_arrays_are_not_compared_field_by_field() -> None:
    others = {k.__name__ for k in value_classes() if not k.__dataclass_params__.eq}
    assert others == {
        "ColumnLabels",
        "Coverage",
        "Dataset",
        "Gold",
        "GoldGrades",
        "Hits",
        "Matches",
        "Subtopics",
        "TopDocuments",
    }
