"""A sweep of 24 settings on the corpora of chunking_evaluation, and what it is worth.

    python -m bench.sweep                 the sweep, resumed, and confirmed
    python -m bench.sweep --simulate      how often intervals cover, on made scores

Three chunkers (characters, sentences, paragraphs) x four sizes x two overlaps, bm25s
over the chunks of all five corpora, 472 questions with gold passages.
"""

import argparse
import csv
import json
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import karat
from karat.stats.intervals import mean_interval
from karat.stats.multiple_tests import best_interval, maybe_best

SHARED = Path(__file__).parents[2] / "shared" / "data" / "chunking_eval"
GRID: dict[str, list[Any]] = {
    "chunker": ["characters", "sentences", "paragraphs"],
    "size": [200, 400, 800, 1600],
    "overlap": [0.0, 0.25],
}
K = 5


def pieces(text: str, chunker: str) -> list[str]:
    """The smallest parts that a chunker does not cut."""
    if chunker == "characters":
        return re.findall(r".{1,20}", text, re.DOTALL)
    if chunker == "sentences":
        return re.findall(r".+?(?:[.!?](?=\s)\s*|\n+|$)", text, re.DOTALL)
    return re.findall(r".+?(?:\n\s*\n|$)", text, re.DOTALL)


def chunks(text: str, chunker: str, size: int, overlap: float) -> Iterator[str]:
    """Whole parts up to a size; the last ones are repeated, up to the overlap."""
    held: list[str] = []
    for piece in pieces(text, chunker):
        for part in (piece[n : n + size] for n in range(0, len(piece), size)):
            if held and sum(map(len, held)) + len(part) > size:
                yield "".join(held)
                while held and sum(map(len, held)) > overlap * size:
                    held.pop(0)
            held.append(part)
    yield "".join(held)


def read_data() -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
    """The corpora, the questions and the gold passages."""
    with (SHARED / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    names = sorted({row["corpus_id"] for row in rows})
    corpora = {name: (SHARED / f"{name}.md").read_text("utf-8") for name in names}
    queries = {f"q{n}": row["question"] for n, row in enumerate(rows)}
    gold = {
        f"q{n}": [span["content"] for span in json.loads(row["references"])]
        for n, row in enumerate(rows)
    }
    return corpora, queries, gold


def bm25_factory(corpora: dict[str, str]) -> Callable[..., Any]:
    """Builds a keyword index over chunks."""
    import bm25s

    def build(chunker: str, size: int, overlap: float) -> Callable[[str], Any]:
        texts = [
            chunk
            for text in corpora.values()
            for chunk in chunks(text, chunker, size, overlap)
            if chunk.strip()
        ]
        index = bm25s.BM25()
        index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)

        def search(query: str) -> list[dict[str, Any]]:
            found, scores = index.retrieve(
                bm25s.tokenize(query, show_progress=False),
                k=K,
                show_progress=False,
                n_threads=0,
            )
            return [
                {"id": f"c{n}", "text": texts[n], "score": float(score)}
                for n, score in zip(found[0].tolist(), scores[0], strict=True)
            ]

        return search

    return build


def run_sweep() -> karat.Sweep:
    corpora, queries, gold = read_data()
    return karat.sweep(
        bm25_factory(corpora),
        GRID,
        queries,
        {query: {"passages": texts} for query, texts in gold.items()},
        metrics=["recall@k", "ndcg@k"],
        k=K,
        version="1",
    )


def part_of(result: karat.Sweep, rows: list[int]) -> karat.Sweep:
    """The same sweep, had only these queries been asked."""
    trials = [
        replace(
            trial,
            scores={m: [s[row] for row in rows] for m, s in trial.scores.items()},
            tokens=[trial.tokens[row] for row in rows],
            milliseconds=[trial.milliseconds[row] for row in rows],
        )
        for trial in result.trials
    ]
    return karat.Sweep(result.metrics, [result.queries[row] for row in rows], trials)


