"""What `evaluate` makes of what it is asked for, where no other room says it."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import karat
from karat.extend import (
    Claims,
    DataError,
    FunctionClient,
    Hits,
    Metric,
    ParameterError,
    Query,
    Settings,
    UsageError,
)

TEXT = "Rye is a grain."
SAMPLE = {"id": "q", "query": "What is rye?", "retrieved": [{"id": "d", "text": TEXT}]}


def notices(metric: str, **gold: Any) -> str:
    result = karat.evaluate([{**SAMPLE, **gold}], metrics=[metric])
    return "\n".join(map(str, result.warnings))


def test_a_matcher_without_gold_says_what_would_give_it_some() -> None:
    said = notices("recall[chunk]", relevant=["d"])
    assert (
        "1 query has no passages in gold, which matching by chunk needs: corpus=... "
        in said
    )
    said = notices("recall[chunk]", answers=["rye"])
    assert said.endswith("which matching by chunk needs")
    said = notices("recall[contains]", relevant=["d"])
    assert said.endswith("which matching by contains needs")
    said = notices("recall[contains]", relevant=["d"], reference="Rye is a grain.")
    assert "matching by contains needs: --map answers=reference " in said
    said = notices("recall[contains]", relevant=["d"], reference_answer="A grain.")
    assert "matching by contains needs: --map answers=reference_answer " in said
    said = notices("recall[chunk]", answers=["rye"], reference="Rye is a grain.")
    assert said.endswith("which matching by chunk needs")


def test_gold_without_labels_needs_metrics_with_matchers_of_their_own() -> None:
    with pytest.raises(DataError, match="the gold holds no labels"):
        karat.evaluate({"q": ["d"]}, {"q": []}, metrics=["recall", "rr[id]"])
    result = karat.evaluate({"q": ["d"]}, {"q": []}, metrics=["recall[id]"])
    assert result["recall[id]"].undefined == 1
    with pytest.raises(UsageError, match="no metrics: name at least one"):
        karat.evaluate({"q": ["d"]}, {"q": []}, metrics=[])


def no_support(prompt: str) -> str:
    """The reply of a judge to whom one claim is not supported by anything."""
    del prompt
    return (
        '{"verdicts": [{"claim": 1, "alone": [], "parts": [], "complete": false, '
        '"against": [], "reason": "It does not say so."}]}'
    )


@pytest.mark.parametrize("role", ["judge", "match"])
def test_a_client_does_not_outlive_the_evaluation(role: str) -> None:
    client = FunctionClient(no_support)
    gone = weakref.ref(client)
    options: dict[str, Any] = {role: Claims(client, settings=Settings(journal=None))}
    samples = [{**SAMPLE, "claims": ["Rye is sown."]}]
    result = karat.evaluate(samples, metrics=["recall"], **options)
    assert result.means == {"recall": 0.0}
    del client, options, result
    gc.collect()
    assert gone() is None


def test_one_expected_output_is_the_reference_of_a_judge() -> None:
    asked: list[str] = []

    def split(prompt: str) -> str:
        asked.append(prompt)
        return '{"claims": []}'

    def evaluate(**gold: Any) -> None:
        sample = {"id": "q", "query": "Rye?", "contexts": [TEXT], **gold}
        judge = Claims(FunctionClient(split), settings=Settings(journal=None))
        mapping = {"answers": next(iter(gold))}
        metrics = ["recall[claims]"]
        karat.evaluate([sample], metrics=metrics, judge=judge, mapping=mapping)

    evaluate(expected_output="A cereal.")
    assert "A cereal." in asked[0]
    for gold in (
        {"expected_output": ["A cereal.", "A plant."]},
        {"short": "A cereal."},
    ):
        with pytest.raises(DataError, match="there is nothing to judge"):
            evaluate(**gold)


def test_a_mapping_may_be_about_the_runs_only() -> None:
    run = [{"query_id": "q", "uid": "d", "score": 1.0}]
    gold = [{"query_id": "q", "document": "d", "grade": 1}]
    board = karat.leaderboard(
        {"one": run, "two": run}, gold=gold, mapping={"document": "uid"}, metrics="rr"
    )
    assert [result.means for result in board.values()] == [{"rr": 1.0}] * 2


@pytest.mark.parametrize("k", [0, -1, 10**9, True, False, 2.0, "5"])
def test_a_cutoff_is_an_integer_from_1(k: Any) -> None:
    with pytest.raises(ParameterError, match=r"k must be an integer >= 1, got "):
        karat.evaluate({"q": ["d"]}, {"q": ["d"]}, metrics="recall@k", k=k)


def test_a_cutoff_is_the_querys_own_else_the_callers_else_5() -> None:
    run = {query: ["a", "b", "c", "d", "e", "f"] for query in ("p", "q", "r")}
    gold = {"p": ["a"], "q": ["b"], "r": ["f"]}
    queries = {"p": Query("p", k=6), "q": Query("q")}

    def recalled(**options: Any) -> tuple[list[float], tuple[int, ...]]:
        column = karat.evaluate(run, gold, metrics="recall@k", **options)["recall@k"]
        return column.scores.tolist(), column.cutoffs

    assert recalled() == ([1, 1, 0], (5,))
    for k in (1, np.int64(1)):
        assert recalled(k=k) == ([1, 0, 0], (1,))
    assert recalled(k=10**9 - 1) == ([1, 1, 1], (10**9 - 1,))
    assert recalled(k=1, queries=queries) == ([1, 0, 0], (1, 6))
    assert recalled(queries=queries) == ([1, 1, 0], (5, 6))
    with pytest.raises(UsageError, match=r"k = 3 changes nothing: .* recall@3 is the"):
        karat.evaluate(run, gold, metrics="recall@5", k=3)


@pytest.mark.parametrize(
    ("metrics", "added"),
    [
        (["rr"], "judged@10"),
        (["rr", "recall@3", "ndcg@7", "ap"], "judged@7"),
        (["recall@20"], "judged@20"),
        (["recall@k"], "judged@10"),
    ],
)
def test_how_much_is_judged_is_asked_at_the_deepest_cutoff(
    metrics: list[str], added: str
) -> None:
    run = {"q": ["a", "b"]}
    for grade in (0, -1):
        result = karat.evaluate(
            run, {"q": {"a": 1, "b": grade}}, metrics=metrics, judged=True
        )
        assert [*result] == [*metrics, added]
    # Where no document is judged not to help, it would say nothing.
    positive = karat.evaluate(
        run, {"q": {"a": 1, "b": 2}}, metrics=metrics, judged=True
    )
    assert [*positive] == metrics
    assert [*karat.evaluate(run, {"q": {"a": 1, "b": 0}}, metrics=metrics)] == metrics


def test_a_judge_reads_no_deeper_than_the_policy() -> None:
    asked: list[str] = []

    def judge(prompt: str) -> str:
        asked.append(prompt)
        return no_support(prompt)

    contexts = ["First.", "Second.", "Third."]
    sample = {"id": "q", "query": "?", "contexts": contexts, "claims": ["A claim."]}

    def read(*metrics: str, **options: Any) -> int:
        claims = Claims(FunctionClient(judge), settings=Settings(journal=None))
        karat.evaluate([sample], metrics=[*metrics], judge=claims, **options)
        return sum(text in asked[-1] for text in contexts)

    assert read("recall@2") == 2
    assert read("recall@1", "rr@3") == 3
    assert read("recall@3", depth=1) == 1
    assert read("recall@1", depth=3) == 1
    assert read("recall@1", "rr") == 3
    assert read("recall@1", "rr", depth=2) == 2
    assert read("recall@k", "rr@1", k=2) == 2


def test_two_metrics_of_one_name_must_be_the_same() -> None:
    class Half(Metric):
        name = "half"

        def score(self, hits: Hits) -> Any:
            return np.full(hits.size, 0.5)

    class Whole(Half):
        def score(self, hits: Hits) -> Any:
            return np.full(hits.size, 1.0)

    run, gold = {"q": ["d"]}, {"q": ["d"]}
    assert karat.evaluate(run, gold, metrics=[Half(), Half(), "rr"]).means == {
        "half": 0.5,
        "rr": 1.0,
    }
    with pytest.raises(UsageError, match="two metrics are spelled half: give yours"):
        karat.evaluate(run, gold, metrics=[Half(), Whole()])


def test_a_metric_reads_no_deeper_than_the_retriever_was_asked() -> None:
    run = karat.retrieve(lambda _: ["d"], {"q": "?"}, k=3, cache=None)
    queries = {"q": Query("q", k=4)}
    read: list[tuple[str, dict[str, Any]]]
    read = [("rr@3", {}), ("rr", {}), ("recall@k", {"k": 3})]
    for metric, options in read:
        result = karat.evaluate(run, {"q": ["d"]}, metrics=metric, **options)
        assert result.means == {metric: 1.0}
    read = [("rr@4", {}), ("rr@k", {"queries": queries, "k": 1})]
    for metric, options in read:
        with pytest.raises(UsageError, match=r"reads 4 documents, .* asked for 3: "):
            karat.evaluate(run, {"q": ["d"]}, metrics=metric, **options)


def test_what_several_runs_share_is_read_once_and_checked_first(tmp_path: Path) -> None:
    missing = tmp_path / "no such.run"
    runs, gold = {"one": missing, "two": missing}, {"q": ["d"]}
    for options, said in (
        ({"metrics": "rrr"}, "unknown metric 'rrr'"),
        ({"ties": "coin"}, "ties must be one of"),
        ({"queries": tmp_path / "none.jsonl"}, "none.jsonl: no such file"),
        ({"corpus": tmp_path / "none.jsonl"}, "none.jsonl: no such file"),
        ({"metrics": "rr"}, "no such.run: no such file"),
    ):
        with pytest.raises(karat.KaratError, match=said):
            karat.leaderboard(runs, gold=gold, **options)
    path = tmp_path / "queries.jsonl"
    path.write_text('{"id": "q", "query": "What?", "tags": ["t"]}\n')
    board = karat.leaderboard({"one": gold}, gold=gold, queries=path, metrics="rr")
    assert board["one"].facts["q"].tags == ("t",)
    given = karat.leaderboard(
        {"one": gold}, gold=gold, queries={"q": Query("q", tags=("u",))}, metrics="rr"
    )
    assert given["one"].facts["q"].tags == ("u",)
