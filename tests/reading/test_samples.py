"""The input contracts of the seeds, and what else people call their fields."""

import json
from typing import Any

import pytest

from karat import Dataset
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.extend import (
    Document,
    FormatError,
    Item,
    Policies,
    Query,
    Span,
    UnknownNameError,
)
from tests.reading.records import load_records

RANKING = ["doc-7", "doc-3", "doc-1"]


def ids(loaded: Dataset) -> dict[str, list[Any]]:
    assert loaded.run is not None
    return {
        query: [d.text if d.id is None else d.id for d in ranking]
        for query, ranking in loaded.run.rankings(Policies())
    }


def texts(loaded: Dataset, kind: str) -> dict[str, list[str]]:
    items = getattr(loaded.gold, kind)
    return {query: [item.text for item in found] for query, found in items.items()}


def test_seed_001_reads_list_map_and_answer_from_one_field() -> None:
    loaded = load_records(
        [
            {
                "id": "q-1",
                "input": {"question": "What is our refund window?"},
                "expected_output": ["doc-3", "doc-9"],
                "metadata": {"k": 5, "tags": ["policy", "hard"], "owner": "ana"},
                "actual_output": {
                    "retrieved": [
                        {"id": "doc-7", "text": "..."},
                        {"id": "doc-3", "text": "30 days"},
                    ]
                },
            },
            {
                "id": "q-2",
                "input": {"question": "..."},
                "expected_output": {"doc-3": 3, "doc-9": 1},
                "actual_output": RANKING,
            },
            {"id": "q-3", "expected_output": "30 days", "actual_output": RANKING},
        ]
    )
    assert loaded.gold is not None
    assert loaded.gold.documents == {
        "q-1": {"doc-3": 1.0, "doc-9": 1.0},
        "q-2": {"doc-3": 3.0, "doc-9": 1.0},
    }
    assert texts(loaded, "answers") == {"q-3": ["30 days"]}
    assert loaded.gold.queries == ["q-1", "q-2", "q-3"]
    assert loaded.queries["q-1"] == Query(
        "q-1", "What is our refund window?", 5, ("policy", "hard"), {"owner": "ana"}
    )
    assert ids(loaded) == {"q-1": ["doc-7", "doc-3"], "q-2": RANKING, "q-3": RANKING}
    assert loaded.mapping == {
        "id": "id",
        "retrieved": "actual_output",
        "relevant": "expected_output",
        "answers": "expected_output",
        "query": "input",
        "k": "metadata.k",
        "tags": "metadata.tags",
    }
    assert loaded.notices == ()


@pytest.mark.parametrize(
    "output",
    [
        RANKING,
        json.dumps(RANKING),
        f"  {json.dumps(RANKING)}\n",
        {"retrieved": RANKING},
        json.dumps({"retrieved": RANKING}),
        {"retrieved": json.dumps(RANKING)},
        [{"id": name} for name in RANKING],
        json.dumps([{"id": name, "text": "t"} for name in RANKING]),
        "['doc-7', 'doc-3', 'doc-1']",
        tuple(RANKING),
        {"doc-3": 0.5, "doc-7": 0.75, "doc-1": 0.25},
        [["doc-7", 3], ["doc-3", 2.5], ("doc-1", 1)],
    ],
)
@pytest.mark.parametrize(
    "name", ["actual_output", "actualOutput", "output", "retrieved"]
)
def test_a_ranking_is_read_however_it_is_wrapped(output: object, name: str) -> None:
    loaded = load_records([{"id": "a", "expected_output": ["doc-3"], name: output}])
    assert ids(loaded) == {"a": RANKING}
    assert loaded.mapping["retrieved"] == name


def test_seeds_002_and_004_hold_json_lists_of_texts() -> None:
    chunks = ["Paris is the capital of France.", "France is in Europe."]
    loaded = load_records(
        [
            {
                "hypothesis": json.dumps(chunks),
                "reference": json.dumps(chunks[:1]),
                "eval_config": {"k": 3},
            }
        ]
    )
    assert ids(loaded) == {"0": chunks}
    assert texts(loaded, "passages") == {"0": chunks[:1]}
    assert loaded.queries["0"].k == 3
    assert loaded.mapping["passages"] == "reference"
    assert [notice.kind for notice in loaded.notices] == ["numbered"]


