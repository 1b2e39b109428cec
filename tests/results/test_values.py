"""A result is a plain value: it pickles, comes back, merges, and never changes."""

import json
import pickle  # noqa: TID251
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
from karat import Evaluation
from karat.extend import Query, UnknownNameError, UsageError
from karat.metrics import METRICS

RUN = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"c": 1.0, "a": 0.5}}
GOLD = {"q1": {"b": 2, "c": 0}, "q2": {"a": 1, "x": 1}}


def example(**options: Any) -> Evaluation:
    options = {"metrics": ["rr", "ndcg@10"], **options}
    return karat.evaluate(RUN, gold=GOLD, **options)


def test_a_result_is_a_mapping_of_any_spelling() -> None:
    result = example()
    assert [*result] == [*result.keys()] == ["rr", "ndcg@10"]
    assert "nDCG@10" in result
    assert "ndcg_cut_10" in result
    assert "ndcg@5" not in result
    assert result["NDCG@10"] is result["ndcg@10"]
    assert [scores.metric for scores in result.values()] == ["rr", "ndcg@10"]
    assert dict(result.items())["rr"].mean == result.means["rr"]
    with pytest.raises(UnknownNameError, match="did you mean 'ndcg@10'"):
        result["ndgc@10"]
    with pytest.raises(UnknownNameError, match=r"result\.score\('ndcg@5'\) computes"):
        result["ndcg@5"]


def test_scores_are_had_by_query_and_intervals_unpack() -> None:
    result = example()
    assert result["rr"]["q1"] == 0.5
    low, high = result["ndcg@10"].interval or (1, 0)
    assert 0 <= low < high <= 1
    with pytest.raises(UnknownNameError, match="unknown query 'q3'"):
        result["rr"]["q3"]


def test_a_run_can_be_named() -> None:
    assert example(name="bm25").run == "bm25"
    assert example().run == "run"


def test_one_more_metric_needs_no_run() -> None:
    result = example()
    every = ["recall@1", "ap", "hit@2", "recall@k", "precision@5"]
    for metric in every:
        asked = karat.evaluate(RUN, gold=GOLD, metrics=[metric])[metric]
        np.testing.assert_array_equal(result.score(metric).scores, asked.scores)
        assert result.score(metric).interval == asked.interval
    strict = example(threshold=2, undefined="zero")
    asked = karat.evaluate(
        RUN, gold=GOLD, metrics=["recall@3"], threshold=2, undefined="zero"
    )["recall@3"]
    assert strict.score("recall@3").scores.tolist() == asked.scores.tolist()
    # Of q2 nothing has a grade of 2; a metric may have a threshold of its own.
    assert asked.scores.tolist() == [1, 0]
    assert strict.score("recall(threshold=1)@3").scores.tolist() == [1, 0.5]
    assert example().score("recall@3").scores.tolist() == [1, 0.5]


def test_one_more_metric_has_the_cutoffs_of_the_others() -> None:
    """Those of the evaluation, else of the queries, else 5."""
    facts = {"q1": Query("q1", k=1)}
    asked = example(metrics="recall@k", k=2, queries=facts).score("hit@k")
    assert (asked.scores.tolist(), asked.cutoffs) == ([0, 1], (1, 2))
    assert example(queries=facts).score("hit@k").cutoffs == (1, 5)
    assert example().score("hit@k").cutoffs == (5,)
    assert example().score("hit@1").cutoffs == ()


def test_what_the_hits_do_not_hold_is_said() -> None:
    with pytest.raises(UsageError, match=r"needs matches by fuzzy, .* has id"):
        example().score("recall[fuzzy]@5")
    with pytest.raises(UsageError, match="bpref reads documents judged non-relevant"):
        example().score("bpref")
    judged = karat.evaluate(RUN, gold=GOLD, metrics=["judged@5"])
    assert judged.score("bpref").n == 2


def test_first_ranks_come_from_the_hits() -> None:
    result = example()
    assert [trace.first_ranks for trace in result.traces] == [
        {"b": 2},
        {"a": 2, "x": None},
    ]
    both = karat.evaluate(RUN, gold=GOLD, metrics=["judged@5"])
    assert both.traces[0].first_ranks == {"b": 2, "c": 3}


