"""Runs as Python objects: whatever hides in them is found, or said."""

from decimal import Decimal
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st

import karat
from karat.data import memory_runs
from karat.extend import DataError, Document, Labels, Policies, Precision, Ties

GOLD = {"q1": {"a": 1}, "q2": {"b": 1}}
LONG = {f"q{number}": [f"d{place}" for place in range(100)] for number in range(100)}


@pytest.mark.parametrize(
    "score", [float("nan"), float("inf"), None, "high", [1], 10**400, 1j]
)
@pytest.mark.parametrize("document", ["b", "nobody labelled this"])
@pytest.mark.parametrize("ties", ["trec", "input"])
@pytest.mark.parametrize("many", [0, 10**6])
def test_a_score_that_is_none_is_named_found_or_not(
    score: Any, document: str, ties: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_runs, "_MANY", many)
    run = {"q1": {"a": 1.0}, "q2": {"x": 2.0, document: score, "y": 1.0}}
    with pytest.raises(DataError, match=r"query 'q2': the score of document .* finite"):
        karat.evaluate(run, gold=GOLD, ties=ties)


def test_scores_of_queries_without_gold_are_not_looked_at() -> None:
    known = {"q1": {"a": 1.0, "x": 2.0}, "q2": {"b": 1.0}}
    run = {**known, "q3": {"c": float("nan")}}
    (odd, plain) = (karat.evaluate(r, gold=GOLD, metrics=["rr"]) for r in (run, known))
    assert odd.means == plain.means == {"rr": 0.75}
    assert [str(notice) for notice in odd.warnings if notice.kind == "extra"]


@pytest.mark.parametrize(
    "grade", [float("nan"), float("-inf"), None, "1x", [1], 10**400]
)
def test_a_grade_that_is_none_is_named(grade: Any) -> None:
    gold = {"q1": {"a": 1}, "q2": {"b": grade}}
    with pytest.raises(DataError, match=r"query 'q2': grade of 'b' must"):
        karat.evaluate({"q1": ["a"]}, gold=gold)


@pytest.mark.parametrize("duplicates", ["first", "collapse", "keep", "error"])
@pytest.mark.parametrize("thing", [["b"], {"id": "b"}, {"b"}])
def test_a_thing_among_many_ids_is_named(thing: Any, duplicates: str) -> None:
    run = {**LONG, "q2": ["x", thing, "y"]}
    with pytest.raises(DataError, match=r"query 'q2': document id must be a string"):
        karat.evaluate(run, gold=GOLD, duplicates=duplicates)


def test_ids_and_scores_of_numpy_are_like_any_other() -> None:
    ids = np.array(["x", "a"])
    scores = np.array([2, 1], np.float32)
    for ranking in (ids, [*ids], dict(zip(ids, scores, strict=True))):
        result = karat.evaluate({"q1": ranking}, gold=GOLD, metrics=["rr"])
        assert result.per_query[0]["rr"] == 0.5
        assert [notice.kind for notice in result.warnings] == ["missing"]
    exact = {"a": Decimal("1.5"), "x": Decimal(2)}
    assert karat.evaluate({"q1": exact}, gold=GOLD, metrics=["rr"]).means["rr"] == 0.25


def test_a_ranking_without_documents_scores_0_and_is_told() -> None:
    empties: list[Any] = [[], {}]
    for empty in empties:
        result = karat.evaluate({"q1": empty, "q2": empty}, gold=GOLD, metrics=["rr"])
        assert result.means == {"rr": 0.0}
        (notice,) = result.warnings
        assert (
            str(notice)
            == "2 queries for which nothing was retrieved (for example q1, q2)"
        )


def test_a_giant_id_makes_no_giant_sentence() -> None:
    run = {"q" * 10**6: {"d" * 10**6: float("nan")}}
    with pytest.raises(DataError) as caught:
        karat.evaluate(run, gold={"q" * 10**6: ["d" * 10**6]})
    assert len(str(caught.value)) < 300


IDS = [f"d{number}" for number in range(12)]
RUNS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q4"]),
    st.dictionaries(st.sampled_from(IDS), st.sampled_from([-1.5, 0.0, 0.5, 2, 3.25])),
)
LABELS = st.fixed_dictionaries(
    {
        query: st.dictionaries(st.sampled_from(IDS), st.integers(-1, 2))
        for query in ("q1", "q2", "q3")
    }
)


