"""Runs cut into parts in every way, and what must come out of it."""

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import karat
from karat.metrics import METRICS

METRIC_NAMES = [*METRICS.shipped]
GOLD = {
    f"q{q}": {f"d{(7 * q + 3 * d) % 60}": d % 3 for d in range(6)} for q in range(30)
}
Rows = list[tuple[str, str, float]]


def rows(seed: int, *, repeats: bool = True) -> Rows:
    """A run of 35 queries with ties and, if wanted, documents retrieved twice."""
    draw = random.Random(seed)
    found = []
    for query in range(2, 37):
        for document in draw.sample(range(60), draw.randrange(1, 20)):
            score = draw.randrange(12) / 4
            found.append((f"q{query}", f"d{document}", score))
            if repeats and draw.random() < 0.1:
                found.append((f"q{query}", f"d{document}", draw.randrange(12) / 4))
    return found


def table(found: Rows) -> pa.Table:
    query, document, score = zip(*found, strict=True) if found else ((), (), ())
    return pa.table(
        {
            "query": pa.array(query, pa.string()),
            "document": pa.array(document, pa.string()),
            "score": pa.array(score, pa.float64()),
        }
    )


def cut(found: Rows, parts: int, seed: int, *, scatter: bool) -> list[Rows]:
    """The rows in parts: anywhere, or in order and cut anywhere."""
    draw = random.Random(seed)
    if scatter:
        cuts: list[Rows] = [[] for _ in range(parts)]
        for row in found:
            cuts[draw.randrange(parts)].append(row)
        return cuts
    ends = sorted(draw.randrange(len(found) + 1) for _ in range(parts - 1))
    return [found[a:b] for a, b in zip([0, *ends], [*ends, len(found)], strict=True)]


def told(result: karat.Evaluation) -> dict[str, Any]:
    """All that a result says, but for who computed it."""
    told = result.to_dict()
    for name in ("engine", "partitions", "rows"):
        told["evaluation"]["provenance"].pop(name, None)
    return told


def whole(found: Rows, metrics: Sequence[str] = (), **options: Any) -> dict[str, Any]:
    """What one pass over the whole run says."""
    result = karat.evaluate(
        table(found), gold=GOLD, metrics=metrics or ["ndcg@5", "rr"], **options
    )
    return told(result)
