"""Real objects of the page "What do you have?", scored as their own libraries do."""
# ruff: noqa: PLC0415 (each library is imported by the one test that needs it)

import asyncio
from pathlib import Path
from typing import Any

import pytest

import karat
from tests.docs.in_hand import ASKED, ELASTIC, GOLD, LISTS, QRELS, RR, SAMPLES, TEXTS
from tests.retrieving.test_frameworks import embed

pytestmark = [
    pytest.mark.frameworks,
    # What the libraries themselves warn of is not ours.
    pytest.mark.filterwarnings("ignore"),
]


def means(run: Any, gold: Any = GOLD, **given: Any) -> dict[str, float]:
    return dict(karat.evaluate(run, gold=gold, **given).means)


def test_elasticsearch() -> None:
    from elastic_transport import (
        ApiResponseMeta,
        HttpHeaders,
        NodeConfig,
        ObjectApiResponse,
    )

    node = NodeConfig("http", "127.0.0.1", 9200)
    meta = ApiResponseMeta(200, "1.1", HttpHeaders(), 0.1, node)
    answer = ObjectApiResponse(ELASTIC, meta)
    assert means({"q1": answer, "q2": answer}, metrics=["rr"]) == {"rr": RR}
    both = ObjectApiResponse({"took": 1, "responses": [ELASTIC, ELASTIC]}, meta)
    assert means(both, [*GOLD.values()], metrics=["rr"]) == {"rr": RR}


def test_qdrant_chroma_and_lancedb(tmp_path: Path) -> None:
    import chromadb
    import lancedb
    from chromadb.config import Settings
    from qdrant_client import QdrantClient, models

    vectors = {name: embed(text) for name, text in TEXTS.items()}
    client = QdrantClient(":memory:")
    shape = models.VectorParams(size=64, distance=models.Distance.COSINE)
    client.create_collection("docs", vectors_config=shape)
    points = [
        models.PointStruct(id=n, vector=vector, payload={"name": name})
        for n, (name, vector) in enumerate(vectors.items())
    ]
    client.upsert("docs", points)
    stored = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = stored.create_collection("in_hand", embedding_function=None)
    collection.add(ids=[*TEXTS], embeddings=[*vectors.values()])
    rows = [{"id": name, "vector": vector} for name, vector in vectors.items()]
    table = lancedb.connect(tmp_path / "lance").create_table("docs", rows)
    asked = {query: vectors[wanted] for query, (wanted,) in GOLD.items()}
    named = {"document": "payload.name"}
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "qdrant": (
            {q: client.query_points("docs", query=v) for q, v in asked.items()},
            {"mapping": named},
        ),
        "chroma": (
            {q: collection.query(query_embeddings=[v]) for q, v in asked.items()},
            {},
        ),
        "lancedb": ({q: table.search(v).to_list() for q, v in asked.items()}, {}),
        "arrow": ({q: table.search(v).to_arrow() for q, v in asked.items()}, {}),
    }
    for name, (run, given) in found.items():
        assert means(run, metrics=["rr"], **given) == {"rr": 1.0}, name
        wrong = {"q1": ["d2"], "q2": ["d1"]}
        assert means(run, wrong, metrics=["rr"], **given) == {"rr": 0.5}, name


def test_haystack_documents_are_runs_and_gold() -> None:
    from haystack import Document
    from haystack.components.evaluators import (
        DocumentMAPEvaluator,
        DocumentMRREvaluator,
        DocumentNDCGEvaluator,
        DocumentRecallEvaluator,
    )

    documents = {n: Document(id=n, content=t) for n, t in TEXTS.items()}
    run = {q: [documents[d] for d in ranking] for q, ranking in LISTS.items()}
    gold = {q: [documents[d] for d in wanted] for q, wanted in GOLD.items()}
    theirs = {
        name: evaluator.run(
            ground_truth_documents=[*gold.values()], retrieved_documents=[*run.values()]
        )["score"]
        for name, evaluator in {
            "rr": DocumentMRREvaluator(),
            "ap": DocumentMAPEvaluator(),
            "ndcg": DocumentNDCGEvaluator(),
            "recall": DocumentRecallEvaluator(mode="multi_hit"),
        }.items()
    }
    assert means(run, gold, metrics=[*theirs]) == pytest.approx(theirs, abs=1e-12)
    wrapped = {q: {"retriever": {"documents": found}} for q, found in run.items()}
    assert means(wrapped, gold, metrics=[*theirs]) == pytest.approx(theirs, abs=1e-12)
    named = {
        q: [Document(content=d.content, meta={"key": d.id}) for d in wanted]
        for q, wanted in gold.items()
    }
    mapping = {"document": "meta.key"}
    assert means(LISTS, named, metrics=["rr"], mapping=mapping) == {"rr": RR}