POLICIES = st.builds(
    Policies,
    ties=st.sampled_from(get_args(Ties)),
    precision=st.sampled_from(get_args(Precision)),
    duplicates=st.sampled_from(["first", "collapse", "keep"]),
)


@given(run=RUNS, labels=LABELS, policies=POLICIES)
def test_a_row_names_its_label_and_ties_of_relevant_documents_are_counted(
    run: dict[str, dict[str, float]], labels: Labels, policies: Policies
) -> None:
    names = [(q, document) for q, row in labels.items() for document in row]
    ordered = dict(memory_runs.ScoredRun(run).rankings(policies))
    tied = {
        query: sum(
            row.get(document, 0) > 0 and list(scores.values()).count(score) > 1
            for document, score in scores.items()
        )
        for query, row in labels.items()
        if (scores := run.get(query, {}))
    }
    for many in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory_runs, "_MANY", many)
            found = memory_runs.ScoredRun(run).locate(
                labels, judged=True, policies=policies
            )
        assert found.item is not None
        for rank, item in zip(found.rank.tolist(), found.item.tolist(), strict=True):
            query, document = names[item]
            assert ordered[query][rank - 1].id == document
        told = [notice.count for notice in found.notices if notice.kind == "ties"]
        assert sum(told) == sum(tied.values())


@given(
    run=st.dictionaries(st.sampled_from(["q1", "q3"]), st.lists(st.sampled_from(IDS))),
    labels=LABELS,
    policies=POLICIES,
)
def test_duplicates_of_relevant_documents_are_counted(
    run: dict[str, list[str]], labels: Labels, policies: Policies
) -> None:
    names = [(q, document) for q, row in labels.items() for document in row]
    found = memory_runs.RankedRun(run).locate(labels, judged=True, policies=policies)
    assert found.item is not None
    assert found.distinct == (policies.duplicates != "keep")
    for rank, item in zip(found.rank.tolist(), found.item.tolist(), strict=True):
        query, document = names[item]
        ranking = run[query]
        if policies.duplicates == "collapse":
            ranking = [*dict.fromkeys(ranking)]
        assert ranking[rank - 1] == document
    often = sum(
        grade > 0 and run.get(query, []).count(document) > 1
        for query, row in labels.items()
        for document, grade in row.items()
    )
    told = [notice.count for notice in found.notices if notice.kind == "duplicates"]
    assert sum(told) == often


def test_arrays_and_generators_are_lists() -> None:
    for ranking in (np.array(["x", "a"]), (d for d in "xa"), ("x", "a"), ["x", "a"]):
        run = memory_runs.RankedRun({"q1": ranking})
        for _ in range(2):
            found = run.locate(GOLD, judged=True, policies=Policies())
            assert found.rank.tolist() == [2]


def test_a_number_among_ids_that_have_to_be_ordered_is_named() -> None:
    run: dict[str, Any] = {"q1": {"a": 1.0}, "q2": {"b": 1.0, 7: 1.0}}
    with pytest.raises(DataError, match=r"'q2': document id 7 must be text like the"):
        memory_runs.ScoredRun(run).locate(GOLD, judged=True, policies=Policies())


def test_many_equal_scores_take_no_more_than_sorting_them() -> None:
    # Comparing each with each would be 4 * 10**8 steps, and minutes.
    run = {"q": {f"d{number}": 1.0 for number in range(20_000)}}
    gold = {"q": dict.fromkeys(run["q"], 1.0)}
    result = karat.evaluate(run, gold=gold, metrics=["rr", "ap"])
    assert result.means == {"rr": 1.0, "ap": 1.0}
    assert [notice.count for notice in result.warnings] == [20_000]


@given(run=RUNS, labels=LABELS, judged=st.booleans())
def test_short_and_long_runs_rank_alike(
    *, run: dict[str, dict[str, float]], labels: Labels, judged: bool
) -> None:
    expected = []
    for place, (query, wanted) in enumerate(labels.items()):
        pairs = [(score, document) for document, score in run.get(query, {}).items()]
        for rank, (_, document) in enumerate(sorted(pairs, reverse=True), 1):
            if document in wanted and (judged or wanted[document] > 0):
                expected.append((place, rank, wanted[document]))
    for many in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory_runs, "_MANY", many)
            found = memory_runs.ScoredRun(run).locate(
                labels, judged=judged, policies=Policies()
            )
        rows = zip(found.query, found.rank, found.grade, strict=True)
        assert [(int(q), int(r), float(g)) for q, r, g in rows] == expected
        sizes = [len(run[query]) if query in run else -1 for query in labels]
        assert found.retrieved.tolist() == sizes
        assert found.extra == len(run.keys() - labels.keys())


