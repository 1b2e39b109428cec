"""What holds for all matchers that compare texts: items, groups, duplicates, errors."""

import numpy as np
import pytest

import karat
from karat import Gold
from karat.data.memory_runs import RankedRun
from karat.extend import (
    DataError,
    Document,
    Duplicates,
    Item,
    MismatchError,
    Policies,
    Span,
    read_matcher,
)
from karat.matching.texts import _BLOCK
from tests.matching.text_runs import gold_of, matched, rows_of, run_of

FOX, DOG = "The quick brown fox.", "The lazy dog sleeps."


def test_every_match_is_a_row_of_query_rank_and_item() -> None:
    run = run_of(a=[FOX, DOG], b=[DOG])
    gold = gold_of(a=[DOG, FOX], b=[FOX, DOG, "Neither."])
    hits = matched("normalized", run, gold).hits
    assert rows_of(hits) == [(0, 1, 1), (0, 2, 0), (1, 1, 3)]
    assert hits.gold_count.tolist() == [2, 3]
    assert hits.retrieved.tolist() == [2, 1]


def test_rows_follow_the_order_of_the_gold() -> None:
    run = run_of(b=[DOG], a=[FOX])
    hits = matched("exact", run, gold_of(a=[FOX], b=[DOG])).hits
    assert rows_of(hits) == [(0, 1, 0), (1, 1, 1)]


def test_one_document_may_satisfy_several_items() -> None:
    hits = matched("chunk", run_of(q=[f"{FOX} {DOG}"]), gold_of(q=[FOX, DOG])).hits
    assert rows_of(hits) == [(0, 1, 0), (0, 1, 1)]


def test_alternatives_of_a_group_are_one_item() -> None:
    items = [Item("a", FOX, group="g"), Item("b", DOG, 2.0, group="g"), Item("c", "X")]
    hits = matched("exact", run_of(q=[DOG, FOX, f"{FOX} {DOG}"]), gold_of(q=items)).hits
    assert rows_of(hits) == [(0, 1, 0), (0, 2, 0)]
    assert hits.gold_grade.tolist() == [2.0, 1.0]
    assert hits.grade.tolist() == [2.0, 2.0]


def test_two_alternatives_in_one_document_are_one_row() -> None:
    items = [Item("a", FOX, group="g"), Item("b", DOG, group="g")]
    hits = matched("chunk", run_of(q=[f"{FOX} {DOG}"]), gold_of(q=items)).hits
    assert rows_of(hits) == [(0, 1, 0)]


def test_all_answers_of_a_query_are_one_item() -> None:
    run = run_of(q=["nothing", "in 1889", "eighteen eighty-nine"])
    gold = gold_of("answers", q=["1889", "eighteen eighty-nine"])
    hits = matched("contains", run, gold).hits
    assert rows_of(hits) == [(0, 2, 0), (0, 3, 0)]
    assert hits.gold_count.tolist() == [1]


def test_a_gold_text_given_twice_is_one_item() -> None:
    gold = gold_of(q=[Item("a", FOX), Item("b", FOX, 3.0)])
    assert matched("exact", run_of(q=[FOX]), gold).hits.gold_grade.tolist() == [3.0]


def test_a_query_without_this_kind_of_gold_has_no_items() -> None:
    gold = Gold(
        documents={"a": {"d": 1.0}},
        answers={"b": (Item("x", "yes it is"),)},
        order=("a", "b"),
    )
    run = run_of(a=[Document("d")], b=[Document("d", "yes it is")])
    hits = matched("contains", run, gold).hits
    assert hits.gold_count.tolist() == [0, 1]
    assert hits.retrieved.tolist() == [1, 1]


def test_missing_and_extra_queries_are_counted() -> None:
    found = matched("exact", run_of(a=[FOX], z=[DOG]), gold_of(a=[FOX], b=[DOG]))
    assert found.missing.tolist() == [False, True]
    assert found.extra == 1
    # What was asked and found nothing is not missing.
    found = matched("exact", run_of(a=[FOX], b=[]), gold_of(a=[FOX], b=[DOG]))
    assert found.missing.tolist() == [False, False]


def test_no_query_in_common_is_an_error() -> None:
    with pytest.raises(MismatchError, match="no query in common"):
        matched("exact", run_of(z=[FOX]), gold_of(a=[FOX]))


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "\u200b", "\u00a0"])
@pytest.mark.parametrize("matcher", ["normalized", "chunk", "contains", "fuzzy(0)"])
def test_blank_texts_satisfy_nothing(matcher: str, blank: str) -> None:
    kind = read_matcher(matcher).reads[0]
    for gold, document in ((blank, FOX), (FOX, blank), (blank, blank)):
        if matcher.startswith("fuzzy") and blank == "\u200b":
            continue  # compared as it is, an invisible character is one
        hits = matched(matcher, run_of(q=[document]), gold_of(kind, q=[gold])).hits
        assert rows_of(hits) == [], (gold, document)
        assert hits.gold_count.tolist() == [1]