def test_llama_index_results_hold_run_and_gold() -> None:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.evaluation import RetrieverEvaluator
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = {n: TextNode(id_=n, text=t) for n, t in TEXTS.items()}
    found = [NodeWithScore(node=nodes[d], score=s) for d, s in (("d1", 1), ("d2", 0.5))]

    class Fixed(BaseRetriever):  # type: ignore[misc]
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            del query_bundle
            return found

    names = {
        "mrr": "rr",
        "hit_rate": "hit",
        "recall": "recall",
        "ap": "ap",
        "ndcg": "ndcg",
    }
    evaluator = RetrieverEvaluator.from_metric_names([*names], retriever=Fixed())
    results = [
        asyncio.run(evaluator.aevaluate(ASKED[q], expected_ids=wanted))
        for q, wanted in GOLD.items()
    ]
    ours = means(results, None, metrics=[*names.values()])
    for theirs, name in names.items():
        mean = sum(r.metric_vals_dict[theirs] for r in results) / len(results)
        assert ours[name] == pytest.approx(mean, abs=1e-12), theirs
    run = dict.fromkeys(GOLD, found)
    gold = {q: [nodes[d] for d in wanted] for q, wanted in GOLD.items()}
    assert means(run, gold, metrics=["rr"]) == {"rr": RR}


def test_langchain_documents_are_gold_too() -> None:
    from langchain_core.documents import Document

    documents = {n: Document(id=n, page_content=t) for n, t in TEXTS.items()}
    run = {q: [(documents[d], 1.0) for d in found] for q, found in LISTS.items()}
    gold = {q: [documents[d] for d in wanted] for q, wanted in GOLD.items()}
    assert means(run, gold, metrics=["rr"]) == {"rr": RR}
    texts = {q: [Document(page_content=TEXTS[d]) for d in w] for q, w in GOLD.items()}
    assert means(run, texts, metrics=["rr"]) == {"rr": RR}


def test_hugging_face_in_every_role() -> None:
    from datasets import Dataset, DatasetDict

    qrels, samples = map(Dataset.from_list, (QRELS, SAMPLES))
    rows = [
        {"query_id": q, "doc_id": d, "score": 1.0 - rank / 10}
        for q, ranking in LISTS.items()
        for rank, d in enumerate(ranking)
    ]
    run = Dataset.from_list(rows)
    queries = Dataset.from_list([{"_id": q, "text": t} for q, t in ASKED.items()])
    corpus = Dataset.from_list([{"_id": d, "text": t} for d, t in TEXTS.items()])
    splits = DatasetDict(train=qrels.select([0]), test=qrels)
    whole = DatasetDict(qrels=qrels, queries=queries, corpus=corpus)
    for gold in (
        qrels,
        qrels.select([1, 0]),
        splits,
        whole,
        qrels.to_iterable_dataset(),
    ):
        for ranked in (run, DatasetDict(train=run), run.to_iterable_dataset()):
            assert means(ranked, gold, metrics=["rr"]) == {"rr": RR}
    assert means(samples, None, metrics=["rr"]) == {"rr": RR}
    by_text = {ASKED[q]: ranking for q, ranking in LISTS.items()}
    for asked, texts in ((queries, corpus), (whole, whole)):
        result = means(
            by_text, qrels, queries=asked, corpus=texts, match="chunk", metrics=["rr"]
        )
        assert result == {"rr": RR}
    with pytest.raises(karat.errors.FormatError, match=r"parts.*qrels or test: a, b"):
        means(LISTS, DatasetDict(a=qrels, b=qrels))