def test_seed_003_has_texts_or_ids_and_a_reference_answer_in_prose() -> None:
    loaded = load_records(
        [
            {
                "user_input": "Where is the Eiffel Tower?",
                "retrieved_contexts": ["Paris is the capital of France."],
                "reference": "The Eiffel Tower is located in Paris.",
                "response": "In Paris.",
            }
        ]
    )
    assert loaded.gold is not None
    assert loaded.gold.references == {"0": "The Eiffel Tower is located in Paris."}
    assert loaded.gold.kinds() == ()
    assert loaded.queries["0"].metadata == {"response": "In Paris."}
    loaded = load_records(
        [
            {
                "retrieved_context_ids": ["doc_1", 2],
                "reference_context_ids": ["doc_1", "2", "doc_5"],
                "retrieved_contexts": ["one", "two"],
                "reference_contexts": ["the first text"],
            }
        ]
    )
    assert loaded.run is not None
    ((_, ranking),) = loaded.run.rankings(Policies())
    assert ranking == [Document("doc_1", "one"), Document("2", "two")]
    assert loaded.gold is not None
    assert loaded.gold.documents == {"0": {"doc_1": 1.0, "2": 1.0, "doc_5": 1.0}}
    assert texts(loaded, "passages") == {"0": ["the first text"]}


@pytest.mark.parametrize("name", ["reference", "Reference", "references"])
@pytest.mark.parametrize("value", [["a b c"], '["a b c"]', {"p1": "a b c"}])
def test_a_reference_that_is_a_list_is_gold_texts(name: str, value: object) -> None:
    loaded = load_records([{"id": 1, "contexts": ["x"], name: value}])
    assert texts(loaded, "passages") == {"1": ["a b c"]}


def test_seed_000_strings_are_ids_or_texts_by_their_looks() -> None:
    gold, retrieved = [["doc1", "doc2"]], [["doc1", "doc3"]]
    records = [{"gold_docs": gold[0], "retrieved_docs": retrieved[0]}]
    loaded = load_records(records)
    assert loaded.gold is not None
    assert loaded.gold.documents == {"0": {"doc1": 1.0, "doc2": 1.0}}
    assert isinstance(loaded.run, RankedRun)
    records = [{"gold_docs": ["I like green tea."], "retrieved_docs": ["user: I like"]}]
    loaded = load_records(records)
    assert texts(loaded, "passages") == {"0": ["I like green tea."]}
    assert isinstance(loaded.run, DocumentRun)
    assert loaded.mapping == {"retrieved": "retrieved_docs", "passages": "gold_docs"}


@pytest.mark.parametrize(
    ("gold", "is_text"),
    [
        ({"relevant": ["d1"]}, False),
        ({"relevant": {"d1": 2}, "answers": ["yes"]}, False),
        ({"passages": ["short"]}, True),
        ({"answers": "yes"}, True),
        ({"reference": "because"}, True),
        ({}, False),
    ],
)
def test_retrieved_strings_are_what_the_gold_is(
    gold: dict[str, Any],
    is_text: bool,  # noqa: FBT001
) -> None:
    loaded = load_records([{"id": "q", "retrieved": ["d1"], **gold}])
    assert loaded.run is not None
    ((_, ranking),) = loaded.run.rankings(Policies())
    assert ranking == [Document(text="d1") if is_text else Document(id="d1")]


def test_texts_without_gold_are_known_by_their_looks() -> None:
    loaded = load_records([{"id": "q", "docs": ["The sky is blue.", "Water is wet."]}])
    assert isinstance(loaded.run, DocumentRun)
    loaded = load_records([{"id": "q", "docs": ["https://a.example/b?c", "d1"]}])
    assert isinstance(loaded.run, RankedRun)


def test_expected_output_beside_nothing_but_texts_is_gold_texts() -> None:
    loaded = load_records([{"hypothesis": ["a", "b"], "expected_output": ["a"]}])
    assert texts(loaded, "passages") == {"0": ["a"]}


