"""Evaluate a LlamaIndex retriever: hand it over as it is."""

from zlib import crc32

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

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


class Words(BaseEmbedding):
    """What LlamaIndex takes for a model."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


nodes = [TextNode(id_=name, text=text) for name, text in TEXTS.items()]
retriever = VectorStoreIndex(nodes, embed_model=Words()).as_retriever()
result = karat.evaluate(
    retriever=retriever, queries=QUERIES, gold=GOLD, name="llama_index"
)
print(result.run, {name: round(mean, 4) for name, mean in result.means.items()})
print("timed:", result.latency is not None)