def test_rows_of_judged_items_are_laid_out_on_request() -> None:
    run, gold = run_of(q=[FOX, DOG]), gold_of(q=[Item("a", FOX, 0.0), Item("b", DOG)])
    exact, policies = read_matcher("exact"), Policies()
    with_all = exact.match(run, gold, judged=True, policies=policies).hits
    without = exact.match(run, gold, judged=False, policies=policies).hits
    assert (rows_of(with_all), with_all.judged) == ([(0, 1, 0), (0, 2, 1)], True)
    assert (rows_of(without), without.judged) == ([(0, 2, 1)], False)
    assert without.gold_grade.tolist() == [0.0, 1.0]


def duplicates(
    policy: Duplicates, *documents: str | Document
) -> list[tuple[int, int, int]]:
    policies = Policies(duplicates=policy)
    run, gold = run_of(q=documents), gold_of(q=[FOX, DOG])
    return rows_of(matched("exact", run, gold, policies).hits)


def test_a_repeated_text_without_id_earns_nothing_the_second_time() -> None:
    assert duplicates("first", FOX, FOX, DOG) == [(0, 1, 0), (0, 3, 1)]
    assert duplicates("collapse", FOX, FOX, DOG) == [(0, 1, 0), (0, 2, 1)]
    assert duplicates("keep", FOX, FOX, DOG) == [(0, 1, 0), (0, 2, 0), (0, 3, 1)]
    with pytest.raises(DataError, match="retrieved more than once"):
        duplicates("error", FOX, FOX, DOG)


def test_documents_with_other_ids_are_no_duplicates() -> None:
    twins = (Document("a", FOX), Document("b", FOX))
    assert duplicates("first", *twins) == [(0, 1, 0), (0, 2, 0)]


def test_a_repeated_id_is_a_duplicate_and_its_other_text_is_reported() -> None:
    chunks = (Document("a", FOX), Document("a", DOG))
    assert duplicates("first", *chunks) == [(0, 1, 0)]
    assert duplicates("keep", *chunks) == [(0, 1, 0), (0, 2, 1)]
    found = matched("exact", run_of(q=chunks), gold_of(q=[FOX, DOG]))
    (notice,) = found.notices
    assert notice.kind == "retold"
    assert "1 document repeats the id of another" in str(notice)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (
            Document("a", FOX, start=0, end=20),
            Document("a", DOG, start=0, end=20),
            True,
        ),
        (
            Document("a", FOX, start=0, end=20),
            Document("a", DOG, start=9, end=20),
            False,
        ),
        (
            Document("a", FOX, start=0, end=20),
            Document("a", DOG, start=0, end=29),
            False,
        ),
        (
            Document("a", FOX, start=0, end=20),
            Document("b", DOG, start=0, end=20),
            False,
        ),
        (Document("a", FOX, start=0, end=20), Document("a", DOG), False),
    ],
)
def test_pieces_of_a_document_are_told_apart_by_where_they_lie(
    first: Document, second: Document, *, same: bool
) -> None:
    expected = [(0, 1, 0)] if same else [(0, 1, 0), (0, 2, 1)]
    assert duplicates("first", first, second) == expected


def test_a_text_without_id_is_the_same_wherever_it_lies() -> None:
    places = [Document(text=FOX, source="s", start=n, end=n + 20) for n in (0, 30)]
    assert duplicates("first", *places) == [(0, 1, 0)]
    hits = matched("exact", run_of(q=places), gold_of(q=[FOX])).hits
    assert hits.retrieved.tolist() == [2]


def test_a_place_without_id_and_text_is_a_document_of_its_own() -> None:
    gold = Gold(spans={"q": (Span("s", "a", 0, 10), Span("t", "b", 0, 10))})
    places = [("a", 0, 10), ("b", 0, 10), ("a", 0, 10), ("a", 5, 10)]
    documents = [Document(source=s, start=a, end=b) for s, a, b in places]
    policies = Policies(duplicates="collapse")
    hits = matched("span", run_of(q=documents), gold, policies).hits
    assert rows_of(hits) == [(0, 1, 0), (0, 2, 1)]
    assert hits.retrieved.tolist() == [3]


def test_collapsing_shortens_the_ranking() -> None:
    policies = Policies(duplicates="collapse")
    hits = matched("exact", run_of(q=[FOX, FOX, DOG]), gold_of(q=[DOG]), policies).hits
    assert hits.retrieved.tolist() == [2]


def test_depth_reads_only_the_top() -> None:
    run, gold = run_of(q=["x", DOG, FOX]), gold_of(q=[FOX, DOG])
    hits = matched("exact", run, gold, Policies(depth=2)).hits
    assert rows_of(hits) == [(0, 2, 1)]
    assert hits.retrieved.tolist() == [2]


