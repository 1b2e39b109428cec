"""The bundled help centre: its files agree with one another."""

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "src" / "karat" / "examples" / "help_centre"
LARGEST = 150_000
POOL = 5


def records(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def columns(name: str) -> list[list[str]]:
    return [line.split() for line in (FOLDER / name).read_text("utf-8").splitlines()]


def gold() -> dict[str, dict[str, int]]:
    labels: dict[str, dict[str, int]] = {}
    for query, _, document, grade in columns("gold.qrels"):
        labels.setdefault(query, {})[document] = int(grade)
    return labels


def texts() -> dict[str, str]:
    return {article["id"]: article["text"] for article in records("corpus.jsonl")}


def test_the_folder_is_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < LARGEST


def test_ids_are_unique() -> None:
    for name in ("corpus.jsonl", "queries.jsonl", "samples.jsonl"):
        ids = [record["id"] for record in records(name)]
        assert len(ids) == len(set(ids)), name


def test_gold_names_only_known_queries_and_articles() -> None:
    queries = [query["id"] for query in records("queries.jsonl")]
    assert list(gold()) == queries
    assert {document for labels in gold().values() for document in labels} <= set(
        texts()
    )
    grades = [grade for labels in gold().values() for grade in labels.values()]
    assert set(grades) == {0, 1, 2, 3}
    assert len(grades) == len(columns("gold.qrels"))


def test_one_query_has_nothing_relevant() -> None:
    assert [q for q, labels in gold().items() if not any(labels.values())] == ["q38"]


@pytest.mark.parametrize("name", ["keyword", "dense"])
def test_a_run_is_ranked_as_its_scores_say(name: str) -> None:
    ranked = groupby(columns(f"{name}.run"), key=lambda row: row[0])
    queries = []
    for query, rows in ranked:
        queries.append(query)
        ranking = [(int(r[3]), float(r[4]), r[2]) for r in rows]
        assert [rank for rank, *_ in ranking] == [*range(1, len(ranking) + 1)]
        assert len(ranking) <= 20
        assert {document for *_, document in ranking} <= set(texts())
        assert all(a[1:] > b[1:] for a, b in pairwise(ranking)), query
    assert queries == list(gold())


@pytest.mark.parametrize("name", ["keyword", "dense"])
def test_the_pool_is_judged_to_its_depth(name: str) -> None:
    for query, _, document, rank, *_ in columns(f"{name}.run"):
        assert int(rank) > POOL or document in gold()[query], (query, document)


def test_complete_samples_agree_with_the_files_apart() -> None:
    queries = {query["id"]: query for query in records("queries.jsonl")}
    top: dict[str, list[str]] = {}
    for query, _, document, rank, *_ in columns("dense.run"):
        if int(rank) <= POOL:
            top.setdefault(query, []).append(document)
    for sample in records("samples.jsonl"):
        name = sample["id"]
        positive = {d: g for d, g in gold()[name].items() if g > 0}
        assert sample["query"] == queries[name]["text"]
        assert sample["tags"] == queries[name]["tags"]
        assert sample["relevant"] == positive
        assert sample["retrieved"] == [{"id": d, "text": texts()[d]} for d in top[name]]


def test_gold_passages_and_answers_stand_in_relevant_articles() -> None:
    for sample in records("samples.jsonl"):
        relevant = [texts()[document] for document in sample["relevant"]]
        for text in [*sample["passages"], *sample["answers"]]:
            assert any(text in article for article in relevant), (sample["id"], text)


def test_yaml_samples_hold_the_three_kinds_of_expectation_and_output() -> None:
    text = (FOLDER / "samples.yaml").read_text(encoding="utf-8")
    samples = yaml.safe_load(text)["samples"]
    assert {type(sample["expected_output"]) for sample in samples} == {list, dict, str}
    assert {type(sample["actual_output"]) for sample in samples} == {list, dict, str}
    answer = next(s for s in samples if isinstance(s["expected_output"], str))
    retrieved = json.loads(answer["actual_output"])["retrieved"]
    assert answer["expected_output"] in retrieved[0]["text"]
    assert all(document["text"] == texts()[document["id"]] for document in retrieved)
