"""Evaluate a Qdrant collection, and what its index loses against exact search."""

from zlib import crc32

from qdrant_client import QdrantClient, models

import karat

TEXTS = {
    "rye": "Rye is a grain that grows in poor soil.",
    "oats": "Oats are fed to horses and eaten as porridge.",
    "rice": "Rice grows in flooded fields.",
}
QUERIES = {"q1": "grain for poor soil", "q2": "porridge for horses"}
GOLD = {"q1": ["rye"], "q2": ["oats"]}


def embed(text: str) -> list[float]:
    """A bag of hashed words, so that the example needs no model."""
    vector = [0.0] * 64
    for word in text.lower().replace(".", "").split():
        vector[crc32(word.encode()) % 64] += 1
    return vector


client = QdrantClient(":memory:")
shape = models.VectorParams(size=64, distance=models.Distance.COSINE)
client.create_collection("docs", vectors_config=shape)
points = [
    models.PointStruct(id=n, vector=embed(TEXTS[name]), payload={"doc_id": name})
    for n, name in enumerate(TEXTS)
]
client.upsert("docs", points)

asked = {"encode": embed, "mapping": {"document": "payload.doc_id"}, "cache": None}
run = karat.retrieve(client, QUERIES, name="qdrant", **asked)
result = karat.evaluate(run, gold=GOLD)
print(result.run, {name: round(mean, 4) for name, mean in result.means.items()})
print("timed:", result.latency is not None)

exact = {"search_params": models.SearchParams(exact=True)}
best = karat.retrieve(client, QUERIES, options=exact, **asked)
index, exact = (karat.evaluate(r, gold=GOLD, metrics="recall@2") for r in (run, best))
print("lost by approximation:", exact.means["recall@2"] - index.means["recall@2"])