def test_judged_only_closes_up_documents_not_rows() -> None:
    run = run_of(q=["x", f"{FOX} {DOG}", "y", DOG])
    hits = matched("chunk", run, gold_of(q=[FOX, DOG]), Policies(judged_only=True)).hits
    assert rows_of(hits) == [(0, 1, 0), (0, 1, 1), (0, 2, 1)]
    assert hits.retrieved.tolist() == [2]


def test_documents_without_text_are_an_error_that_says_which() -> None:
    run = run_of(a=[Document("1"), Document("2")], b=[Document("3", FOX)])
    gold = gold_of(a=[FOX], b=[FOX])
    with pytest.raises(DataError) as caught:
        matched("chunk", run, Gold(passages=gold.passages, documents={"a": {"1": 1.0}}))
    sentence = str(caught.value)
    assert "2 retrieved documents of 1 query have no text" in sentence
    assert "compares texts: a;" in sentence
    assert "--force" in sentence


def test_forced_documents_without_text_match_nothing() -> None:
    run = run_of(a=[Document("1"), Document("2", FOX)])
    hits = matched("exact", run, gold_of(a=[FOX]), Policies(force=True)).hits
    assert rows_of(hits) == [(0, 2, 0)]


def test_texts_are_not_needed_where_there_is_nothing_to_compare() -> None:
    run = run_of(a=[Document("1")], b=[Document("2", FOX)])
    found = matched("exact", run, gold_of(a=[], b=[FOX]))
    assert rows_of(found.hits) == [(1, 1, 0)]


def test_strings_given_as_a_run_are_texts_where_gold_lists_no_ids() -> None:
    gold = gold_of(q=[FOX])
    result = karat.evaluate({"q": [DOG, FOX]}, gold=gold, metrics=["rr"], match="exact")
    assert result.means == {"rr": 0.5}


def test_ids_are_never_taken_for_texts_where_gold_lists_ids() -> None:
    sample = {
        "id": "q",
        "relevant": ["doc-5"],
        "answers": ["5"],
        "retrieved": ["doc-5"],
    }
    with pytest.raises(DataError, match="has no text"):
        karat.evaluate([sample], metrics=["containment@5"])


def test_a_run_of_bare_ids_is_not_scored_as_if_it_were_texts() -> None:
    run = RankedRun({"q": ["d1", "d2"]})
    with pytest.raises(DataError, match="only ids such as 'd1'"):
        karat.evaluate(run, gold=gold_of(q=[FOX]), metrics=["recall"])


def test_finding_nothing_at_all_is_said() -> None:
    result = karat.evaluate(
        run_of(q=["Nothing of it is here."]),
        gold=gold_of(q=[FOX, DOG]),
        metrics=["recall[exact]", "recall[chunk]"],
    )
    assert result.means == {"recall[exact]": 0.0, "recall[chunk]": 0.0}
    assert [str(notice) for notice in result.warnings] == [
        f"2 gold items, and {name} found none of them in the whole run"
        for name in ("exact", "chunk")
    ]


def test_first_ranks_name_items_and_groups() -> None:
    items = [Item("a", FOX), Item("b", "Gone."), Item("c", DOG, group="pets")]
    run = run_of(q=["x", DOG, FOX, DOG + " "], r=[FOX])
    gold = gold_of(q=items, r=[], s=[FOX])
    matches = read_matcher("normalized").match(
        run, gold, judged=True, policies=Policies()
    )
    assert matches.first_ranks() == [
        {"a": 3, "b": None, "pets": 2},
        {},
        {"passages-1": None},
    ]
    assert matches.hits.retrieved.tolist() == [4, 1, 0]


def test_blocks_change_nothing() -> None:
    # More pairs than one block holds, and a query that does not fit into one.
    texts = [f"text number {number} of many" for number in range(300)]
    gold = gold_of(a=texts, b=texts[:5])
    hits = matched("exact", run_of(a=texts, b=texts[::-1]), gold).hits
    assert len(texts) ** 2 > _BLOCK
    np.testing.assert_array_equal(hits.rank[:300], np.arange(1, 301))
    assert hits.rank[300:].tolist() == [296, 297, 298, 299, 300]


def test_several_matchers_stand_side_by_side() -> None:
    sample = {"id": "q", "passages": [FOX], "retrieved_texts": [FOX.upper(), FOX]}
    result = karat.evaluate(
        [sample], metrics=["rr[exact]", "rr[normalized]", "rr[fuzzy(jaro, 0.9)]"]
    )
    assert result.means == {
        "rr[exact]": 0.5,
        "rr[normalized]": 1.0,
        "rr[fuzzy(similarity=jaro, threshold=0.9)]": 0.5,
    }