def confirm(
    result: karat.Sweep, share: float, resamples: int = 100
) -> dict[str, float]:
    """Choose on a random part of the queries, and look at the others.

    How often the interval that the sweep gives for its winner holds the winner's mean
    on the held-out queries; how often the interval of a single mean does; and how often
    the setting that is best on the others is among those not told apart.
    """
    metric = result.metrics[0]
    chance = random.Random(7)
    total = len(result.queries)
    counts = {"interval": 0, "naive": 0, "best is alike": 0}
    for _ in range(resamples):
        order = chance.sample(range(total), total)
        size = round(share * total)
        chosen, others = part_of(result, order[:size]), part_of(result, order[size:])
        row = [*map(id, chosen.trials)].index(id(chosen.best))
        mean = others.trials[row].mean(metric)
        low, high = chosen.interval or (0.0, 1.0)
        single = mean_interval(np.array(chosen.best.scores[metric], float))
        counts["interval"] += low <= mean <= high
        counts["naive"] += single is not None and single.low <= mean <= single.high
        alike = [trial.setting for trial in chosen.alike]
        counts["best is alike"] += others.best.setting in alike
    return {name: count / resamples for name, count in counts.items()}


def simulate(repeats: int = 300) -> None:
    """How often intervals hold the true mean of the best of several made systems."""
    chance = np.random.default_rng(1)

    def draw(kind: str, queries: int, systems: int, alike: float, apart: float) -> Any:
        shared, own = (
            chance.normal(size=queries),
            chance.normal(size=(systems, queries)),
        )
        value = np.sqrt(alike) * shared + np.sqrt(1 - alike) * own
        value += np.linspace(0, apart, systems)[:, None]
        if kind == "binary":
            return (value > 0.3).astype(float)
        if kind == "graded":
            return np.clip(np.round((value + 1) * 2) / 4, 0, 1)
        return 1 / (1 + np.exp(-value))

    print("kind    n    systems  alike  apart  single  chosen  wider  best among alike")
    for kind in ("smooth", "graded", "binary"):
        for queries in (15, 60, 200):
            for how in ((24, 0.0, 0.0), (24, 0.7, 0.0), (24, 0.7, 0.3), (6, 0.9, 0.1)):
                truth = draw(kind, 200_000, *how).mean(axis=1)
                covered, widths, among = np.zeros(2), np.zeros(2), 0
                for _ in range(repeats):
                    scores = draw(kind, queries, *how)
                    best = int(scores.mean(axis=1).argmax())
                    binary = kind == "binary"
                    for n, found in enumerate(
                        (
                            mean_interval(scores[best], binary=binary),
                            best_interval(scores, best, binary=binary),
                        )
                    ):
                        low, high = found or (0.0, 1.0)
                        covered[n] += low <= truth[best] <= high
                        widths[n] += high - low
                for _ in range(repeats // 5):
                    scores = draw(kind, queries, *how)
                    among += bool(maybe_best(scores)[truth.argmax()])
                single, chosen = covered / repeats
                systems, alike, apart = how
                print(
                    f"{kind:6}  {queries:3}  {systems:7}  {alike:5}  {apart:5}  "
                    f"{single:6.3f}  {chosen:6.3f}  {widths[1] / widths[0]:5.2f}  "
                    f"{among / (repeats // 5):.3f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", action="store_true")
    if parser.parse_args().simulate:
        simulate()
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for said in ("tried", "resumed"):
            start, cpu = time.perf_counter(), time.process_time()
            result = run_sweep()
            took, cpu = time.perf_counter() - start, time.process_time() - cpu
            print(f"{said}: {took:.1f} s, CPU {cpu:.1f} s; best: {result.best}")
            if said == "tried":
                print(f"\n{result}\n")
                whole = result
        for share in (0.25, 0.5):
            print(f"chosen on {share:.0%} of the queries: {confirm(whole, share)}")


if __name__ == "__main__":
    main()