@given(
    run=st.dictionaries(
        st.sampled_from(["q1", "q2", "q3", "q4"]), st.lists(st.sampled_from(IDS))
    ),
    labels=LABELS,
    judged=st.booleans(),
)
def test_every_way_to_look_through_a_list_finds_the_same(
    *, run: dict[str, list[str]], labels: Labels, judged: bool
) -> None:
    expected = [
        (place, run[query].index(document) + 1, grade)
        for place, (query, wanted) in enumerate(labels.items())
        for document, grade in wanted.items()
        if document in run.get(query, []) and (judged or grade > 0)
    ]
    for few in (0, 99):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory_runs, "_FEW", few)
            found = memory_runs.RankedRun(run).locate(
                labels, judged=judged, policies=Policies()
            )
        rows = zip(found.query, found.rank, found.grade, strict=True)
        assert [(int(q), int(r), float(g)) for q, r, g in rows] == sorted(expected)


@pytest.mark.parametrize("many", [0, 10**6])
def test_scores_are_floats_in_runs_of_any_length(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_runs, "_MANY", many)
    huge = 2**60
    # As floats all three are equal, and then the larger id comes first.
    run = {"q": {"a": huge + 2, "b": huge + 1, "c": huge}}
    result = karat.evaluate(run, gold={"q": ["a"]}, metrics="rr")
    assert result.means == {"rr": 1 / 3}


def test_scores_may_be_any_mapping() -> None:
    gold = {"q": {"a": 1, "c": 2}}
    run = {"q": {"b": 2.0, "a": 1.0}}
    other = {"q": MappingProxyType(run["q"])}
    assert karat.evaluate(other, gold=gold)["rr"].mean == 0.5
    assert karat.evaluate(other, gold=gold) == karat.evaluate(run, gold=gold)


@pytest.mark.parametrize("depth", [2, 30_000])
def test_scores_whose_sum_is_infinite_are_ranked(depth: int) -> None:
    run = {"q": {f"d{n:05}": 1.7e308 * (1 - n / depth) for n in range(depth)}}
    run["other"] = {"a": 1.7e308, "b": 1.7e308}
    found = karat.evaluate(run, gold={"q": ["d00001"], "other": ["a"]}, metrics=["rr"])
    assert found["rr"].scores.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("score", [1.0, 1 + 2.0**-23, -1.0, 0.1, 2.0**-149, 3e38])
@pytest.mark.parametrize("end", [-np.inf, np.inf])
def test_scores_are_equal_in_single_precision_where_their_roundings_are(
    score: float, end: float
) -> None:
    single = np.float32(score)
    middle = (float(single) + float(np.nextafter(single, np.float32(end)))) / 2
    for other in (np.nextafter(middle, -np.inf), middle, np.nextafter(middle, np.inf)):
        run = {"q": {"a": score, "b": float(other)}}
        for name in "ab":
            found = karat.evaluate(
                run, {"q": [name]}, metrics="rr", profile="trec_eval-9"
            )
            first = "a" if single > np.float32(other) else "b"
            assert found.means == {"rr": 1.0 if name == first else 0.5}
            tied = [n.count for n in found.warnings if n.kind == "ties"]
            assert tied == [1] * int(single == np.float32(other))


@pytest.mark.parametrize("text", [{}, {"text": "Rye."}])
def test_ranks_with_gaps_are_kept(text: dict[str, str]) -> None:
    ranks = {"q1": [1, 4], "q2": [3], "q3": [1, 2]}
    samples = [
        {
            "id": query,
            "retrieved": [{"id": f"d{n}", "rank": n, **text} for n in own],
            "relevant": [f"d{own[-1]}"],
        }
        for query, own in ranks.items()
    ]
    result = karat.evaluate(samples, metrics=["rr", "num_ret"])
    assert result["rr"].scores.tolist() == [1 / 4, 1 / 3, 1 / 2]
    assert result["num_ret"].scores.tolist() == [4, 3, 2]
    (notice,) = (n for n in result.warnings if n.kind == "gaps")
    assert (notice.count, notice.examples) == (2, ("q1", "q2"))


