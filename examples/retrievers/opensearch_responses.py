"""Evaluate OpenSearch or Elasticsearch; its responses are recorded here."""

from typing import Any

import karat

QUERIES = {"q1": "grain for poor soil", "q2": "porridge for horses"}
GOLD = {"q1": ["rye"], "q2": ["oats"]}
RECORDED = {"grain for poor soil": ["rye", "rice"], "porridge for horses": ["oats"]}


class Client:
    """Stands in for `opensearchpy.OpenSearch(...)`: the same calls, known answers."""

    def search(self, index: str, body: dict[str, Any], size: int) -> dict[str, Any]:
        """One search."""
        found = RECORDED[body["query"]["match"]["text"]][:size]
        hits = [
            {"_index": index, "_id": name, "_score": 9.0 - place, "_source": {}}
            for place, name in enumerate(found)
        ]
        total = {"value": len(hits), "relation": "eq"}
        return {"took": 3, "timed_out": False, "hits": {"total": total, "hits": hits}}

    def msearch(self, body: Any) -> dict[str, Any]:
        """Several searches; karat asks one at a time, to time each."""
        raise NotImplementedError


run = karat.retrieve(
    Client(),
    QUERIES,
    options={"index": "docs", "body": {"query": {"match": {"text": "{query}"}}}},
    name="opensearch",
    cache=None,
)
result = karat.evaluate(run, gold=GOLD)
print(result.run, {name: round(mean, 4) for name, mean in result.means.items()})
print("timed:", result.latency is not None)
