"""The real objects of each framework, handed to karat without a line between."""
# ruff: noqa: PLC0415 (each library is imported by the one test that needs it)

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import karat

pytestmark = [
    pytest.mark.frameworks,
    # What the libraries themselves warn of is not ours.
    pytest.mark.filterwarnings("ignore"),
]
for switch in ("ANONYMIZED_TELEMETRY", "HAYSTACK_TELEMETRY_ENABLED"):
    os.environ[switch] = "False"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

TEXTS = {
    "rye": "Rye is a grain that grows in poor soil.",
    "oats": "Oats are fed to horses and eaten as porridge.",
    "rice": "Rice grows in flooded fields.",
    "tea": "Tea is made from the leaves of a bush.",
    "salt": "Salt is won from the sea or from mines.",
}
QUERIES = {
    "q1": "rye grain poor soil",
    "q2": "oats porridge horses",
    "q3": "rice flooded fields",
}
GOLD = {"q1": ["rye"], "q2": ["oats"], "q3": ["rice"]}
NAMES = [*TEXTS]


def embed(text: str) -> list[float]:
    """A bag of words, hashed: enough to find what shares words."""
    vector = np.zeros(64, np.float32)
    for word in text.lower().replace(".", "").split():
        vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % 64] += 1
    return [float(x) for x in vector / np.linalg.norm(vector)]


def check(run: karat.Run, metric: str = "rr") -> None:
    assert run.failures == {}
    assert run.latency is not None
    result = karat.evaluate(run, gold=GOLD, metrics=[metric])
    assert result[metric].mean == 1.0


def test_langchain() -> None:
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Words(Embeddings):  # type: ignore[misc]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [*map(embed, texts)]

        def embed_query(self, text: str) -> list[float]:
            return embed(text)

    store = InMemoryVectorStore(Words())
    store.add_texts([*TEXTS.values()], ids=NAMES, metadatas=[{"key": n} for n in NAMES])
    run = karat.retrieve(store.as_retriever(), QUERIES, k=5, cache=None)
    check(run)
    # It would give 4 by itself.
    assert all(len(documents) == 5 for documents in run.by_query.values())  # type: ignore[attr-defined]
    mapping = {"document": "metadata.key"}
    check(karat.retrieve(store.as_retriever(), QUERIES, mapping=mapping, cache=None))
    check(karat.retrieve(store.similarity_search_with_score, QUERIES, cache=None))


def test_llama_index() -> None:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Words(BaseEmbedding):  # type: ignore[misc]
        def _get_query_embedding(self, query: str) -> list[float]:
            return embed(query)

        def _get_text_embedding(self, text: str) -> list[float]:
            return embed(text)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return embed(query)

    nodes = [TextNode(id_=name, text=text) for name, text in TEXTS.items()]
    index = VectorStoreIndex(nodes, embed_model=Words())
    retriever = index.as_retriever(similarity_top_k=1)
    run = karat.retrieve(retriever, QUERIES, k=3, cache=None)
    check(run)
    assert all(len(documents) == 3 for documents in run.by_query.values())  # type: ignore[attr-defined]
    assert retriever.similarity_top_k == 1


def test_haystack() -> None:
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents([Document(id=n, content=t) for n, t in TEXTS.items()])
    check(karat.retrieve(InMemoryBM25Retriever(store), QUERIES, k=3, cache=None))
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    check(karat.retrieve(pipeline, QUERIES, k=3, cache=None))
    where = "retriever.documents"
    check(karat.retrieve(pipeline, QUERIES, k=3, output=where, cache=None))


def test_qdrant() -> None:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    shape = models.VectorParams(size=64, distance=models.Distance.COSINE)
    client.create_collection("docs", vectors_config=shape)
    points = [
        models.PointStruct(id=n, vector=embed(TEXTS[name]), payload={"doc_id": name})
        for n, name in enumerate(NAMES)
    ]
    client.upsert("docs", points)
    mapping = {"document": "payload.doc_id"}
    check(karat.retrieve(client, QUERIES, encode=embed, mapping=mapping, cache=None))
    answers = {
        query: client.query_points("docs", query=embed(text), limit=3)
        for query, text in QUERIES.items()
    }
    points_alone = {query: answer.points for query, answer in answers.items()}
    rows = [{"id": query, "hits": found} for query, found in points_alone.items()]
    for run in (points_alone, rows):
        assert karat.evaluate(run, gold=GOLD, mapping=mapping)["rr"].mean == 1.0


def test_chroma() -> None:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = client.create_collection("docs", embedding_function=None)
    collection.add(
        ids=NAMES,
        documents=[*TEXTS.values()],
        embeddings=[embed(text) for text in TEXTS.values()],
    )
    check(karat.retrieve(collection, QUERIES, k=3, encode=embed, cache=None))


def test_lancedb(tmp_path: Path) -> None:
    import lancedb

    rows = [{"id": n, "text": t, "vector": embed(t)} for n, t in TEXTS.items()]
    table = lancedb.connect(tmp_path / "lance").create_table("docs", rows)
    check(karat.retrieve(table, QUERIES, k=3, encode=embed, cache=None))

    def in_arrow(query: str, k: int) -> Any:
        return table.search(embed(query)).limit(k).to_arrow()

    check(karat.retrieve(in_arrow, QUERIES, k=3, cache=None))


def test_faiss() -> None:
    import faiss

    vectors = np.array([embed(text) for text in TEXTS.values()], np.float32)
    for index in (faiss.IndexFlatL2(64), faiss.IndexFlatIP(64)):
        index.add(vectors)
        run = karat.retrieve(index, QUERIES, ids=NAMES, encode=embed, cache=None)
        check(run)
        # There are five, whatever k is, and their scores fall.
        assert {notice.kind for notice in run.retrieval.notices} == {"fewer"}


def test_bm25s() -> None:
    import bm25s

    index = bm25s.BM25()
    index.index(
        bm25s.tokenize([*TEXTS.values()], show_progress=False), show_progress=False
    )
    check(karat.retrieve(index, QUERIES, k=3, ids=NAMES, cache=None))


def test_mlflow_takes_scores_of_rows() -> None:
    from mlflow.entities import Feedback  # type: ignore[import-not-found]
    from mlflow.genai import scorer  # type: ignore[import-not-found]

    score = karat.row_scorer(["recall@2", "rr"])

    @scorer  # type: ignore[untyped-decorator]
    def retrieval(outputs: list[str], expectations: dict[str, Any]) -> list[Any]:
        scores = score(outputs, expectations["documents"]).items()
        return [Feedback(name=n, value=v) for n, v in scores if v is not None]

    found = retrieval.run(outputs=["b", "a"], expectations={"documents": ["a", "c"]})
    assert {one.name: one.value for one in found} == {"recall@2": 0.5, "rr": 0.5}
    assert retrieval.run(outputs=["b"], expectations={"documents": []}) == []
