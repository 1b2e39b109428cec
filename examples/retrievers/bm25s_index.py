"""Evaluate a bm25s index: hand it over with the ids of its documents."""

import bm25s

import karat

TEXTS = {
    "rye": "Rye is a grain that grows in poor soil.",
    "oats": "Oats are fed to horses and eaten as porridge.",
    "rice": "Rice grows in flooded fields.",
}
QUERIES = {"q1": "grain for poor soil", "q2": "porridge for horses"}
GOLD = {"q1": ["rye"], "q2": ["oats"]}

index = bm25s.BM25()
tokens = bm25s.tokenize([*TEXTS.values()], show_progress=False)
index.index(tokens, show_progress=False)

run = karat.retrieve(index, QUERIES, ids=[*TEXTS], name="bm25s", cache=None)
result = karat.evaluate(run, gold=GOLD)
print(result.run, {name: round(mean, 4) for name, mean in result.means.items()})
print("timed:", result.latency is not None)
