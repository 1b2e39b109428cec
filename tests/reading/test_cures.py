"""What an error proposes works when it is typed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import karat
from karat import KaratError, evaluate, read_gold, read_run
from karat.extend import CutoffMetric, FormatError, Hits, UsageError

GOLD = {"q": ["b"]}
IDS = [{"id": "a"}, {"id": "b"}]


def proposed(text: str) -> dict[str, str]:
    """The mapping that a message names as `--map ours=theirs`."""
    return dict(re.findall(r"--map (\w+)=([\w.]+)", text))


def cured(run: Any, gold: Any = None, **options: Any) -> dict[str, float]:
    """The means, once what the error proposes is done."""
    with pytest.raises(KaratError) as error:
        karat.evaluate(run, gold, **options)
    mapping = proposed(str(error.value))
    return karat.evaluate(run, gold, **{**options, "mapping": mapping}).means


@pytest.mark.parametrize(
    "nested",
    [
        {"pipeline": {"retriever": {"hits": IDS}}},
        {"pipeline": {"retriever": {"ids": ["a", "b"]}}},
        {"trace": {"output": {"documents": IDS, "took": 3}}},
        {"steps": {"search": {"retrieved": ["a", "b"]}, "model": {"name": "x"}}},
    ],
)
def test_a_ranking_deep_in_a_log_is_named_by_its_path(nested: Any) -> None:
    assert cured([{"id": "q", **nested}], GOLD, metrics="rr") == {"rr": 0.5}


def test_gold_deep_in_a_log_is_named_by_its_path() -> None:
    sample = {"id": "q", "retrieved": IDS, "labels": {"human": {"relevant": ["b"]}}}
    assert cured([sample], metrics="rr") == {"rr": 0.5}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda d: {"chunk": d, "score": 0.5},
        lambda d: {"passage": {"uid": d["id"], "body": "Rye."}},
        lambda d: {"content": {"metadata": d}},
    ],
)
def test_chunks_in_objects_are_read(wrap: Any) -> None:
    run = [{"id": "q", "retrieved": [*map(wrap, IDS)]}]
    assert karat.evaluate(run, GOLD, metrics="rr").means == {"rr": 0.5}


def test_an_id_deep_in_a_chunk_is_named_by_its_path() -> None:
    hits = [{"passage": {"meta": {"key": d["id"]}}, "score": 0.5} for d in IDS]
    assert cured([{"id": "q", "retrieved": hits}], GOLD, metrics="rr") == {"rr": 0.5}


def test_a_mapping_the_wrong_way_round_is_turned() -> None:
    run = [{"id": "q", "my_hits": ["a", "b"]}]
    wrong = {"my_hits": "retrieved"}
    assert cured(run, GOLD, metrics="rr", mapping=wrong) == {"rr": 0.5}
    with pytest.raises(UsageError, match="--map relevant=wanted"):
        karat.evaluate(
            {"q": ["a"]}, [{"id": "q", "wanted": ["a"]}], mapping={"wanted": "relevant"}
        )


def test_repeated_ids_name_what_tells_samples_apart() -> None:
    run = [
        {"id": "1", "system": name, "retrieved": [name]} for name in ("dense", "sparse")
    ]
    with pytest.raises(FormatError, match="occurs twice") as error:
        karat.evaluate(run, {"1": ["dense"]})
    assert "--by FIELD" in str(error.value)
    assert "--map id=FIELD" in str(error.value)


def test_answers_that_are_a_reference_are_named() -> None:
    run = [{"id": "q", "retrieved": ["Rye is a grain."], "ground_truth": "rye"}]
    result = karat.evaluate(run, metrics="containment@1")
    (said,) = (str(notice) for notice in result.warnings)
    mapping = proposed(said)
    assert karat.evaluate(run, metrics="containment@1", mapping=mapping).means == {
        "containment@1": 1.0
    }


@pytest.mark.parametrize("answer", ["no", "N/A", "yes"])
def test_brief_answers_are_noticed(answer: str) -> None:
    texts = [f"there is {answer} way to tell"]
    run = [{"id": "q", "retrieved_texts": texts, "answers": [answer]}]
    result = karat.evaluate(run, metrics="containment@1")
    assert [notice.kind for notice in result.warnings] == ["brief"]
    for clear in ("42", "Rome", "\u5317\u4eac"):
        run = [{"id": "q", "retrieved_texts": [clear], "answers": [clear]}]
        assert not karat.evaluate(run, metrics="containment@1").warnings


def test_what_was_seen_while_reading_is_told_when_it_is_scored() -> None:
    rising = {f"q{i}": {"a": 0.1, "b": 0.9} for i in range(9)}
    gold = {q: ["a"] for q in rising}
    whole = evaluate(rising, gold=gold, metrics=["rr"])
    apart = evaluate(read_run(rising), gold=gold, metrics=["rr"])
    assert "order" in {notice.kind for notice in whole.warnings}
    assert apart.warnings == whole.warnings
    joined = {"q1": "a,b", "q2": "d"}
    run = {"q1": ["a"], "q2": ["d"]}
    whole = evaluate(run, gold=joined, metrics=["rr"])
    apart = evaluate(run, gold=read_gold(joined), metrics=["rr"])
    assert "joined" in {notice.kind for notice in whole.warnings}
    assert apart.warnings == whole.warnings


def test_qrels_are_called_gold() -> None:
    options: dict[str, Any] = {"qrels": {"q1": ["a"]}}
    with pytest.raises(UsageError, match="pass them as gold="):
        evaluate({"q1": ["a"]}, **options)


def test_two_metrics_of_one_spelling_are_refused() -> None:
    @dataclass(frozen=True)
    class Mine(CutoffMetric):
        name: ClassVar[str] = "recall"

        def score(self, hits: Hits) -> Any:
            return np.full(hits.size, 0.25)

    both: list[Any] = [Mine(1), "recall@1"]
    for metrics in (both, both[::-1]):
        with pytest.raises(UsageError, match=r"two metrics are spelled recall@1"):
            evaluate({"q1": ["a"]}, gold={"q1": ["a"]}, metrics=metrics)


def test_judged_only_without_a_negative_label_is_told() -> None:
    run, gold = {"q1": ["x", "y", "a"]}, {"q1": {"a": 1}}
    result = evaluate(run, gold=gold, metrics=["rr"], judged_only=True)
    assert "judged_only" in {notice.kind for notice in result.warnings}
    gold = {"q1": {"a": 1, "x": 0}}
    result = evaluate(run, gold=gold, metrics=["rr"], judged_only=True)
    assert "judged_only" not in {notice.kind for notice in result.warnings}


@pytest.mark.parametrize("relevant", [[[[], []]], [["d1", [[]]], ["d1"]]])
def test_lists_that_hold_no_ids_are_refused(relevant: list[Any]) -> None:
    samples = [{"id": "q1", "retrieved_ids": ["d1"], "relevant": relevant}]
    with pytest.raises(FormatError, match="q1"):
        evaluate(samples)


@pytest.mark.parametrize("query", ["anfrage", "query_id"])
def test_columns_under_foreign_names_are_named_by_their_looks(
    query: str, tmp_path: Path
) -> None:
    run, gold = tmp_path / "run.csv", tmp_path / "gold.csv"
    run.write_text(f"{query};dokument;wert\nq;b;0.5\nq;a;0.9\n", "utf-8")
    gold.write_text(f"{query};dokument;note\nq;b;1\n", "utf-8")
    names: dict[str, str] = {}
    for read, file in ((read_run, run), (read_gold, gold)):
        with pytest.raises(FormatError, match="one row per document") as error:
            read(file)
        names |= proposed(str(error.value))
    assert evaluate(run, gold, mapping=names, metrics="rr").means == {"rr": 0.5}


@pytest.mark.parametrize("field", ["relevant", "gold_docs", None])
def test_texts_among_ids_are_told(field: str | None) -> None:
    mixed = ["d1", "Rye is a grain of the north."]
    gold = {"q": mixed} if field is None else [{"id": "q", field: mixed}]
    (notice,) = evaluate({"q": ["d1"]}, gold, metrics="rr").notices
    assert str(notice).startswith("1 gold text is mixed with ids in one list")


def test_strings_that_turn_out_to_be_ids_keep_how_long_they_took() -> None:
    titles = ["How rye is grown", "Bread of the north"]
    run = [{"id": "q", "retrieved": titles, "latency_ms": 7}]
    result = evaluate(run, {"q": dict.fromkeys(titles, 1)}, metrics="rr")
    assert result.latency is not None
    assert result.latency.milliseconds == {"q": 7.0}