def test_documents_are_kept_on_request(tmp_path: Path) -> None:
    result = example(keep=2)
    assert [document.id for document in result.kept["q1"]] == ["a", "b"]
    result.save(tmp_path / "result.json")
    again = karat.load(tmp_path / "result.json")
    assert again.kept == result.kept
    assert again == result
    assert example().kept == {}


def test_a_result_is_saved_and_loaded_whole(tmp_path: Path) -> None:
    result = karat.evaluate(
        [
            {
                "id": "q1",
                "query": "Who bakes?",
                "tags": ["bread"],
                "k": 3,
                "retrieved": [{"text": "The baker bakes bread at night."}],
                "passages": ["The baker bakes bread.", "Rye is a grain."],
                "answers": ["baker"],
            }
        ],
        metrics=["coverage@1", "recall[chunk]@k", "containment@1", "ndcg[span]@5"],
        keep=1,
    )
    path = tmp_path / "result.json"
    result.save(path)
    again = karat.load(path)
    assert again == result
    assert again.to_json() == result.to_json()
    assert str(again) == str(result)
    assert again.facts["q1"].text == "Who bakes?"
    for metric in ("coverage@3", "iou@1", "recall[chunk]@1", "recall[span]"):
        left, right = again.score(metric), result.score(metric)
        np.testing.assert_array_equal(left.scores, right.scores)
    bare = result.without_texts().to_json()
    assert "baker bakes" not in bare
    assert "Who bakes?" not in bare


def test_equality_sees_every_difference() -> None:
    assert example() == example()
    assert example() != example(name="other")
    assert example() != karat.evaluate(RUN, gold=GOLD, metrics=["rr"])
    moved = {**RUN, "q1": {"a": 3.0, "b": 2.0, "c": 2.5}}
    assert karat.evaluate(moved, gold=GOLD, metrics=["hit@5"]) != karat.evaluate(
        RUN, gold=GOLD, metrics=["hit@5"]
    )
    assert example() != "a text"
    with pytest.raises(TypeError, match="unhashable type: 'Evaluation'"):
        hash(example())


def test_gold_is_told_by_its_digests_where_they_are_known() -> None:
    result = example()
    assert result.digests == karat.evaluate(RUN, gold=GOLD, metrics=["ap"]).digests
    assert len({*result.digests}) == 2
    # By ids, the labels that were looked for say it; without those nothing does.
    assert replace(result, labels=None).digests == result.digests
    assert replace(result, labels=None, matches={}).digests == ["", ""]
    known = replace(result, fingerprints=["x", "y"])
    assert known.digests == ["x", "y"]


def test_nothing_of_a_result_can_be_set() -> None:
    result = example()
    board = karat.leaderboard({"a": RUN}, gold=GOLD)
    compared = karat.compare(RUN, {"b": {**RUN, "q1": ["a"]}}, gold=GOLD, by_tag=False)
    values: list[Any] = [result, result["rr"], result.traces[0], board, compared]
    values += [compared["rr"], compared.movers[0], compared.changes["b"]]
    for value in values:
        field = fields(value)[0].name
        with pytest.raises(AttributeError, match="cannot assign to field"):
            setattr(value, field, None)


def evaluated(run: Any) -> Evaluation:
    return karat.evaluate(run, gold=GOLD, metrics=["rr", "ndcg@10"])


def test_a_result_pickles_and_a_worker_can_return_it() -> None:
    result = example()
    assert pickle.loads(pickle.dumps(result)) == result
    with ProcessPoolExecutor(1, get_context("spawn")) as workers:
        assert workers.submit(evaluated, RUN).result() == result


def test_no_change_to_the_inputs_changes_a_result(tmp_path: Path) -> None:
    run = {query: dict(row) for query, row in RUN.items()}
    gold = {query: dict(row) for query, row in GOLD.items()}
    result = karat.evaluate(run, gold=gold, metrics=["rr", "ndcg@10"])
    before = example().to_json()
    run["q1"]["b"] = 99.0
    run["q3"] = {"z": 1.0}
    gold["q1"]["a"] = 3
    del gold["q2"]
    assert result.to_json() == before
    path = tmp_path / "x.run"
    path.write_text("q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\nq2 Q0 a 1 1 t\n")
    result = karat.evaluate(path, gold=GOLD, metrics=["rr"])
    path.write_text("q1 Q0 b 1 2 t\nq2 Q0 x 1 1 t\n")
    assert result.traces[0].first_ranks == {"b": 2}
    path.unlink()
    assert json.loads(result.to_json())["queries"][1]["scores"] == {"rr": 1.0}


