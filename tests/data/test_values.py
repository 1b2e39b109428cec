"""Values that pass from room to room: what they say, and what they become together."""

import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from karat import Corpus, Evaluation, Gold, evaluate, load, retrieve
from karat.extend import Document, Item, Notice, Prompt, Query, Reply, Span

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


def test_one_part_is_the_whole() -> None:
    whole = evaluate(SAMPLES, metrics=["rr", "coverage@1"])
    assert Evaluation.merge([whole]).means == whole.means


def test_a_document_that_holds_two_items_is_one_position() -> None:
    retrieved = [" ".join(PASSAGES), "Barley.", PASSAGES[0], PASSAGES[1], "Oats."]
    samples = [{"retrieved": [{"text": t} for t in retrieved], "passages": PASSAGES}]
    shares = {1: 1, 2: 1 / 2, 3: 2 / 3, 4: 3 / 4, 5: 3 / 5}
    expected = {f"precision[chunk]@{k}": share for k, share in shares.items()}
    assert evaluate(samples, metrics=[*expected]).means == expected


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


def test_tokens_and_replies_add_up() -> None:
    one = replace(Reply("").usage, prompt_tokens=1200, completion_tokens=30, replies=1)
    assert str(one) == "1 reply of 1,230 tokens"
    assert str(one + one) == "2 replies of 2,460 tokens"
    three = replace(one, prompt_tokens=3600, completion_tokens=90, replies=3)
    assert one + one + one == three
    assert Reply("").usage + one == one


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


def test_a_corpus_says_where_its_texts_come_from() -> None:
    texts = {"d1": "Rye.", "d2": "Bread. Oats."}
    corpus = Corpus(texts, origins={"d2": ("guide.md", 40)}, titles={"d2": 7})
    assert corpus.origin("d1") == ("d1", 0, 0)
    assert corpus.origin("d2") == ("guide.md", 40, 7)
    assert Corpus(texts).origin("d2") == ("d2", 0, 0)


def test_queries_without_documents_keep_none() -> None:
    result = evaluate({"q": [], "p": []}, {"q": ["a"], "p": ["a"]}, keep=2)
    assert dict(result.kept) == {"q": (), "p": ()}


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
