"""Evaluate a LangChain retriever: hand it over as it is."""

from zlib import crc32

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

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


class Words(Embeddings):
    """What LangChain takes for a model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text."""
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """A vector for the query."""
        return embed(text)


store = InMemoryVectorStore(Words())
store.add_texts([*TEXTS.values()], ids=[*TEXTS])
result = karat.evaluate(
    retriever=store.as_retriever(), queries=QUERIES, gold=GOLD, name="langchain"
)
print(result.run, {name: round(mean, 4) for name, mean in result.means.items()})
print("timed:", result.latency is not None)
