"""Fuzzy matching of texts beside plain RapidFuzz loops: `python bench/fuzzy.py`.

Every row also checks that both sides found the same: a score per query, compared
exactly. The texts are synthetic prose of about 500 characters; a fifth of the gold is
retrieved as it is, two fifths with 2 to 40 % of its characters changed.

With a threshold of 0.5, the plain loop is what ragas computes: for each gold text the
best similarity of any retrieved one. Its class builds a sample and awaits a coroutine
for each pair. Where ragas is installed the class itself is timed; where it is not the
coroutines alone are, and that row is kinder to it than the truth.
"""

import asyncio
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import accumulate
from typing import Any

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

import karat
from timing import Row, faster, in_process, show

__all__ = ["TITLE", "measure"]

TITLE = "fuzzy matching, 20 retrieved x 5 gold of ~500 characters (x = times faster)"

Texts = dict[str, tuple[list[str], list[str]]]
Similarity = Callable[[str, str], float]

_RETRIEVED, _GOLD = 20, 5
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def measure(sizes: list[str]) -> Iterator[Row]:
    """Whole evaluations beside loops that compute the same recall."""
    del sizes  # one size for all
    texts, few = make_texts(1000), make_texts(20, exactly=500)
    high = partial(_loop, texts, _levenshtein, 0.8)
    half = partial(_loop, texts, _levenshtein, 0.5, strict=True)
    part = partial(_loop, few, _partial, 0.8)
    yield _row("fuzzy(0.8)", texts, high, bar=4)
    yield _row("fuzzy(0.5)", texts, half, match="fuzzy(0.5, strict=true)")
    if find_spec("ragas"):
        ragas = partial(_with_ragas, texts)
        yield _row("fuzzy(0.5)", texts, ragas, "ragas", "fuzzy(0.5, strict=true)", 10)
    else:
        awaited = partial(_awaited, texts)
        yield _row(
            "fuzzy(0.5)", texts, awaited, "coroutines", "fuzzy(0.5, strict=true)"
        )
    yield _row("partial(0.8)", few, part, match="fuzzy(partial, 0.8)", bar=80)


def make_texts(queries: int, exactly: int | None = None) -> Texts:
    """Gold and retrieved texts by query, the same ones every time."""
    chance = random.Random(7)
    words = [
        "".join(chance.choices(_LETTERS[: chance.randint(8, 26)], k=length))
        for length in chance.choices((2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9), k=6000)
    ]
    weights = list(accumulate(1 / rank**0.9 for rank in range(1, len(words) + 1)))
    prose = " ".join(chance.choices(words, cum_weights=weights, k=200_000))

    def piece() -> str:
        start = chance.randrange(len(prose) - 1000)
        return prose[start : start + (exactly or chance.randint(400, 600))]

    texts: Texts = {}
    for query in range(queries):
        gold = [piece() for _ in range(_GOLD)]
        retrieved = []
        for text in gold:
            luck = chance.random()
            if luck < 0.2:
                retrieved.append(text)
            elif luck < 0.6:
                retrieved.append(_noisy(text, chance.uniform(0.02, 0.4), chance))
        retrieved += [piece() for _ in range(_RETRIEVED - len(retrieved))]
        chance.shuffle(retrieved)
        texts[f"q{query}"] = (gold, retrieved)
    return texts


def _noisy(text: str, share: float, chance: random.Random) -> str:
    changed = (
        chance.choice(("", " ", "e", "xy")) if chance.random() < share else char
        for char in text
    )
    return "".join(changed)


def _row(
    work: str,
    texts: Texts,
    theirs: Callable[[], list[float]],
    other: str = "plain loop",
    match: str | None = None,
    bar: float | None = None,
) -> Row:
    samples = [
        {"id": query, "passages": gold, "retrieved_texts": retrieved}
        for query, (gold, retrieved) in texts.items()
    ]
    ours = partial(_with_karat, samples, match or work)
    took = in_process({"karat": ours, other: theirs}, rounds=5)
    if took["karat"].value != took[other].value:
        raise SystemExit(f"{work}: karat and the {other} disagree")
    return faster(work, took["karat"].seconds, other, took[other].seconds, bar)


def _with_karat(samples: list[dict[str, Any]], match: str) -> list[float]:
    scores = karat.evaluate(samples, metrics=["recall"], match=match)["recall"].scores
    return [float(score) for score in scores]


def _loop(
    texts: Texts, similarity: Similarity, threshold: float, *, strict: bool = False
) -> list[float]:
    recalls = []
    for gold, retrieved in texts.values():
        best = [max(similarity(text, other) for other in retrieved) for text in gold]
        found = sum(s > threshold if strict else s >= threshold for s in best)
        recalls.append(found / len(gold))
    return recalls


def _levenshtein(text: str, other: str) -> float:
    return 1 - Levenshtein.normalized_distance(text, other)


def _partial(text: str, other: str) -> float:
    return fuzz.partial_ratio(text, other) / 100


def _awaited(texts: Texts) -> list[float]:
    async def compare(text: str, other: str) -> float:
        return _levenshtein(text, other)

    async def recall(gold: list[str], retrieved: list[str]) -> float:
        best = [max([await compare(text, o) for o in retrieved]) for text in gold]
        return sum(score > 0.5 for score in best) / len(gold)

    async def recalls() -> list[float]:
        return [await recall(*pair) for pair in texts.values()]

    return asyncio.run(recalls())


def _with_ragas(texts: Texts) -> list[float]:
    from ragas import SingleTurnSample
    from ragas.metrics import NonLLMContextRecall

    metric = NonLLMContextRecall()

    async def recalls() -> list[float]:
        return [
            await metric.single_turn_ascore(
                SingleTurnSample(reference_contexts=gold, retrieved_contexts=retrieved)
            )
            for gold, retrieved in texts.values()
        ]

    return asyncio.run(recalls())


if __name__ == "__main__":
    sys.exit(show(TITLE, measure([])) > 0)