@pytest.mark.parametrize(
    ("record", "kind", "expected"),
    [
        ({"ground_truth": "prose it is"}, "references", "prose it is"),
        ({"ground_truth": ["d1"]}, "documents", {"d1": 1.0}),
        ({"ground_truth": {"d1": 2}}, "documents", {"d1": 2.0}),
        ({"relevant_docs": ["d1"]}, "documents", {"d1": 1.0}),
        ({"relevant": "d1"}, "documents", {"d1": 1.0}),
        ({"relevant": [["d1", 2], ["d2", 0]]}, "documents", {"d1": 2.0, "d2": 0.0}),
        ({"relevant": [{"id": 1, "grade": True}]}, "documents", {"1": 1.0}),
        ({"relevant": {"d1": "2.5"}}, "documents", {"d1": 2.5}),
        ({"relevant": {"d1": False}}, "documents", {"d1": 0.0}),
        ({"qrels": {"id": 2}}, "documents", {"id": 2.0}),
        ({"relevant": {"id": "d1", "grade": 3}}, "documents", {"d1": 3.0}),
        ({"relevant": ["d1", {"id": "d2"}]}, "documents", {"d1": 1.0, "d2": 1.0}),
        ({"relevant": {"d1", "d2"}}, "documents", {"d1": 1.0, "d2": 1.0}),
        ({"relevant": []}, "documents", {}),
    ],
)
def test_gold_is_read_however_it_is_written(
    record: dict[str, Any], kind: str, expected: object
) -> None:
    loaded = load_records([{"id": "q", "retrieved_ids": ["d1"], **record}])
    assert getattr(loaded.gold, kind) == {"q": expected}


def test_old_ragas_columns_have_a_generated_answer_beside_the_true_one() -> None:
    loaded = load_records(
        [
            {
                "question": "?",
                "answer": "gen",
                "contexts": ["c"],
                "ground_truths": ["a b c"],
            }
        ]
    )
    assert texts(loaded, "answers") == {"0": ["a b c"]}
    assert loaded.mapping["response"] == "answer"
    loaded = load_records([{"question": "?", "answer": "true", "contexts": ["c"]}])
    assert loaded.gold is None


def test_deepeval_cases_have_prose_as_output() -> None:
    loaded = load_records(
        [
            {
                "input": "?",
                "actual_output": "I think so.",
                "expected_output": "Yes.",
                "retrieval_context": ["got this"],
                "context": ["want this"],
            }
        ]
    )
    assert ids(loaded) == {"0": ["got this"]}
    assert texts(loaded, "passages") == {"0": ["want this"]}
    assert texts(loaded, "answers") == {"0": ["Yes."]}


def test_all_answers_are_alternatives_of_one_group() -> None:
    loaded = load_records([{"id": 1, "retrieved": ["x"], "answers": ["a", "b"]}])
    assert loaded.gold is not None
    assert loaded.gold.answers["1"] == (
        Item("answer-1", "a", group="answers"),
        Item("answer-2", "b", group="answers"),
    )


def test_native_fields_are_kept_apart() -> None:
    loaded = load_records(
        [
            {
                "id": "q1",
                "query": "?",
                "retrieved": [
                    {"id": "c1", "text": "t", "score": 0.5},
                    {"doc": "d1", "start": 3, "end": 9},
                    {"text": "only text", "source": "d2"},
                ],
                "relevant": {"c1": 2},
                "passages": [{"id": "p", "text": "t", "grade": 2, "group": "g"}],
                "spans": [{"doc": "d1", "start": 0, "end": 5}],
                "claims": ["It is."],
                "reference": "It is so.",
                "k": "3",
                "tags": "a; b,a",
                "colour": "blue",
            }
        ]
    )
    assert loaded.run is not None
    ((_, ranking),) = loaded.run.rankings(Policies())
    assert ranking == [
        Document("c1", "t", 0.5),
        Document(source="d1", start=3, end=9),
        Document(text="only text", source="d2"),
    ]
    assert loaded.gold is not None
    assert loaded.gold.passages["q1"] == (Item("p", "t", 2.0, group="g"),)
    assert loaded.gold.spans["q1"] == (Span("span-1", "d1", 0, 5),)
    assert texts(loaded, "claims") == {"q1": ["It is."]}
    assert loaded.gold.references == {"q1": "It is so."}
    assert loaded.queries["q1"] == Query("q1", "?", 3, ("a", "b"), {"colour": "blue"})


def test_relevant_objects_may_be_ids_texts_and_spans_at_once() -> None:
    found = {"id": "c1", "text": "Because.", "doc": "a.md", "start": 0, "end": 8}
    loaded = load_records([{"id": "q", "retrieved_ids": ["c1"], "relevant": [found]}])
    assert loaded.gold is not None
    assert loaded.gold.kinds() == ("documents", "passages", "spans")
    assert loaded.mapping["spans"] == "relevant"
    assert texts(loaded, "passages") == {"q": ["Because."]}