def test_documents_repeated_among_the_first_five_are_told() -> None:
    run = {
        "q1": [*"xxa"],
        "q2": [*"vwxyaa"],
        "q3": [*"vwxya", "y"],
        "q4": [*"axyzx"],
        "q5": [*"yaxa"],
    }
    gold = {query: {"a": 1, "x": 0} for query in run}
    result = karat.evaluate(run, gold, metrics="rr")
    told = {notice.kind: notice for notice in result.warnings}
    assert (told["repeats"].count, told["repeats"].examples) == (2, ("q1", "q4"))
    assert (told["duplicates"].count, told["duplicates"].examples) == (2, ("q2", "q5"))
    moved = karat.evaluate(run, gold, metrics="rr", duplicates="collapse")
    assert moved["rr"].scores.tolist() == [1 / 2, 1 / 5, 1 / 5, 1, 1 / 2]
    assert "repeats" not in {notice.kind for notice in moved.warnings}


@pytest.mark.parametrize(
    ("scores", "tied"),
    [
        ([2, 1, 1], 1),
        ([1, 1, 2], 1),
        ([1, 2, 1], 2),
        ([3, 2, 1], 0),
        ([None, None, 1], 0),
        ([1, 1, None], 1),
    ],
)
def test_equal_scores_of_a_list_are_told_where_a_relevant_document_has_one(
    scores: list[float | None], tied: int
) -> None:
    documents = [
        {"id": name} if score is None else {"id": name, "score": score}
        for name, score in zip("abc", scores, strict=True)
    ]
    sample = {"retrieved": documents, "relevant": {"a": 1, "b": 0, "c": 1}}
    result = karat.evaluate([sample], metrics="rr", order=None)
    assert [n.count for n in result.warnings if n.kind == "ties"] == [tied] * bool(tied)


@pytest.mark.parametrize(
    ("ranking", "shown", "ids", "kinds"),
    [
        (["a", "b"], "RankedRun run: 2 queries, 3 documents", ["a", "c"], {"ids"}),
        ({"a": 1.0}, "ScoredRun run: 2 queries, 2 documents", ["a", "c"], {"ids"}),
        (
            [Document("a", "Rye."), Document(None, "Oats.")],
            "DocumentRun run: 2 queries, 3 documents",
            ["a", "c"],
            {"ids", "texts"},
        ),
        (
            [Document(None, "Rye.")],
            "DocumentRun run: 2 queries, 2 documents",
            ["Rye.", "c"],
            {"ids", "texts"},
        ),
    ],
)
def test_a_run_says_what_it_holds(
    ranking: Any, shown: str, ids: list[str], kinds: set[str]
) -> None:
    other: Any = {"c": 1.0} if isinstance(ranking, dict) else ["c"]
    if not isinstance(ranking, dict) and isinstance(ranking[0], Document):
        other = [Document("c")]
    run = karat.read_run({"q1": ranking, "q2": other})
    assert repr(run) == f"<{shown}>"
    assert (run.queries(), run.sample_ids()) == (["q1", "q2"], ids)
    assert run.kinds() == kinds
    assert run.holds_any({ids[0], "z"})
    assert not run.holds_any({"z"})


@pytest.mark.parametrize(
    ("documents", "kinds"),
    [
        ([Document("a")], {"ids"}),
        ([Document(None, "Rye.")], {"texts"}),
        ([Document(None, "Rye."), Document("a")], {"ids", "texts"}),
        ([Document("a"), Document("b", "Rye.")], {"ids", "texts"}),
    ],
)
def test_documents_are_known_by_ids_by_texts_or_both(
    documents: list[Document], kinds: set[str]
) -> None:
    run = karat.read_run({"q": documents, "p": documents[:1]})
    assert run.kinds() == kinds


def test_three_ids_show_what_they_look_like() -> None:
    run = karat.read_run({f"q{n}": [f"d{n}", "x"] for n in range(5)} | {"q": []})
    assert run.sample_ids() == ["d0", "d1", "d2"]


def test_copies_of_gold_are_out_of_reach() -> None:
    labels, sources = {"q": {"a": 1.0}}, {"q": {"a": "judge:m"}}
    gold = karat.Gold(labels, sources=sources)
    copied = gold.copy()
    labels["q"]["a"], sources["q"]["a"] = 0.0, "human"
    assert copied.documents == {"q": {"a": 1.0}}
    assert copied.sources == {"q": {"a": "judge:m"}}