ids = st.sampled_from("abcdef")
rows = st.lists(ids, max_size=5)
texts = st.sampled_from(
    ["The baker bakes bread.", "Rye is a grain.", "Bread rises.", "Ovens are hot."]
)


@st.composite
def samples(draw: st.DrawFn) -> list[dict[str, Any]]:
    size = draw(st.integers(2, 5))
    return [
        {
            "id": f"q{n}",
            "k": draw(st.integers(1, 3)),
            "tags": draw(st.lists(st.sampled_from(["x", "y"]), max_size=2)),
            "retrieved": [{"id": name, "text": draw(texts)} for name in draw(rows)],
            "relevant": [
                {"id": name, "subtopics": {draw(st.sampled_from("xyz")): grade}}
                for name, grade in draw(
                    st.dictionaries(ids, st.integers(0, 3), min_size=1)
                ).items()
            ],
            "passages": draw(st.lists(texts, min_size=1, max_size=2)),
            "answers": ["bread"],
        }
        for n in range(size)
    ]


MATCHERS = ("id", "exact", "normalized", "chunk", "fuzzy", "span")


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(data=samples(), cut=st.integers(1, 4))
def test_merged_parts_are_the_whole(data: list[dict[str, Any]], cut: int) -> None:
    cut = min(cut, len(data) - 1)
    metrics = [
        *(
            f"{name}(max_grade=3)" if hasattr(metric, "max_grade") else name
            for name, metric in METRICS.items()
            if metric.matcher != "claims"
        ),
        *(f"recall[{matcher}]@k" for matcher in MATCHERS),
    ]
    options: dict[str, Any] = {"metrics": metrics, "match": "id", "force": True}
    whole = karat.evaluate(data, keep=1, **options)
    parts = [
        karat.evaluate(part, keep=1, **options) for part in (data[:cut], data[cut:])
    ]
    merged = Evaluation.merge(parts)
    assert merged.to_json() == whole.to_json()
    assert merged == whole
    assert [str(n) for n in merged.warnings] == [str(n) for n in whole.warnings]
    score = "ndcg[span]@2"
    np.testing.assert_array_equal(merged.score(score).scores, whole.score(score).scores)


def test_parts_that_do_not_fit_are_refused() -> None:
    result = example()
    with pytest.raises(UsageError, match="'q1' is in two of the evaluations"):
        Evaluation.merge([result, result])
    with pytest.raises(UsageError, match="different policies"):
        Evaluation.merge([result, example(undefined="zero")])
    with pytest.raises(UsageError, match="nothing to merge"):
        Evaluation.merge([])


def test_a_leaderboard_is_a_mapping_of_evaluations(tmp_path: Path) -> None:
    runs = {"old": RUN, "new": {**RUN, "q1": {"b": 3.0}}}
    board = karat.leaderboard(runs, gold=GOLD, metrics=["rr"])
    assert [*board] == ["old", "new"]
    assert board["new"].run == "new"
    assert [result.run for result in board.ranked()] == ["new", "old"]
    assert "judged@" in str(board)
    assert "new" in board._repr_html_()
    board.save(tmp_path / "board.json")
    assert karat.load(tmp_path / "board.json", run="old") == board["old"]
    with pytest.raises(UnknownNameError, match="did you mean 'new'"):
        board["nwe"]
    with pytest.raises(UsageError, match="must be a mapping from names to runs"):
        karat.leaderboard("a.run", gold=GOLD)
    with pytest.raises(UsageError, match="no runs"):
        karat.leaderboard({}, gold=GOLD)
    again = [("x", RUN), ("x", RUN)]
    with pytest.raises(UsageError, match="two runs are called 'x'"):
        karat.leaderboard(again, gold=GOLD)


def test_a_table_is_split_by_a_column() -> None:
    pd = pytest.importorskip("pandas")
    rows = [
        {"system": name, "query_id": q, "doc_id": d, "score": s}
        for name, sign in (("up", 1), ("down", -1))
        for q, row in RUN.items()
        for d, s in ((d, sign * s) for d, s in row.items())
    ]
    board = karat.leaderboard(pd.DataFrame(rows), by="system", gold=GOLD, metrics="rr")
    assert board["up"].means["rr"] == example().means["rr"]
    assert [*board] == ["up", "down"]