def test_a_single_document_or_text_is_a_ranking_of_one() -> None:
    assert ids(load_records([{"id": "q", "retrieved": {"id": "a", "text": "t"}}])) == {
        "q": ["a"]
    }
    assert ids(load_records([{"id": "q", "context": "only one"}])) == {
        "q": ["only one"]
    }
    loaded = load_records([{"id": "q", "contexts": "t", "retrieved_ids": ["a"]}])
    assert loaded.run is not None
    ((_, ranking),) = loaded.run.rankings(Policies())
    assert ranking == [Document("a", "t")]


def test_answers_may_be_numbers() -> None:
    loaded = load_records([{"id": "q", "contexts": ["t"], "answers": [1889, 0.5]}])
    assert texts(loaded, "answers") == {"q": ["1889", "0.5"]}


def test_scores_beside_a_list_do_not_reorder_it_but_are_noted() -> None:
    loaded = load_records(
        [
            {
                "id": 1,
                "retrieved_ids": ["a", "b"],
                "scores": [0.1, 0.9],
                "relevant": ["b"],
            }
        ]
    )
    assert ids(loaded) == {"1": ["a", "b"]}
    assert [notice.kind for notice in loaded.notices] == ["coerced", "order"]


def test_a_map_of_scores_is_a_scored_run_and_joins_lists_in_score_order() -> None:
    loaded = load_records([{"id": "1", "results": {"a": 1, "b": 2}}])
    assert isinstance(loaded.run, ScoredRun)
    loaded = load_records(
        [
            {"id": "1", "results": {"a": 1, "b": 2, "c": 2}},
            {"id": "2", "results": ["a"]},
        ]
    )
    assert ids(loaded) == {"1": ["c", "b", "a"], "2": ["a"]}


def test_a_conversation_is_one_question() -> None:
    said = [
        {"content": "Hi", "type": "human"},
        {"content": "And now?", "type": "human"},
    ]
    loaded = load_records([{"user_input": said, "retrieved_ids": ["a"]}])
    assert loaded.queries["0"].text == "Hi\nAnd now?"


def test_the_user_s_mapping_beats_the_inference() -> None:
    record = {
        "id": "row",
        "key": "q1",
        "trace": {"found": ["a"]},
        "labels.all": ["a"],
    }
    mapping = {"id": "key", "retrieved_ids": "trace.found", "relevant": "labels.all"}
    loaded = load_records([record], mapping=mapping)
    assert ids(loaded) == {"q1": ["a"]}
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"a": 1.0}}
    assert loaded.mapping["retrieved_ids"] == "trace.found"


def test_an_unknown_name_on_our_side_of_the_mapping_is_corrected() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'retrieved'"):
        load_records([{"docs": ["a"]}], mapping={"retreived": "docs"})


def test_a_name_that_is_on_neither_side_is_reported_with_those_found() -> None:
    with pytest.raises(FormatError, match=r"'dox'; fields found: id, docs"):
        load_records([{"id": 1, "docs": ["a"]}], mapping={"retrieved": "dox"})


def test_records_may_differ_in_their_fields() -> None:
    loaded = load_records(
        [
            {"id": "a", "retrieved": ["x"], "relevant": ["x"]},
            {"id": "b", "relevant": ["y"]},
            {"id": "c", "docs": ["z"]},
        ]
    )
    assert ids(loaded) == {"a": ["x"], "c": ["z"]}
    assert loaded.gold is not None
    assert loaded.gold.queries == ["a", "b", "c"]


def test_numbers_and_texts_are_one_id_and_it_is_said() -> None:
    loaded = load_records([{"id": 7, "retrieved_ids": [1, "2"], "relevant": ["1", 2]}])
    assert ids(loaded) == {"7": ["1", "2"]}
    assert loaded.gold is not None
    assert loaded.gold.documents == {"7": {"1": 1.0, "2": 1.0}}
    (notice,) = loaded.notices
    assert (notice.kind, notice.count, notice.examples) == (
        "coerced",
        3,
        ("7", "1", "2"),
    )


def test_a_relevant_id_listed_twice_counts_once_and_it_is_said() -> None:
    loaded = load_records([{"id": "q", "docs": ["a"], "relevant": ["a", "a"]}])
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q": {"a": 1.0}}
    assert [notice.kind for notice in loaded.notices] == ["duplicates"]
