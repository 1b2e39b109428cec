"""Evaluate a Haystack pipeline: hand it over, and name what it puts out."""

from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

import karat

TEXTS = {
    "rye": "Rye is a grain that grows in poor soil.",
    "oats": "Oats are fed to horses and eaten as porridge.",
    "rice": "Rice grows in flooded fields.",
}
QUERIES = {"q1": "grain for poor soil", "q2": "porridge for horses"}
GOLD = {"q1": ["rye"], "q2": ["oats"]}

store = InMemoryDocumentStore()
store.write_documents([Document(id=name, content=t) for name, t in TEXTS.items()])
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store))

run = karat.retrieve(
    pipeline, QUERIES, output="retriever.documents", name="haystack", cache=None
)
result = karat.evaluate(run, gold=GOLD)
print(result.run, {name: round(mean, 4) for name, mean in result.means.items()})
print("timed:", result.latency is not None)
